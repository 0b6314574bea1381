! SPDX-License-Identifier: BSD-3-Clause
!
! timeline - where the time of a training step goes: what this rank did, and above it when its
! buckets travelled. In SVG.
module timeline
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use gradsync, only: gs_bucket_stats, gs_reducer, gs_reducer_get_bucket, gs_reducer_get_stats, &
                      gs_reducer_stats
  use svg, only: decimal, svg_begin, svg_end, svg_line, svg_rectangle, svg_text
  implicit none
  private
  public :: timeline_begin, timeline_mark, timeline_buckets, draw_timeline

  integer, parameter :: max_phases = 16
  integer, parameter :: width = 1000, height = 190
  real(real64), parameter :: left = 90, right = 980, top = 40, bar = 34, gap = 16

  type, public :: step_timeline
    integer :: phases = 0
    character(24) :: name(max_phases) = ''
    real(real64) :: end_us(0:max_phases) = 0 ! of each phase, since the step began
    integer :: first_ready = 0 ! the phase behind which the first gradient was ready
    type(gs_bucket_stats), allocatable :: bucket(:)
    integer(int64) :: start = 0
  end type step_timeline

contains

  ! A step begins; what was noted of the one before is forgotten.
  subroutine timeline_begin(t)
    type(step_timeline), intent(inout) :: t

    t%phases = 0
    t%first_ready = 0
    call system_clock(t%start)
  end subroutine timeline_begin

  ! A phase has ended.
  subroutine timeline_mark(t, name)
    type(step_timeline), intent(inout) :: t
    character(*), intent(in) :: name
    integer(int64) :: now, rate

    if (t%phases == max_phases) return
    call system_clock(now, rate)
    t%phases = t%phases + 1
    t%name(t%phases) = name
    t%end_us(t%phases) = 1e6_real64 * real(now - t%start, real64) / real(rate, real64)
  end subroutine timeline_mark

  ! The buckets of the step that has ended.
  subroutine timeline_buckets(t, reducer)
    type(step_timeline), intent(inout) :: t
    type(gs_reducer), intent(in) :: reducer
    type(gs_reducer_stats) :: s
    integer :: b

    call gs_reducer_get_stats(reducer, s)
    if (allocated(t%bucket)) deallocate (t%bucket)
    allocate (t%bucket(s%buckets))
    do b = 1, size(t%bucket)
      call gs_reducer_get_bucket(reducer, b - 1, t%bucket(b))
    end do
  end subroutine timeline_buckets

  ! From the end of the first phase on, which is as long as all others: the simulation.
  subroutine draw_timeline(unit, t)
    integer, intent(in) :: unit
    type(step_timeline), intent(in) :: t
    character(*), parameter :: colour(4) = ['#0072b2', '#e69f00', '#009e73', '#cc79a7']
    real(real64) :: from, to, at
    integer :: p, b

    from = t%end_us(1)
    to = t%end_us(t%phases)
    call svg_begin(unit, width, height, inline=.true.)
    call svg_text(unit, left, 22.0_real64, 'One training step of rank 0, behind ' // &
                  decimal(from, 0) // ' &#181;s of simulation', 14, 'start', weight='bold')
    call svg_text(unit, left - 8, row(1) + bar / 2 + 4, 'buckets', 13, 'end')
    call svg_text(unit, left - 8, row(2) + bar / 2 + 4, 'program', 13, 'end')
    at = t%end_us(t%first_ready)
    do b = 1, size(t%bucket)
      call draw_bar(1, at + t%bucket(b)%begin_us, at + t%bucket(b)%end_us, '#d55e00', &
                    decimal(real(t%bucket(b)%bytes, real64), 0) // ' bytes')
    end do
    do p = 2, t%phases
      call draw_bar(2, t%end_us(p - 1), t%end_us(p), colour(1 + mod(p, 4)), trim(t%name(p)))
    end do
    call svg_line(unit, left, row(3) - 4, right, row(3) - 4, '#555', 1.0_real64)
    do p = 0, 4
      at = left + p * (right - left) / 4
      call svg_line(unit, at, row(3) - 4, at, row(3), '#555', 1.0_real64)
      call svg_text(unit, at, row(3) + 15, decimal(p * (to - from) / 4, 0), 12, 'middle')
    end do
    call svg_text(unit, (left + right) / 2, row(3) + 34, '&#181;s since the simulation of the ' &
                  // 'step ended', 13, 'middle')
    call svg_end(unit)

  contains

    pure real(real64) function row(n)
      integer, intent(in) :: n

      row = top + (n - 1) * (bar + gap)
    end function row

    ! A label only where it has room; else a reader sees it when pointing there.
    subroutine draw_bar(n, begin_us, end_us, fill, label)
      integer, intent(in) :: n
      real(real64), intent(in) :: begin_us, end_us
      character(*), intent(in) :: fill, label
      real(real64) :: x, w

      x = left + (begin_us - from) / (to - from) * (right - left)
      w = max(1.0_real64, (end_us - begin_us) / (to - from) * (right - left))
      write (unit, '(5a)') '<g><title>', label, ', ', decimal(end_us - begin_us, 1), &
        ' &#181;s</title>'
      call svg_rectangle(unit, x, row(n), w, bar, fill)
      if (w > 7.5_real64 * len(label)) &
        call svg_text(unit, x + w / 2, row(n) + bar / 2 + 4, label, 12, 'middle')
      write (unit, '(a)') '</g>'
    end subroutine draw_bar

  end subroutine draw_timeline

end module timeline
