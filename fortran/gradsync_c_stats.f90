! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_stats - the C functions of gradsync_stats.h as Fortran sees them, in its order.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c_stats
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, &
    c_intptr_t, c_null_ptr, c_ptr, c_size_t
  use gradsync_types, only: gs_moments
  implicit none
  public

  ! gs_array_t.
  type, bind(c) :: c_array
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: data = c_null_ptr
    integer(c_size_t) :: count = 0
    integer(c_int) :: dtype = 0
  end type c_array

  ! gs_traffic_t.
  type, bind(c) :: c_traffic
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: calls = 0, bytes = 0, within = 0, between = 0
    integer(c_int) :: within_known = 0, between_known = 0
  end type c_traffic

  interface
    function c_stats(comm, x, samples, features, dtype, mask, mask_width, moments, stream) &
      bind(c, name="gs_stats") result(st)
      import :: c_int, c_intptr_t, c_ptr, c_size_t, gs_moments
      type(c_ptr), value :: comm, x, mask
      integer(c_size_t), value :: samples, features, mask_width
      integer(c_int), value :: dtype
      type(gs_moments), intent(inout) :: moments(*)
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_stats

    function c_moments_merge(into, from, features) bind(c, name="gs_moments_merge") result(st)
      import :: c_int, c_size_t, gs_moments
      type(gs_moments), intent(inout) :: into(*)
      type(gs_moments), intent(in) :: from(*)
      integer(c_size_t), value :: features
      integer(c_int) :: st
    end function c_moments_merge

    function c_all(comm, flag, res, stream) bind(c, name="gs_all") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: flag
      integer(c_int), intent(inout) :: res
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_all

    function c_any(comm, flag, res, stream) bind(c, name="gs_any") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: comm
      integer(c_int), value :: flag
      integer(c_int), intent(inout) :: res
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_any

    function c_compare(comm, arrays, number, tolerance, stream) bind(c, name="gs_compare") &
      result(st)
      import :: c_array, c_double, c_int, c_intptr_t, c_ptr, c_size_t
      type(c_ptr), value :: comm
      type(c_array), intent(in) :: arrays(*)
      integer(c_size_t), value :: number
      real(c_double), value :: tolerance
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_compare

    function c_comm_get_traffic(comm, op, traffic) bind(c, name="gs_comm_get_traffic") &
      result(st)
      import :: c_char, c_int, c_ptr, c_traffic
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in), optional :: op(*)
      type(c_traffic), intent(inout) :: traffic
      integer(c_int) :: st
    end function c_comm_get_traffic

    function c_comm_reset_traffic(comm) bind(c, name="gs_comm_reset_traffic") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: comm
      integer(c_int) :: st
    end function c_comm_reset_traffic
  end interface

end module gradsync_c_stats
