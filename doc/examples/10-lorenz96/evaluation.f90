! SPDX-License-Identifier: BSD-3-Clause
!
! evaluation - compares the closures on trajectories that training has not seen.
!
! Each rank works through its own trajectories without waiting for the others, unless a closure
! is one that all ranks evaluate together: then ranks with fewer trajectories pass. All that a
! rank finds are sums; at the end those of all ranks are added.
module evaluation
  use, intrinsic :: iso_fortran_env, only: real64
  use gradsync, only: gs_comm, gs_comm_size, gs_allreduce, GS_SUM
  use ensemble, only: members
  use lorenz96, only: dt_full, dt_reduced, full_advance, full_state, n_slow, &
                      reduced_step, subgrid_tendency
  use noise, only: noise_next, noisy_closure
  use pooled, only: pooled_closure
  use progress, only: reporter, say
  use random, only: stream, stream_start
  use statistics, only: climate_add, errors_add, n_climate, n_errors
  implicit none
  private
  public :: evaluate

  integer, parameter, public :: truth = 0, by_quartic = 1, by_network = 2

  real(real64), parameter, public :: interval = 0.05_real64 ! MTU from one sample to the next
  integer, parameter, public :: n_leads = 100 ! intervals that a forecast runs: 5 MTU
  integer, parameter :: full_steps = nint(interval / dt_full)
  integer, parameter :: reduced_steps = nint(interval / dt_reduced)

  ! A reduced system in a long run.
  type :: runner
    real(real64) :: x(n_slow), noise(n_slow)
    type(stream) :: rng
  end type runner

  type, public :: comparison
    ! Sums over all ranks, for the functions of module statistics.
    real(real64) :: tendency(n_errors, by_quartic:by_network) = 0 ! U as function of the true X
    real(real64) :: forecast(n_errors, n_leads, by_quartic:by_network) = 0 ! X, by lead time
    real(real64) :: climate(n_climate, truth:by_network) = 0 ! X in the long runs
    real(real64) :: escapes(by_quartic:by_network) = 0 ! times a run was set back to the truth
    ! This rank's alone, for the picture.
    real(real64) :: x(n_slow, n_leads, truth:by_network) = 0 ! its first forecast
    real(real64), dimension(n_slow, n_leads) :: u = 0, u_network = 0 ! true and learned U along it
  end type comparison

contains

  ! Forecasts from each of the trajectories, one for every 10 MTU of run_time; then long runs of
  ! that time. Collective.
  subroutine evaluate(comm, own, closures, run_time, out, c)
    type(gs_comm), intent(in) :: comm
    type(members), intent(inout) :: own
    type(noisy_closure), intent(in) :: closures(by_quartic:by_network)
    integer, intent(in) :: run_time
    type(reporter), intent(in) :: out
    type(comparison), intent(out) :: c
    type(runner) :: runners(by_quartic:by_network, size(own%state))
    integer :: i, t, n_forecasts, most

    most = (own%total + gs_comm_size(comm) - 1) / gs_comm_size(comm) ! that a rank has
    n_forecasts = max(1, run_time / 10)
    do i = 1, n_forecasts
      do t = 1, size(own%state)
        call forecast(own%state(t), closures, i == 1 .and. t == 1, c)
      end do
      do t = size(own%state) + 1, most
        call pass(closures, n_leads * (4 * reduced_steps + merge(1, 0, i == 1 .and. t == 1)))
      end do
      call report(out, 'forecasts', i, n_forecasts)
    end do
    do t = 1, size(own%state)
      runners(:, t) = runner(own%state(t)%x, 0, stream_start(own%first + t - 1))
    end do
    do i = 1, nint(run_time / interval)
      do t = 1, size(own%state)
        call continue_runs(own%state(t), closures, runners(:, t), c)
      end do
      do t = size(own%state) + 1, most
        call pass(closures, 4 * reduced_steps + 1)
      end do
      call report(out, 'long runs', i, nint(run_time / interval))
    end do
    call gs_allreduce(comm, c%tendency, GS_SUM)
    call gs_allreduce(comm, c%forecast, GS_SUM)
    call gs_allreduce(comm, c%climate, GS_SUM)
    call gs_allreduce(comm, c%escapes, GS_SUM)
  end subroutine evaluate

  ! Runs the reduced systems without noise from the true X, and the truth beside them.
  subroutine forecast(state, closures, keep, c)
    type(full_state), intent(inout) :: state
    type(noisy_closure), intent(in) :: closures(by_quartic:by_network)
    logical, intent(in) :: keep ! for the picture
    type(comparison), intent(inout) :: c
    real(real64) :: x(n_slow, by_quartic:by_network)
    real(real64), parameter :: no_noise(n_slow) = 0
    integer :: lead, m, i

    x = spread(state%x, 2, 2)
    do lead = 1, n_leads
      call full_advance(state, full_steps)
      do m = by_quartic, by_network
        do i = 1, reduced_steps
          call reduced_step(x(:, m), closures(m)%model, no_noise)
        end do
        call set_back(x(:, m), state%x, c%escapes(m))
        call errors_add(c%forecast(:, lead, m), state%x, x(:, m))
      end do
      if (keep) then
        c%x(:, lead, truth) = state%x
        c%x(:, lead, by_quartic:) = x
        c%u(:, lead) = subgrid_tendency(state)
        c%u_network(:, lead) = closures(by_network)%tendency(state%x)
      end if
    end do
  end subroutine forecast

  ! Advances truth and reduced systems with noise, side by side, by one interval.
  subroutine continue_runs(state, closures, runners, c)
    type(full_state), intent(inout) :: state
    type(noisy_closure), intent(in) :: closures(by_quartic:by_network)
    type(runner), intent(inout) :: runners(by_quartic:by_network)
    type(comparison), intent(inout) :: c
    real(real64) :: u(n_slow)
    integer :: m, i

    call full_advance(state, full_steps)
    call climate_add(c%climate(:, truth), state%x)
    u = subgrid_tendency(state)
    do m = by_quartic, by_network
      call errors_add(c%tendency(:, m), u, closures(m)%tendency(state%x))
      associate (r => runners(m))
        do i = 1, reduced_steps
          call noise_next(closures(m), r%rng, r%noise)
          call reduced_step(r%x, closures(m)%model, r%noise)
        end do
        call set_back(r%x, state%x, c%escapes(m))
        call climate_add(c%climate(:, m), r%x)
      end associate
    end do
  end subroutine continue_runs

  ! As often as a rank with a trajectory asks the closures for its tendencies: 4 times a step, and
  ! for those along the true X.
  subroutine pass(closures, times)
    type(noisy_closure), intent(in) :: closures(by_quartic:by_network)
    integer, intent(in) :: times
    integer :: i

    select type (model => closures(by_network)%model)
    type is (pooled_closure)
      do i = 1, times
        call model%pass()
      end do
    end select
  end subroutine pass

  ! A bad closure can drive X to infinity; the true X stays far within the bound.
  subroutine set_back(x, x_true, escapes)
    real(real64), intent(inout) :: x(n_slow), escapes
    real(real64), intent(in) :: x_true(n_slow)
    real(real64), parameter :: bound = 100

    if (all(abs(x) < bound)) return ! false for a NaN too
    x = x_true
    escapes = escapes + 1
  end subroutine set_back

  ! Ten lines in all.
  subroutine report(out, what, done, all)
    type(reporter), intent(in) :: out
    character(*), intent(in) :: what
    integer, intent(in) :: done, all
    character(80) :: line

    if ((10 * done) / all == (10 * (done - 1)) / all) return
    write (line, '("evaluation: ", a, ", ", i0, " %")') what, (100 * done) / all
    call say(out, trim(line))
  end subroutine report

end module evaluation
