! SPDX-License-Identifier: BSD-3-Clause
! p2p - messages, boundaries and halos in Fortran: arrays and addresses, in Fortran's order of
! dimensions; what is refused.
program p2p
  use, intrinsic :: iso_c_binding, only: c_double, c_double_complex, c_float, c_int, c_int16_t, &
    c_int64_t, c_loc
  use checks
  use gradsync
  implicit none

  character(400) :: errmsg
  type(gs_comm) :: world
  integer(c_int) :: rank, size_of_world
  integer :: stat

  call gs_comm_create(world)
  rank = gs_comm_rank(world)
  size_of_world = gs_comm_size(world)
  call speak_as(rank)
  call check_ring()
  call check_boundary()
  call check_halo()
  call check_adjoint()
  call check_half()
  call check_refusals()
  call check_handles()
  call gs_comm_destroy(world)
  call finish()

contains

  subroutine check_ring()
    real(c_double), target, asynchronous :: mine(3, 2), got(3, 2), again(6)
    integer(c_int) :: next, before

    next = mod(rank + 1, size_of_world)
    before = mod(rank + size_of_world - 1, size_of_world)
    mine = rank + 0.5_c_double
    mine(2, 1) = -rank
    got = 0
    again = 0
    call gs_group_begin(world)
    call gs_send(world, mine, next)
    call gs_recv(world, got, before)
    call gs_send(world, c_loc(mine), 4_c_int64_t, GS_F64, next)
    call gs_recv(world, again, before, count=4_c_int64_t)
    call gs_group_end(world)
    call gs_comm_wait(world)
    call expect(got(1, 1) == before + 0.5_c_double .and. got(2, 1) == -before .and. &
      got(3, 2) == before + 0.5_c_double, 'a ring of arrays')
    call expect(again(4) == before + 0.5_c_double .and. again(2) == -before .and. &
      all(again(5:) == 0), 'a ring of the first elements')
  end subroutine check_ring

  ! Pairs of ranks: 0 to 1, 2 to 3, ...
  subroutine check_boundary()
    type(gs_boundary) :: boundary
    real(c_float), target :: x(5, 4, 3, 2), y(5, 4, 3, 2)
    real(c_double) :: z(5, 4, 3, 2)
    integer(c_int64_t) :: shape_of_x(4)
    integer(c_int) :: from

    from = rank - mod(rank, 2)
    if (from + 1 >= size_of_world) return
    shape_of_x = shape(x)
    call gs_boundary_create(world, from, from + 1, shape_of_x, GS_F32, boundary)
    x = 0
    y = 0
    z = 0
    if (rank == from) x = reshape([(real(stat), stat = 1, 120)], shape(x))
    call gs_boundary_forward(boundary, x)
    call gs_comm_wait(world)
    if (rank /= from) y = 2 * x
    call gs_boundary_backward(boundary, c_loc(y), GS_F32)
    call gs_comm_wait(world)
    call expect(all(y == reshape([(2 * real(stat), stat = 1, 120)], shape(y))), &
      'activations forward, gradients backward')
    call gs_boundary_forward(boundary, x(:, :, :, 1), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'activations has 60 elements, but needs 120', &
      'an array that is too small')
    call gs_boundary_forward(boundary, z, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'not of the type', 'an array of another type')
    call gs_boundary_destroy(boundary)
    call gs_boundary_backward(boundary, x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, &
      "boundary of communicator 'world' was destroyed", 'a boundary that was destroyed')
    shape_of_x(2) = merge(4, 6, rank == from)
    call gs_boundary_create(world, from, from + 1, shape_of_x, GS_F32, boundary, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_MISMATCH, '5 x 4 x 3 x 2|5 x 6 x 3 x 2', &
      'shapes that differ')
  end subroutine check_boundary

  ! The ranks lie along the second dimension; widths differ, the first one is periodic.
  subroutine check_halo()
    type(gs_halo) :: halo
    real(c_double), target :: field(-1:4, 0:5) ! cells 1 to 2 with 2 ghosts, 1 to 4 with 1
    integer(c_int64_t) :: extents(2), width(2)
    logical :: right
    integer :: i, j

    extents = [2, 4]
    width = [2, 1]
    call gs_halo_create(world, [1, size_of_world], extents, width, [.true., .false.], GS_F64, &
      halo)
    field = -1
    do j = 1, 4
      do i = 1, 2
        field(i, j) = value_at(i, 4 * rank + j)
      end do
    end do
    call gs_halo_exchange(halo, field)
    right = .true.
    do j = 0, 5
      do i = -1, 4
        if (4 * rank + j < 1 .or. 4 * rank + j > 4 * size_of_world) then
          right = right .and. field(i, j) == -1
        else
          right = right .and. field(i, j) == value_at(modulo(i - 1, 2) + 1, 4 * rank + j)
        end if
      end do
    end do
    call expect(right, 'ghosts in two dimensions')
    field = 1
    call gs_halo_adjoint(halo, c_loc(field), GS_F32, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_halo_adjoint: dtype is 3|created with 4', &
      'an address of another type')
    call gs_halo_adjoint(halo, c_loc(field), GS_F64)
    call expect(abs(sum(field(1:2, 2:3)) - 4 * 3) < 1e-14_c_double .and. &
      all(field(3:, 1:4) == 0), 'the adjoint in two dimensions')
    call gs_halo_exchange(halo, field(:, 0:4), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'field has 30 elements, but needs 36', &
      'a field without its last column')
    call gs_halo_destroy(halo)
  end subroutine check_halo

  pure function value_at(i, j) result(x)
    integer, intent(in) :: i, j
    real(c_double) :: x

    x = 100 * i + j
  end function value_at

  ! <A x, y> = <x, A* y> in three dimensions of complex numbers.
  subroutine check_adjoint()
    type(gs_halo) :: halo
    complex(c_double_complex), dimension(5, 7, 5) :: x, y, ax, ay
    complex(c_double_complex) :: sums(2)
    real(c_double) :: parts(5, 7, 5, 4), norms(2)
    integer(c_int64_t) :: extents(3), width(3)

    extents = [3, 3, 5]
    width = [1, 2, 0]
    call gs_halo_create(world, [size_of_world, 1, 1], extents, width, [.true., .false., .true.], &
      GS_C128, halo)
    call random_number(parts)
    x = cmplx(parts(:, :, :, 1), parts(:, :, :, 2), c_double_complex)
    y = cmplx(parts(:, :, :, 3), parts(:, :, :, 4), c_double_complex)
    ax = x
    ay = y
    call gs_halo_exchange(halo, ax)
    call gs_halo_adjoint(halo, ay)
    sums = [sum(conjg(ax) * y), sum(conjg(x) * ay)]
    norms = [sum(abs(ax)**2), sum(abs(y)**2)]
    call gs_allreduce(world, sums, GS_SUM)
    call gs_allreduce(world, norms, GS_SUM)
    call expect(abs(sums(1) - sums(2)) <= 1e-13_c_double * sqrt(norms(1)) * sqrt(norms(2)), &
      'the adjoint is one')
    call gs_halo_destroy(halo)
  end subroutine check_adjoint

  ! Two-byte numbers have no kind: integers stand for them.
  subroutine check_half()
    type(gs_halo) :: halo
    integer(c_int16_t) :: field(4)

    call gs_halo_create(world, [size_of_world], [2_c_int64_t], [1_c_int64_t], [.true.], GS_BF16, &
      halo)
    field = int([0, 16256 + 2 * rank, 16257 + 2 * rank, 0], c_int16_t)
    call gs_halo_exchange(halo, field)
    call expect(field(1) == 16257 + 2 * mod(rank + size_of_world - 1, size_of_world) .and. &
      field(4) == 16256 + 2 * mod(rank + 1, size_of_world), 'a halo of bf16')
    call gs_halo_destroy(halo)
  end subroutine check_half

  subroutine check_refusals()
    type(gs_halo) :: halo
    real(c_double) :: x(4, 4)

    call gs_send(world, x(1, :), size_of_world, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_send', 'a strided section')
    call gs_recv(world, x, -1, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_recv: peer -1', 'no rank')
    call gs_group_end(world, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_group_begin first', 'no group')
    call gs_halo_create(world, [1, 1], [4_c_int64_t], [1_c_int64_t, 1_c_int64_t], &
      [.true., .true.], GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'extents has 1 elements, but needs 2', &
      'lists of different lengths')
    call gs_halo_create(world, [1, 1], [4_c_int64_t, -4_c_int64_t], [1_c_int64_t, 1_c_int64_t], &
      [.true., .true.], GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'an element of extents is -4', &
      'a negative extent')
    call gs_halo_create(world, [1, 1], [4_c_int64_t, 4_c_int64_t], [1_c_int64_t, 1_c_int64_t], &
      [.true.], GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'periodic has 1 elements', &
      'a list that is too short')
    call gs_halo_create(world, [size_of_world + 1, 1], [4_c_int64_t, 4_c_int64_t], &
      [1_c_int64_t, 1_c_int64_t], [.true., .true.], GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, ' x 1 is not one of', 'another number of ranks')
    call check_dimensions()
  end subroutine check_refusals

  ! Texts count dimensions as Fortran does: the first is 1.
  subroutine check_dimensions()
    type(gs_halo) :: halo
    integer :: width(3), extents(3)

    width = 1
    extents = 4
    call gs_halo_create(world, [0, 1, 1], extents, width, [.true., .true., .true.], GS_F64, &
      halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, '0 ranks in dimension 1 of 3', 'an empty grid')
    extents(3) = 0
    call gs_halo_create(world, [size_of_world, 1, 1], extents, width, [.true., .true., .true.], &
      GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'no cells in dimension 3', 'an empty block')
    call gs_halo_create(world, [size_of_world + 1, 3, 2], [4, 4, 4], width, &
      [.true., .true., .true.], GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, ' x 3 x 2 is not one of', 'too large a grid')
    if (size_of_world == 1) return
    extents(3) = 4
    if (rank == 1) extents(2) = 5
    call gs_halo_create(world, [size_of_world, 1, 1], extents, width, [.true., .true., .true.], &
      GS_F64, halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'rank 1 (host|5 cells in dimension 2 of 3', &
      'a block that does not fit')
  end subroutine check_dimensions

  subroutine check_handles()
    type(gs_halo) :: halo, never
    real(c_double) :: x(6)

    call gs_halo_destroy(never)
    call gs_halo_exchange(never, x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_halo_exchange|never created', &
      'a halo that was never created')
    call gs_halo_create(world, [size_of_world], [4_c_int64_t], [1_c_int64_t], [.false.], GS_F64, &
      halo)
    call gs_halo_destroy(halo)
    call gs_halo_adjoint(halo, x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, &
      "halo of communicator 'world' was destroyed", 'a halo that was destroyed')
    call gs_halo_destroy(halo, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'was destroyed', 'a second destroy')
  end subroutine check_handles

end program p2p
