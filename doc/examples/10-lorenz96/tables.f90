! SPDX-License-Identifier: BSD-3-Clause
!
! tables - the results as text: a summary to read, and columns of numbers for other programs.
module tables
  use, intrinsic :: iso_fortran_env, only: real64
  use evaluation, only: by_network, by_quartic, comparison, interval, truth
  use mlp, only: network
  use statistics, only: bin_centre, climate_density, climate_mean, climate_variance, &
                        errors_r2, errors_rmse, hellinger, n_bins
  use training, only: mtu_per_step
  implicit none
  private
  public :: print_summary, summarize, write_histograms, write_loss, write_weights

  ! What a comparison comes to.
  type, public :: summary
    real(real64), dimension(by_quartic:by_network) :: r2, rmse ! of U
    real(real64) :: forecast(by_quartic:by_network) ! its error, 1 MTU ahead
    real(real64) :: distance(by_quartic:by_network) ! of histograms
    real(real64), dimension(truth:by_network) :: mean, variance ! of X in long runs
  end type summary

  integer, parameter :: lead = nint(1 / interval) ! the lead time whose error is printed: 1 MTU
  character(*), parameter :: row = '(a, t55, 2f11.4)', row_with_truth = '(a, t44, 3f11.4)'

contains

  pure type(summary) function summarize(c) result(s)
    type(comparison), intent(in) :: c
    real(real64) :: p(n_bins, truth:by_network)
    integer :: m

    do m = truth, by_network
      p(:, m) = climate_density(c%climate(:, m))
      s%mean(m) = climate_mean(c%climate(:, m))
      s%variance(m) = climate_variance(c%climate(:, m))
    end do
    do m = by_quartic, by_network
      s%r2(m) = errors_r2(c%tendency(:, m))
      s%rmse(m) = errors_rmse(c%tendency(:, m))
      s%forecast(m) = errors_rmse(c%forecast(:, lead, m))
      s%distance(m) = hellinger(p(:, truth), p(:, m))
    end do
  end function summarize

  subroutine print_summary(c, trajectories, run_time)
    type(comparison), intent(in) :: c
    integer, intent(in) :: trajectories, run_time
    type(summary) :: s

    s = summarize(c)
    print '(/, a, i0, t44, 3a11)', 'Trajectories not seen in training: ', trajectories, &
      'truth', 'quartic', 'network'
    print '(a)', 'Subgrid tendency U, from the true X'
    print row, '  R2', s%r2
    print row, '  RMSE', s%rmse
    print '(a)', 'Forecast of X, 1 MTU ahead'
    print row, '  RMSE', s%forecast
    print '(a, i0, a)', 'Climate of X, long runs of ', run_time, ' MTU with AR(1) noise'
    print row_with_truth, '  mean', s%mean
    print row, '    error', s%mean(by_quartic:) - s%mean(truth)
    print row_with_truth, '  variance', s%variance
    print row, '    error', s%variance(by_quartic:) - s%variance(truth)
    print row, '  Hellinger distance of histograms', s%distance
    if (any(c%escapes > 0)) print row, '  times set back from |X| > 100', c%escapes
    print '(/, a, f7.4, a, f7.4, a, f7.4)', 'Held-out R2: network', s%r2(by_network), &
      ', quartic', s%r2(by_quartic), ', difference', s%r2(by_network) - s%r2(by_quartic)
  end subroutine print_summary

  ! One line per training step: its number, the time simulated until then, the loss.
  subroutine write_loss(unit, loss)
    integer, intent(in) :: unit
    real(real64), intent(in) :: loss(:)
    integer :: i

    write (unit, '(a)') 'step,mtu,loss'
    do i = 1, size(loss)
      write (unit, '(i0, 2(",", es12.6))') i, i * mtu_per_step, loss(i)
    end do
  end subroutine write_loss

  ! One line per bin: its centre, and the probability densities of X.
  subroutine write_histograms(unit, c)
    integer, intent(in) :: unit
    type(comparison), intent(in) :: c
    real(real64) :: p(n_bins, truth:by_network)
    integer :: i, m

    do m = truth, by_network
      p(:, m) = climate_density(c%climate(:, m))
    end do
    write (unit, '(a)') 'x,truth,quartic,network'
    do i = 1, n_bins
      write (unit, '(es13.6, 3(",", es12.6))') bin_centre(i), p(i, :)
    end do
  end subroutine write_histograms

  ! One weight per line, with the digits that identify a real64.
  subroutine write_weights(unit, net)
    integer, intent(in) :: unit
    type(network), intent(in) :: net
    integer :: i

    do i = 1, size(net%layer)
      write (unit, '(es24.16e3)') net%layer(i)%m
    end do
  end subroutine write_weights

end module tables
