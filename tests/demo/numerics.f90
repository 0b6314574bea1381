! SPDX-License-Identifier: BSD-3-Clause
!
! numerics - the demo's equations, gradient and fits against slow or exact ones of this file. A
! network learns from a slightly wrong gradient too, only less: a test of its skill does not see
! that.
program numerics
  use, intrinsic :: iso_fortran_env, only: real64
  use lorenz96, only: dt_full, full_advance, full_start, full_state, n_fast, n_slow, &
                      subgrid_tendency
  use mlp, only: network, network_backward, network_create, network_forward, pass
  use noise, only: n_residuals, noise_fit, noise_next, noisy_closure, residuals_add
  use quartic, only: n_quartic, quartic_add, quartic_closure, quartic_fit
  use random, only: normal, stream, stream_start
  use statistics, only: climate_add, climate_density, errors_add, errors_r2, errors_rmse, &
                        hellinger, n_climate, n_errors, scaling
  implicit none
  logical :: failed = .false.

  call check_equations()
  call check_gradient()
  call check_quartic()
  call check_noise()
  call check_statistics()
  if (failed) error stop 1

contains

  subroutine expect(what, deviation, tolerance)
    character(*), intent(in) :: what
    real(real64), intent(in) :: deviation, tolerance

    print '(2a, es9.2, a, es9.2)', what, ' is off by', deviation, ', allowed are', tolerance
    if (deviation <= tolerance) return ! false for a NaN
    print '(2a)', 'FAILED: ', what
    failed = .true.
  end subroutine expect

  ! One step of the full system against a thousand of Euler's, with the equations as they are
  ! written, site by site.
  subroutine check_equations()
    type(full_state) :: s, e
    integer :: i

    s = full_start(3)
    call full_advance(s, 5000)
    e = s
    do i = 1, 1000
      call euler_step(e, dt_full / 1000)
    end do
    call full_advance(s, 1)
    call expect('X after a step', maxval(abs(s%x - e%x)), 1e-5_real64)
    call expect('Y after a step', maxval(abs(s%y - e%y)), 1e-5_real64)
  end subroutine check_equations

  subroutine euler_step(s, dt)
    type(full_state), intent(inout) :: s
    real(real64), intent(in) :: dt
    real(real64), parameter :: f = 20, h = 1, b = 10, c = 10
    integer, parameter :: ring = n_slow * n_fast
    real(real64) :: dx(n_slow), dy(ring), u(n_slow)
    integer :: i, j, k

    u = 0
    do k = 1, n_slow
      do j = 1, n_fast
        i = n_fast * (k - 1) + j
        u(k) = u(k) - h * c / b * s%y(i)
        dy(i) = -c * b * s%y(on(i + 1, ring)) * (s%y(on(i + 2, ring)) - s%y(on(i - 1, ring))) &
                - c * s%y(i) + h * c / b * s%x(k)
      end do
      dx(k) = -s%x(on(k - 1, n_slow)) * (s%x(on(k - 2, n_slow)) - s%x(on(k + 1, n_slow))) &
              - s%x(k) + f + u(k)
    end do
    if (any(abs(u - subgrid_tendency(s)) > 1e-12_real64)) &
      call expect('U', maxval(abs(u - subgrid_tendency(s))), 1e-12_real64)
    s%x = s%x + dt * dx
    s%y = s%y + dt * dy
  end subroutine euler_step

  ! Place i on a ring of n.
  pure integer function on(i, n)
    integer, intent(in) :: i, n

    on = modulo(i - 1, n) + 1
  end function on

  ! Backpropagation against differences of the loss, weight by weight.
  subroutine check_gradient()
    type(network) :: net
    type(pass) :: p
    type(stream) :: rng
    real(real64) :: x(5, 9), y(9), loss
    real(real64), allocatable :: gradient(:, :), differences(:, :)
    integer :: i, bias

    net = network_create([5, 7, 6, 1], 11)
    rng = stream_start(12)
    x = 0
    y = 0
    do i = 1, size(x, 1)
      call scatter(rng, x(i, :), 1.0_real64)
    end do
    call scatter(rng, y, 1.0_real64)
    do i = 1, size(net%layer)
      bias = size(net%layer(i)%m, 2)
      call scatter(rng, net%layer(i)%m(:, bias), 0.1_real64)
    end do
    call network_forward(net, x, y, p, loss)
    do i = size(net%layer), 1, -1
      allocate (gradient, mold=net%layer(i)%m)
      call network_backward(net, p, i, gradient)
      differences = loss_differences(net, i, x, y)
      call expect('The gradient of layer ' // achar(iachar('0') + i), &
                  maxval(abs(gradient - differences)) / maxval(abs(gradient)), 1e-8_real64)
      deallocate (gradient)
    end do
  end subroutine check_gradient

  ! Adds numbers of mean 0 and the given deviation.
  subroutine scatter(rng, v, deviation)
    type(stream), intent(inout) :: rng
    real(real64), intent(inout) :: v(:)
    real(real64), intent(in) :: deviation
    real(real64) :: z
    integer :: i

    do i = 1, size(v)
      call normal(rng, z)
      v(i) = v(i) + deviation * z
    end do
  end subroutine scatter

  ! Of the loss by each weight of layer i.
  function loss_differences(net, i, x, y) result(differences)
    type(network), intent(in) :: net
    integer, intent(in) :: i
    real(real64), intent(in) :: x(:, :), y(:)
    real(real64) :: differences(size(net%layer(i)%m, 1), size(net%layer(i)%m, 2))
    real(real64), parameter :: h = 1e-5_real64
    real(real64) :: above, below
    type(network) :: moved
    type(pass) :: p
    integer :: j, k

    moved = net
    do k = 1, size(differences, 2)
      do j = 1, size(differences, 1)
        associate (w => moved%layer(i)%m(j, k))
          w = net%layer(i)%m(j, k) + h
          call network_forward(moved, x, y, p, above)
          w = net%layer(i)%m(j, k) - h
          call network_forward(moved, x, y, p, below)
          w = net%layer(i)%m(j, k)
        end associate
        differences(j, k) = (above - below) / (2 * h)
      end do
    end do
  end function loss_differences

  ! A polynomial of fourth degree is found again from its values, in the sums of two ranks.
  subroutine check_quartic()
    type(quartic_closure) :: fit
    real(real64) :: sums(n_quartic, 2), x(40)
    integer :: i

    x = [(0.7_real64 * i - 10, i=1, size(x))]
    sums = 0
    call quartic_add(sums(:, 1), scaling(3.5_real64, 5.0_real64), x(:15), polynomial(x(:15)))
    call quartic_add(sums(:, 2), scaling(3.5_real64, 5.0_real64), x(16:), polynomial(x(16:)))
    fit = quartic_fit(sum(sums, dim=2), scaling(3.5_real64, 5.0_real64))
    call expect('The quartic', maxval(abs(fit%value(x) - polynomial(x))), 1e-8_real64)
  end subroutine check_quartic

  elemental real(real64) function polynomial(x)
    real(real64), intent(in) :: x

    polynomial = 0.3_real64 - 1.5_real64 * x + 0.02_real64 * x**2 + 0.01_real64 * x**3 &
                 - 0.001_real64 * x**4
  end function polynomial

  ! The noise has the deviation and persistence it is given, and the fit finds them.
  subroutine check_noise()
    type(noisy_closure) :: given, found
    type(stream) :: rng
    real(real64) :: sums(n_residuals), value(n_slow), before(n_slow)
    integer :: i

    given%deviation = 1.5_real64
    given%persistence = 0.9_real64
    rng = stream_start(5)
    sums = 0
    value = 0
    do i = 1, 200000
      before = value
      call noise_next(given, rng, value)
      call noise_next(given, rng, value)
      call residuals_add(sums, value, before)
    end do
    call noise_fit(found, sums, 2)
    call expect('The deviation of the noise', abs(found%deviation - 1.5_real64), 0.01_real64)
    call expect('Its persistence', abs(found%persistence - 0.9_real64), 0.002_real64)
  end subroutine check_noise

  subroutine check_statistics()
    real(real64) :: e(n_errors), c(n_climate, 3), t(4), p(4)

    t = [1, 2, 3, 6] ! mean 3, sum of squared deviations 14
    p = [1, 2, 3, 4]
    e = 0
    call errors_add(e, t(:1), p(:1))
    call errors_add(e, t(2:), p(2:))
    call expect('RMSE', abs(errors_rmse(e) - 1), 1e-14_real64)
    call expect('R2', abs(errors_r2(e) - (1 - 4 / 14.0_real64)), 1e-14_real64)
    c = 0
    call climate_add(c(:, 1), t)
    call climate_add(c(:, 2), [t, t])
    call climate_add(c(:, 3), -t)
    call expect('The distance of equal histograms', &
                hellinger(climate_density(c(:, 1)), climate_density(c(:, 2))), 1e-7_real64)
    call expect('That of histograms without a common bin', &
                1 - hellinger(climate_density(c(:, 1)), climate_density(c(:, 3))), 1e-14_real64)
  end subroutine check_statistics

end program numerics
