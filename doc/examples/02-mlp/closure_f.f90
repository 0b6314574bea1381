! SPDX-License-Identifier: BSD-3-Clause
!
! closure_f - trains a network inside a simulation, and then uses it there: closure.c in Fortran.
!
! The simulation: x'' = -x + f(x, x'). The term f = (1 - x**2) x' stands for what is costly to
! compute. While the simulation runs with f, a network learns f from it; afterwards the simulation
! runs with the network in the place of f.
program closure_f
  use gradsync
  use, intrinsic :: iso_fortran_env, only: dp => real64
  implicit none
  integer, parameter :: hidden = 16, parameters = 4 * hidden + 1
  integer, parameter :: members = 32, steps = 6000, restart = 100
  integer, parameter :: nothing = 0, costly = 1, network = 2 ! what the simulation takes for f

  type(gs_comm) :: comm
  real(dp) :: w(parameters)     ! the model: input weights, biases, output weights, bias
  real(dp) :: g(parameters + 1) ! the gradient of the loss by w; and, last, the loss

  call gs_comm_create(comm, device=GS_DEVICE_HOST) ! this backward pass runs on the host
  call train()
  if (gs_comm_rank(comm) == 0) print '(a, f5.3, a, f5.3)', 'error without f ', &
    error(nothing), ', with the network ', error(network)
  call gs_comm_destroy(comm)

contains

  subroutine train()
    real(dp) :: x(members), v(members), a(hidden), off
    integer :: first, step, k

    first = gs_comm_rank(comm) * members ! each rank has members of its own
    w = [(scattered(k - 1), k = 1, parameters)]
    do step = 1, steps
      g = 0
      do k = 1, members
        if (mod(step, restart) == 1) then
          x(k) = 2.5_dp * scattered(1000 + 2 * (first + k - 1) + step)
          v(k) = 2.5_dp * scattered(1001 + 2 * (first + k - 1) + step)
        end if
        a = hidden_layer(x(k), v(k))
        off = output(a) - f(costly, x(k), v(k))
        call backward(x(k), v(k), a, 2 * off / members)
        g(parameters + 1) = g(parameters + 1) + off**2 / members
        call advance(costly, x(k), v(k))
      end do
      call gs_allreduce_avg(comm, g)
      call update(step)
      if (gs_comm_rank(comm) == 0 .and. mod(step, 1000) == 0) &
        print '(a, i0, a, es7.1)', 'step ', step, ', loss ', g(parameters + 1)
    end do
  end subroutine train

  ! The network: y = w3 . tanh(w0 x + w1 v + w2) + w4.
  pure function hidden_layer(x, v) result(a)
    real(dp), intent(in) :: x, v
    real(dp) :: a(hidden)

    a = tanh(w(:hidden) * x + w(hidden + 1:2 * hidden) * v + w(2 * hidden + 1:3 * hidden))
  end function hidden_layer

  pure real(dp) function output(a)
    real(dp), intent(in) :: a(hidden)

    output = dot_product(w(3 * hidden + 1:4 * hidden), a) + w(parameters)
  end function output

  ! The backward pass: adds to g what a sample says. [d] is the derivative of the loss by y.
  subroutine backward(x, v, a, d)
    real(dp), intent(in) :: x, v, a(hidden), d
    real(dp) :: e(hidden)

    e = d * w(3 * hidden + 1:4 * hidden) * (1 - a**2)
    g(:parameters) = g(:parameters) + [e * x, e * v, e, d * a, d]
  end subroutine backward

  pure real(dp) function f(closure, x, v)
    integer, intent(in) :: closure
    real(dp), intent(in) :: x, v

    f = 0
    if (closure == costly) f = (1 - x**2) * v
    if (closure == network) f = output(hidden_layer(x, v))
  end function f

  ! A time step of the simulation (midpoint rule).
  pure subroutine advance(closure, x, v)
    integer, intent(in) :: closure
    real(dp), intent(inout) :: x, v
    real(dp), parameter :: dt = 0.02_dp
    real(dp) :: xm, vm

    xm = x + dt / 2 * v
    vm = v + dt / 2 * (-x + f(closure, x, v))
    x = x + dt * vm
    v = v + dt * (-xm + f(closure, xm, vm))
  end subroutine advance

  ! Adam (Kingma and Ba, 2015). All ranks have the same g here, and so they keep the same w.
  subroutine update(step)
    integer, intent(in) :: step
    real(dp), save :: m(parameters) = 0, s(parameters) = 0
    real(dp) :: rate

    rate = 0.02_dp * (1 - real(step - 1, dp) / steps)
    m = 0.9_dp * m + 0.1_dp * g(:parameters)
    s = 0.999_dp * s + 0.001_dp * g(:parameters)**2
    w = w - rate * (m / (1 - 0.9_dp**step)) / (sqrt(s / (1 - 0.999_dp**step)) + 1e-8_dp)
  end subroutine update

  ! A number in [-1, 1] that depends on [k] alone.
  pure real(dp) function scattered(k)
    integer, intent(in) :: k

    scattered = sin(12.9898_dp * (k + 1)) * 43758.5453_dp
    scattered = 2 * (scattered - floor(scattered)) - 1
  end function scattered

  ! How far the simulation with [closure] is from the true one, from a state of no member.
  real(dp) function error(closure)
    integer, intent(in) :: closure
    real(dp) :: x, v, true_x, true_v
    integer :: i

    x = 0.7_dp
    v = 0
    true_x = x
    true_v = v
    error = 0
    do i = 1, 1000
      call advance(closure, x, v)
      call advance(costly, true_x, true_v)
      error = error + (x - true_x)**2 / 1000
    end do
    error = sqrt(error)
  end function error

end program closure_f
