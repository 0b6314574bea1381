! SPDX-License-Identifier: BSD-3-Clause
!
! random - a small generator that gives the same numbers with every compiler.
!
! The combined congruential generator of L'Ecuyer (1988, Communications of the ACM 31, 742).
! The intrinsic random_number differs between compilers, and here an initial state must depend
! on the number of its trajectory and on nothing else: neither on the rank that owns it, nor on
! how many ranks there are.
module random
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none
  private
  public :: stream, stream_start, uniform, normal

  type :: stream
    private
    integer(int64) :: s1 = 1, s2 = 1
  end type stream

  integer(int64), parameter :: m1 = 2147483563_int64, m2 = 2147483399_int64

contains

  ! The stream with a given number, at its beginning. number >= 0.
  pure type(stream) function stream_start(number) result(s)
    integer, intent(in) :: number
    real(real64) :: ignored
    integer :: i

    s%s1 = 1 + mod(7919_int64 * number + 12345, m1 - 1)
    s%s2 = 1 + mod(104729_int64 * number + 67890, m2 - 1)
    do i = 1, 20 ! until neighbouring numbers have nothing in common
      call uniform(s, ignored)
    end do
  end function stream_start

  ! The next number of the stream, uniform between 0 and 1, both excluded.
  pure subroutine uniform(s, u)
    type(stream), intent(inout) :: s
    real(real64), intent(out) :: u
    integer(int64) :: z

    s%s1 = mod(40014 * s%s1, m1)
    s%s2 = mod(40692 * s%s2, m2)
    z = s%s1 - s%s2
    if (z < 1) z = z + m1 - 1
    u = real(z, real64) / real(m1, real64)
  end subroutine uniform

  ! The next normal deviate, of mean 0 and variance 1, from two numbers of the stream.
  pure subroutine normal(s, z)
    type(stream), intent(inout) :: s
    real(real64), intent(out) :: z
    real(real64), parameter :: pi = acos(-1.0_real64)
    real(real64) :: u, v

    call uniform(s, u)
    call uniform(s, v)
    z = sqrt(-2 * log(u)) * cos(2 * pi * v) ! Box and Muller (1958)
  end subroutine normal

end module random
