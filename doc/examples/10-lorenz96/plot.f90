! SPDX-License-Identifier: BSD-3-Clause
!
! plot - a panel with axes, and what can be drawn in it in units of the data.
module plot
  use, intrinsic :: iso_fortran_env, only: real64
  use svg, only: decimal, svg_dot, svg_line, svg_path, svg_rectangle, svg_text
  implicit none
  private
  public :: panel_axes, panel_curve, panel_dots, panel_bars, panel_cells, panel_key, &
            panel_colour_bar

  type, public :: panel
    integer :: unit = 0
    real(real64) :: left = 0, top = 0, width = 0, height = 0 ! of the area of the data, in pixels
    real(real64) :: x(2) = [0, 1], y(2) = [0, 1] ! what its edges stand for
  end type panel

  real(real64), parameter :: line_width = 1.8_real64
  character(*), parameter :: grey = '#555'

contains

  ! The frame, ticks with numbers at every x_step and y_step, and three labels.
  subroutine panel_axes(p, title, x_label, y_label, x_step, y_step)
    type(panel), intent(in) :: p
    character(*), intent(in) :: title, x_label, y_label
    real(real64), intent(in) :: x_step, y_step
    real(real64) :: bottom, v
    integer :: i

    bottom = p%top + p%height
    call svg_path(p%unit, p%left + p%width * [0, 1, 1, 0, 0], &
                  p%top + p%height * [0, 0, 1, 1, 0], grey, 1.0_real64)
    do i = ceiling(p%x(1) / x_step - 1e-9_real64), floor(p%x(2) / x_step + 1e-9_real64)
      v = to_x(p, i * x_step)
      call svg_line(p%unit, v, bottom, v, bottom + 4, grey, 1.0_real64)
      call svg_text(p%unit, v, bottom + 17, decimal(i * x_step, decimals(x_step)), 12, 'middle')
    end do
    do i = ceiling(p%y(1) / y_step - 1e-9_real64), floor(p%y(2) / y_step + 1e-9_real64)
      v = to_y(p, i * y_step)
      call svg_line(p%unit, p%left - 4, v, p%left, v, grey, 1.0_real64)
      call svg_text(p%unit, p%left - 7, v + 4, decimal(i * y_step, decimals(y_step)), 12, 'end')
    end do
    call svg_text(p%unit, p%left, p%top - 9, title, 14, 'start', weight='bold')
    call svg_text(p%unit, p%left + p%width / 2, bottom + 36, x_label, 13, 'middle')
    call svg_text(p%unit, p%left - 38, p%top + p%height / 2, y_label, 13, 'middle', angle=-90)
  end subroutine panel_axes

  subroutine panel_curve(p, x, y, colour, dashes)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: x(:), y(:)
    character(*), intent(in) :: colour
    character(*), intent(in), optional :: dashes

    call svg_path(p%unit, to_x(p, x), to_y(p, y), colour, line_width, dashes)
  end subroutine panel_curve

  ! Dots outside the frame are left out.
  subroutine panel_dots(p, x, y, colour)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: x(:), y(:)
    character(*), intent(in) :: colour
    integer :: i

    do i = 1, size(x)
      if (x(i) < p%x(1) .or. x(i) > p%x(2) .or. y(i) < p%y(1) .or. y(i) > p%y(2)) cycle
      call svg_dot(p%unit, to_x(p, x(i)), to_y(p, y(i)), 1.5_real64, colour)
    end do
  end subroutine panel_dots

  ! A bar of the given width, in units of x, from y = 0 at each x.
  subroutine panel_bars(p, x, y, width, colour)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: x(:), y(:), width
    character(*), intent(in) :: colour
    real(real64) :: left
    integer :: i

    do i = 1, size(x)
      left = to_x(p, x(i) - width / 2)
      call svg_rectangle(p%unit, left, to_y(p, y(i)), to_x(p, x(i) + width / 2) - left, &
                         to_y(p, 0.0_real64) - to_y(p, y(i)), colour)
    end do
  end subroutine panel_bars

  ! One coloured cell for each value; the first index runs up, the second to the right.
  subroutine panel_cells(p, values, lowest, highest)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: values(:, :), lowest, highest
    real(real64) :: w, h
    integer :: i, j

    w = p%width / size(values, 2)
    h = p%height / size(values, 1)
    do j = 1, size(values, 2)
      do i = 1, size(values, 1)
        call svg_rectangle(p%unit, p%left + (j - 1) * w, p%top + p%height - i * h, w, h, &
                           colour_of((values(i, j) - lowest) / (highest - lowest)))
      end do
    end do
  end subroutine panel_cells

  ! One entry of a legend, with a line as its sample, or a dot. (x, y) is a fraction of the panel.
  subroutine panel_key(p, x, y, label, colour, dot, dashes)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: x, y
    character(*), intent(in) :: label, colour
    logical, intent(in) :: dot
    character(*), intent(in), optional :: dashes
    real(real64) :: left, middle

    left = p%left + x * p%width
    middle = p%top + y * p%height
    if (dot) then
      call svg_dot(p%unit, left + 12, middle, 3.0_real64, colour)
    else
      call svg_line(p%unit, left, middle, left + 24, middle, colour, line_width, dashes)
    end if
    call svg_text(p%unit, left + 30, middle + 4, label, 12, 'start')
  end subroutine panel_key

  ! The colours of panel_cells in a panel of their own: a bar with numbers on its right.
  subroutine panel_colour_bar(p, label, step)
    type(panel), intent(in) :: p
    character(*), intent(in) :: label
    real(real64), intent(in) :: step
    real(real64) :: v, h
    integer, parameter :: shades = 64
    integer :: i

    h = p%height / shades
    do i = 1, shades
      call svg_rectangle(p%unit, p%left, p%top + p%height - i * h, p%width, h, &
                         colour_of((i - 0.5_real64) / shades))
    end do
    do i = ceiling(p%y(1) / step), floor(p%y(2) / step)
      v = to_y(p, i * step)
      call svg_line(p%unit, p%left + p%width, v, p%left + p%width + 4, v, grey, 1.0_real64)
      call svg_text(p%unit, p%left + p%width + 7, v + 4, decimal(i * step, decimals(step)), 12, &
                    'start')
    end do
    call svg_text(p%unit, p%left + p%width / 2, p%top - 9, label, 13, 'middle')
  end subroutine panel_colour_bar

  elemental real(real64) function to_x(p, x)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: x

    to_x = p%left + p%width * (x - p%x(1)) / (p%x(2) - p%x(1))
  end function to_x

  elemental real(real64) function to_y(p, y)
    type(panel), intent(in) :: p
    real(real64), intent(in) :: y

    to_y = p%top + p%height * (p%y(2) - y) / (p%y(2) - p%y(1))
  end function to_y

  ! Digits behind the point that multiples of step need.
  pure integer function decimals(step)
    real(real64), intent(in) :: step

    decimals = max(0, ceiling(-log10(step) - 1e-9_real64))
  end function decimals

  ! From dark blue at 0 through green to yellow at 1: the map "viridis", by nine of its colours.
  pure function colour_of(value) result(text)
    real(real64), intent(in) :: value
    character(7) :: text
    integer, parameter :: map(3, 9) = reshape([68, 1, 84, 72, 40, 120, 62, 73, 137, 49, 104, &
                                               142, 38, 130, 142, 31, 158, 137, 53, 183, 121, &
                                               110, 206, 88, 253, 231, 37], [3, 9])
    real(real64) :: place
    integer :: i

    place = 1 + 8 * max(0.0_real64, min(1.0_real64, value))
    i = min(8, int(place))
    write (text, '("#", 3z2.2)') nint(map(:, i) + (place - i) * (map(:, i + 1) - map(:, i)))
  end function colour_of

end module plot
