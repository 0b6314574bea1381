! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_ckpt - the C functions of gradsync_ckpt.h as Fortran sees them, in its order.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_c_ckpt
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_intptr_t, &
    c_null_ptr, c_ptr, c_size_t
  use gradsync_types, only: GS_CKPT_BUSY_WAIT, GS_CKPT_COMPARE_FULL, GS_CKPT_LAYOUT_AUTO, &
    GS_CKPT_RANKS_ERROR
  implicit none
  public

  ! gs_ckpt_opts_t; the initial values are those of GS_CKPT_OPTS_INIT, but for size.
  type, bind(c) :: c_ckpt_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: keep_last = 0
    integer(c_int64_t) :: keep_every = 0
    integer(c_int) :: overwrite = 0
    integer(c_int) :: allow_missing = 0
    integer(c_int) :: allow_extra = 0
    integer(c_int) :: compare = GS_CKPT_COMPARE_FULL
    integer(c_int) :: layout = GS_CKPT_LAYOUT_AUTO
    integer(c_int) :: busy = GS_CKPT_BUSY_WAIT
    integer(c_int) :: lazy = 0
    integer(c_int) :: direct = 0
    integer(c_size_t) :: memory = 0
    integer(c_int) :: ranks = GS_CKPT_RANKS_ERROR
    integer(c_int) :: read_only = 0
    type(c_ptr) :: signals = c_null_ptr
    real(c_double) :: stop_margin_s = 0
    integer(c_int) :: create_folder = 0
    type(c_ptr) :: reserved(7) = c_null_ptr
  end type c_ckpt_opts

  ! What adds an array that has one shape on all ranks.
  abstract interface
    function c_ckpt_adder(ckpt, name, dims, shape, dtype, data) bind(c) result(st)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dims
      integer(c_size_t), intent(in) :: shape(*)
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      integer(c_int) :: st
    end function c_ckpt_adder
  end interface

  ! What looks whether a write has ended.
  abstract interface
    function c_ckpt_ender(ckpt, written, stream) bind(c) result(st)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int64_t), intent(inout) :: written
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_ckpt_ender
  end interface

  ! 7. Checkpoints
  procedure(c_ckpt_adder), bind(c, name="gs_ckpt_add_replicated") :: c_ckpt_add_replicated
  procedure(c_ckpt_adder), bind(c, name="gs_ckpt_add_per_rank") :: c_ckpt_add_per_rank
  procedure(c_ckpt_ender), bind(c, name="gs_ckpt_test") :: c_ckpt_test
  procedure(c_ckpt_ender), bind(c, name="gs_ckpt_wait") :: c_ckpt_wait
  interface
    function c_ckpt_create(comm, dir, opts, ckpt) bind(c, name="gs_ckpt_create") result(st)
      import :: c_char, c_ckpt_opts, c_int, c_ptr
      type(c_ptr), value :: comm
      character(kind=c_char), intent(in) :: dir(*)
      type(c_ckpt_opts), intent(in) :: opts
      type(c_ptr), intent(out) :: ckpt
      integer(c_int) :: st
    end function c_ckpt_create

    function c_ckpt_add_sharded(ckpt, name, dims, extents, offsets, shape, dtype, data) &
      bind(c, name="gs_ckpt_add_sharded") result(st)
      import :: c_char, c_int, c_ptr, c_size_t
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dims
      integer(c_size_t), intent(in) :: extents(*), offsets(*), shape(*)
      integer(c_int), value :: dtype
      type(c_ptr), value :: data
      integer(c_int) :: st
    end function c_ckpt_add_sharded

    function c_ckpt_set_attribute(ckpt, name, attribute, text) &
      bind(c, name="gs_ckpt_set_attribute") result(st)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*), attribute(*), text(*)
      integer(c_int) :: st
    end function c_ckpt_set_attribute

    function c_ckpt_set_bounds(ckpt, name, lower) bind(c, name="gs_ckpt_set_bounds") result(st)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(in) :: lower(*)
      integer(c_int) :: st
    end function c_ckpt_set_bounds

    function c_ckpt_set_grid(ckpt, name, place, dims, origin, spacing) &
      bind(c, name="gs_ckpt_set_grid") result(st)
      import :: c_char, c_double, c_int, c_ptr
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: place, dims
      real(c_double), intent(in) :: origin(*), spacing(*)
      integer(c_int) :: st
    end function c_ckpt_set_grid

    function c_ckpt_commit(ckpt) bind(c, name="gs_ckpt_commit") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int) :: st
    end function c_ckpt_commit

    function c_ckpt_write(ckpt, step, stream) bind(c, name="gs_ckpt_write") result(st)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int64_t), value :: step
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_ckpt_write

    function c_ckpt_write_async(ckpt, step, begun, stream) bind(c, name="gs_ckpt_write_async") &
      result(st)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int64_t), value :: step
      integer(c_int), intent(inout) :: begun
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_ckpt_write_async

    function c_ckpt_staged(ckpt) bind(c, name="gs_ckpt_staged") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int) :: st
    end function c_ckpt_staged

    function c_ckpt_was_read(ckpt, name, filled) bind(c, name="gs_ckpt_was_read") result(st)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: ckpt
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), intent(out) :: filled
      integer(c_int) :: st
    end function c_ckpt_was_read

    function c_ckpt_list(ckpt, steps, room, number) bind(c, name="gs_ckpt_list") result(st)
      import :: c_int, c_int64_t, c_ptr, c_size_t
      type(c_ptr), value :: ckpt
      integer(c_int64_t), intent(out) :: steps(*)
      integer(c_size_t), value :: room
      integer(c_size_t), intent(inout) :: number
      integer(c_int) :: st
    end function c_ckpt_list

    function c_ckpt_read(ckpt, step, found, stream) bind(c, name="gs_ckpt_read") result(st)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int64_t), value :: step
      integer(c_int64_t), intent(inout) :: found
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_ckpt_read

    function c_stop_requested(ckpt, reasons, stream) &
      bind(c, name="gs_stop_requested") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int), intent(inout) :: reasons
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_stop_requested

    function c_ckpt_destroy(ckpt) bind(c, name="gs_ckpt_destroy") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: ckpt
      integer(c_int) :: st
    end function c_ckpt_destroy
  end interface

end module gradsync_c_ckpt
