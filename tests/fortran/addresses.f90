! SPDX-License-Identifier: BSD-3-Clause
! addresses - the collectives on type(c_ptr), count, dtype, and gradients by address, which every
! build has.
program addresses
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_f_pointer, c_float, &
    c_int16_t, c_int64_t, c_intptr_t, c_loc, c_null_ptr, c_ptr, c_size_t
  use checks
  use gradsync
  implicit none

  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat, me, n
  real(c_double) :: mean ! of the ranks' numbers

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  mean = (n - 1) / 2.0_c_double
  call speak_as(me)
  call check_results()
  call check_counts()
  call check_pieces()
  call check_field()
  call check_gradients()
  call check_errors()
  call gs_comm_destroy(comm)
  call finish()

contains

  subroutine check_results()
    real(c_double), target :: x(5), everyone(5, n)
    real(c_float), target :: y(3)
    integer(c_int16_t), target :: i2(4)
    integer :: r

    x = me
    call gs_allreduce_avg(comm, c_loc(x(2)), 3, GS_F64)
    call expect(all(x(2:4) == mean) .and. x(1) == me .and. x(5) == me, 'average')
    y = real(me, c_float)
    call gs_allreduce_wavg(comm, c_loc(y), size(y), GS_F32, 2.0_c_double)
    call expect(all(y == real(mean, c_float)), 'weighted average')
    i2 = int(me, c_int16_t)
    call gs_allreduce(comm, c_loc(i2), size(i2), GS_I16, GS_MAX)
    call expect(all(i2 == n - 1), 'maximum')
    i2 = int(me + 7, c_int16_t)
    call gs_broadcast(comm, c_loc(i2), size(i2), GS_BF16, n - 1)
    call expect(all(i2 == n + 6), 'broadcast')
    x = me
    call gs_allgather(comm, c_loc(x), c_loc(everyone), size(x), GS_F64)
    call expect(all([(all(everyone(:, r + 1) == r), r=0, n - 1)]), 'allgather')
  end subroutine check_results

  ! Both kinds of count, by position and by keyword, with and without the optional arguments.
  subroutine check_counts()
    real(c_double), target :: x(4), everyone(4 * n)
    integer(c_int64_t), parameter :: four = 4

    x = me
    call gs_allreduce_avg(comm, c_loc(x), four, GS_F64)
    call gs_allreduce_avg(comm, c_loc(x), count=four, dtype=GS_F64, stat=stat)
    call expect(stat == GS_OK .and. all(x == mean), 'average, integer(int64)')
    x = me
    call gs_allreduce_wavg(comm, c_loc(x), four, GS_F64, weight=1.0_c_double, stat=stat)
    call expect(stat == GS_OK .and. all(x == mean), 'weighted average, integer(int64)')
    x = me
    call gs_allreduce(comm, c_loc(x), four, GS_F64, GS_SUM, 0_c_intptr_t, stat)
    call expect(stat == GS_OK .and. all(x == n * mean), 'sum, integer(int64)')
    x = me
    call gs_broadcast(comm, c_loc(x), four, GS_F64, root=0, stat=stat)
    call expect(stat == GS_OK .and. all(x == 0), 'broadcast, integer(int64)')
    call gs_allgather(comm, c_loc(x), c_loc(everyone), four, GS_F64, stat=stat)
    call expect(stat == GS_OK .and. all(everyone == 0), 'allgather, integer(int64)')
    call gs_allreduce_avg(comm, c_null_ptr, 0, GS_F64, stat=stat)
    call expect(stat == GS_OK, 'nothing to average')
  end subroutine check_counts

  ! What goes from and to one rank or in parts; pieces of rank r are r long.
  subroutine check_pieces()
    real(c_double), target :: x(n), y(n), all(n * n), ragged(n * n)
    integer(c_int64_t), parameter :: one = 1
    integer(c_size_t) :: counts(n), places(n), own(n)
    integer :: r

    x = me
    all = -1
    call gs_gather(comm, c_loc(x), c_loc(all), int(n, c_int64_t), GS_F64, n - 1)
    call expect(me /= n - 1 .or. sum(all) == n * n * mean, 'gather')
    all = [(real(r, c_double), r=1, n * n)]
    call gs_scatter(comm, c_loc(all), c_loc(y), int(n, c_int64_t), GS_F64, 0)
    call expect(y(1) == me * n + 1 .and. y(n) == me * n + n, 'scatter')
    call gs_alltoall(comm, c_loc(y), c_loc(x), one, GS_F64)
    call expect(x(1) == me + 1 .and. x(n) == n * n - n + me + 1, 'all to all')
    call gs_reduce(comm, c_loc(x), c_loc(y), int(n, c_int64_t), GS_F64, GS_AVG, 0)
    call expect(me /= 0 .or. y(1) == mean + 1, 'average on one rank')
    call gs_reduce_scatter(comm, c_loc(x), c_loc(y), one, GS_F64, GS_SUM)
    call expect(y(1) == n * (me * n + 1 + mean), 'sum in parts')
    counts = [(int(r, c_size_t), r=0, n - 1)]
    places = [(int(n * r, c_size_t), r=0, n - 1)]
    x = me
    ragged = -1
    call gs_allgatherv(comm, c_loc(x), int(me, c_int64_t), c_loc(ragged), int(n * n, c_int64_t), &
      GS_F64, counts, places)
    call expect(sum(ragged + 1) == sum(counts * (counts + 1)), 'allgatherv')
    ragged = -1
    call gs_gatherv(comm, c_loc(x), int(me, c_int64_t), c_loc(ragged), int(n * n, c_int64_t), &
      GS_F64, 0)
    call expect(me /= 0 .or. sum(ragged + 1) == sum(counts * (counts + 1)), 'gatherv')
    y = -1
    call gs_scatterv(comm, c_loc(all), c_loc(y), int(me, c_int64_t), GS_F64, 0, counts, places)
    call expect(sum(y(:me)) == me * (me * n) + me * (me + 1) / 2 .and. y(n) == -1, 'scatterv')
    own = me
    all = me
    ragged = -1
    call gs_alltoallv(comm, c_loc(all), own, c_loc(ragged), counts, GS_F64, recv_displs=places)
    call expect(sum(ragged + 1) == sum(counts * (counts + 1)), 'alltoallv')
  end subroutine check_pieces

  ! Rows of a field, whose extents are in Fortran's order.
  subroutine check_field()
    real(c_double), target :: row(1, 3), field(n, 3)
    integer :: r

    row(1, :) = [me, 10 + me, 20 + me]
    field = -1
    call gs_gather_field(comm, c_loc(row), [1_c_size_t, 3_c_size_t], &
      [int(me, c_size_t), 0_c_size_t], c_loc(field), [int(n, c_size_t), 3_c_size_t], GS_F64)
    call expect(all([(all(field(r + 1, :) == [r, 10 + r, 20 + r]), r=0, n - 1)]), 'a field')
  end subroutine check_field

  ! One in memory of the program's, one in that of the reducer's. On GPUs devices.f90 does it.
  subroutine check_gradients()
    type(gs_reducer) :: reducer
    real(c_double), target :: x(2, 2)
    real(c_float), pointer :: y(:, :)
    type(c_ptr) :: address

    if (gs_comm_device(comm) /= GS_DEVICE_HOST .or. mixed()) return
    call gs_reducer_create(comm, reducer)
    call gs_reducer_add(reducer, 'x', shape(x), GS_F64, c_loc(x))
    call gs_reducer_add(reducer, 'y', [3, 2], GS_F32)
    call gs_reducer_commit(reducer)
    call gs_reducer_get_grad(reducer, 0, address)
    call expect(c_associated(address, c_loc(x)), 'the address of a gradient')
    call gs_reducer_get_grad(reducer, 1, address)
    call c_f_pointer(address, y, [3, 2])
    x = me
    y = real(2 * me, c_float)
    call gs_reducer_ready(reducer, 1)
    call gs_reducer_ready(reducer, 0)
    call gs_reducer_finish(reducer)
    call expect(all(x == mean) .and. all(y == real(2 * mean, c_float)), 'averages of gradients')
    call gs_reducer_get_grad(reducer, 2, address, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_reducer_get_grad|2', 'no such gradient')
    call gs_reducer_destroy(reducer)
  end subroutine check_gradients

  subroutine check_errors()
    real(c_double), target :: x(2)
    type(gs_comm) :: never

    x = 1
    call gs_allreduce_avg(comm, c_null_ptr, 2, GS_F64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_allreduce_avg', 'a null address')
    call gs_allreduce_avg(comm, c_loc(x), -2, GS_F64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_allreduce_avg|count is -2', &
              'a negative count')
    call gs_allreduce(comm, c_loc(x), -1, GS_I8, GS_SUM, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_allreduce|count is -1', &
              'a negative count of bytes')
    call gs_broadcast(comm, c_loc(x), huge(0_c_int64_t), GS_F64, 0, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_broadcast', 'an absurd count')
    call gs_allreduce_avg(comm, c_loc(x), 2, 99, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_allreduce_avg|99', 'an unknown dtype')
    call gs_allreduce_avg(never, c_loc(x), 2, GS_F64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_allreduce_avg|never created', &
              'average without a communicator')
    call gs_allreduce_wavg(never, c_loc(x), 2, GS_F64, 1.0_c_double, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_allreduce_wavg|never created', &
              'weighted average without a communicator')
    call gs_allreduce(never, c_loc(x), 2, GS_F64, GS_SUM, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_allreduce|never created', &
              'sum without a communicator')
    call gs_broadcast(never, c_loc(x), 2, GS_F64, 0, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_broadcast|never created', &
              'broadcast without a communicator')
    call gs_allgather(never, c_loc(x), c_loc(x), 1, GS_F64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_allgather|never created', &
              'allgather without a communicator')
    call expect(all(x == 1), 'after failures all is unchanged')
  end subroutine check_errors

end program addresses
