! SPDX-License-Identifier: BSD-3-Clause
!
! noise - a closure together with red noise for what the closure cannot know.
!
! The fast scale is not a function of X, so the best closure leaves a residual. Wilks (2005) adds
! it as a first-order autoregressive process, AR(1), at each site. Without it long runs of the
! reduced system can settle in one of the regimes of the full system and stay there.
module noise
  use, intrinsic :: iso_fortran_env, only: real64
  use lorenz96, only: closure, n_slow
  use random, only: normal, stream
  implicit none
  private
  public :: residuals_add, noise_fit, noise_next

  integer, parameter, public :: n_residuals = 3 ! samples, sum of r**2, of r times the one before

  type, public :: noisy_closure
    class(closure), allocatable :: model
    real(real64) :: deviation = 0
    real(real64) :: persistence = 0 ! correlation from one step of the reduced system to the next
  contains
    procedure :: tendency
  end type noisy_closure

contains

  ! U without the noise.
  ! N.B. gfortran 12 gives c(i)%model%tendency(x), with an array c, the shape of c; so call this.
  function tendency(self, x) result(u)
    class(noisy_closure), intent(in) :: self
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: u(n_slow)

    u = self%model%tendency(x)
  end function tendency

  ! Adds residuals and those one sampling interval earlier. Sums of several ranks may be added.
  pure subroutine residuals_add(sums, r, r_before)
    real(real64), intent(inout) :: sums(n_residuals)
    real(real64), intent(in) :: r(:), r_before(:)

    sums = sums + [real(size(r), real64), sum(r**2), sum(r * r_before)]
  end subroutine residuals_add

  ! Sets the noise from such sums, whose sampling interval was a number of reduced steps.
  pure subroutine noise_fit(c, sums, steps)
    type(noisy_closure), intent(inout) :: c
    real(real64), intent(in) :: sums(n_residuals)
    integer, intent(in) :: steps

    c%deviation = sqrt(sums(2) / sums(1))
    c%persistence = max(0.0_real64, sums(3) / sums(2))**(1.0_real64 / steps)
  end subroutine noise_fit

  ! The noise of the next reduced step; value holds that of the step before.
  pure subroutine noise_next(c, rng, value)
    type(noisy_closure), intent(in) :: c
    type(stream), intent(inout) :: rng
    real(real64), intent(inout) :: value(n_slow)
    real(real64) :: z
    integer :: k

    do k = 1, n_slow
      call normal(rng, z)
      value(k) = c%persistence * value(k) + c%deviation * sqrt(1 - c%persistence**2) * z
    end do
  end subroutine noise_next

end module noise
