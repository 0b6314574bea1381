! SPDX-License-Identifier: BSD-3-Clause
! gather - gathers, scatters, exchanges and reductions to a part, on arrays; fields of blocks.
!
! Values are small whole numbers of the ranks and of places, exact in every kind.
program gather
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use gradsync
  implicit none

  type(gs_comm) :: comm
  integer :: stat, me, n, last

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  last = n - 1
  call speak_as(me)
  call check_gather()
  call check_kinds()
  call check_scatter()
  call check_alltoall()
  call check_reduce()
  call check_ragged()
  call check_ragged_places()
  call check_scatterv()
  call check_alltoallv()
  call check_line()
  call check_plane()
  call check_cube()
  call check_field_kinds()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  ! Along the last dimension, and into one more; in place on the root.
  subroutine check_gather()
    real(real64) :: x(3, 2), wide(3, 2 * n), deep(3, 2, 0:last), none(0)
    integer :: r, scalar, scalars(n)

    x = 10 * me
    x(3, 2) = 10 * me + 1
    wide = -1
    deep = -1
    if (me == last) then
      call gs_gather(comm, x, wide, last)
      call gs_gather(comm, x, deep, last, stat=stat)
    else
      call gs_gather(comm, x, none, last)
      call gs_gather(comm, x, none, last, stat=stat)
    end if
    do r = 0, last
      call expect((me == last .and. all(wide(:, 2 * r + 1) == 10 * r) .and. &
            wide(3, 2 * r + 2) == 10 * r + 1) .or. (me /= last .and. all(wide == -1)), &
            'gather along the last dimension')
      call expect((me == last .and. all(deep(:2, :, r) == 10 * r) .and. &
            deep(3, 2, r) == 10 * r + 1) .or. (me /= last .and. all(deep == -1)), &
            'gather into one dimension more')
    end do
    scalar = 7 + me
    scalars = 0
    call gs_gather(comm, scalar, scalars, 0)
    call expect(merge(all(scalars == [(7 + r, r=0, last)]), all(scalars == 0), me == 0), &
          'gather of scalars')
    scalars = 100 * me
    call gs_gather(comm, scalars(me + 1), scalars, 0, count=1_int64)
    call expect(merge(all(scalars == [(100 * r, r=0, last)]), all(scalars == 100 * me), &
          me == 0), 'gather in place')
  end subroutine check_gather

  subroutine check_kinds()
    complex(real32) :: c4(2), all_c4(2, 0:last)
    complex(real64) :: c8(2), all_c8(2, 0:last)
    real(real32) :: r4(2), all_r4(2, 0:last)
    integer(int8) :: i1(2), all_i1(2, 0:last)
    integer(int16) :: i2(2), all_i2(2, 0:last)
    integer(int64) :: i8(2, 1), all_i8(2, 0:last)
    integer :: r

    c4 = cmplx(me, -me, real32)
    c8 = cmplx(me, 2 * me, real64)
    r4 = real(me, real32)
    i1 = int(me, int8)
    i2 = int(me, int16)
    i8 = -me
    all_c4 = 0
    all_i8 = 0
    call gs_gather(comm, c4, all_c4, 0)
    call gs_gather(comm, c8, all_c8, 0)
    call gs_gather(comm, r4, all_r4, 0)
    call gs_gather(comm, i1, all_i1, 0)
    call gs_gather(comm, i2, all_i2, 0, as=GS_BF16)
    call gs_allgatherv(comm, i8, all_i8)
    do r = 0, last
      call expect(all(all_i8(:, r) == -r), 'integer(int64)')
      if (me /= 0) cycle
      call expect(all(all_c4(:, r) == cmplx(r, -r, real32)), 'complex(real32)')
      call expect(all(all_c8(:, r) == cmplx(r, 2 * r, real64)), 'complex(real64)')
      call expect(all(all_r4(:, r) == r), 'real32')
      call expect(all(all_i1(:, r) == r), 'integer(int8)')
      call expect(all(all_i2(:, r) == r), 'integer(int16) as bf16')
    end do
  end subroutine check_kinds

  subroutine check_scatter()
    real(real32) :: x(2, 2), whole(2, 2 * n), long(3, n)
    integer :: r

    x = -1
    whole = -1
    if (me == last) whole = reshape([(real(r, real32), r=1, size(whole))], shape(whole))
    call gs_scatter(comm, whole, x, last)
    call expect(all(x == reshape([(real(4 * me + r, real32), r=1, 4)], [2, 2])), 'scatter')
    if (me == 0) long = reshape([(real(r, real32), r=1, size(long))], shape(long))
    call gs_scatter(comm, long, x, 0, count=3_int64)
    call expect(x(1, 1) == 3 * me + 1 .and. x(1, 2) == 3 * me + 3 .and. &
          x(2, 2) == 4 * me + 4, 'scatter of less than there is room for')
  end subroutine check_scatter

  subroutine check_alltoall()
    integer(int32) :: out(2, 0:last), in(2, 0:last)
    integer :: r

    out(1, :) = [(100 * me + r, r=0, last)]
    out(2, :) = -out(1, :)
    in = 0
    call gs_alltoall(comm, out, in)
    call expect(all(in(1, :) == [(100 * r + me, r=0, last)]) .and. all(in(2, :) == -in(1, :)), &
          'all to all')
    in = 0
    call gs_alltoall(comm, out, in, count=1_int64)
    call expect(sum(in) == sum_first(n), 'all to all with count')
  end subroutine check_alltoall

  ! What gs_alltoall brings here when one element goes to each: element me of each rank's array.
  function sum_first(ranks) result(total)
    integer, intent(in) :: ranks
    integer :: total, r, value

    total = 0
    do r = 0, ranks - 1
      value = 100 * r + me / 2
      total = total + merge(value, -value, mod(me, 2) == 0)
    end do
  end function sum_first

  subroutine check_reduce()
    real(real64) :: x(2, 3), y(2, 3), parts(2, 0:last), part(2)
    integer :: r

    x = me + 1
    y = -1
    call gs_reduce(comm, x, y, GS_SUM, last)
    call expect(all(y == merge(n * (n + 1) / 2, -1, me == last)), 'sum on one rank')
    call gs_reduce(comm, x, y, GS_AVG, 0)
    call expect(me /= 0 .or. all(y == (n + 1) / 2.0_real64), 'average on one rank')
    call gs_reduce(comm, x, x, GS_MAX, 0, count=4_int64)
    call expect(merge(all(x(:, :2) == n), all(x == me + 1), me == 0) .and. &
          all(x(:, 3) == me + 1), 'maximum in place')
    do r = 0, last
      parts(:, r) = [10 * r + me, -(10 * r + me)]
    end do
    call gs_reduce_scatter(comm, parts, part, GS_SUM)
    call expect(all(part == [1, -1] * (10 * me * n + n * last / 2)), 'sum in parts')
    call gs_reduce_scatter(comm, parts, parts(:, me), GS_MIN)
    call expect(all(parts(:, me) == [10 * me, -(10 * me + last)]), 'minimum in parts, in place')
  end subroutine check_reduce

  ! Rank r has r columns: rank 0 none.
  subroutine check_ragged()
    real(real64) :: x(3, me), whole(3, n * last / 2)
    integer(int64) :: counts(n)
    integer :: r

    counts = [(int(r, int64), r=0, last)]
    x = me
    whole = -1
    call gs_allgatherv(comm, x, whole)
    call expect(columns_right(whole), 'columns of all ranks that tell each other')
    whole = -1
    call gs_allgatherv(comm, x, whole, counts)
    call expect(columns_right(whole), 'columns of all ranks')
    whole = -1
    call gs_gatherv(comm, x, whole, last)
    call expect(merge(columns_right(whole), all(whole == -1), me == last), &
          'columns on one rank that are told')
    whole = -1
    call gs_gatherv(comm, x, whole, 0, counts=counts)
    call expect(merge(columns_right(whole), all(whole == -1), me == 0), 'columns on one rank')
  end subroutine check_ragged

  function columns_right(whole) result(right)
    real(real64), intent(in) :: whole(:, :)
    logical :: right
    integer :: r, first

    right = size(whole, 1) == 3
    first = 1
    do r = 0, last
      right = right .and. all(whole(:, first:first + r - 1) == r)
      first = first + r
    end do
    right = right .and. first == size(whole, 2) + 1
  end function columns_right

  ! In the reverse order, with a gap before each piece; and in place.
  subroutine check_ragged_places()
    integer(int16) :: x(2), whole(3 * n), own(n)
    integer(int64) :: counts(n), displs(n)
    integer :: r, at

    counts = 2
    displs = [(3_int64 * (n - r) + 1, r=1, n)]
    x = int([me, -me], int16)
    whole = 99
    call gs_allgatherv(comm, x, whole, counts, displs)
    do r = 0, last
      at = int(displs(r + 1))
      call expect(all(whole(at + 1:at + 2) == [r, -r]) .and. whole(at) == 99, &
            'pieces in places of the program''s')
    end do
    own = int(me, int16)
    counts = 1
    call gs_allgatherv(comm, own(me + 1:me + 1), own, counts)
    call expect(all(own == [(int(r, int16), r=0, last)]), 'pieces in place')
  end subroutine check_ragged_places

  subroutine check_scatterv()
    complex(real32) :: whole(2, n + 1), x(2, merge(2, 1, me == 0)), none(2, 0)
    integer(int64) :: counts(n)
    integer :: r

    counts = 1
    counts(1) = 2
    x = -1
    do r = 1, n + 1
      whole(:, r) = [cmplx(r, 0, real32), cmplx(0, r, real32)]
    end do
    if (me == last) then
      call gs_scatterv(comm, whole, x, last, counts)
    else
      call gs_scatterv(comm, none, x, last)
    end if
    r = me + merge(1, 2, me == 0)
    call expect(all(x(:, 1) == [cmplx(r, 0, real32), cmplx(0, r, real32)]), 'scatter of columns')
    counts = 0
    counts(n) = 2
    if (me == last) then
      call gs_scatterv(comm, whole, whole(:, :2), last, counts, stat=stat)
    else
      call gs_scatterv(comm, none, none, last, stat=stat)
    end if
    call expect(stat == GS_OK, 'scatter of nothing, and in place')
  end subroutine check_scatterv

  ! Rank s sends s + r slices to rank r.
  subroutine check_alltoallv()
    integer(int32), allocatable :: out(:, :), in(:, :)
    integer(int64) :: send_counts(n), recv_counts(n), displs(n)
    integer :: r, first

    send_counts = [(int(me + r, int64), r=0, last)]
    recv_counts = send_counts
    allocate (out(2, sum(send_counts)), in(2, sum(recv_counts)))
    first = 1
    do r = 0, last
      out(:, first:first + me + r - 1) = 10 * me + r
      first = first + me + r
    end do
    in = -1
    call gs_alltoallv(comm, out, send_counts, in, recv_counts)
    first = 1
    do r = 0, last
      call expect(all(in(:, first:first + me + r - 1) == 10 * r + me), 'slices from all to all')
      displs(r + 1) = sum(recv_counts) - (first - 1) - (me + r)
      first = first + me + r
    end do
    call gs_alltoallv(comm, out, send_counts, in, recv_counts, recv_displs=displs)
    do r = 0, last
      first = int(displs(r + 1)) + 1
      call expect(all(in(:, first:first + me + r - 1) == 10 * r + me), &
            'slices to places in reverse order')
    end do
  end subroutine check_alltoallv

  ! The first index, from 0, of part [i] of [parts] of [extent], uneven.
  pure function cut(extent, i, parts) result(at)
    integer, intent(in) :: extent, i, parts
    integer :: at

    at = extent * i / parts
    if (mod(i, 2) == 1 .and. i < parts .and. at > extent * (i - 1) / parts) at = at - 1
  end function cut

  subroutine check_line()
    integer, parameter :: m = 11
    real(real64), allocatable :: block(:)
    real(real64) :: field(m), right(m)
    integer :: lower, i

    right = [(real(i * i, real64), i=1, m)]
    lower = cut(m, me, n)
    allocate (block, source=right(lower + 1:cut(m, me + 1, n)))
    field = -1
    call gs_gather_field(comm, block, [lower], field)
    call expect(all(field == right), 'a line on all ranks')
    field = -1
    call gs_gather_field(comm, block, [lower], field, root=last)
    call expect(merge(all(field == right), all(field == -1), me == last), 'a line on one rank')
  end subroutine check_line

  ! Cut in both dimensions where the number of ranks can be, else in the first.
  subroutine check_plane()
    integer, parameter :: a = 7, b = 5
    real(real32), allocatable :: block(:, :)
    real(real32) :: field(a, b), right(a, b), none(0, 0)
    integer :: lower(2), upper(2), p(2), at(2), i

    right = reshape([(real(i, real32), i=1, a * b)], [a, b])
    p = [n / merge(2, 1, mod(n, 2) == 0), merge(2, 1, mod(n, 2) == 0)]
    at = [mod(me, p(1)), me / p(1)]
    lower = [cut(a, at(1), p(1)), cut(b, at(2), p(2))]
    upper = [cut(a, at(1) + 1, p(1)), cut(b, at(2) + 1, p(2))]
    allocate (block, source=right(lower(1) + 1:upper(1), lower(2) + 1:upper(2)))
    field = -1
    call gs_gather_field(comm, block, lower, field)
    call expect(all(field == right), 'a plane on all ranks')
    field = -1
    if (me == 0) then
      call gs_gather_field(comm, block, lower, field, 0)
    else
      call gs_gather_field(comm, block, lower, none, 0)
    end if
    call expect(merge(all(field == right), all(field == -1), me == 0), 'a plane on one rank')
    field = -1
    if (me == last) deallocate (block)
    if (me == last) allocate (block(0, 0))
    call gs_gather_field(comm, block, int(lower, int64), field)
    call expect(all(field(lower(1) + 1:upper(1), lower(2) + 1:upper(2)) == &
          merge(-1.0_real32, right(lower(1) + 1:upper(1), lower(2) + 1:upper(2)), &
          me == last)), 'a plane with a gap')
    call expect(count(field /= right .and. field /= -1) == 0 .and. count(field == -1) == &
          (a - cut(a, mod(last, p(1)), p(1))) * (b - cut(b, last / p(1), p(2))), &
          'the gap is as it was')
  end subroutine check_plane

  ! The last dimension is cut, then the first: the one is a run of memory, the other is not.
  subroutine check_cube()
    complex(real64), allocatable :: slab(:, :, :)
    complex(real64) :: field(4, 3, 6), right(4, 3, 6)
    integer :: i, first, next

    right = reshape([(cmplx(i, -i, real64), i=1, size(right))], shape(right))
    first = cut(6, me, n)
    next = cut(6, me + 1, n)
    allocate (slab, source=right(:, :, first + 1:next))
    field = 0
    call gs_gather_field(comm, slab, [0, 0, first], field)
    call expect(all(field == right), 'a cube of slabs on all ranks')
    first = cut(4, me, n)
    next = cut(4, me + 1, n)
    deallocate (slab)
    allocate (slab, source=right(first + 1:next, :, :))
    field = 0
    call gs_gather_field(comm, slab, [first, 0, 0], field, root=0)
    call expect(merge(all(field == right), all(field == 0), me == 0), &
          'a cube, cut in its first dimension, on one rank')
  end subroutine check_cube

  subroutine check_field_kinds()
    integer(int8) :: bytes(1, 1, 1, 1, 1, 1, 2), field(1, n, 1, 1, 1, 1, 2)
    integer(int16) :: half(1, 2), halves(2 * n, 2)
    integer :: r

    bytes = int(me, int8)
    bytes(1, 1, 1, 1, 1, 1, 2) = int(-me, int8)
    field = 99
    call gs_gather_field(comm, bytes, [0, me, 0, 0, 0, 0, 0], field)
    call expect(all(field(1, :, 1, 1, 1, 1, 1) == [(int(r, int8), r=0, last)]) .and. &
          all(field(1, :, 1, 1, 1, 1, 2) == [(int(-r, int8), r=0, last)]), 'seven dimensions')
    half = int(me, int16)
    halves = 99
    call gs_gather_field(comm, half, [2 * me + 1, 0], halves, as=GS_F16)
    call expect(all(halves(2::2, 1) == [(int(r, int16), r=0, last)]) .and. &
          all(halves(::2, :) == 99), 'rows of f16 with gaps')
  end subroutine check_field_kinds

end program gather
