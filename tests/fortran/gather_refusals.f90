! SPDX-License-Identifier: BSD-3-Clause
! gather_refusals - what gathers, scatters, exchanges and fields refuse, on arrays and addresses.
program gather_refusals
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks
  use failing_calls
  use gradsync
  implicit none

  type(gs_comm) :: comm, never
  integer :: me, n

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  call speak_as(me)
  call check_regular()
  call check_ragged()
  call check_lists()
  call check_field()
  call check_field_places()
  call check_handles()
  call check_addresses()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  ! Every rank is the root of its own call, for nobody comes to it.
  subroutine check_regular()
    real(real64) :: x(3), y(4 * n + 1), rows(2, 3 * n), before(4 * n + 1)
    real(real32) :: other(3 * n)
    logical :: flags(3)

    x = 1
    y = 2
    before = y
    rows = 3
    call gs_gather(comm, x, y, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: recv has|times the 3 of send', 'a gather with too much')
    call gs_gather(comm, x, y(:2), me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: recv has 2 elements', 'a gather without room')
    call gs_gather(comm, x, other, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: send and recv differ in type', 'another type')
    call gs_gather(comm, x, rows(1, :), me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: recv is a strided section', 'a strided recv')
    call gs_gather(comm, flags, y, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: send is logical', 'logical values')
    call gs_gather(comm, x, y, n, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: root', 'no such root')
    call gs_gather(comm, x, y, me, count=4_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: send needs 4', 'a count above the size of send')
    call gs_scatter(comm, y(:3 * n + 1), x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatter: send has|times the 3 of recv', 'a scatter of more')
    call gs_scatter(comm, rows(1, :), x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatter: send is a strided', 'a strided send')
    if (n > 1) then
      call gs_alltoall(comm, y, before, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_ARG, 'gs_alltoall: send has|as many for each', 'an odd number')
    end if
    call gs_alltoall(comm, y(:n), before(:2 * n), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoall: recv has', 'another size')
    call gs_alltoall(comm, y, before, count=huge(0_int64), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoall: ', 'an absurd count')
    call gs_reduce(comm, x, y, GS_SUM, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce: recv has', 'a reduction into another size')
    call gs_reduce(comm, x, x, 99, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce: |99', 'no such op')
    call gs_reduce_scatter(comm, y, x, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatter: send has', 'a part of another size')
    call expect(all(x == 1) .and. all(y == 2) .and. all(rows == 3), 'nothing has changed')
  end subroutine check_regular

  subroutine check_ragged()
    real(real64) :: x(3, 1), y(3, n), low(2, n), flat(3 * n)
    real(real32) :: other(3, n)

    x = 1
    y = 2
    call gs_allgatherv(comm, x, low, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: send has 3 in dimension 1, recv has 2', 'rows')
    call gs_allgatherv(comm, x, flat, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'send has 2 dimensions, recv 1', 'another number of dimensions')
    call gs_gatherv(comm, x, other, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gatherv: send and recv differ in type', 'another type')
    call gs_gatherv(comm, x, y(::2, :), me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gatherv: recv is a strided', 'a strided recv')
    call take_assumed_size(y, y)
    call gs_scatterv(comm, y, x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatterv: counts is not given', 'no counts')
    call expect(all(x == 1) .and. all(y == 2), 'nothing has changed')
  end subroutine check_ragged

  subroutine take_assumed_size(x, y)
    real(real64), intent(inout) :: x(*), y(3, *)

    call gs_allgatherv(comm, x, y(:, :1), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: send is an assumed-size array|x(1:n)', 'no end')
    call gs_gather_field(comm, y(:, :1), [0, 0], y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field: field is an assumed-size', 'a field without end')
  end subroutine take_assumed_size

  subroutine check_lists()
    integer(int64) :: counts(n), more(n + 1), displs(n)
    integer(int32) :: x(1), y(n), z(n)

    x = 1
    y = 2
    counts = 1
    more = 1
    displs = 0
    call gs_allgatherv(comm, x, y, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: counts has|elements, but needs', 'a long list')
    call gs_allgatherv(comm, x, y, counts, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: displs has', 'a long list of places')
    call gs_allgatherv(comm, x, y, displs=displs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'displs without counts', 'places without counts')
    counts(n) = -1
    call gs_allgatherv(comm, x, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: counts(|is -1', 'a negative count')
    counts(n) = 2
    call gs_allgatherv(comm, x, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'the piece of rank|does not fit into recv', 'too many')
    call gs_gatherv(comm, x, y, me, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gatherv: the piece of rank|recv', 'too many on one')
    call gs_scatterv(comm, y, x, me, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatterv: the piece of rank|send', 'too many to scatter')
    call gs_alltoallv(comm, y, counts, z, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv: the piece of rank|send', 'too many to all')
    counts = 1
    call gs_alltoallv(comm, y, counts, z, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv: recv_counts has', 'another list')
    displs(n) = huge(0_int64)
    call gs_alltoallv(comm, y, counts, z, counts, recv_displs=displs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv: the piece of rank|recv', 'a place far away')
    call expect(all(x == 1) .and. all(y == 2), 'nothing has changed')
  end subroutine check_lists

  subroutine check_field()
    real(real64) :: block(2, 3), field(2, 3 * n), line(6 * n)
    real(real32) :: other(2, 3 * n)

    block = 1
    field = 2
    call gs_gather_field(comm, block, [0], field, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'block has 2 dimensions, but offsets is for 1', 'few offsets')
    call gs_gather_field(comm, block, [0, 0, 0], field, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'block has 2 dimensions, but offsets is for 3', 'many offsets')
    call gs_gather_field(comm, block, [0, 0], line, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'field has 1 dimensions, but offsets is for 2', 'a flat field')
    call gs_gather_field(comm, block, [0, -1], field, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field: offsets(2) is -1', 'a negative offset')
    call gs_gather_field(comm, block, [0, 0], other, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'block and field differ in type', 'a field of another type')
    call gs_gather_field(comm, block(:, ::2), [0, 0], field, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'block is a strided section', 'a strided block')
    call gs_gather_field(comm, block, [0, 0], field, n, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field: root', 'no such root')
    call expect(all(field == 2), 'nothing has changed')
  end subroutine check_field

  ! All ranks hear of blocks that overlap or do not fit.
  subroutine check_field_places()
    real(real64) :: block(2, 3), field(2, 3 * n)

    block = 1
    field = 2
    call gs_gather_field(comm, block, [0, 3 * me + 1], field, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'the block of rank|outside of the field', 'a block outside')
    if (n > 1) then
      call gs_gather_field(comm, block, [0, 2 * me], field, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_ARG, 'the blocks of ranks 0 and 1 overlap', 'blocks that overlap')
    end if
    call expect(all(field == 2), 'nothing has changed')
  end subroutine check_field_places

  subroutine check_handles()
    real(real64) :: x(1), y(1)
    integer(int64) :: counts(1)

    counts = 1
    call gs_gather(never, x, y, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_gather: |never created', 'gather')
    call gs_gatherv(never, x, y, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_gatherv: |never created', 'gatherv')
    call gs_allgatherv(never, x, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allgatherv: |never created', 'allgatherv')
    call gs_scatter(never, x, y, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_scatter: |never created', 'scatter')
    call gs_scatterv(never, x, y, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_scatterv: |never created', 'scatterv')
    call gs_alltoall(never, x, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_alltoall: |never created', 'alltoall')
    call gs_alltoallv(never, x, counts, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_alltoallv: |never created', 'alltoallv')
    call gs_reduce(never, x, y, GS_SUM, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reduce: |never created', 'reduce')
    call gs_reduce_scatter(never, x, y, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reduce_scatter: |never created', 'reduce_scatter')
    call gs_gather_field(never, x, [0], y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_gather_field: |never created', 'gather_field')
  end subroutine check_handles

  subroutine check_addresses()
    real(real64), target :: x(n), y(n)
    integer(c_size_t) :: counts(n), more(n + 1)
    integer(int64), parameter :: one = 1

    counts = 1
    more = 1
    call gs_gather(comm, c_loc(x), c_loc(y), -one, GS_F64, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: count is -1', 'a negative count')
    call gs_gather(comm, c_null_ptr, c_loc(y), one, GS_F64, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather: the buffer is NULL', 'no address')
    call gs_allgatherv(comm, c_loc(x), one, c_loc(y), -one, GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: recv_room is -1', 'negative room')
    call gs_allgatherv(comm, c_loc(x), one, c_loc(y), one * n, GS_F64, more, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv: counts has', 'a list of another size')
    counts(1) = -1
    call gs_alltoallv(comm, c_loc(x), counts, c_loc(y), counts, GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv: an element of send_counts is -1', 'below 0')
    call gs_gather_field(comm, c_loc(x), [1_c_size_t], counts(1:0), c_loc(y), [1_c_size_t], &
      GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field: offsets has 0 elements, but needs 1', 'no offset')
  end subroutine check_addresses

end program gather_refusals
