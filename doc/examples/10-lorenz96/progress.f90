! SPDX-License-Identifier: BSD-3-Clause
!
! progress - lines on standard output that begin with the elapsed time, from one rank; and, where
! that is a terminal, one that is written over while it changes.
module progress
  use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
  implicit none
  private
  public :: reporter_create, say, say_live, elapsed

  type, public :: reporter
    logical :: speaks = .false.
    logical :: live = .false. ! the output can be written over
    integer(int64) :: start = 0
  end type reporter

  integer, parameter :: columns = 79 ! of a terminal, at least
  character, parameter :: return = achar(13)

contains

  type(reporter) function reporter_create(speaks, live) result(r)
    logical, intent(in) :: speaks, live

    r%speaks = speaks
    r%live = live
    call system_clock(r%start)
  end function reporter_create

  subroutine say(r, text)
    type(reporter), intent(in) :: r
    character(*), intent(in) :: text

    if (.not. r%speaks) return
    if (r%live) write (output_unit, '(3a)', advance='no') return, repeat(' ', columns), return
    print '("[", f6.1, " s] ", a)', elapsed(r), text
    flush (output_unit)
  end subroutine say

  ! Writes over the line that the last call has left.
  subroutine say_live(r, text)
    type(reporter), intent(in) :: r
    character(*), intent(in) :: text
    character(columns) :: line
    character(11) :: time

    if (.not. (r%speaks .and. r%live)) return
    write (time, '("[", f6.1, " s] ")') elapsed(r)
    line = time // text
    write (output_unit, '(2a)', advance='no') return, line
    flush (output_unit)
  end subroutine say_live

  ! Seconds since the reporter was made.
  real(real64) function elapsed(r) result(seconds)
    type(reporter), intent(in) :: r
    integer(int64) :: now, rate

    call system_clock(now, rate)
    seconds = real(now - r%start, real64) / real(rate, real64)
  end function elapsed

end module progress
