! SPDX-License-Identifier: BSD-3-Clause
!
! svg - lines, shapes and text in an SVG file. Lengths are in pixels, y grows downwards.
module svg
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: svg_begin, svg_end, svg_line, svg_rectangle, svg_dot, svg_path, svg_text, decimal

contains

  ! A file of its own, or inline: a part of another one.
  subroutine svg_begin(unit, width, height, inline)
    integer, intent(in) :: unit, width, height
    logical, intent(in), optional :: inline
    logical :: alone

    alone = .true.
    if (present(inline)) alone = .not. inline
    if (alone) write (unit, '(a)') '<?xml version="1.0" encoding="UTF-8"?>'
    write (unit, '(a, 4(i0, a))') '<svg xmlns="http://www.w3.org/2000/svg" width="', width, &
      '" height="', height, '" viewBox="0 0 ', width, ' ', height, &
      '" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" fill="#222">'
    call svg_rectangle(unit, 0.0_real64, 0.0_real64, real(width, real64), real(height, real64), &
                       '#fff')
  end subroutine svg_begin

  subroutine svg_end(unit)
    integer, intent(in) :: unit

    write (unit, '(a)') '</svg>'
  end subroutine svg_end

  subroutine svg_line(unit, x1, y1, x2, y2, colour, width, dashes)
    integer, intent(in) :: unit
    real(real64), intent(in) :: x1, y1, x2, y2, width
    character(*), intent(in) :: colour
    character(*), intent(in), optional :: dashes

    call svg_path(unit, [x1, x2], [y1, y2], colour, width, dashes)
  end subroutine svg_line

  ! A line through all points. dashes as in stroke-dasharray: "4,3".
  subroutine svg_path(unit, x, y, colour, width, dashes)
    integer, intent(in) :: unit
    real(real64), intent(in) :: x(:), y(:), width
    character(*), intent(in) :: colour
    character(*), intent(in), optional :: dashes
    integer :: i

    write (unit, '(7a)', advance='no') '<polyline fill="none" stroke-linejoin="round" stroke="', &
      colour, '" stroke-width="', decimal(width, 2), '"'
    if (present(dashes)) write (unit, '(3a)', advance='no') ' stroke-dasharray="', dashes, '"'
    write (unit, '(a)') ' points="'
    do i = 1, size(x)
      write (unit, '(3a)') decimal(x(i), 2), ',', decimal(y(i), 2)
    end do
    write (unit, '(a)') '"/>'
  end subroutine svg_path

  ! Without smoothed edges, so that neighbouring rectangles leave no seam.
  subroutine svg_rectangle(unit, x, y, width, height, fill)
    integer, intent(in) :: unit
    real(real64), intent(in) :: x, y, width, height
    character(*), intent(in) :: fill

    write (unit, '(11a)') '<rect x="', decimal(x, 2), '" y="', decimal(y, 2), '" width="', &
      decimal(width, 2), '" height="', decimal(height, 2), '" fill="', fill, &
      '" shape-rendering="crispEdges"/>'
  end subroutine svg_rectangle

  subroutine svg_dot(unit, x, y, radius, fill)
    integer, intent(in) :: unit
    real(real64), intent(in) :: x, y, radius
    character(*), intent(in) :: fill

    write (unit, '(9a)') '<circle cx="', decimal(x, 2), '" cy="', decimal(y, 2), '" r="', &
      decimal(radius, 2), '" fill="', fill, '"/>'
  end subroutine svg_dot

  ! Text with its baseline at y; anchor is start, middle or end; angle in degrees about (x, y).
  ! Put in as it is: markup works, and & and < must be written as entities.
  subroutine svg_text(unit, x, y, text, size, anchor, angle, weight)
    integer, intent(in) :: unit, size
    real(real64), intent(in) :: x, y
    character(*), intent(in) :: text, anchor
    integer, intent(in), optional :: angle
    character(*), intent(in), optional :: weight

    write (unit, '(5a, i0, 3a)', advance='no') '<text x="', decimal(x, 2), '" y="', &
      decimal(y, 2), '" font-size="', size, '" text-anchor="', anchor, '"'
    if (present(weight)) write (unit, '(3a)', advance='no') ' font-weight="', weight, '"'
    if (present(angle)) write (unit, '(a, i0, 5a)', advance='no') ' transform="rotate(', angle, &
      ' ', decimal(x, 2), ' ', decimal(y, 2), ')"'
    write (unit, '(3a)') '>', text, '</text>'
  end subroutine svg_text

  ! "-0.5" with one digit, "3" with none; never "-0.0".
  pure function decimal(value, digits) result(text)
    real(real64), intent(in) :: value
    integer, intent(in) :: digits
    character(:), allocatable :: text
    character(40) :: buffer, form

    if (digits == 0) then
      write (buffer, '(i0)') nint(value)
    else
      write (form, '("(f40.", i0, ")")') digits
      write (buffer, form) merge(0.0_real64, value, abs(value) < 0.5_real64 / 10**digits)
    end if
    text = trim(adjustl(buffer))
  end function decimal

end module svg
