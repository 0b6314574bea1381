! SPDX-License-Identifier: BSD-3-Clause
! adjoint - the gradients of collectives, on arrays and addresses, and gs_reduce_scatterv.
!
! Values are small whole numbers of a rank and a place, so that sums are exact and what a rank
! should get can be said without communication.
program adjoint
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int16, int64, real32, real64
  use checks
  use gradsync
  implicit none

  type(gs_comm) :: comm
  integer :: me, n, last
  integer :: mine, whole ! slices of this rank and of all, where ranks have different numbers
  logical :: compares ! GS_CHECK=collective

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  last = n - 1
  mine = length_of(me)
  whole = before(n)
  compares = what_is_set('GS_CHECK') == 'collective'
  call speak_as(me)
  call check_allgather()
  call check_own_slot()
  call check_kinds()
  call check_allgatherv()
  call check_gather()
  call check_gatherv()
  call check_scatter()
  call check_scatterv()
  call check_alltoall()
  call check_alltoallv()
  call check_in_place()
  call check_broadcast()
  call check_reduce_scatter()
  call check_reduce_scatterv()
  call check_field()
  call check_field_addresses()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  function what_is_set(name) result(value)
    character(*), intent(in) :: name
    character(20) :: value

    call get_environment_variable(name, value)
  end function what_is_set

  ! What rank [r] has at place [i].
  elemental function v(r, i) result(value)
    integer, intent(in) :: r, i
    real(real64) :: value

    value = mod(37 * r + 11 * i * i + 5 * i, 23) - 11
  end function v

  ! The sum of it over the ranks.
  elemental function total(i) result(value)
    integer, intent(in) :: i
    real(real64) :: value
    integer :: r

    value = sum([(v(r, i), r=0, last)])
  end function total

  ! [from] + 1 to [from] + [length]
  pure function places(from, length) result(list)
    integer, intent(in) :: from, length
    integer :: list(length), i

    list = [(from + i, i=1, length)]
  end function places

  ! Pieces of different lengths: rank r has 2 r + 1 slices, but 0 if it is 1.
  elemental function length_of(r) result(length)
    integer, intent(in) :: r
    integer :: length

    length = merge(0, 2 * r + 1, r == 1)
  end function length_of

  ! Slices before the piece of rank [r], where pieces are one behind the other.
  pure function before(r) result(slices)
    integer, intent(in) :: r
    integer :: slices, i

    slices = sum([(length_of(i), i=0, r - 1)])
  end function before

  subroutine check_allgather()
    real(real64), target :: y(3, 2 * n), x(3, 2), z(6)
    integer :: own

    own = 6 * me
    y = reshape(v(me, places(0, size(y))), shape(y))
    x = -99
    call gs_allgather_backward(comm, y, x)
    call expect(all(x == reshape(total(places(own, 6)), shape(x))), 'allgather')
    z = -99
    call gs_allgather_backward(comm, y, z, GS_GRAD_ADJOINT)
    call expect(all(z == total(places(own, 6))), 'allgather, by its contract')
    z = -99
    call gs_allgather_backward(comm, y, z, count=2_int64)
    call expect(all(z(:2) == total(places(2 * me, 2))) .and. all(z(3:) == -99), &
      'allgather of less than there is room for')
    z = -99
    call gs_allgather_backward(comm, c_loc(y), c_loc(z), 6_int64, GS_F64)
    call expect(all(z == total(places(own, 6))), 'allgather by address')
    call gs_allgather_backward(comm, y, y(:, 2 * me + 1:2 * me + 2))
    call expect(all(y(:, 2 * me + 1:2 * me + 2) == x), 'allgather in place')
  end subroutine check_allgather

  ! The same loss on all ranks; and with other losses what GS_CHECK=collective is for.
  subroutine check_own_slot()
    real(real32), target :: y(2, 3 * n), x(2, 3), z(6)
    character(300) :: errmsg
    integer(int64) :: counts(n)
    integer :: stat

    y = reshape(real(v(7, places(0, size(y))), real32), shape(y))
    x = -99
    counts = 3
    call gs_allgather_backward(comm, y, x, GS_GRAD_OWN_SLOT)
    call expect(all(x == n * y(:, 3 * me + 1:3 * me + 3)), 'own slot of allgather')
    z = -99
    call gs_allgather_backward(comm, c_loc(y), c_loc(z), 6_int64, GS_F32, GS_GRAD_OWN_SLOT)
    call expect(all(z == n * v(7, places(6 * me, 6))), 'own slot by address')
    x = -99
    call gs_allgatherv_backward(comm, y, x, counts, contract=GS_GRAD_OWN_SLOT)
    call expect(all(x == n * y(:, 3 * me + 1:3 * me + 3)), 'own slot of allgatherv')
    z = -99
    call gs_allgatherv_backward(comm, c_loc(y), 2 * counts, c_loc(z), 6_int64, GS_F32, &
      contract=GS_GRAD_OWN_SLOT)
    call expect(all(z == n * v(7, places(6 * me, 6))), 'own slot of allgatherv by address')
    y = real(me, real32)
    x = -99
    call gs_allgather_backward(comm, y, x, GS_GRAD_OWN_SLOT, stat=stat, errmsg=errmsg)
    if (compares .and. n > 1) then
      call expect_failure(stat, errmsg, GS_ERR_MISMATCH, &
        'gs_allgather_backward: GS_GRAD_OWN_SLOT is not the gradient', 'not the same loss')
      call expect(all(x == -99), 'nothing is written then')
    else
      call expect(stat == GS_OK .and. all(x == real(n * me, real32)), 'own slot, unchecked')
    end if
  end subroutine check_own_slot

  subroutine check_kinds()
    complex(real32) :: c4(2, 0:last), x4(2)
    complex(real64) :: c8(2, 0:last), x8(2)
    integer(int16) :: b(3, 0:last), xb(3)
    integer :: i

    c4 = reshape(cmplx(v(me, places(0, 2 * n)), v(me, places(50, 2 * n)), real32), shape(c4))
    c8 = conjg(c4)
    b = reshape(bits(v(me, places(0, 3 * n))), shape(b))
    call gs_allgather_backward(comm, c4, x4)
    call gs_allgather_backward(comm, c8, x8)
    call gs_allgather_backward(comm, b, xb, as=GS_BF16)
    do i = 1, 2
      call expect(x4(i) == cmplx(total(2 * me + i), total(50 + 2 * me + i), real32), &
        'complex(real32)')
      call expect(x8(i) == conjg(cmplx(x4(i), kind=real64)), 'complex(real64)')
    end do
    call expect(all(xb == bits(total(places(3 * me, 3)))), 'bf16')
  end subroutine check_kinds

  ! As bf16, which has these numbers.
  elemental function bits(x)
    real(real64), intent(in) :: x
    integer(int16) :: bits, halves(2)

    halves = transfer(real(x, real32), halves)
    bits = halves(2)
  end function bits

  ! Columns of a global array, of different numbers; then with displacements in reverse order and
  ! gaps, which differ from rank to rank.
  subroutine check_allgatherv()
    real(real64), target :: y(3, whole), wide(3, whole + 2 * n), x(3, mine)
    real(real64), target :: z(3 * mine + 1)
    integer(int64) :: counts(n), displs(n)
    integer :: r, at

    counts = length_of([(r, r=0, last)])
    y = reshape(v(me, places(0, size(y))), shape(y))
    x = -99
    call gs_allgatherv_backward(comm, y, x, counts)
    call expect(all(x == reshape(total(places(3 * before(me), size(x))), shape(x))), &
      'allgatherv of columns')
    z = -99
    call gs_allgatherv_backward(comm, c_loc(y), 3 * counts, c_loc(z), size(x, kind=int64), GS_F64)
    call expect(all(z(:size(x)) == total(places(3 * before(me), size(x)))) .and. &
      z(size(z)) == -99, 'allgatherv by address')
    wide = 99
    at = mod(me, 2)
    do r = last, 0, -1
      displs(r + 1) = at
      wide(:, at + 1:at + length_of(r)) = y(:, before(r) + 1:before(r + 1))
      at = at + length_of(r) + 1
    end do
    x = -99
    call gs_allgatherv_backward(comm, wide, x, counts, displs, GS_GRAD_ADJOINT)
    call expect(all(x == reshape(total(places(3 * before(me), size(x))), shape(x))), &
      'allgatherv from places of each rank')
    z = -99
    call gs_allgatherv_backward(comm, c_loc(wide), 3 * counts, c_loc(z), size(x, kind=int64), &
      GS_F64, 3 * displs)
    call expect(all(z(:size(x)) == total(places(3 * before(me), size(x)))), &
      'allgatherv from places, by address')
  end subroutine check_allgatherv

  subroutine check_gather()
    real(real64), target :: y(2, 2, 0:last), x(2, 2), none(0)

    y = reshape(v(5, places(0, size(y))), shape(y))
    x = -99
    if (me == last) then
      call gs_gather_backward(comm, y, x, last)
    else
      call gs_gather_backward(comm, none, x, last)
    end if
    call expect(all(x == reshape(v(5, places(4 * me, 4)), shape(x))), 'gather')
    x = -99
    call gs_gather_backward(comm, c_loc(y), c_loc(x), 3_int64, GS_F64, 0)
    call expect(all(reshape(x, [4]) == [v(5, places(3 * me, 3)), -99.0_real64]), &
      'gather by address')
  end subroutine check_gather

  subroutine check_gatherv()
    real(real64), target :: y(2, whole), x(2, mine), none(2, 0)
    integer(int64) :: counts(n), displs(n)
    integer :: r, at

    counts = length_of([(r, r=0, last)])
    y = reshape(v(3, places(0, size(y))), shape(y))
    x = -99
    if (me == last) then
      call gs_gatherv_backward(comm, y, x, last, counts)
    else
      call gs_gatherv_backward(comm, none, x, last)
    end if
    call expect(all(x == reshape(v(3, places(2 * before(me), size(x))), shape(x))), 'gatherv')
    at = 0
    do r = last, 0, -1
      displs(r + 1) = at
      at = at + length_of(r)
    end do
    x = -99
    call gs_gatherv_backward(comm, y, x, 0, counts, displs)
    at = 2 * int(displs(me + 1))
    call expect(all(x == reshape(v(3, places(at, size(x))), shape(x))), 'gatherv from places')
    x = -99
    call gs_gatherv_backward(comm, c_loc(y), c_loc(x), size(x, kind=int64), GS_F64, 0, &
      2 * counts, 2 * displs)
    call expect(all(x == reshape(v(3, places(at, size(x))), shape(x))), 'gatherv by address')
  end subroutine check_gatherv

  subroutine check_scatter()
    real(real64), target :: y(2), x(2, n), right(2, n)
    integer :: r

    y = v(me, places(0, 2))
    right = reshape([(v(r, [1, 2]), r=0, last)], shape(right))
    x = -99
    call gs_scatter_backward(comm, y, x, last)
    call expect(all(x == merge(right, x * 0 - 99, me == last)), 'scatter')
    x = -99
    call gs_scatter_backward(comm, c_loc(y), c_loc(x), 2_int64, GS_F64, 0)
    call expect(all(x == merge(right, x * 0 - 99, me == 0)), 'scatter by address')
  end subroutine check_scatter

  subroutine check_scatterv()
    real(real64), target :: y(2, mine), x(2, whole), right(2, whole)
    integer(int64) :: counts(n), displs(n), room
    integer :: r, at

    counts = length_of([(r, r=0, last)])
    y = reshape(v(me, places(0, size(y))), shape(y))
    right = reshape([(v(r, places(0, 2 * length_of(r))), r=0, last)], shape(right))
    x = -99
    call gs_scatterv_backward(comm, y, x, last)
    call expect(all(x == merge(right, x * 0 - 99, me == last)), 'scatterv, as ranks tell')
    x = -99
    call gs_scatterv_backward(comm, y, x, 0, counts)
    call expect(all(x == merge(right, x * 0 - 99, me == 0)), 'scatterv')
    at = 0
    do r = last, 0, -1
      displs(r + 1) = at
      right(:, at + 1:at + length_of(r)) = reshape(v(r, places(0, 2 * length_of(r))), &
        [2, length_of(r)])
      at = at + length_of(r)
    end do
    x = -99
    call gs_scatterv_backward(comm, y, x, 0, counts, displs)
    call expect(all(x == merge(right, x * 0 - 99, me == 0)), 'scatterv to places')
    x = -99
    room = size(x)
    call gs_scatterv_backward(comm, c_loc(y), size(y, kind=int64), c_loc(x), room, GS_F64, 0, &
      2 * counts, 2 * displs)
    call expect(all(x == merge(right, x * 0 - 99, me == 0)), 'scatterv by address')
  end subroutine check_scatterv

  subroutine check_alltoall()
    real(real64), target :: y(2, 0:last), x(2, 0:last)
    integer :: r

    y = reshape(v(me, places(0, 2 * n)), shape(y))
    x = -99
    call gs_alltoall_backward(comm, y, x)
    do r = 0, last
      call expect(all(x(:, r) == v(r, places(2 * me, 2))), 'alltoall')
    end do
    x = -99
    call gs_alltoall_backward(comm, c_loc(y), c_loc(x), 1_int64, GS_F64)
    do r = 0, last
      call expect(x(1 + mod(r, 2), r / 2) == v(r, me + 1), 'alltoall by address')
    end do
  end subroutine check_alltoall

  ! In the forward pass rank s sends s + 2 r slices to rank r.
  subroutine check_alltoallv()
    real(real64), target :: y(2, n * last / 2 + 2 * n * me), x(2, n * me + n * last)
    integer(int64) :: sent(n), got(n), to(n)
    integer :: r, at

    sent = [(me + 2 * r, r=0, last)]
    got = [(r + 2 * me, r=0, last)]
    at = 0
    do r = 0, last
      y(:, at + 1:at + int(got(r + 1))) = r + 100 * me
      at = at + int(got(r + 1))
    end do
    x = -99
    call gs_alltoallv_backward(comm, y, got, x, sent)
    at = 0
    do r = 0, last
      call expect(all(x(:, at + 1:at + int(sent(r + 1))) == me + 100 * r), 'alltoallv')
      at = at + int(sent(r + 1))
      to(r + 1) = size(x, 2) - at
    end do
    x = -99
    call gs_alltoallv_backward(comm, y, got, x, sent, send_displs=to)
    do r = 0, last
      call expect(all(x(:, to(r + 1) + 1:to(r + 1) + sent(r + 1)) == me + 100 * r), &
        'alltoallv to places')
    end do
    x = -99
    call gs_alltoallv_backward(comm, c_loc(y), 2 * got, c_loc(x), 2 * sent, GS_F64, &
      send_displs=2 * to)
    do r = 0, last
      call expect(all(x(:, to(r + 1) + 1:to(r + 1) + sent(r + 1)) == me + 100 * r), &
        'alltoallv by address')
    end do
  end subroutine check_alltoallv

  ! Sums, averages, and what the root has.
  subroutine check_in_place()
    real(real64), target :: x(3, 2)

    x = reshape(v(me, places(0, 6)), shape(x))
    call gs_allreduce_backward(comm, x, GS_SUM)
    call expect(all(x == reshape(total(places(0, 6)), shape(x))), 'allreduce')
    x = n * me
    call gs_allreduce_backward(comm, x, GS_AVG, 4_int64)
    call expect(all(reshape(x, [6]) == [spread(n * last / 2.0_real64, 1, 4), &
      spread(real(n * me, real64), 1, 2)]), 'allreduce_avg, with count')
    x = reshape(v(me, places(0, 6)), shape(x))
    call gs_allreduce_backward(comm, c_loc(x), 6_int64, GS_F64, GS_SUM)
    call expect(all(x == reshape(total(places(0, 6)), shape(x))), 'allreduce by address')
    x = v(me, 1)
    call gs_reduce_backward(comm, x, last)
    call expect(all(x == v(last, 1)), 'reduce')
    x = v(me, 2)
    call gs_reduce_backward(comm, c_loc(x), 6_int64, GS_F64, 0)
    call expect(all(x == v(0, 2)), 'reduce by address')
  end subroutine check_in_place

  subroutine check_broadcast()
    real(real64), target :: y(5), x(5), none(0)

    y = v(me, places(0, 5))
    x = -99
    if (me == last) then
      call gs_broadcast_backward(comm, y, x, last)
    else
      call gs_broadcast_backward(comm, y, none, last)
    end if
    call expect(all(x == merge(total(places(0, 5)), x * 0 - 99, me == last)), 'broadcast')
    call gs_broadcast_backward(comm, y, y, 0)
    call expect(all(y == merge(total(places(0, 5)), v(me, places(0, 5)), me == 0)), &
      'broadcast in place')
    y = v(me, places(0, 5))
    x = -99
    call gs_broadcast_backward(comm, c_loc(y), c_loc(x), 5_int64, GS_F64, 0)
    call expect(all(x == merge(total(places(0, 5)), x * 0 - 99, me == 0)), &
      'broadcast by address')
  end subroutine check_broadcast

  subroutine check_reduce_scatter()
    real(real64), target :: y(2), x(2, n)
    integer :: r

    y = v(me, places(0, 2))
    x = -99
    call gs_reduce_scatter_backward(comm, y, x)
    call expect(all(x == reshape([(v(r, [1, 2]), r=0, last)], shape(x))), 'reduce_scatter')
    x = -99
    call gs_reduce_scatter_backward(comm, c_loc(y), c_loc(x), 2_int64, GS_F64)
    call expect(all(x == reshape([(v(r, [1, 2]), r=0, last)], shape(x))), &
      'reduce_scatter by address')
  end subroutine check_reduce_scatter

  ! The collective, which is the gradient of allgatherv, for other operations too; and its own.
  subroutine check_reduce_scatterv()
    real(real64), target :: all_of(2, whole), part(2, mine), back(2, whole)
    real(real64) :: right(2, whole)
    integer(int64) :: counts(n), displs(n), room
    integer :: r, i, at

    counts = length_of([(r, r=0, last)])
    all_of = reshape(v(me, places(0, size(all_of))), shape(all_of))
    at = 2 * before(me)
    part = -99
    call gs_reduce_scatterv(comm, all_of, part, GS_SUM, counts)
    call expect(all(part == reshape(total(places(at, size(part))), shape(part))), 'sum')
    part = -99
    call gs_reduce_scatterv(comm, c_loc(all_of), 2 * counts, c_loc(part), &
      size(part, kind=int64), GS_F64, GS_MAX)
    call expect(all(reshape(part, [size(part)]) == [(maxval(v([(r, r=0, last)], at + i)), &
      i=1, size(part))]), 'maximum, by address')
    at = 0
    do r = last, 0, -1
      displs(r + 1) = at
      right(:, at + 1:at + length_of(r)) = reshape(v(r, places(0, 2 * length_of(r))), &
        [2, length_of(r)])
      at = at + length_of(r)
    end do
    part = -99
    at = 2 * int(displs(me + 1))
    call gs_reduce_scatterv(comm, all_of, part, GS_AVG, counts, displs)
    call expect(all(abs(n * part - reshape(total(places(at, size(part))), shape(part))) < &
      1e-12), 'average from places')
    part = reshape(v(me, places(0, size(part))), shape(part))
    back = -99
    call gs_reduce_scatterv_backward(comm, part, back, counts, displs)
    call expect(all(back == right), 'reduce_scatterv to places')
    back = -99
    room = size(back)
    call gs_reduce_scatterv_backward(comm, c_loc(part), size(part, kind=int64), c_loc(back), &
      room, 2 * counts, GS_F64, 2 * displs)
    call expect(all(back == right), 'reduce_scatterv by address')
    back = -99
    call gs_reduce_scatterv_backward(comm, part, back, counts)
    call expect(all(back == reshape([(v(r, places(0, 2 * length_of(r))), r=0, last)], &
      shape(back))), 'reduce_scatterv')
  end subroutine check_reduce_scatterv

  ! A plane of [n] by 5: each rank has rows in the first dimension, then columns in the second.
  subroutine check_field()
    real(real64) :: row(2, 4), column(5, 1), plane(2 * n, 5), tall(5, n), none(0, 0)
    real(real64) :: sums(2 * n, 5)

    plane = reshape(v(me, places(0, size(plane))), shape(plane))
    sums = reshape(total(places(0, size(plane))), shape(plane))
    row = -99
    call gs_gather_field_backward(comm, plane, row, [2 * me, 1])
    call expect(all(row == sums(2 * me + 1:2 * me + 2, 2:5)), 'rows of a field on all ranks')
    tall = reshape(v(4, places(0, size(tall))), shape(tall))
    column = -99
    if (me == last) then
      call gs_gather_field_backward(comm, tall, column, [0_int64, int(me, int64)], last)
    else
      call gs_gather_field_backward(comm, none, column, [0_int64, int(me, int64)], last)
    end if
    call expect(all(column(:, 1) == v(4, places(5 * me, 5))), 'columns of a field on one rank')
  end subroutine check_field

  subroutine check_field_addresses()
    real(real64), target :: row(2, 4), plane(2 * n, 5), sums(2 * n, 5)
    integer(c_size_t) :: shape_of(2), extents(2), offsets(2)
    type(c_ptr) :: field

    shape_of = shape(plane)
    extents = shape(row)
    offsets = [2 * me, 1]
    plane = reshape(v(me, places(0, size(plane))), shape(plane))
    sums = reshape(total(places(0, size(plane))), shape(plane))
    row = -99
    call gs_gather_field_backward(comm, c_loc(plane), shape_of, c_loc(row), extents, offsets, &
      GS_F64)
    call expect(all(row == sums(2 * me + 1:2 * me + 2, 2:5)), 'a field on all ranks, by address')
    field = c_null_ptr
    if (me == 0) field = c_loc(sums)
    row = -99
    call gs_gather_field_backward(comm, field, shape_of, c_loc(row), extents, offsets, GS_F64, 0)
    call expect(all(row == sums(2 * me + 1:2 * me + 2, 2:5)), 'a field on one rank, by address')
  end subroutine check_field_addresses

end program adjoint
