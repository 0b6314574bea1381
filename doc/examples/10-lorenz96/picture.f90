! SPDX-License-Identifier: BSD-3-Clause
!
! picture - the results as one figure of seven panels, in SVG.
module picture
  use, intrinsic :: iso_fortran_env, only: real64
  use evaluation, only: by_network, by_quartic, comparison, interval, n_leads, truth
  use lorenz96, only: n_slow
  use plot, only: panel, panel_axes, panel_bars, panel_cells, panel_colour_bar, panel_curve, &
                  panel_dots, panel_key
  use quartic, only: quartic_closure
  use statistics, only: bin_centre, bin_width, climate_density, climate_variance, errors_r2, &
                        errors_rmse, n_bins
  use svg, only: svg_begin, svg_end, svg_text
  use training, only: mtu_per_step
  implicit none
  private
  public :: draw_picture

  integer, parameter :: width = 1400, height = 815
  real(real64), parameter :: left = 75 ! of the first panel in each row
  character(*), parameter :: colour(truth:by_network) = ['#777777', '#d55e00', '#0072b2']
  character(*), parameter :: pale = '#cccccc', dashes = '6,4'
  character(*), parameter :: sub_k = '<tspan dy="3" font-size="70%">k</tspan>'
  character(*), parameter :: x_k = '<tspan font-style="italic">X</tspan>' // sub_k
  character(*), parameter :: u_k = '<tspan font-style="italic">U</tspan>' // sub_k

contains

  ! A file of its own, or inline: a part of a page.
  subroutine draw_picture(unit, c, polynomial, loss, subtitle, inline)
    integer, intent(in) :: unit
    type(comparison), intent(in) :: c
    type(quartic_closure), intent(in) :: polynomial
    real(real64), intent(in) :: loss(:)
    character(*), intent(in) :: subtitle
    logical, intent(in), optional :: inline

    call svg_begin(unit, width, height, inline)
    call svg_text(unit, left, 40.0_real64, &
                  'Two-scale Lorenz-96: a closure learned while the simulation runs', 22, &
                  'start', weight='bold')
    call svg_text(unit, left, 64.0_real64, subtitle, 14, 'start')
    call draw_forecasts(unit, c)
    call draw_training(lower_panel(unit, 1), c, loss)
    call draw_tendency(lower_panel(unit, 2), c, polynomial)
    call draw_histograms(lower_panel(unit, 3), c)
    call draw_errors(lower_panel(unit, 4), c)
    call svg_end(unit)
  end subroutine draw_picture

  pure type(panel) function lower_panel(unit, column) result(p)
    integer, intent(in) :: unit, column

    p = panel(unit=unit, left=left + (column - 1) * 338, top=465, width=258, height=280)
  end function lower_panel

  ! X of all sites against time: the truth, and the reduced systems from the same state.
  subroutine draw_forecasts(unit, c)
    integer, intent(in) :: unit
    type(comparison), intent(in) :: c
    real(real64), parameter :: lowest = -10, highest = 20
    character(*), parameter :: title(truth:by_network) = &
      ['(a) Full system                ', '(b) Quartic closure, same start', &
       '(c) Network closure, same start']
    type(panel) :: p
    integer :: m

    do m = truth, by_network
      p = panel(unit=unit, left=left + m * 420, top=120, width=350, height=240, &
                x=[0.0_real64, n_leads * interval], y=[0.5_real64, n_slow + 0.5_real64])
      call panel_cells(p, c%x(:, :, m), lowest, highest)
      call panel_axes(p, trim(title(m)), 'time (model time units)', 'site k', 1.0_real64, &
                      1.0_real64)
    end do
    p = panel(unit=unit, left=left + 2 * 420 + 350 + 30, top=120, width=18, height=240, &
              y=[lowest, highest])
    call panel_colour_bar(p, x_k, 5.0_real64)
  end subroutine draw_forecasts

  ! The share of the variance of U that the network explains, while it learns.
  subroutine draw_training(frame, c, loss)
    type(panel), intent(in) :: frame
    type(comparison), intent(in) :: c
    real(real64), intent(in) :: loss(:)
    real(real64), parameter :: lowest = 0.7_real64
    real(real64), dimension(min(100, size(loss))) :: time, r2
    real(real64) :: level, all_time
    type(panel) :: p
    integer :: i, first, last

    do i = 1, size(r2)
      first = 1 + (i - 1) * size(loss) / size(r2)
      last = i * size(loss) / size(r2)
      time(i) = (first + last - 1) * mtu_per_step / 2
      r2(i) = max(lowest, 1 - sum(loss(first:last)) / (last - first + 1))
    end do
    all_time = size(loss) * mtu_per_step
    p = frame
    p%x = [0.0_real64, all_time]
    p%y = [lowest, 1.0_real64]
    level = max(lowest, errors_r2(c%tendency(:, by_quartic)))
    call panel_curve(p, [0.0_real64, all_time], [level, level], colour(by_quartic), dashes)
    call panel_curve(p, time, r2, colour(by_network))
    call panel_axes(p, '(d) Training', 'simulated time (model time units)', &
                    'explained variance of ' // u_k, tick_step(all_time), 0.05_real64)
    call panel_key(p, 0.25_real64, 0.84_real64, 'network, training batches', colour(by_network), &
                   .false.)
    call panel_key(p, 0.25_real64, 0.92_real64, 'quartic, held-out data', colour(by_quartic), &
                   .false., dashes)
  end subroutine draw_training

  ! What the closures are for: U against X.
  subroutine draw_tendency(frame, c, polynomial)
    type(panel), intent(in) :: frame
    type(comparison), intent(in) :: c
    type(quartic_closure), intent(in) :: polynomial
    real(real64) :: x(61)
    type(panel) :: p
    integer :: i

    p = frame
    p%x = [-10.0_real64, 20.0_real64]
    p%y = [-20.0_real64, 10.0_real64]
    x = [(p%x(1) + i * (p%x(2) - p%x(1)) / (size(x) - 1), i=0, size(x) - 1)]
    do i = 1, n_leads, 2 ! every second, for dots that can be told apart
      call panel_dots(p, c%x(:, i, truth), c%u(:, i), colour(truth))
      call panel_dots(p, c%x(:, i, truth), c%u_network(:, i), colour(by_network))
    end do
    call panel_curve(p, x, max(p%y(1), min(p%y(2), polynomial%value(x))), colour(by_quartic))
    call panel_axes(p, '(e) Subgrid tendency', x_k, u_k, 5.0_real64, 5.0_real64)
    call panel_key(p, 0.6_real64, 0.07_real64, 'full system', colour(truth), .true.)
    call panel_key(p, 0.6_real64, 0.15_real64, 'network', colour(by_network), .true.)
    call panel_key(p, 0.6_real64, 0.23_real64, 'quartic', colour(by_quartic), .false.)
  end subroutine draw_tendency

  ! The climate: how often which X occurs.
  subroutine draw_histograms(frame, c)
    type(panel), intent(in) :: frame
    type(comparison), intent(in) :: c
    real(real64) :: density(n_bins, truth:by_network), x(n_bins)
    type(panel) :: p
    integer :: i, m

    x = bin_centre([(i, i=1, n_bins)])
    do m = truth, by_network
      density(:, m) = climate_density(c%climate(:, m))
    end do
    p = frame
    p%x = [-15.0_real64, 25.0_real64]
    p%y = [0.0_real64, 1.15_real64 * maxval(density)]
    call panel_bars(p, x, density(:, truth), bin_width, pale)
    do m = by_quartic, by_network
      call panel_curve(p, x, density(:, m), colour(m))
    end do
    call panel_axes(p, '(f) Climate, AR(1) noise added', x_k, 'probability density', &
                    10.0_real64, tick_step(p%y(2)))
    call panel_key(p, 0.6_real64, 0.07_real64, 'full system', pale, .true.)
    call panel_key(p, 0.6_real64, 0.15_real64, 'quartic', colour(by_quartic), .false.)
    call panel_key(p, 0.6_real64, 0.23_real64, 'network', colour(by_network), .false.)
  end subroutine draw_histograms

  ! How fast forecasts lose track of the truth.
  subroutine draw_errors(frame, c)
    type(panel), intent(in) :: frame
    type(comparison), intent(in) :: c
    real(real64) :: rmse(n_leads, by_quartic:by_network), lead(n_leads), saturation
    type(panel) :: p
    integer :: i, m

    do m = by_quartic, by_network
      rmse(:, m) = [(errors_rmse(c%forecast(:, i, m)), i=1, n_leads)]
    end do
    lead = [(i * interval, i=1, n_leads)]
    saturation = sqrt(2 * climate_variance(c%climate(:, truth))) ! of two unrelated states
    p = frame
    p%x = [0.0_real64, n_leads * interval]
    p%y = [0.0_real64, 1.15_real64 * max(saturation, maxval(rmse))]
    call panel_curve(p, p%x, [saturation, saturation], colour(truth), dashes)
    do m = by_quartic, by_network
      call panel_curve(p, lead, rmse(:, m), colour(m))
    end do
    call panel_axes(p, '(g) Forecast error', 'lead time (model time units)', &
                    'root mean square error of ' // x_k, 1.0_real64, tick_step(p%y(2)))
    call panel_key(p, 0.35_real64, 0.77_real64, 'unrelated states', colour(truth), .false., &
                   dashes)
    call panel_key(p, 0.35_real64, 0.85_real64, 'quartic', colour(by_quartic), .false.)
    call panel_key(p, 0.35_real64, 0.93_real64, 'network', colour(by_network), .false.)
  end subroutine draw_errors

  ! 1, 2 or 5 times a power of ten, for four to ten ticks in the range.
  pure real(real64) function tick_step(range) result(step)
    real(real64), intent(in) :: range

    step = 10.0_real64**floor(log10(range / 4))
    if (range / step >= 20) then
      step = 5 * step
    else if (range / step >= 8) then
      step = 2 * step
    end if
  end function tick_step

end module picture
