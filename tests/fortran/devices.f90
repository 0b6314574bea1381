! SPDX-License-Identifier: BSD-3-Clause
! devices - collectives and gradients in memory of the device: by address, and as an array whose
! descriptor has a device address, which is what use_device and use_device_addr pass.
!
! The host follows no such address, so the program is for hosts and for GPUs alike.
program devices
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_float, c_int, c_int32_t, &
    c_int64_t, c_intptr_t, c_loc, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use checks
  use gradsync
  implicit none

  interface
    function c_mmap(address, length, protection, flags, fd, offset) bind(c, name='mmap') &
      result(memory)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: address
      integer(c_size_t), value :: length
      integer(c_int), value :: protection, flags, fd
      integer(c_int64_t), value :: offset
      type(c_ptr) :: memory
    end function c_mmap
  end interface

  integer(c_intptr_t), parameter :: stream = 0 ! the legacy default stream
  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat, me, n
  real(real64) :: mean ! of the ranks' numbers

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  mean = (n - 1) / 2.0_real64
  call speak_as(me)
  call check_address()
  call check_array()
  call check_others()
  call check_gather()
  call check_gradients()
  call check_directives()
  call check_untouched()
  call check_errors()
  call gs_comm_destroy(comm)
  call finish()

contains

  ! Within the roundings of a sum over the ranks.
  function near(x, y) result(holds)
    real(real64), intent(in) :: x(:), y(:)
    logical :: holds

    holds = all(abs(x - y) <= (n + 2) * epsilon(1.0_real64) * abs(y))
  end function near

  subroutine check_address()
    real(real64), target :: x(5), y(5)
    type(c_ptr) :: memory
    integer :: i

    x = [(real(me + i, real64), i=1, 5)]
    call gs_device_alloc(comm, storage_size(x) / 8 * size(x), memory)
    call expect(c_associated(memory), 'memory of the device')
    call gs_device_copy(comm, memory, c_loc(x), storage_size(x) / 8 * size(x))
    call gs_allreduce_avg(comm, memory, size(x), GS_F64, stream=stream)
    y = 0
    call gs_device_copy(comm, c_loc(y), memory, 40_int64, stream=stream)
    call gs_comm_wait(comm, stream)
    call expect(near(y, [(mean + i, i=1, 5)]), 'the average of memory of the device')
    call gs_allreduce(comm, memory, size(x), GS_F64, GS_MAX, stream)
    call gs_broadcast(comm, memory, size(x), GS_F64, n - 1, stream, stat)
    call gs_device_copy(comm, c_loc(x), memory, 40, stream, stat, errmsg)
    call gs_comm_wait(comm, stream)
    call expect(all(x == y), 'what is equal everywhere stays so')
    call gs_device_free(comm, memory)
    call gs_device_free(comm, c_null_ptr)
  end subroutine check_address

  ! The descriptor of [device] has the device's address.
  subroutine check_array()
    real(real64), target :: x(4, 3)
    real(real64), pointer :: device(:, :)
    type(c_ptr) :: memory
    integer :: i, bytes

    x = reshape([(real(me + i, real64), i=1, 12)], [4, 3])
    bytes = storage_size(x) / 8 * size(x)
    call gs_device_alloc(comm, bytes, memory)
    call gs_device_copy(comm, memory, c_loc(x), bytes, stream)
    call c_f_pointer(memory, device, shape(x))
    call gs_allreduce_avg(comm, device(:, 2:3), stream=stream)
    call gs_device_copy(comm, c_loc(x), memory, bytes, stream)
    call gs_comm_wait(comm, stream)
    call expect(near(x(:, 1), [(real(me + i, real64), i=1, 4)]), 'the columns before a section')
    call expect(near([x(:, 2:3)], [(mean + i, i=5, 12)]), 'the average of an array of the device')
    call take_explicit_shape(device, 12, memory)
    call gs_device_free(comm, memory)
  end subroutine check_array

  ! A dummy argument that is no pointer any more, and a part of it by count=.
  subroutine take_explicit_shape(device, length, memory)
    integer, intent(in) :: length
    real(real64), intent(inout) :: device(length)
    type(c_ptr), intent(in) :: memory
    real(real64), target :: x(length)

    x = me
    call gs_device_copy(comm, memory, c_loc(x), storage_size(x) / 8 * size(x))
    call gs_allreduce_wavg(comm, device, 3.0_real64, count=7_int64, stream=stream)
    call gs_allreduce(comm, device(12), GS_SUM, stream=stream)
    call gs_device_copy(comm, c_loc(x), memory, storage_size(x) / 8 * size(x))
    call gs_comm_wait(comm)
    call expect(near(x(:7), spread(mean, 1, 7)), 'the weighted average of a part')
    call expect(all(x(8:11) == me) .and. x(12) == n * mean, 'the sum of one element')
  end subroutine take_explicit_shape

  ! Kinds beside real64.
  subroutine check_others()
    integer(c_int32_t), target :: k(6)
    complex(real32), target :: z(3)
    integer(c_int32_t), pointer :: device(:)
    complex(real32), pointer :: parts(:)
    type(c_ptr) :: memory

    k = me + 1
    call gs_device_alloc(comm, 24_int64, memory)
    call gs_device_copy(comm, memory, c_loc(k), 24)
    call c_f_pointer(memory, device, shape(k))
    call gs_allreduce(comm, device, GS_SUM, stream=stream)
    call gs_broadcast(comm, device, 0, stream=stream)
    call gs_device_copy(comm, c_loc(k), memory, 24)
    call gs_comm_wait(comm, stream)
    call expect(all(k == n * (n + 1) / 2), 'the sum of integers of the device')
    z = cmplx(me, -2 * me, real32)
    call gs_device_copy(comm, memory, c_loc(z), 24)
    call c_f_pointer(memory, parts, shape(z))
    call gs_allreduce_avg(comm, parts)
    call gs_device_copy(comm, c_loc(z), memory, 24)
    call gs_comm_wait(comm)
    call expect(all(abs(z - cmplx(mean, -2 * mean, real32)) <= 1e-5 * abs(z)), &
          'the average of complex numbers of the device')
    call gs_device_free(comm, memory)
  end subroutine check_others

  ! By array and by address, and in place.
  subroutine check_gather()
    real(c_float), target :: x(3), everyone(3, n)
    real(c_float), pointer :: send(:), recv(:, :)
    type(c_ptr) :: from, to
    integer :: r

    x = real(me, c_float)
    call gs_device_alloc(comm, 12, from)
    call gs_device_alloc(comm, 12 * n, to)
    call c_f_pointer(from, send, [3])
    call c_f_pointer(to, recv, [3, n])
    call gs_device_copy(comm, from, c_loc(x), 12)
    call gs_allgather(comm, send, recv, stream=stream)
    call gs_allreduce(comm, recv, GS_MAX, stream=stream)
    call gs_allgather(comm, recv(:, me + 1), recv, stream=stream)
    call gs_allgather(comm, from, to, 3, GS_F32, stream)
    call gs_device_copy(comm, c_loc(everyone), to, 12 * n)
    call gs_comm_wait(comm, stream)
    call expect(all([(all(everyone(:, r + 1) == r), r=0, n - 1)]), 'allgather on the device')
    call gs_device_free(comm, from)
    call gs_device_free(comm, to)
  end subroutine check_gather

  ! One in memory that is given, as an array and by address, and one in the reducer's.
  subroutine check_gradients()
    type(gs_reducer) :: reducer
    real(real64), target :: x(4, 3), y(2)
    real(real64), pointer :: device(:, :), made(:)
    type(c_ptr) :: memory
    integer :: i, step

    nullify (made)
    call gs_device_alloc(comm, 96, memory)
    call c_f_pointer(memory, device, shape(x))
    call gs_reducer_create(comm, reducer)
    call gs_reducer_add(reducer, 'array', device(:, 1:2))
    call gs_reducer_add(reducer, 'address', [2, 2], GS_F64, c_loc(device(1, 3)))
    call gs_reducer_add(reducer, 'made', [2], GS_F64, lower=[-1])
    call gs_reducer_commit(reducer)
    call gs_reducer_get_grad(reducer, 2, made)
    call expect(lbound(made, 1) == -1 .and. ubound(made, 1) == 0, 'bounds on the device')
    do step = 1, 3
      x = reshape([(real(me + i, real64), i=1, 12)], [4, 3])
      y = 5 * me
      call gs_device_copy(comm, memory, c_loc(x), 96, stream)
      call gs_device_copy(comm, c_loc(made), c_loc(y), 16, stream)
      call gs_reducer_ready(reducer, 2, stream)
      call gs_reducer_ready(reducer, 0, stream=stream)
      call gs_reducer_skip(reducer, 1, stream)
      call gs_reducer_finish(reducer, stream)
      call gs_device_copy(comm, c_loc(x), memory, 96, stream)
      call gs_device_copy(comm, c_loc(y), c_loc(made), 16, stream)
      call gs_comm_wait(comm, stream)
    end do
    call expect(near([x(:, 1:2)], [(mean + i, i=1, 8)]) .and. all(x(:, 3) == 0) .and. &
          near(y, spread(5 * mean, 1, 2)), 'averages of gradients on the device')
    call gs_reducer_destroy(reducer)
    if (gs_comm_device(comm) /= GS_DEVICE_HOST) then
      call gs_reducer_create(comm, reducer)
      call gs_reducer_add(reducer, 'x', x, stat=stat, errmsg=errmsg)
      call expect_failure(stat, errmsg, GS_ERR_DEVICE, 'gs_reducer_add|x', &
                'a gradient of the host')
      call gs_reducer_destroy(reducer)
    end if
    call gs_device_free(comm, memory)
  end subroutine check_gradients

  ! As gradsync-fortran(7) shows them; without the compiler's options they are comments.
  ! N.B. gfortran 12 takes no allocatable array in use_device.
  subroutine check_directives()
    real(real64) :: x(100)
    integer :: i

    x = me
    !$acc data copy(x)
    !$acc host_data use_device(x)
    call gs_allreduce_avg(comm, x)
    !$acc end host_data
    !$acc end data
    call gs_comm_wait(comm)
    call expect(near(x, spread(mean, 1, 100)), 'host_data use_device')
    x = me
    !$omp target data map(tofrom: x) use_device_addr(x)
    call gs_allreduce(comm, x, GS_SUM)
    !$omp end target data
    call gs_comm_wait(comm)
    call expect(near(x, [(n * mean, i=1, 100)]), 'use_device_addr')
  end subroutine check_directives

  ! Memory that a read or a write by the host would end the program on: nothing is transferred,
  ! and all of the binding is run.
  subroutine check_untouched()
    integer(c_size_t), parameter :: pages = 1048576
    integer(c_int), parameter :: none = 0, private_anonymous = 34
    real(real64), pointer :: x(:), y(:, :)
    integer(int64), pointer :: k(:)
    type(gs_reducer) :: reducer
    type(c_ptr) :: memory

    memory = c_mmap(c_null_ptr, pages, none, private_anonymous, -1_c_int, 0_c_int64_t)
    call c_f_pointer(memory, x, [1000])
    call c_f_pointer(memory, y, [100, 10])
    call c_f_pointer(memory, k, [1000])
    call gs_allreduce_avg(comm, x, count=0_int64, stream=stream)
    call gs_allreduce_wavg(comm, x(10:20), 2.0_real64, count=0_int64, stream=stream)
    call gs_allreduce(comm, y, GS_SUM, count=0_int64, stream=stream)
    call gs_allreduce(comm, k, GS_SUM, as=GS_U64, count=0_int64, stream=stream)
    call gs_broadcast(comm, y(:, 3:4), 0, count=0_int64, stream=stream)
    call gs_allgather(comm, y(:, 1), y, count=0_int64, stream=stream)
    call pass_on(y)
    call gs_allreduce_avg(comm, memory, 0, GS_F64, stream)
    call gs_allreduce_avg(comm, y(3, :), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'buf is a strided section', &
              'a row of an array of the device')
    call gs_allreduce_avg(comm, k, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_UNSUPPORTED, 'gs_allreduce_avg', &
              'the average of integers of the device')
    call gs_reducer_create(comm, reducer)
    call gs_reducer_add(reducer, 'y', y, stat=stat) ! on GPUs it is not theirs
    call gs_reducer_destroy(reducer)
    call expect(.true., 'no address of the device is followed by the host')
  end subroutine check_untouched

  subroutine pass_on(y)
    real(real64), intent(inout) :: y(:, :)

    call gs_allreduce_avg(comm, y, count=0_int64, stream=stream)
    call gs_broadcast(comm, y(5, 5), 0, count=0_int64, stream=stream)
    call pass_on_again(y(:, 2:4), 300)
  end subroutine pass_on

  subroutine pass_on_again(y, length)
    integer, intent(in) :: length
    real(real64), intent(inout) :: y(length)

    call gs_allreduce_avg(comm, y, count=0_int64, stream=stream)
  end subroutine pass_on_again

  subroutine check_errors()
    real(real64), target :: x(2)
    type(gs_comm) :: never
    type(c_ptr) :: memory

    memory = c_loc(x)
    call gs_device_alloc(comm, -1, memory, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_device_alloc: bytes is -1', &
              'an array of less than nothing')
    call expect(.not. c_associated(memory), 'no memory after a failure')
    call gs_device_alloc(comm, huge(0_int64), memory, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_NOMEM, 'memory', 'more than memory holds')
    call gs_device_alloc(comm, 0, memory, stat=stat)
    call expect(stat == GS_OK .and. .not. c_associated(memory), 'an array of nothing')
    call gs_device_copy(comm, c_null_ptr, c_loc(x), 8, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_device_copy: dst or src is NULL', &
              'a copy to nowhere')
    call gs_device_copy(comm, c_loc(x), c_loc(x(2)), -8, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_device_copy: bytes is -8', &
              'a copy of less than nothing')
    call gs_device_alloc(never, 8, memory, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_device_alloc|never created', &
              'memory without a communicator')
    call gs_device_copy(never, c_loc(x), c_loc(x(2)), 8_int64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_device_copy|never created', &
              'a copy without a communicator')
    call gs_device_free(never, c_loc(x), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_device_free|never created', &
              'freeing without a communicator')
  end subroutine check_errors

end program devices
