! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_gather - the C functions of gradsync_gather.h as Fortran sees them, in its order,
! then what handle.c checks for them.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c_gather
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_intptr_t, c_ptr, c_size_t
  implicit none
  public

  interface
    function c_allgatherv(comm, send, send_count, recv, recv_room, counts, displs, dtype, &
      stream) bind(c, name="gs_allgatherv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: send_count, recv_room
      integer(c_size_t), intent(in), optional :: counts(*), displs(*)
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allgatherv

    function c_gather(comm, send, recv, count, dtype, root, stream) &
      bind(c, name="gs_gather") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gather

    function c_gatherv(comm, send, send_count, recv, recv_room, counts, displs, dtype, root, &
      stream) bind(c, name="gs_gatherv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: send_count, recv_room
      integer(c_size_t), intent(in), optional :: counts(*), displs(*)
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gatherv

    function c_scatter(comm, send, recv, count, dtype, root, stream) &
      bind(c, name="gs_scatter") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_scatter

    function c_scatterv(comm, send, counts, displs, recv, recv_count, dtype, root, &
      stream) bind(c, name="gs_scatterv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), intent(in), optional :: counts(*), displs(*)
      integer(c_size_t), value :: recv_count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_scatterv

    function c_alltoall(comm, send, recv, count, dtype, stream) &
      bind(c, name="gs_alltoall") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_alltoall

    function c_alltoallv(comm, send, send_counts, send_displs, recv, recv_counts, &
      recv_displs, dtype, stream) bind(c, name="gs_alltoallv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), intent(in) :: send_counts(*), recv_counts(*)
      integer(c_size_t), intent(in), optional :: send_displs(*), recv_displs(*)
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_alltoallv

    function c_reduce(comm, send, recv, count, dtype, op, root, stream) &
      bind(c, name="gs_reduce") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce

    function c_reduce_scatter(comm, send, recv, count, dtype, op, stream) &
      bind(c, name="gs_reduce_scatter") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce_scatter

    function c_reduce_scatterv(comm, send, counts, displs, recv, recv_count, dtype, op, &
      stream) bind(c, name="gs_reduce_scatterv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, send, recv
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_size_t), intent(in), optional :: displs(*)
      integer(c_size_t), value :: recv_count
      integer(c_int), value :: dtype, op
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce_scatterv

    function c_gather_field(comm, block, extents, offsets, field, shape, dims, dtype, root, &
      stream) bind(c, name="gs_gather_field") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, block, field
      integer(c_size_t), intent(in) :: extents(*), offsets(*)
      integer(c_size_t), intent(in), optional :: shape(*)
      integer(c_int), value :: dims, dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gather_field

    function c_check_list(call, what, length, wanted, least) &
      bind(c, name="gsi_fortran_check_list") result(st)
      import :: c_char, c_int, c_int64_t
      character(kind=c_char), intent(in) :: call(*), what(*)
      integer(c_int64_t), value :: length, wanted, least
      integer(c_int) :: st
    end function c_check_list

    function c_check_dtype(call, dtype, wanted) bind(c, name="gsi_fortran_check_dtype") result(st)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: call(*)
      integer(c_int), value :: dtype, wanted
      integer(c_int) :: st
    end function c_check_dtype
  end interface

end module gradsync_c_gather
