! SPDX-License-Identifier: BSD-3-Clause
!
! progress - lines on standard output that begin with the elapsed time, from one rank.
module progress
  use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
  implicit none
  private
  public :: reporter_create, say, elapsed

  type, public :: reporter
    logical :: speaks = .false.
    integer(int64) :: start = 0
  end type reporter

contains

  type(reporter) function reporter_create(speaks) result(r)
    logical, intent(in) :: speaks

    r%speaks = speaks
    call system_clock(r%start)
  end function reporter_create

  subroutine say(r, text)
    type(reporter), intent(in) :: r
    character(*), intent(in) :: text

    if (.not. r%speaks) return
    print '("[", f6.1, " s] ", a)', elapsed(r), text
    flush (output_unit)
  end subroutine say

  ! Seconds since the reporter was made.
  real(real64) function elapsed(r) result(seconds)
    type(reporter), intent(in) :: r
    integer(int64) :: now, rate

    call system_clock(now, rate)
    seconds = real(now - r%start, real64) / real(rate, real64)
  end function elapsed

end module progress
