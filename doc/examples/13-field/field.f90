! SPDX-License-Identifier: BSD-3-Clause
!
! field - heat spreads in a rectangle that is cut in blocks, one on each rank; then rank 0 has the
! whole field, and writes it.
!
!   field FILE    a line of numbers for each row; in Python: numpy.loadtxt(FILE)
program field
  use gradsync
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: dp = c_double
  integer, parameter :: nx = 64, ny = 48, steps = 400
  type(gs_comm) :: comm
  type(gs_halo) :: halo
  real(dp), allocatable :: u(:, :), next(:, :), whole(:, :)
  integer :: ranks(2), place(2), cells(2), begin(2), i, j, step, unit
  character(200) :: path

  call gs_comm_create(comm)
  call get_command_argument(1, path)
  if (path == '') error stop 'field: give a file to write to'

  ! Ranks go along the first dimension first; blocks differ by one cell at most.
  ranks = near_square(gs_comm_size(comm))
  place = [mod(gs_comm_rank(comm), ranks(1)), gs_comm_rank(comm) / ranks(1)]
  begin = place * [nx, ny] / ranks
  cells = (place + 1) * [nx, ny] / ranks - begin
  call gs_halo_create(comm, ranks, cells, [1, 1], [.false., .true.], GS_F64, halo)

  ! A layer of ghosts on each side. In x the ends are kept at 0 and 1, in y they meet.
  allocate (u(0:cells(1) + 1, 0:cells(2) + 1), next(cells(1), cells(2)))
  do j = 0, cells(2) + 1
    do i = 0, cells(1) + 1
      u(i, j) = merge(1.0_dp, 0.0_dp, begin(1) + i > nx)
      if (hypot(begin(1) + i - 20.0_dp, begin(2) + j - 24.0_dp) < 8) u(i, j) = 4
    end do
  end do
  do step = 1, steps
    call gs_halo_exchange(halo, u)
    do j = 1, cells(2)
      do i = 1, cells(1)
        next(i, j) = u(i, j) + 0.2_dp * &
          (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j))
      end do
    end do
    u(1:cells(1), 1:cells(2)) = next
  end do

  allocate (whole(merge(nx, 0, gs_comm_rank(comm) == 0), ny))
  call gs_gather_field(comm, next, begin, whole, root=0)
  if (gs_comm_rank(comm) == 0) then
    open (newunit=unit, file=path, action='write')
    do j = 1, ny
      write (unit, '(*(es24.16e3))') whole(:, j)
    end do
    close (unit)
    print '(a, i0, a, i0, a, i0, a, i0, a, f8.5)', 'field of ', nx, ' x ', ny, ' from ', &
      ranks(1), ' x ', ranks(2), ' blocks, mean ', sum(whole) / size(whole)
  end if
  deallocate (u, next, whole)
  call gs_halo_destroy(halo)
  call gs_comm_destroy(comm)

contains

  ! The two factors of [n] that are closest to each other, the larger one first.
  pure function near_square(n) result(factors)
    integer, intent(in) :: n
    integer :: factors(2), i

    do i = 1, int(sqrt(real(n)))
      if (mod(n, i) == 0) factors = [n / i, i]
    end do
  end function near_square

end program field
