! SPDX-License-Identifier: BSD-3-Clause
! gradsync_c_reducer - the C functions of reducers as Fortran sees them: gradsync_reducer.h in its
! order, then gradient.c. Private to the binding: module gradsync does not pass these names on.
module gradsync_c_reducer
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_funptr, c_int, c_int64_t, &
    c_intptr_t, c_null_ptr, c_ptr, c_size_t
  use gradsync_types, only: GS_OVERLAP_AUTO, GS_REDUCER_DIMS_MAX
  implicit none
  public

  ! gs_reducer_opts_t; the initial values are those of GS_REDUCER_OPTS_INIT, but for size.
  type, bind(c) :: c_reducer_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_size_t) :: first_bytes = 0
    integer(c_size_t) :: bucket_bytes = 0
    integer(c_size_t) :: last_bytes = 0
    integer(c_int) :: overlap = GS_OVERLAP_AUTO
    integer(c_int) :: wire = 0
    integer(c_int) :: error_feedback = 0
    integer(c_int) :: forward = 0
    integer(c_int) :: is_static = 0
    integer(c_int) :: weighted = 0
    integer(c_int) :: average_micro = 0
    integer(c_int) :: check_finite = 0
    integer(c_int) :: want_norm = 0
    real(c_double) :: max_norm = 0
    type(c_ptr) :: reserved(8) = c_null_ptr
  end type c_reducer_opts

  ! gs_bucket_t
  type, bind(c) :: c_bucket
    integer(c_size_t) :: size
    integer(c_int) :: index, buckets
    integer(c_int) :: gradients
    type(c_ptr) :: gradient, grad, count
    integer(c_int) :: dtype
    type(c_ptr) :: comm
    integer(c_intptr_t) :: stream
    integer(c_int64_t) :: step
    real(c_double) :: weight
  end type c_bucket

  ! gs_reducer_stats_t
  type, bind(c) :: c_reducer_stats
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: steps
    integer(c_int) :: buckets, rebuilds
    integer(c_size_t) :: bytes, wire_bytes
    real(c_double) :: step_us, busy_us, exposed_us, overlap, latency_us, bytes_per_us
    integer(c_size_t) :: recommended_bytes
    integer(c_int) :: late_rank, beside
    real(c_double) :: late_us
    real(c_double) :: reserved(8)
  end type c_reducer_stats

  ! gs_bucket_stats_t
  type, bind(c) :: c_bucket_stats
    integer(c_size_t) :: size = 0
    integer(c_int) :: gradients, first
    integer(c_size_t) :: bytes
    real(c_double) :: ready_us, begin_us, end_us, exposed_us
    real(c_double) :: reserved(4)
  end type c_bucket_stats

  ! struct gsi_fortran_gradient of gradient.h.
  type, bind(c) :: gradient
    integer(c_int64_t) :: shape(GS_REDUCER_DIMS_MAX) = 0
    integer(c_int64_t) :: lower(GS_REDUCER_DIMS_MAX) = 1
    type(c_ptr) :: address = c_null_ptr
    integer(c_int) :: dims = 0
    integer(c_int) :: dtype = 0
  end type gradient

  ! 6. Reducers
  interface
    function c_reducer_create(comm, opts, reducer) bind(c, name="gs_reducer_create") result(st)
      import :: c_int, c_ptr, c_reducer_opts
      type(c_ptr), value :: comm
      type(c_reducer_opts), intent(in) :: opts
      type(c_ptr), intent(out) :: reducer
      integer(c_int) :: st
    end function c_reducer_create

    function c_reducer_add(reducer, name, dims, shape, dtype, grad, index) &
      bind(c, name="gs_reducer_add") result(st)
      import :: c_char, c_int, c_int64_t, c_ptr
      type(c_ptr), value :: reducer
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: dims
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int), value :: dtype
      type(c_ptr), value :: grad
      integer(c_int), intent(out) :: index
      integer(c_int) :: st
    end function c_reducer_add

    function c_reducer_add_scalar(reducer, name, op, index) &
      bind(c, name="gs_reducer_add_scalar") result(st)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: reducer
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: op
      integer(c_int), intent(out) :: index
      integer(c_int) :: st
    end function c_reducer_add_scalar

    function c_reducer_commit(reducer) bind(c, name="gs_reducer_commit") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int) :: st
    end function c_reducer_commit

    function c_reducer_grad(reducer, index, grad) bind(c, name="gs_reducer_grad") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      type(c_ptr), intent(out) :: grad
      integer(c_int) :: st
    end function c_reducer_grad

    function c_reducer_ready(reducer, index, stream) bind(c, name="gs_reducer_ready") &
      result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reducer_ready

    function c_reducer_skip(reducer, index, stream) bind(c, name="gs_reducer_skip") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reducer_skip

    function c_reducer_finish(reducer, stream) bind(c, name="gs_reducer_finish") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: reducer
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reducer_finish

    function c_reducer_no_sync(reducer, on) bind(c, name="gs_reducer_no_sync") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: on
      integer(c_int) :: st
    end function c_reducer_no_sync

    function c_reducer_weight(reducer, weight) bind(c, name="gs_reducer_weight") result(st)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: reducer
      real(c_double), value :: weight
      integer(c_int) :: st
    end function c_reducer_weight

    function c_reducer_join(reducer, stream, done) bind(c, name="gs_reducer_join") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: reducer
      integer(c_intptr_t), value :: stream
      integer(c_int), intent(inout) :: done
      integer(c_int) :: st
    end function c_reducer_join

    function c_reducer_set_scalar(reducer, index, value) &
      bind(c, name="gs_reducer_set_scalar") result(st)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      real(c_double), value :: value
      integer(c_int) :: st
    end function c_reducer_set_scalar

    function c_reducer_get_scalar(reducer, index, value) &
      bind(c, name="gs_reducer_get_scalar") result(st)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: index
      real(c_double), intent(out) :: value
      integer(c_int) :: st
    end function c_reducer_get_scalar

    function c_reducer_norm(reducer, norm) bind(c, name="gs_reducer_norm") result(st)
      import :: c_double, c_int, c_ptr
      type(c_ptr), value :: reducer
      real(c_double), intent(out) :: norm
      integer(c_int) :: st
    end function c_reducer_norm

    function c_reducer_broadcast(reducer, params, root, stream) &
      bind(c, name="gs_reducer_broadcast") result(st)
      import :: c_int, c_intptr_t, c_ptr
      type(c_ptr), value :: reducer
      type(c_ptr), intent(in) :: params(*)
      integer(c_int), value :: root
      integer(c_intptr_t), value :: stream
      integer(c_int) :: st
    end function c_reducer_broadcast

    function c_reducer_set_hook(reducer, hook, context) bind(c, name="gs_reducer_set_hook") &
      result(st)
      import :: c_funptr, c_int, c_ptr
      type(c_ptr), value :: reducer
      type(c_funptr), value :: hook
      type(c_ptr), value :: context
      integer(c_int) :: st
    end function c_reducer_set_hook

    function c_reducer_set_averaged(reducer, averaged, context) &
      bind(c, name="gs_reducer_set_averaged") result(st)
      import :: c_funptr, c_int, c_ptr
      type(c_ptr), value :: reducer
      type(c_funptr), value :: averaged
      type(c_ptr), value :: context
      integer(c_int) :: st
    end function c_reducer_set_averaged

    function c_reducer_relayout(reducer) bind(c, name="gs_reducer_relayout") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int) :: st
    end function c_reducer_relayout

    function c_reducer_get_stats(reducer, stats) bind(c, name="gs_reducer_get_stats") &
      result(st)
      import :: c_int, c_ptr, c_reducer_stats
      type(c_ptr), value :: reducer
      type(c_reducer_stats), intent(inout) :: stats
      integer(c_int) :: st
    end function c_reducer_get_stats

    function c_reducer_get_bucket(reducer, bucket, stats) &
      bind(c, name="gs_reducer_get_bucket") result(st)
      import :: c_bucket_stats, c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int), value :: bucket
      type(c_bucket_stats), intent(inout) :: stats
      integer(c_int) :: st
    end function c_reducer_get_bucket

    function c_reducer_report(reducer, path) bind(c, name="gs_reducer_report") result(st)
      import :: c_char, c_int, c_ptr
      type(c_ptr), value :: reducer
      character(kind=c_char), intent(in), optional :: path(*)
      integer(c_int) :: st
    end function c_reducer_report

    function c_reducer_destroy(reducer) bind(c, name="gs_reducer_destroy") result(st)
      import :: c_int, c_ptr
      type(c_ptr), value :: reducer
      integer(c_int) :: st
    end function c_reducer_destroy
  end interface

  ! Gradients: contracts in gradient.h.
  interface
    function c_gradient_set(g, dims, shape, dtype, lowers, lower) &
      bind(c, name="gsi_fortran_gradient_set") result(st)
      import :: c_int, c_int64_t, gradient
      type(gradient), intent(inout) :: g
      integer(c_int), value :: dims
      integer(c_int64_t), intent(in) :: shape(*)
      integer(c_int), value :: dtype, lowers
      integer(c_int64_t), intent(in), optional :: lower(*)
      integer(c_int) :: st
    end function c_gradient_set

    function c_params_check(params, gradients) bind(c, name="gsi_fortran_params_check") &
      result(st)
      import :: c_int
      integer(c_int), value :: params, gradients
      integer(c_int) :: st
    end function c_params_check
  end interface

end module gradsync_c_reducer
