! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_adjoint - the C functions of gradsync_adjoint.h as Fortran sees them, in its order.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c_adjoint
  use, intrinsic :: iso_c_binding, only: c_double, c_funptr, c_int, c_int64_t, c_intptr_t, &
    c_ptr, c_size_t
  use gradsync_types, only: gs_adjoint_result
  implicit none
  public

  ! gs_adjoint_opts_t; the initial values are those of GS_ADJOINT_OPTS_INIT, but for size.
  type, bind(c) :: c_adjoint_opts
    integer(c_size_t) :: size = 0
    real(c_double) :: tolerance = 0
    real(c_double) :: step = 0
    integer(c_int64_t) :: seed = 0
    integer(c_int) :: linear = 0
    integer(c_int) :: same_loss = 0
  end type c_adjoint_opts

  interface
    function c_allgather_backward(comm, grad_y, grad_x, count, dtype, contract, stream) &
      bind(c, name="gs_allgather_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, contract
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allgather_backward

    function c_allgatherv_backward(comm, grad_y, counts, displs, grad_x, count, dtype, &
      contract, stream) bind(c, name="gs_allgatherv_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_size_t), intent(in), optional :: displs(*)
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, contract
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allgatherv_backward

    function c_gather_backward(comm, grad_y, grad_x, count, dtype, root, stream) &
      bind(c, name="gs_gather_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gather_backward

    function c_gatherv_backward(comm, grad_y, counts, displs, grad_x, count, dtype, root, &
      stream) bind(c, name="gs_gatherv_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in), optional :: counts(*), displs(*)
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gatherv_backward

    function c_scatter_backward(comm, grad_y, grad_x, count, dtype, root, stream) &
      bind(c, name="gs_scatter_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_scatter_backward

    function c_scatterv_backward(comm, grad_y, count, grad_x, room, counts, displs, dtype, &
      root, stream) bind(c, name="gs_scatterv_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in), optional :: counts(*), displs(*)
      integer(c_size_t), value :: count, room
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_scatterv_backward

    function c_alltoall_backward(comm, grad_y, grad_x, count, dtype, stream) &
      bind(c, name="gs_alltoall_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_alltoall_backward

    function c_alltoallv_backward(comm, grad_y, recv_counts, recv_displs, grad_x, send_counts, &
      send_displs, dtype, stream) bind(c, name="gs_alltoallv_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in) :: recv_counts(*), send_counts(*)
      integer(c_size_t), intent(in), optional :: recv_displs(*), send_displs(*)
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_alltoallv_backward

    function c_broadcast_backward(comm, grad_y, grad_x, count, dtype, root, stream) &
      bind(c, name="gs_broadcast_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_broadcast_backward

    function c_allreduce_backward(comm, grad, count, dtype, op, stream) &
      bind(c, name="gs_allreduce_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, op
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_allreduce_backward

    function c_reduce_backward(comm, grad, count, dtype, root, stream) &
      bind(c, name="gs_reduce_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce_backward

    function c_reduce_scatter_backward(comm, grad_y, grad_x, count, dtype, stream) &
      bind(c, name="gs_reduce_scatter_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce_scatter_backward

    function c_reduce_scatterv_backward(comm, grad_y, count, grad_x, room, counts, displs, &
      dtype, stream) bind(c, name="gs_reduce_scatterv_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in) :: counts(*)
      integer(c_size_t), intent(in), optional :: displs(*)
      integer(c_size_t), value :: count, room
      integer(c_int), value :: dtype
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reduce_scatterv_backward

    function c_gather_field_backward(comm, grad_y, shape, grad_x, extents, offsets, dims, &
      dtype, root, stream) bind(c, name="gs_gather_field_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, grad_y, grad_x
      integer(c_size_t), intent(in) :: extents(*), offsets(*)
      integer(c_size_t), intent(in), optional :: shape(*)
      integer(c_int), value :: dims, dtype, root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_gather_field_backward

    function c_adjoint_check(comm, forward, backward, context, x, nx, ny, opts, found) &
      bind(c, name="gs_adjoint_check") result(st)
      import :: c_adjoint_opts, c_double, c_funptr, c_int, c_ptr, c_size_t, gs_adjoint_result
      type(c_ptr), value :: comm, context
      type(c_funptr), value :: forward, backward
      real(c_double), intent(in), optional :: x(*)
      integer(c_size_t), value :: nx, ny
      type(c_adjoint_opts), intent(in) :: opts
      type(gs_adjoint_result), intent(out) :: found
      integer(c_int) :: st
    end function c_adjoint_check
  end interface

end module gradsync_c_adjoint
