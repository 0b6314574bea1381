! SPDX-License-Identifier: BSD-3-Clause
! gradsync_structs - the structs of gradsync.h and its parts, then those of cfi.h and kept.h, as
! Fortran sees them: struct gs_NAME is c_NAME. Private to the binding.
module gradsync_structs
  use, intrinsic :: iso_c_binding, only: c_double, c_funptr, c_int, c_int64_t, c_intptr_t, &
    c_null_funptr, c_null_ptr, c_ptr, c_size_t
  use gradsync_types, only: c_adjoint_result => gs_adjoint_result, c_moments => gs_moments, &
    c_unique_id => gs_unique_id, GS_BALANCE_WITHIN_NODES, GS_CKPT_BUSY_WAIT, &
    GS_CKPT_COMPARE_FULL, GS_CKPT_LAYOUT_AUTO, GS_CKPT_RANKS_ERROR, GS_DEVICE_AUTO, &
    GS_EVALUATOR_AUTO, GS_OVERLAP_AUTO, GS_TRANSPORT_AUTO
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

  ! gs_adjoint_opts_t; the initial values are those of GS_ADJOINT_OPTS_INIT, but for size.
  type, bind(c) :: c_adjoint_opts
    integer(c_size_t) :: size = 0
    real(c_double) :: tolerance = 0
    real(c_double) :: step = 0
    integer(c_int64_t) :: seed = 0
    integer(c_int) :: linear = 0
    integer(c_int) :: same_loss = 0
  end type c_adjoint_opts

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
    integer(c_int) :: late_rank, overlaps
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

  ! gs_pool_opts_t
  type, bind(c) :: c_pool_opts
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    integer(c_size_t) :: inputs = 0, outputs = 0
    integer(c_int) :: dtype = 0
    integer(c_size_t) :: max_rows = 0, max_batch = 0
    integer(c_int) :: evaluator = GS_EVALUATOR_AUTO, balance = GS_BALANCE_WITHIN_NODES
    type(c_funptr) :: on_batch = c_null_funptr, on_gradient = c_null_funptr
    type(c_ptr) :: context = c_null_ptr
    integer(c_intptr_t) :: stream = 0
    type(c_ptr) :: reserved(8) = c_null_ptr
  end type c_pool_opts

  ! gs_pool_info_t
  type, bind(c) :: c_pool_info
    integer(c_size_t) :: size = 0
    integer(c_int) :: evaluator, evaluators, device, in_flight
    integer(c_int64_t) :: steps, rows, batches, taken
  end type c_pool_info

  ! struct gsi_fortran_args
  type, bind(c) :: c_args
    integer(c_int64_t) :: handle = 0
    integer(c_int64_t) :: count = 0
    integer(c_intptr_t) :: stream = 0
    integer(c_int) :: as = 0
    integer(c_int) :: count_given = 0
    integer(c_int) :: as_given = 0
    integer(c_int) :: is_character = 0
    integer(c_int) :: is_backward = 0
  end type c_args

  ! enum gsi_fortran_kind
  integer(c_int), parameter :: KIND_COMM = 0
  integer(c_int), parameter :: KIND_REDUCER = 1
  integer(c_int), parameter :: KIND_BOUNDARY = 2
  integer(c_int), parameter :: KIND_HALO = 3
  integer(c_int), parameter :: KIND_CKPT = 4
  integer(c_int), parameter :: KIND_POOL = 5

end module gradsync_structs
