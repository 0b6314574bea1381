! SPDX-License-Identifier: BSD-3-Clause
! adjoint_refusals - what gradients of collectives and gs_reduce_scatterv refuse, on arrays and
! addresses: by their own names, not those of the collectives that do the work.
program adjoint_refusals
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
  call check_integers()
  call check_regular()
  call check_contracts()
  call check_ragged()
  call check_lists()
  call check_field()
  call check_never_created()
  call check_addresses()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  ! They have no gradients; every rank finds out by itself.
  subroutine check_integers()
    integer(int32) :: x(2), y(2 * n)
    integer(int64) :: counts(n)

    x = 1
    y = 2
    counts = 2
    call gs_allgather_backward(comm, y, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_allgather_backward: |no gradients', 'allgather')
    call gs_allgatherv_backward(comm, y, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_allgatherv_backward: |no gradients', 'allgatherv')
    call gs_gather_backward(comm, y, x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_gather_backward: |no gradients', 'gather')
    call gs_gatherv_backward(comm, y, x, me, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_gatherv_backward: |no gradients', 'gatherv')
    call gs_scatter_backward(comm, x, y, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_scatter_backward: |no gradients', 'scatter')
    call gs_scatterv_backward(comm, x, y, me, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_scatterv_backward: |no gradients', 'scatterv')
    call gs_alltoall_backward(comm, y, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_alltoall_backward: |no gradients', 'alltoall')
    call gs_alltoallv_backward(comm, y, counts, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_alltoallv_backward: |no gradients', 'alltoallv')
    call gs_broadcast_backward(comm, x, x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_broadcast_backward: |no gradients', 'broadcast')
    call gs_allreduce_backward(comm, x, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_allreduce_backward: |no gradients', 'allreduce')
    call gs_reduce_backward(comm, x, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_reduce_backward: |no gradients', 'reduce')
    call gs_reduce_scatter_backward(comm, x, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_reduce_scatter_backward: |no gradients', &
      'reduce_scatter')
    call gs_reduce_scatterv_backward(comm, x, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_reduce_scatterv_backward: |no gradients', &
      'reduce_scatterv')
    call gs_gather_field_backward(comm, y, x, [2 * me], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_gather_field_backward: |no gradients', 'gather_field')
    call expect(all(x == 1) .and. all(y == 2), 'nothing has changed')
  end subroutine check_integers

  ! Every rank is the root of its own call, for nobody comes to it.
  subroutine check_regular()
    real(real64) :: x(3), y(4 * n + 1), rows(2, 3 * n)
    real(real32) :: other(3 * n)
    logical :: flags(3)

    x = 1
    y = 2
    rows = 3
    call gs_allgather_backward(comm, y, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather_backward: grad_y has|times the 3 of grad_x', &
      'an allgather of more')
    call gs_allgather_backward(comm, other, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather_backward: grad_x and grad_y differ in type', &
      'another type')
    call gs_gather_backward(comm, rows(1, :), x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_backward: grad_y is a strided section', 'a row')
    call gs_gather_backward(comm, y, flags, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_backward: grad_x is logical', 'logical values')
    call gs_scatter_backward(comm, x, y(:2), me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatter_backward: grad_x has 2 elements|of grad_y', 'no room')
    if (n > 1) then
      call gs_alltoall_backward(comm, y, y, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_ARG, 'gs_alltoall_backward: grad_y has|as many for each', &
        'an odd number')
    end if
    call gs_broadcast_backward(comm, x, y, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_broadcast_backward: grad_x has', 'a sum of another size')
    call gs_allreduce_backward(comm, rows(1, :), GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_backward: grad is a strided', 'a row in place')
    call gs_allreduce_backward(comm, x, GS_MAX, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_allreduce_backward: |no linear gradient', 'a maximum')
    call gs_reduce_backward(comm, rows(:, ::2), 0, stat=stat, errmsg=errmsg)
    if (n > 1) call refused(GS_ERR_ARG, 'gs_reduce_backward: grad is a strided', 'columns')
    call gs_reduce_scatter_backward(comm, x, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatter_backward: grad_x has|of grad_y', 'other sizes')
    call expect(all(x == 1) .and. all(y == 2) .and. all(rows == 3), 'nothing has changed')
  end subroutine check_regular

  subroutine check_contracts()
    real(real64) :: x(3), y(3 * n)
    integer(int64) :: counts(n)

    x = 1
    y = 2
    counts = 3
    call gs_allgather_backward(comm, y, x, 7, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather_backward: contract 7 is unknown', 'no such contract')
    call gs_allgatherv_backward(comm, y, x, counts, contract=-1, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: contract -1 is unknown', 'nor this')
    if (n > 1) then
      call gs_allgather_backward(comm, y, x, merge(GS_GRAD_ADJOINT, GS_GRAD_OWN_SLOT, me == 0), &
        stat=stat, errmsg=errmsg)
      call refused(GS_ERR_MISMATCH, 'allgather_backward|contract 0|contract 1', &
        'contracts that differ, which the first calls are compared for')
    end if
    call expect(all(x == 1), 'nothing has changed')
  end subroutine check_contracts

  subroutine check_ragged()
    real(real64) :: x(3, 1), y(3, n), low(2, n), flat(3 * n)
    integer(int64) :: counts(n)

    x = 1
    y = 2
    counts = 1
    call gs_allgatherv_backward(comm, low, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, &
      'gs_allgatherv_backward: grad_y has 2 in dimension 1, grad_x has 3', 'rows')
    call gs_allgatherv_backward(comm, flat, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'grad_y has 1 dimensions, grad_x 2', 'another number of dimensions')
    call gs_gatherv_backward(comm, y, x, me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gatherv_backward: counts is not given', 'no counts')
    call gs_scatterv_backward(comm, x, y(::2, :), me, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatterv_backward: grad_x is a strided', 'a strided grad_x')
    call gs_reduce_scatterv(comm, low, x, GS_SUM, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv: send has 2 in dimension 1, recv has 3', &
      'rows of reduce_scatterv')
    call gs_reduce_scatterv(comm, y, x, 99, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv: |99', 'no such op')
    call take_assumed_size(x, y, counts)
    call expect(all(x == 1) .and. all(y == 2), 'nothing has changed')
  end subroutine check_ragged

  subroutine take_assumed_size(x, y, counts)
    real(real64), intent(inout) :: x(*), y(3, *)
    integer(int64), intent(in) :: counts(:)

    call gs_allgatherv_backward(comm, y, y(:, :1), counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: grad_y is an assumed-size array', 'no end')
    call gs_gather_field_backward(comm, y(:, :n), x, [0, 0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field_backward: grad_x is an assumed-size', &
      'a block without end')
    call gs_allreduce_backward(comm, x, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_backward: grad is an assumed-size array: give count', &
      'no end and no count')
  end subroutine take_assumed_size

  subroutine check_lists()
    integer(int64) :: counts(n), more(n + 1), displs(n)
    real(real32) :: x(1), y(n), z(n)

    x = 1
    y = 2
    z = 3
    counts = 1
    more = 1
    displs = 0
    call gs_allgatherv_backward(comm, y, x, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: counts has|elements, but needs', &
      'a long list')
    call gs_allgatherv_backward(comm, y, x, counts, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: displs has', 'a long list of places')
    call gs_gatherv_backward(comm, y, x, me, displs=displs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gatherv_backward: counts is not given', 'places only')
    call gs_scatterv_backward(comm, x, y, me, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatterv_backward: counts has', 'a long list for one')
    call gs_reduce_scatterv_backward(comm, x, y, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv_backward: counts has', 'a long list for parts')
    call gs_alltoallv_backward(comm, y, more, z, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv_backward: recv_counts has', 'what came')
    call gs_alltoallv_backward(comm, y, counts, z, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv_backward: send_counts has', 'what went')
    call gs_alltoallv_backward(comm, y, counts, z, counts, more, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv_backward: recv_displs has', 'where it was')
    call gs_alltoallv_backward(comm, y, counts, z, counts, send_displs=more, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv_backward: send_displs has', 'where it came from')
    counts(n) = 2
    call gs_allgatherv_backward(comm, y, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: the piece of rank|grad_y', 'too many')
    call gs_reduce_scatterv_backward(comm, x, y, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv_backward: the piece of rank|grad_x', &
      'too many to come')
    call gs_reduce_scatterv(comm, y, x, GS_SUM, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv: the piece of rank|send', 'too many parts')
    counts(n) = -1
    call gs_reduce_scatterv(comm, y, x, GS_SUM, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv: counts(|is -1', 'a negative count')
    call expect(all(x == 1) .and. all(y == 2) .and. all(z == 3), 'nothing has changed')
  end subroutine check_lists

  subroutine check_field()
    real(real64) :: block(2, 3), field(2, 3 * n), line(6 * n)
    real(real32) :: other(2, 3 * n)

    block = 1
    field = 2
    call gs_gather_field_backward(comm, field, block, [0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'grad_x has 2 dimensions, but offsets is for 1', 'few offsets')
    call gs_gather_field_backward(comm, line, block, [0, 0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'grad_y has 1 dimensions, but offsets is for 2', 'a flat field')
    call gs_gather_field_backward(comm, field, block, [0, -1], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field_backward: offsets(2) is -1', 'below 0')
    call gs_gather_field_backward(comm, other, block, [0, 0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'grad_x and grad_y differ in type', 'a field of another type')
    call gs_gather_field_backward(comm, field, block, [0, 3 * me + 1], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'the block of rank|outside of the field', 'a block outside')
    call expect(all(block == 1), 'nothing has changed')
  end subroutine check_field

  subroutine check_never_created()
    real(real64) :: x(1), y(1)
    integer(int64) :: counts(1)

    counts = 1
    call gs_reduce_scatterv(never, y, x, GS_SUM, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reduce_scatterv: |never created', 'gs_reduce_scatterv')
    call gs_allgather_backward(never, y, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allgather_backward: |never created', 'allgather')
    call gs_allgatherv_backward(never, y, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allgatherv_backward: |never created', 'allgatherv')
    call gs_gather_backward(never, y, x, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_gather_backward: |never created', 'gather')
    call gs_scatterv_backward(never, y, x, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_scatterv_backward: |never created', 'scatterv')
    call gs_alltoall_backward(never, y, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_alltoall_backward: |never created', 'alltoall')
    call gs_alltoallv_backward(never, y, counts, x, counts, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_alltoallv_backward: |never created', 'alltoallv')
    call gs_reduce_backward(never, x, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reduce_backward: |never created', 'reduce')
    call gs_gather_field_backward(never, y, x, [0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_gather_field_backward: |never created', 'gather_field')
  end subroutine check_never_created

  subroutine check_addresses()
    real(real64), target :: x(n), y(n)
    integer(c_size_t) :: counts(n), more(n + 1)
    integer(int64), parameter :: one = 1

    counts = 1
    more = 1
    call gs_allgather_backward(comm, c_loc(y), c_loc(x), -one, GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather_backward: count is -1', 'a negative count')
    call gs_allgather_backward(comm, c_loc(y), c_loc(x), one, GS_F64, 5, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather_backward: contract 5', 'no such contract')
    call gs_allgatherv_backward(comm, c_loc(y), more, c_loc(x), one, GS_F64, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: counts has', 'a list of another size')
    call gs_allgatherv_backward(comm, c_loc(y), counts, c_loc(x), 2 * one, GS_F64, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgatherv_backward: ', 'a count that is another')
    call gs_gather_backward(comm, c_loc(y), c_loc(x), one, GS_I32, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_gather_backward: |no gradients', 'integers')
    call gs_scatterv_backward(comm, c_loc(y), one, c_loc(x), -one, GS_F64, 0, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_scatterv_backward: room is -1', 'negative room')
    call gs_reduce_scatterv_backward(comm, c_loc(y), one, c_loc(x), one * n, more, GS_F64, &
      stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv_backward: counts has', 'another list')
    counts(1) = -1
    call gs_alltoallv_backward(comm, c_loc(y), counts, c_loc(x), counts, GS_F64, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoallv_backward: an element of recv_counts is -1', 'below 0')
    call gs_reduce_scatterv(comm, c_loc(y), counts, c_loc(x), one, GS_F64, GS_SUM, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reduce_scatterv: an element of counts is -1', 'a part below 0')
    call gs_allreduce_backward(comm, c_null_ptr, one, GS_F64, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'NULL', 'no address')
    call gs_gather_field_backward(comm, c_loc(y), [1_c_size_t], c_loc(x), [1_c_size_t], &
      counts(1:0), GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_gather_field_backward: offsets has 0 elements, but needs 1', &
      'no offset')
  end subroutine check_addresses

end program adjoint_refusals
