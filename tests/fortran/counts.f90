! SPDX-License-Identifier: BSD-3-Clause
! counts - numbers of elements of the default kind, such as those of intrinsic size, on arrays by
! keyword and on addresses.
program counts
  use, intrinsic :: iso_c_binding, only: c_double, c_int64_t, c_loc
  use checks
  use gradsync
  implicit none

  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat, me, n
  integer, parameter :: two = 2
  real(c_double), target :: x(3), y(3)
  real(c_double), allocatable, target :: all_x(:), all_y(:)
  real(c_double) :: mean

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  mean = (n - 1) / 2.0_c_double
  allocate (all_x(two * n + 1), all_y(two * n + 1))
  call speak_as(me)
  call check_in_place(x)
  call check_pieces()
  call check_addresses()
  call check_gradients()
  call check_messages()
  x = me
  call gs_allreduce_avg(comm, x, count=4, stat=stat, errmsg=errmsg)
  call expect_failure(stat, errmsg, GS_ERR_ARG, 'buf needs 4 elements|has 3', 'too many')
  call gs_gather(comm, x, all_x, 0, count=-1, stat=stat, errmsg=errmsg)
  call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_gather: count is -1', 'less than none')
  call gs_comm_destroy(comm)
  deallocate (all_x, all_y)
  call finish()

contains

  subroutine check_in_place(buf)
    real(c_double), intent(inout) :: buf(*)

    buf(:3) = me
    call gs_allreduce_avg(comm, buf, count=two)
    call expect(all(buf(:2) == mean) .and. buf(3) == me, 'average')
    buf(:3) = me
    call gs_allreduce_avg(comm, buf, two)
    call expect(all(buf(:2) == mean) .and. buf(3) == me, 'average, without a keyword')
    buf(:3) = me
    call gs_allreduce_wavg(comm, buf, 1.0_c_double, count=two)
    call expect(all(buf(:2) == mean) .and. buf(3) == me, 'weighted average')
    buf(:3) = me
    call gs_allreduce(comm, buf, GS_SUM, count=two)
    call expect(all(buf(:2) == n * mean) .and. buf(3) == me, 'sum')
    buf(:3) = me
    call gs_broadcast(comm, buf, 0, count=two)
    call expect(all(buf(:2) == 0) .and. buf(3) == me, 'broadcast')
  end subroutine check_in_place

  ! Whether [from] is what the ranks have, two elements each.
  logical function is_gathered(from)
    real(c_double), intent(in) :: from(:)
    integer :: r

    is_gathered = all([(all(from(two * r + 1:two * r + two) == r), r=0, n - 1)])
  end function is_gathered

  subroutine check_pieces()
    x = me
    all_x = -1
    call gs_allgather(comm, x, all_x(:two * n), count=two)
    call expect(is_gathered(all_x), 'allgather')
    all_y = -1
    call gs_gather(comm, x, all_y(:two * n), n - 1, count=two)
    call expect(me /= n - 1 .or. is_gathered(all_y), 'gather')
    y = -1
    call gs_scatter(comm, all_x(:two * n), y(:2), 0, count=two)
    call expect(all(y(:2) == me), 'scatter')
    call gs_alltoall(comm, all_x(:two * n), all_y(:two * n), count=two)
    call expect(all(all_y(:two * n) == me), 'alltoall')
    y = -1
    call gs_reduce(comm, x, y(:2), GS_SUM, 0, count=two)
    call expect(me /= 0 .or. all(y(:2) == n * mean), 'reduce')
    call gs_reduce_scatter(comm, all_x(:two * n), y, GS_SUM, count=two)
    call expect(all(y(:2) == n * me), 'reduce_scatter')
  end subroutine check_pieces

  subroutine check_addresses()
    x = me
    all_y = -1
    call gs_gather(comm, c_loc(x), c_loc(all_y), two, GS_F64, 0)
    call expect(me /= 0 .or. is_gathered(all_y), 'gather to an address')
    call gs_scatter(comm, c_loc(all_x), c_loc(y), two, GS_F64, 0)
    call expect(all(y(:2) == me), 'scatter from an address')
    call gs_alltoall(comm, c_loc(all_x), c_loc(all_y), two, GS_F64)
    call expect(all(all_y(:two * n) == me), 'alltoall of addresses')
    call gs_reduce_scatter(comm, c_loc(all_x), c_loc(y), two, GS_F64, GS_SUM)
    call expect(all(y(:2) == n * me), 'reduce_scatter of addresses')
  end subroutine check_addresses

  subroutine check_gradients()
    y = -1
    call gs_allgather_backward(comm, all_x(:two * n), y, count=two)
    call expect(all(y(:2) == n * me), 'gradient of allgather')
    call gs_allgather_backward(comm, all_x(:two * n), x, GS_GRAD_OWN_SLOT, count=2_c_int64_t)
    call gs_allgather_backward(comm, all_x(:two * n), y, GS_GRAD_OWN_SLOT, count=two)
    call expect(all(y(:2) == x(:2)), 'its contract')
    call gs_allgather_backward(comm, c_loc(all_x), c_loc(y), two, GS_F64)
    call expect(all(y(:2) == n * me), 'the same of addresses')
    x = me
    call gs_allreduce_backward(comm, x, GS_SUM, count=two)
    call expect(all(x(:2) == n * mean) .and. x(3) == me, 'gradient of a sum')
    x = me
    call gs_reduce_backward(comm, x, 0, count=two)
    call expect(all(x(:2) == 0) .and. x(3) == me, 'gradient of a reduction')
  end subroutine check_gradients

  subroutine check_messages()
    integer :: next

    next = modulo(me + 1, n)
    x = me
    y = -1
    call gs_group_begin(comm)
    call gs_send(comm, x, next, count=two)
    call gs_recv(comm, y, modulo(me - 1, n), count=two)
    call gs_group_end(comm)
    call gs_comm_wait(comm)
    call expect(all(y(:2) == modulo(me - 1, n)) .and. y(3) == -1, 'messages')
    call gs_group_begin(comm)
    call gs_send(comm, c_loc(x), 1, GS_F64, next)
    call gs_recv(comm, c_loc(y), 1, GS_F64, modulo(me - 1, n))
    call gs_group_end(comm)
    call gs_comm_wait(comm)
    call expect(y(1) == modulo(me - 1, n), 'messages of addresses')
  end subroutine check_messages

end program counts
