! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c - the C functions as Fortran sees them: gradsync.h in its order, then handle.c.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, &
    c_intptr_t, c_null_ptr, c_ptr, c_size_t
  use gradsync_types, only: gs_unique_id, GS_DEVICE_AUTO, GS_TRANSPORT_AUTO
  implicit none
  public

  ! gs_setting_t
  type, bind(c) :: c_setting
    type(c_ptr) :: name, value, origin, help
  end type c_setting

  ! gs_comm_opts_t; the initial values are those of GS_COMM_OPTS_INIT, but for size.
  type, bind(c) :: c_comm_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: transport = GS_TRANSPORT_AUTO
    integer(c_int) :: device = GS_DEVICE_AUTO
    integer(c_int64_t) :: timeout_ms = 0
    integer(c_int64_t) :: boot_timeout_ms = 0
    type(c_ptr) :: reserved(8) = c_null_ptr
  end type c_comm_opts

  ! gs_comm_times_t
  type, bind(c) :: c_comm_times
    integer(c_size_t) :: size = 0
    real(c_double) :: open_us, exchange_us, transport_us
    real(c_double) :: reserved(5)
  end type c_comm_times

  ! The getters of a communicator, by shape.
  abstract interface
    function c_int_getter(comm) bind(c) result(answer)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: answer
    end function c_int_getter

    function c_text_getter(comm) bind(c) result(answer)
      import :: c_ptr
      type(c_ptr), value :: comm
      type(c_ptr) :: answer
    end function c_text_getter
  end interface

  ! 1. Results
  interface
    function c_status_string(status) bind(c, name="gs_status_string") result(text)
      import :: c_int, c_ptr
      integer(c_int), value :: status
      type(c_ptr) :: text
    end function c_status_string

    function c_last_error() bind(c, name="gs_last_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function c_last_error

    function c_result(st) bind(c, name="gsi_result") result(same)
      import :: c_int
      integer(c_int), value, intent(in) :: st
      integer(c_int) :: same
    end function c_result

    function c_version() bind(c, name="gs_version") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function c_version
  end interface

  ! 2. Settings
  interface
    function c_setting_get(index, setting) bind(c, name="gs_setting_get") result(st)
      import :: c_int, c_setting
      integer(c_int), value :: index
      type(c_setting), intent(out) :: setting
      integer(c_int) :: st
    end function c_setting_get

    function c_build_info() bind(c, name="gs_build_info") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function c_build_info

    subroutine c_log_set_sink(sink, context) bind(c, name="gs_log_set_sink")
      import :: c_funptr, c_ptr
      type(c_funptr), value :: sink
      type(c_ptr), value :: context
    end subroutine c_log_set_sink
  end interface

  ! 3. Types
  interface
    function c_dtype_size(dtype) bind(c, name="gs_dtype_size") result(bytes)
      import :: c_int, c_size_t
      integer(c_int), value :: dtype
      integer(c_size_t) :: bytes
    end function c_dtype_size
  end interface

  ! 4. Communicators
  procedure(c_int_getter), bind(c, name="gs_comm_rank") :: c_comm_rank
  procedure(c_int_getter), bind(c, name="gs_comm_size") :: c_comm_size
  procedure(c_int_getter), bind(c, name="gs_comm_local_rank") :: c_comm_local_rank
  procedure(c_int_getter), bind(c, name="gs_comm_local_size") :: c_comm_local_size
  procedure(c_int_getter), bind(c, name="gs_comm_node") :: c_comm_node
  procedure(c_int_getter), bind(c, name="gs_comm_nodes") :: c_comm_nodes
  procedure(c_int_getter), bind(c, name="gs_comm_device") :: c_comm_device
  procedure(c_text_getter), bind(c, name="gs_comm_transport") :: c_comm_transport
  procedure(c_text_getter), bind(c, name="gs_comm_name") :: c_comm_name
  interface
    function c_comm_create(opts, comm) bind(c, name="gs_comm_create") result(st)
      import :: c_comm_opts, c_int, c_ptr
      type(c_comm_opts), intent(in) :: opts
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: st
    end function c_comm_create

    function c_unique_id_get(id) bind(c, name="gs_unique_id_get") result(st)
      import :: c_int, gs_unique_id
      type(gs_unique_id), intent(out) :: id
      integer(c_int) :: st
    end function c_unique_id_get

    function c_comm_create_from_id(id, rank, size, opts, comm) &
      bind(c, name="gs_comm_create_from_id") result(st)
      import :: c_comm_opts, c_int, c_ptr, gs_unique_id
      type(gs_unique_id), intent(in) :: id
      integer(c_int), value :: rank, size
      type(c_comm_opts), intent(in) :: opts
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: st
    end function c_comm_create_from_id

    function c_comm_from_mpi_fint(mpi_comm, opts, comm) &
      bind(c, name="gs_comm_from_mpi_fint") result(st)
      import :: c_comm_opts, c_int, c_ptr
      integer(c_int), value :: mpi_comm
      type(c_comm_opts), intent(in) :: opts
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: st
    end function c_comm_from_mpi_fint

    function c_comm_destroy(comm) bind(c, name="gs_comm_destroy") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_comm_destroy

    function c_comm_abort(comm) bind(c, name="gs_comm_abort") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_comm_abort

    function c_comm_check(comm) bind(c, name="gs_comm_check") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_comm_check

    function c_comm_wait(comm, stream) bind(c, name="gs_comm_wait") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_comm_wait

    function c_comm_host_of(comm, rank) bind(c, name="gs_comm_host_of") result(text)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: rank
      type(c_ptr) :: text
    end function c_comm_host_of

    function c_comm_get_times(comm, times) bind(c, name="gs_comm_get_times") result(st)
      import :: c_comm_times, c_int, c_ptr
      type(c_ptr), value :: comm
      type(c_comm_times), intent(inout) :: times
      integer(c_int) :: st
    end function c_comm_get_times

    function c_comm_split(comm, color, key, group) bind(c, name="gs_comm_split") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: color, key
      type(c_ptr), intent(out) :: group
      integer(c_int) :: st
    end function c_comm_split

    function c_comm_split_node(comm, group) bind(c, name="gs_comm_split_node") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      type(c_ptr), intent(out) :: group
      integer(c_int) :: st
    end function c_comm_split_node

    function c_comm_split_rail(comm, group) bind(c, name="gs_comm_split_rail") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      type(c_ptr), intent(out) :: group
      integer(c_int) :: st
    end function c_comm_split_rail

    ! [row] and [column] are addresses of pointers, or NULL.
    function c_comm_split_grid(comm, rows, columns, row, column) &
      bind(c, name="gs_comm_split_grid") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: rows, columns
      type(c_ptr), value :: row, column
      integer(c_int) :: st
    end function c_comm_split_grid

    function c_comm_split_list(comm, n, ranks, group) bind(c, name="gs_comm_split_list") &
      result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: n
      integer(c_int), intent(in) :: ranks(*)
      type(c_ptr), intent(out) :: group
      integer(c_int) :: st
    end function c_comm_split_list

    function c_device_alloc(comm, bytes, memory) bind(c, name="gs_device_alloc") result(st)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: comm
      integer(c_size_t), value :: bytes
      type(c_ptr), intent(out) :: memory
      integer(c_int) :: st
    end function c_device_alloc

    function c_device_free(comm, memory) bind(c, name="gs_device_free") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm, memory
      integer(c_int) :: st
    end function c_device_free

    function c_device_copy(comm, dst, src, bytes, stream) bind(c, name="gs_device_copy") &
      result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, dst, src
      integer(c_size_t), value :: bytes
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_device_copy
  end interface

  ! 5. Collectives; a stream is an address, so an integer of its size is passed the same way.
  interface
    function c_allreduce_avg(comm, buf, count, dtype, stream) &
      bind(c, name="gs_allreduce_avg") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allreduce_avg

    function c_allreduce_wavg(comm, buf, count, dtype, weight, stream) &
      bind(c, name="gs_allreduce_wavg") result(st)
      import :: c_double, c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      real(c_double), value :: weight
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allreduce_wavg

    function c_allreduce(comm, buf, count, dtype, op, stream) &
      bind(c, name="gs_allreduce") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allreduce

    function c_broadcast(comm, buf, count, dtype, root, stream) &
      bind(c, name="gs_broadcast") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_broadcast

    function c_allgather(comm, send, recv, count, dtype, stream) &
      bind(c, name="gs_allgather") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allgather

    function c_barrier(comm, stream) bind(c, name="gs_barrier") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_barrier
  end interface

  ! Handles: contracts in handle.h.
  integer(c_int), parameter :: KIND_COMM = 0
  integer(c_int), parameter :: KIND_REDUCER = 1
  integer(c_int), parameter :: KIND_BOUNDARY = 2
  integer(c_int), parameter :: KIND_HALO = 3
  integer(c_int), parameter :: KIND_CKPT = 4
  interface
    function c_handle_open(kind, handle) bind(c, name="gsi_fortran_handle_open") result(st)
      import :: c_int, c_int64_t
      integer(c_int), value :: kind
      integer(c_int64_t), intent(out) :: handle
      integer(c_int) :: st
    end function c_handle_open

    subroutine c_handle_bind(handle, thing, comm, name) bind(c, name="gsi_fortran_handle_bind")
      import :: c_int64_t, c_ptr
      integer(c_int64_t), value :: handle
      type(c_ptr), value :: thing, comm, name
    end subroutine c_handle_bind

    function c_handle_find(handle, kind, call, thing) bind(c, name="gsi_fortran_handle_find") &
      result(st)
      import :: c_char, c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: handle
      integer(c_int), value :: kind
      character(kind=c_char), intent(in) :: call(*)
      type(c_ptr), intent(out) :: thing
      integer(c_int) :: st
    end function c_handle_find

    function c_handle_begin(handle, call, what, amount, comm) &
      bind(c, name="gsi_fortran_begin") result(st)
      import :: c_char, c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: handle
      character(kind=c_char), intent(in) :: call(*), what(*)
      integer(c_int64_t), value :: amount
      type(c_ptr), intent(out) :: comm
      integer(c_int) :: st
    end function c_handle_begin

    function c_handle_take(handle, kind, call, thing) bind(c, name="gsi_fortran_handle_take") &
      result(st)
      import :: c_char, c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: handle
      integer(c_int), value :: kind
      character(kind=c_char), intent(in) :: call(*)
      type(c_ptr), intent(out) :: thing
      integer(c_int) :: st
    end function c_handle_take

    function c_handle_close(handle, thing, destroyed) &
      bind(c, name="gsi_fortran_handle_close") result(st)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int64_t), value :: handle
      type(c_ptr), value :: thing
      integer(c_int), value :: destroyed
      integer(c_int) :: st
    end function c_handle_close

    function c_integer_fits(call, what, is_integer, step) &
      bind(c, name="gsi_fortran_integer_fits") result(st)
      import :: c_char, c_int, c_int64_t
      character(kind=c_char), intent(in) :: call(*), what(*)
      integer(c_int), value :: is_integer
      integer(c_int64_t), value :: step
      integer(c_int) :: st
    end function c_integer_fits

    subroutine c_call_end(rank, size) bind(c, name="gsi_fortran_end")
      import :: c_int
      integer(c_int), intent(out) :: rank, size
    end subroutine c_call_end
  end interface

  interface
    pure function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

end module gradsync_c
