! SPDX-License-Identifier: BSD-3-Clause
!
! quartic - the closure of Wilks (2005): U_k is a polynomial of fourth degree in X_k, fitted by
! least squares. The yardstick for anything learned.
module quartic
  use, intrinsic :: iso_fortran_env, only: real64
  use lorenz96, only: closure, n_slow
  use statistics, only: scaling
  implicit none
  private
  public :: quartic_add, quartic_fit

  integer, parameter :: terms = 5 ! of degree 0 to 4

  ! Length of the array of sums: the matrix of the normal equations and its right-hand side.
  integer, parameter, public :: n_quartic = terms * (terms + 1)

  type, extends(closure), public :: quartic_closure
    type(scaling) :: x ! powers of X itself would make the equations ill-conditioned
    real(real64) :: coefficients(terms) = 0
  contains
    procedure :: value
    procedure :: tendency
  end type quartic_closure

contains

  ! Adds samples to the normal equations. Those of several ranks are combined by adding them.
  pure subroutine quartic_add(sums, scale, x, u)
    real(real64), intent(inout) :: sums(terms, terms + 1)
    type(scaling), intent(in) :: scale
    real(real64), intent(in) :: x(:), u(:)
    real(real64) :: p(terms)
    integer :: i, j

    do i = 1, size(x)
      p = powers(scale, x(i))
      do j = 1, terms
        sums(:, j) = sums(:, j) + p * p(j)
      end do
      sums(:, terms + 1) = sums(:, terms + 1) + p * u(i)
    end do
  end subroutine quartic_add

  pure type(quartic_closure) function quartic_fit(sums, scale) result(fit)
    real(real64), intent(in) :: sums(terms, terms + 1)
    type(scaling), intent(in) :: scale

    fit%x = scale
    fit%coefficients = solution(sums)
  end function quartic_fit

  ! U at a site where X is x.
  elemental real(real64) function value(self, x) result(u)
    class(quartic_closure), intent(in) :: self
    real(real64), intent(in) :: x

    u = dot_product(self%coefficients, powers(self%x, x))
  end function value

  function tendency(self, x) result(u)
    class(quartic_closure), intent(in) :: self
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: u(n_slow)

    u = self%value(x)
  end function tendency

  pure function powers(scale, x) result(p)
    type(scaling), intent(in) :: scale
    real(real64), intent(in) :: x
    real(real64) :: p(terms)
    integer :: i

    p(1) = 1
    do i = 2, terms
      p(i) = p(i - 1) * (x - scale%mean) / scale%deviation
    end do
  end function powers

  ! Solves the symmetric, positive definite system [A | rhs] by elimination.
  pure function solution(system) result(v)
    real(real64), intent(in) :: system(terms, terms + 1)
    real(real64) :: a(terms, terms + 1), v(terms)
    integer :: i, j

    a = system
    do i = 1, terms
      do j = i + 1, terms
        a(j, i:) = a(j, i:) - a(j, i) / a(i, i) * a(i, i:)
      end do
    end do
    do i = terms, 1, -1
      v(i) = (a(i, terms + 1) - dot_product(a(i, i + 1:terms), v(i + 1:))) / a(i, i)
    end do
  end function solution

end module quartic
