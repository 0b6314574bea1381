! SPDX-License-Identifier: BSD-3-Clause
! handles - life of a communicator in Fortran: create, ask, copy, abort, destroy, use afterwards.
program handles
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_null_ptr, c_ptr
  use checks
  use gradsync
  implicit none

  ! The handle leads to the very communicator of the C library.
  interface
    function c_comm_size(comm) bind(c, name="gs_comm_size") result(size)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: size
    end function c_comm_size
  end interface

  character(*), parameter :: untouched = 'untouched'
  character(200) :: errmsg
  type(gs_comm) :: comm, same
  integer :: stat

  call check_never_created()
  call gs_comm_create(comm, name='first', timeout_ms=30000, boot_timeout_ms=30000)
  call speak_as(gs_comm_rank(comm))
  call check_getters()
  call check_status_arguments()
  call check_two()
  call check_destroyed()
  call check_reuse()
  call check_refused()
  call check_abort()
  call check_failed_create()
  call finish()

contains

  subroutine check_never_created()
    type(gs_comm) :: never

    errmsg = ''
    call gs_barrier(never, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_barrier|never created', &
              'a communicator that was never created')
    call expect(gs_comm_rank(never) == -1 .and. gs_comm_name(never) == '', &
          'getters of a communicator that was never created')
    call expect(.not. c_associated(gs_comm_c_ptr(never)), 'nor has it a C pointer')
    call expect(index(gs_last_error(), 'gs_comm_c_ptr: ') == 1, 'and what that leaves behind')
    call gs_comm_destroy(never, stat)
    call expect(stat == GS_OK, 'destroying it does nothing, as with NULL in C')
    call expect(gs_last_error() == '', 'and success leaves no text')
  end subroutine check_never_created

  subroutine check_getters()
    type(gs_comm_times) :: times
    type(gs_comm) :: none
    integer :: rank, size
    character(8) :: asked, shared

    rank = gs_comm_rank(comm)
    size = gs_comm_size(comm)
    call expect(size >= 1 .and. rank >= 0 .and. rank < size, 'rank and size')
    call expect(gs_comm_local_size(comm) >= 1 .and. gs_comm_local_size(comm) <= size .and. &
          gs_comm_local_rank(comm) < gs_comm_local_size(comm), 'local rank and size')
    call expect(gs_comm_nodes(comm) >= 1 .and. gs_comm_node(comm) < gs_comm_nodes(comm), &
          'node and nodes')
    call get_environment_variable('GS_TRANSPORT', asked)
    call get_environment_variable('GS_TEST_SHARED_GPUS', shared)
    if (asked == 'nccl') then
      call expect(gs_comm_device(comm) == gs_comm_local_rank(comm) .or. &
            (shared /= '' .and. gs_comm_device(comm) >= 0), 'device')
      call expect(gs_comm_transport(comm) == 'nccl', 'transport')
    else if (.not. mixed()) then
      call expect(gs_comm_device(comm) == GS_DEVICE_HOST, 'device')
      call expect(gs_comm_transport(comm) == merge('self', 'mpi ', size == 1), 'transport')
    end if
    call expect(gs_comm_name(comm) == 'first', 'name')
    call expect(len(gs_comm_host_of(comm, rank)) > 0, 'host of a rank')
    call expect(gs_comm_host_of(comm, size) == '', 'host of a rank that is out of range')
    call gs_comm_get_times(comm, times)
    call expect(times%open_us >= 0 .and. times%exchange_us >= 0 .and. &
          times%transport_us >= 0 .and. &
          times%open_us + times%exchange_us + times%transport_us > 0, 'times')
    call expect(c_comm_size(gs_comm_c_ptr(comm)) == size, 'the C pointer')
    call gs_comm_from_c_ptr(gs_comm_c_ptr(comm), same)
    call expect(gs_comm_name(same) == 'first' .and. gs_comm_rank(same) == rank, 'a handle of it')
    call gs_barrier(same)
    call gs_comm_from_c_ptr(c_null_ptr, none, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_comm_from_c_ptr: |NULL', 'no pointer')
  end subroutine check_getters

  ! stat and errmsg behave as those of allocate.
  subroutine check_status_arguments()
    character(7) :: short

    errmsg = untouched
    stat = -1
    call gs_barrier(comm, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK .and. errmsg == untouched, 'success leaves errmsg alone')
    call gs_comm_check(comm, stat)
    call expect(stat == GS_OK, 'check')
    call gs_comm_wait(comm, stat=stat)
    call expect(stat == GS_OK, 'wait')
    call gs_barrier(gs_comm(), stat=stat, errmsg=short)
    call expect(stat == GS_ERR_STATE .and. short == 'gs_barr', 'a short errmsg is cut')
  end subroutine check_status_arguments

  ! Handles of different communicators do not touch each other.
  subroutine check_two()
    type(gs_comm) :: other

    call gs_comm_create(other, name='second')
    call expect(gs_comm_name(comm) == 'first' .and. gs_comm_name(other) == 'second', &
          'two communicators')
    call gs_comm_destroy(other)
    call expect(gs_comm_name(comm) == 'first', 'the first after the second is destroyed')
  end subroutine check_two

  subroutine check_destroyed()
    type(gs_comm) :: copy

    copy = comm
    call gs_barrier(copy)
    call gs_comm_destroy(comm)
    call gs_barrier(copy, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_barrier|''first'' was destroyed', &
              'use after destroy, through a copy')
    call gs_barrier(same, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_barrier|''first'' was destroyed', &
              'use after destroy, through a handle made of its C pointer')
    call gs_barrier(comm, stat=stat)
    call expect(stat == GS_ERR_STATE, 'use after destroy')
    call gs_comm_abort(copy, stat)
    call expect(stat == GS_ERR_STATE, 'abort after destroy')
    call gs_comm_destroy(copy, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_comm_destroy|was destroyed', &
              'destroying twice')
    call expect(gs_comm_size(copy) == -1 .and. gs_comm_host_of(copy, 0) == '' .and. &
          .not. c_associated(gs_comm_c_ptr(copy)), 'getters after destroy')
  end subroutine check_destroyed

  ! A stale copy does not reach a communicator that came later, however many there were.
  subroutine check_reuse()
    type(gs_comm) :: stale, fresh(20)
    integer :: i

    call gs_comm_create(stale, name='stale', transport=GS_TRANSPORT_AUTO)
    comm = stale
    call gs_comm_destroy(stale)
    do i = 1, size(fresh)
      call gs_comm_create(fresh(i), name='fresh')
    end do
    call gs_comm_check(comm, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_comm_check|was destroyed', &
              'a stale copy when its place is taken')
    call expect(index(errmsg, 'fresh') == 0, 'which does not name the wrong one')
    do i = 1, size(fresh)
      call gs_barrier(fresh(i))
      call gs_comm_destroy(fresh(i))
    end do
  end subroutine check_reuse

  ! A destroy that is refused ends nothing: the handle and its copies stay as they were.
  subroutine check_refused()
    type(gs_comm) :: copy
    type(gs_reducer) :: reducer

    call gs_comm_create(comm, name='used')
    copy = comm
    call gs_reducer_create(comm, reducer)
    call gs_comm_destroy(comm, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, '''used'' still has 1|gs_reducer_destroy', &
              'destroying what is in use')
    call gs_comm_destroy(copy, stat)
    call expect(stat == GS_ERR_STATE, 'and by a copy')
    call gs_barrier(comm)
    call expect(gs_comm_name(copy) == 'used', 'which both are as good as before')
    call gs_reducer_destroy(reducer)
    call gs_comm_destroy(copy)
    call gs_barrier(comm, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, '''used'' was destroyed', 'until the end')
  end subroutine check_refused

  ! Alone, for an aborted transfer between ranks makes the launcher report a failure.
  subroutine check_abort()
    type(gs_unique_id) :: id

    call gs_unique_id_get(id)
    call gs_comm_create_from_id(comm, id, rank=0, size=1, name='dead')
    call gs_comm_abort(comm)
    call gs_comm_check(comm, stat, errmsg)
    call expect(stat /= GS_OK, 'check after abort: ' // trim(errmsg))
    call gs_barrier(comm, stat=stat)
    call expect(stat == GS_ERR_STATE, 'barrier after abort')
    call gs_comm_destroy(comm, stat)
    call expect(stat == GS_OK, 'destroy after abort')
  end subroutine check_abort

  subroutine check_failed_create()
    call gs_comm_create(comm, transport=99, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, '99', 'a transport that does not exist')
    call gs_barrier(comm, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'never created', &
              'what a failed create leaves')
    call gs_comm_create(comm, timeout_ms=-1, stat=stat)
    call expect(stat == GS_ERR_ARG, 'a negative deadline')
  end subroutine check_failed_create

end program handles
