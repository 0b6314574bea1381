! SPDX-License-Identifier: BSD-3-Clause
!
! lorenz96 - the two-scale system of Lorenz (1996), and the reduced system without fast scale.
!
! K slow variables X on a ring, each coupled to J fast variables Y, which form one ring of J*K:
!
!   dX_k/dt = -X_{k-1} (X_{k-2} - X_{k+1}) - X_k + F + U_k      U_k = -(h c / b) sum_j Y_{j,k}
!   dY_i/dt = -c b Y_{i+1} (Y_{i+2} - Y_{i-1}) - c Y_i + (h c / b) X_k        i = J (k-1) + j
!
! The reduced system keeps only X and gets U from a closure, a function of X. To find a good one
! is the standard test of learned parameterisations of unresolved scales:
!
!   E. N. Lorenz (1996): Predictability - a problem partly solved. Proc. ECMWF Seminar on
!     Predictability, vol. 1, 1-18.
!   D. S. Wilks (2005): Effects of stochastic parametrizations in the Lorenz '96 system.
!     Q. J. R. Meteorol. Soc. 131, 389-407. The parameter values, and the quartic closure.
!   D. J. Gagne, H. M. Christensen, A. C. Subramanian, A. H. Monahan (2020): Machine learning for
!     stochastic parameterization: generative adversarial networks in the Lorenz '96 model.
!     J. Adv. Model. Earth Syst. 12, e2019MS001896.
module lorenz96
  use, intrinsic :: iso_fortran_env, only: real64
  use random, only: stream, stream_start, uniform
  implicit none
  private
  public :: full_start, full_advance, subgrid_tendency, reduced_step

  integer, parameter, public :: n_slow = 8           ! K
  integer, parameter, public :: n_fast = 32          ! J, for each slow variable
  real(real64), parameter, public :: dt_full = 0.001_real64    ! model time units (MTU)
  real(real64), parameter, public :: dt_reduced = 0.005_real64 ! MTU

  real(real64), parameter :: forcing = 20   ! F
  real(real64), parameter :: b = 10         ! how much smaller the fast variables are
  real(real64), parameter :: c = 10         ! how much faster they are
  real(real64), parameter :: coupling = 1 * c / b ! h c / b with h = 1
  integer, parameter :: ring = n_slow * n_fast

  ! The full system at one instant.
  type, public :: full_state
    real(real64) :: x(n_slow)
    real(real64) :: y(ring)
  end type full_state

  ! What stands for the fast scale in the reduced system.
  type, abstract, public :: closure
  contains
    procedure(tendency_of), deferred :: tendency
  end type closure

  abstract interface
    function tendency_of(self, x) result(u)
      import :: closure, n_slow, real64
      class(closure), intent(in) :: self
      real(real64), intent(in) :: x(n_slow)
      real(real64) :: u(n_slow)
    end function tendency_of
  end interface

contains

  ! An initial state off the attractor: advance it by some MTU before use.
  pure type(full_state) function full_start(number) result(s)
    integer, intent(in) :: number ! of the trajectory, from 0
    type(stream) :: rng
    real(real64) :: u
    integer :: i

    rng = stream_start(number)
    do i = 1, n_slow
      call uniform(rng, u)
      s%x(i) = 10 * u - 2
    end do
    do i = 1, ring
      call uniform(rng, u)
      s%y(i) = 0.2_real64 * u - 0.1_real64
    end do
  end function full_start

  ! Advances the full system by a number of steps of dt_full (fourth-order Runge-Kutta).
  pure subroutine full_advance(s, steps)
    type(full_state), intent(inout) :: s
    integer, intent(in) :: steps
    type(full_state) :: k1, k2, k3, k4
    integer :: i

    do i = 1, steps
      k1 = full_tendency(s)
      k2 = full_tendency(moved(s, k1, dt_full / 2))
      k3 = full_tendency(moved(s, k2, dt_full / 2))
      k4 = full_tendency(moved(s, k3, dt_full))
      s%x = s%x + dt_full / 6 * (k1%x + 2 * k2%x + 2 * k3%x + k4%x)
      s%y = s%y + dt_full / 6 * (k1%y + 2 * k2%y + 2 * k3%y + k4%y)
    end do
  end subroutine full_advance

  ! U: what the fast scale does to the slow one.
  pure function subgrid_tendency(s) result(u)
    type(full_state), intent(in) :: s
    real(real64) :: u(n_slow)

    u = -coupling * sum(reshape(s%y, [n_fast, n_slow]), dim=1)
  end function subgrid_tendency

  ! Advances the reduced system by dt_reduced (fourth-order Runge-Kutta). extra is added to the
  ! tendency throughout the step.
  subroutine reduced_step(x, model, extra)
    real(real64), intent(inout) :: x(n_slow)
    class(closure), intent(in) :: model
    real(real64), intent(in) :: extra(n_slow)
    real(real64), dimension(n_slow) :: k1, k2, k3, k4

    k1 = reduced_tendency(x)
    k2 = reduced_tendency(x + dt_reduced / 2 * k1)
    k3 = reduced_tendency(x + dt_reduced / 2 * k2)
    k4 = reduced_tendency(x + dt_reduced * k3)
    x = x + dt_reduced / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

  contains

    function reduced_tendency(z) result(dz)
      real(real64), intent(in) :: z(n_slow)
      real(real64) :: dz(n_slow)

      dz = resolved_tendency(z) + model%tendency(z) + extra
    end function reduced_tendency

  end subroutine reduced_step

  pure type(full_state) function full_tendency(s) result(ds)
    type(full_state), intent(in) :: s
    real(real64) :: y(0:ring + 2) ! the ring with its neighbours beyond both ends
    integer :: i, k

    ds%x = resolved_tendency(s%x) + subgrid_tendency(s)
    y(1:ring) = s%y
    y(0) = s%y(ring)
    y(ring + 1:) = s%y(1:2)
    do k = 1, n_slow
      do i = n_fast * (k - 1) + 1, n_fast * k
        ds%y(i) = -c * b * y(i + 1) * (y(i + 2) - y(i - 1)) - c * y(i) + coupling * s%x(k)
      end do
    end do
  end function full_tendency

  pure function resolved_tendency(x) result(dx)
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: dx(n_slow)
    real(real64) :: z(-1:n_slow + 1) ! the ring with its neighbours beyond both ends

    z(1:n_slow) = x
    z(-1:0) = x(n_slow - 1:n_slow)
    z(n_slow + 1) = x(1)
    dx = -z(0:n_slow - 1) * (z(-1:n_slow - 2) - z(2:n_slow + 1)) - x + forcing
  end function resolved_tendency

  pure type(full_state) function moved(s, ds, dt) result(r)
    type(full_state), intent(in) :: s, ds
    real(real64), intent(in) :: dt

    r%x = s%x + dt * ds%x
    r%y = s%y + dt * ds%y
  end function moved

end module lorenz96
