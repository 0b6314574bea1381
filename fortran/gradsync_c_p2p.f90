! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_p2p - the C functions of gradsync_p2p.h as Fortran sees them, in its order.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c_p2p
  use, intrinsic :: iso_c_binding, only: c_int, c_intptr_t, c_ptr, c_size_t
  implicit none
  public

  interface
    function c_send(comm, buf, count, dtype, peer, stream) bind(c, name="gs_send") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, peer
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_send

    function c_recv(comm, buf, count, dtype, peer, stream) bind(c, name="gs_recv") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm, buf
      integer(c_size_t), value :: count
      integer(c_int), value :: dtype, peer
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_recv

    function c_group_begin(comm) bind(c, name="gs_group_begin") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_group_begin

    function c_group_end(comm) bind(c, name="gs_group_end") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_group_end

    function c_boundary_create(comm, from, to, shape, dims, dtype, boundary) &
      bind(c, name="gs_boundary_create") result(st)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: comm
      integer(c_int), value :: from, to, dims, dtype
      integer(c_size_t), intent(in) :: shape(*)
      type(c_ptr), intent(out) :: boundary
      integer(c_int) :: st
    end function c_boundary_create

    function c_boundary_forward(boundary, activations, stream) &
      bind(c, name="gs_boundary_forward") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: boundary, activations
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_boundary_forward

    function c_boundary_backward(boundary, gradients, stream) &
      bind(c, name="gs_boundary_backward") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: boundary, gradients
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_boundary_backward

    function c_boundary_destroy(boundary) bind(c, name="gs_boundary_destroy") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: boundary
      integer(c_int) :: st
    end function c_boundary_destroy

    function c_halo_create(comm, dims, grid, extents, width, periodic, dtype, halo) &
      bind(c, name="gs_halo_create") result(st)
      import :: c_int, c_ptr, c_size_t
      type(c_ptr), value :: comm
      integer(c_int), value :: dims, dtype
      integer(c_int), intent(in) :: grid(*), periodic(*)
      integer(c_size_t), intent(in) :: extents(*), width(*)
      type(c_ptr), intent(out) :: halo
      integer(c_int) :: st
    end function c_halo_create

    function c_halo_exchange(halo, field, stream) bind(c, name="gs_halo_exchange") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: halo, field
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_halo_exchange

    function c_halo_adjoint(halo, grad, stream) bind(c, name="gs_halo_adjoint") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: halo, grad
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_halo_adjoint

    function c_halo_destroy(halo) bind(c, name="gs_halo_destroy") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: halo
      integer(c_int) :: st
    end function c_halo_destroy
  end interface

end module gradsync_c_p2p
