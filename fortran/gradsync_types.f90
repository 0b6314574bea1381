! SPDX-License-Identifier: BSD-3-Clause
! gradsync_types - the constants of gradsync.h and its parts, and the types of handles and
! results.
module gradsync_types
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_intptr_t, &
    c_null_ptr, c_ptr, c_size_t
  implicit none
  private

  integer(c_int), parameter, public :: GS_VERSION_MAJOR = 0
  integer(c_int), parameter, public :: GS_VERSION_MINOR = 2
  integer(c_int), parameter, public :: GS_VERSION_PATCH = 0

  ! Results of a call: the values of [stat].
  integer(c_int), parameter, public :: GS_OK = 0
  integer(c_int), parameter, public :: GS_ERR_ARG = 1
  integer(c_int), parameter, public :: GS_ERR_MISMATCH = 2
  integer(c_int), parameter, public :: GS_ERR_NOMEM = 3
  integer(c_int), parameter, public :: GS_ERR_BOOT = 4
  integer(c_int), parameter, public :: GS_ERR_TRANSPORT = 5
  integer(c_int), parameter, public :: GS_ERR_DEVICE = 6
  integer(c_int), parameter, public :: GS_ERR_IO = 7
  integer(c_int), parameter, public :: GS_ERR_FORMAT = 8
  integer(c_int), parameter, public :: GS_ERR_TIMEOUT = 9
  integer(c_int), parameter, public :: GS_ERR_UNSUPPORTED = 10
  integer(c_int), parameter, public :: GS_ERR_STATE = 11

  ! How loud the log is.
  integer(c_int), parameter, public :: GS_LOG_ERROR = 1
  integer(c_int), parameter, public :: GS_LOG_WARN = 2
  integer(c_int), parameter, public :: GS_LOG_INFO = 3
  integer(c_int), parameter, public :: GS_LOG_TRACE = 4

  ! Type of one element. Fortran has no kind for GS_F16, GS_BF16 and the unsigned types: keep
  ! such data in integer arrays and name the type with as=.
  integer(c_int), parameter, public :: GS_F16 = 1
  integer(c_int), parameter, public :: GS_BF16 = 2
  integer(c_int), parameter, public :: GS_F32 = 3
  integer(c_int), parameter, public :: GS_F64 = 4
  integer(c_int), parameter, public :: GS_I8 = 5
  integer(c_int), parameter, public :: GS_I16 = 6
  integer(c_int), parameter, public :: GS_I32 = 7
  integer(c_int), parameter, public :: GS_I64 = 8
  integer(c_int), parameter, public :: GS_U8 = 9
  integer(c_int), parameter, public :: GS_U16 = 10
  integer(c_int), parameter, public :: GS_U32 = 11
  integer(c_int), parameter, public :: GS_U64 = 12
  integer(c_int), parameter, public :: GS_C64 = 13
  integer(c_int), parameter, public :: GS_C128 = 14
  integer(c_int), parameter, public :: GS_F8_E4M3 = 15
  integer(c_int), parameter, public :: GS_F8_E5M2 = 16

  ! Reduction of gs_allreduce and its like.
  integer(c_int), parameter, public :: GS_SUM = 1
  integer(c_int), parameter, public :: GS_PROD = 2
  integer(c_int), parameter, public :: GS_MIN = 3
  integer(c_int), parameter, public :: GS_MAX = 4
  integer(c_int), parameter, public :: GS_AVG = 5

  ! What the gradient of a gather is made of.
  integer(c_int), parameter, public :: GS_GRAD_ADJOINT = 0
  integer(c_int), parameter, public :: GS_GRAD_OWN_SLOT = 1

  ! What carries the bytes.
  integer(c_int), parameter, public :: GS_TRANSPORT_AUTO = 0
  integer(c_int), parameter, public :: GS_TRANSPORT_SELF = 1
  integer(c_int), parameter, public :: GS_TRANSPORT_MPI = 2
  integer(c_int), parameter, public :: GS_TRANSPORT_NCCL = 3

  integer(c_int), parameter, public :: GS_DEVICE_AUTO = -1
  integer(c_int), parameter, public :: GS_DEVICE_HOST = -2
  integer(c_int), parameter, public :: GS_COLOR_NONE = -1
  integer(c_int), parameter, public :: GS_UNIQUE_ID_BYTES = 256

  ! When buckets of a reducer travel.
  integer(c_int), parameter, public :: GS_OVERLAP_AUTO = 0
  integer(c_int), parameter, public :: GS_OVERLAP_INLINE = 1
  integer(c_int), parameter, public :: GS_OVERLAP_OFF = 2
  integer(c_int), parameter, public :: GS_OVERLAP_THREAD = 3

  ! Instead of a step, the newest checkpoint; what a read by another number of ranks does; how
  ! replicated arrays are compared; in what files arrays are; what a write does while the one
  ! before is under way.
  integer(c_int64_t), parameter, public :: GS_CKPT_LATEST = -1
  integer(c_int), parameter, public :: GS_CKPT_RANKS_ERROR = 0
  integer(c_int), parameter, public :: GS_CKPT_RANKS_KEEP = 1
  integer(c_int), parameter, public :: GS_CKPT_RANKS_FIRST = 2
  integer(c_int), parameter, public :: GS_CKPT_COMPARE_FULL = 0
  integer(c_int), parameter, public :: GS_CKPT_COMPARE_SAMPLE = 1
  integer(c_int), parameter, public :: GS_CKPT_COMPARE_NONE = 2
  integer(c_int), parameter, public :: GS_CKPT_LAYOUT_AUTO = 0
  integer(c_int), parameter, public :: GS_CKPT_LAYOUT_SINGLE = 1
  integer(c_int), parameter, public :: GS_CKPT_LAYOUT_NODE = 2
  integer(c_int), parameter, public :: GS_CKPT_BUSY_WAIT = 0
  integer(c_int), parameter, public :: GS_CKPT_BUSY_SKIP = 1
  integer(c_int), parameter, public :: GS_CKPT_BUSY_ERROR = 2
  integer(c_int), parameter, public :: GS_CKPT_POINTS = 0
  integer(c_int), parameter, public :: GS_CKPT_CELLS = 1

  ! Why a program is to stop, and what it exits with to be started again.
  integer(c_int), parameter, public :: GS_CKPT_STOP_SIGNAL = 1
  integer(c_int), parameter, public :: GS_CKPT_STOP_TIME = 2
  integer(c_int), parameter, public :: GS_CKPT_STOP_FILE = 4
  integer(c_int), parameter, public :: GS_CKPT_EXIT_REQUEUE = 75

  ! Whether a rank evaluates rows of a pool, and of which nodes.
  integer(c_int), parameter, public :: GS_EVALUATOR_AUTO = 0
  integer(c_int), parameter, public :: GS_EVALUATOR_YES = 1
  integer(c_int), parameter, public :: GS_EVALUATOR_NO = 2
  integer(c_int), parameter, public :: GS_BALANCE_WITHIN_NODES = 0
  integer(c_int), parameter, public :: GS_BALANCE_ACROSS_NODES = 1

  integer(c_int), parameter, public :: GS_FIELD_DIMS_MAX = 15
  integer(c_int), parameter, public :: GS_REDUCER_DIMS_MAX = 15
  integer(c_int), parameter, public :: GS_GROUP_MAX = 2048
  integer(c_int), parameter, public :: GS_BOUNDARY_DIMS_MAX = 15
  integer(c_int), parameter, public :: GS_HALO_DIMS_MAX = 3
  integer(c_int), parameter, public :: GS_CKPT_DIMS_MAX = 15
  integer(c_int), parameter, public :: GS_CKPT_NAME_MAX = 255

  ! A communicator: a handle, not the thing. Copies name the same communicator; once it is
  ! destroyed, every copy answers GS_ERR_STATE. There is no finaliser: ending a communicator is
  ! collective, and the compiler, not the program, would choose when.
  type, public :: gs_comm
    private
    integer(c_int64_t) :: handle = 0 ! slot and generation, see handle.c; 0: never created
  end type gs_comm

  ! A reducer: a handle too. There is no finaliser, for the program may still use its gradients.
  type, public :: gs_reducer
    private
    integer(c_int64_t) :: handle = 0
  end type gs_reducer

  ! What two stages of a pipeline hand to each other; ghost layers of a field: handles too.
  type, public :: gs_boundary
    private
    integer(c_int64_t) :: handle = 0
  end type gs_boundary

  type, public :: gs_halo
    private
    integer(c_int64_t) :: handle = 0
  end type gs_halo

  ! A plan of checkpoints: a handle too.
  type, public :: gs_ckpt
    private
    integer(c_int64_t) :: handle = 0
  end type gs_ckpt

  ! Rows of many ranks, evaluated by few: a handle too.
  type, public :: gs_pool
    private
    integer(c_int64_t) :: handle = 0
  end type gs_pool

  ! What a pool is, and what it did on this rank; see gs_pool_create.
  type, public :: gs_pool_info
    logical :: evaluator = .false. ! this rank is one
    integer(c_int) :: evaluators = 0 ! of this node
    integer(c_int) :: device = GS_DEVICE_HOST ! GPU of this rank, if it evaluates on one
    integer(c_int) :: in_flight = 0 ! steps that have begun and not ended
    integer(c_int64_t) :: steps = 0, rows = 0 ! steps that ended, and this rank's rows in them
    integer(c_int64_t) :: batches = 0, taken = 0 ! that it evaluated, and the rows they had
  end type gs_pool_info

  ! Names a rendezvous of ranks. Plain bytes: write them to a file or send them as characters.
  type, bind(c), public :: gs_unique_id
    character(kind=c_char) :: bytes(GS_UNIQUE_ID_BYTES)
  end type gs_unique_id

  ! One GS_* variable as this process sees it.
  type, public :: gs_setting
    character(:), allocatable :: name
    character(:), allocatable :: value
    character(:), allocatable :: origin
    character(:), allocatable :: help
  end type gs_setting

  ! Where the time of the create went, in microseconds of this rank.
  type, public :: gs_comm_times
    real(c_double) :: open_us = 0
    real(c_double) :: exchange_us = 0
    real(c_double) :: transport_us = 0
  end type gs_comm_times

  ! A bucket, as a callback sees it; the arrays are valid during the callback.
  type, public :: gs_bucket
    integer(c_int) :: index = 0 ! its number in the order of launching, from 0
    integer(c_int) :: buckets = 0 ! how many there are
    integer(c_int) :: gradients = 0 ! of it; the size of the arrays
    integer(c_int), pointer :: gradient(:) => null() ! their numbers, from 0
    type(c_ptr), pointer :: grad(:) => null() ! where they are
    integer(c_size_t), pointer :: count(:) => null() ! their elements
    integer(c_int) :: dtype = 0 ! of all of them
    type(gs_comm) :: comm ! calls on it may be made
    integer(c_intptr_t) :: stream = 0 ! on GPUs, the stream to queue work on
    integer(c_int64_t) :: step = 0 ! 1, 2, ...
    real(c_double) :: weight = 0 ! of this rank
  end type gs_bucket

  ! What a reducer did, on this rank; times in microseconds. gs_reducer_stats_t tells more.
  type, public :: gs_reducer_stats
    integer(c_int64_t) :: steps = 0
    integer(c_int) :: buckets = 0
    integer(c_int) :: rebuilds = 0
    integer(c_int64_t) :: bytes = 0
    integer(c_int64_t) :: wire_bytes = 0
    real(c_double) :: step_us = 0
    real(c_double) :: busy_us = 0
    real(c_double) :: exposed_us = 0
    real(c_double) :: overlap = 0
    real(c_double) :: latency_us = 0
    real(c_double) :: bytes_per_us = 0
    integer(c_int64_t) :: recommended_bytes = 0
    integer(c_int) :: late_rank = -1
    real(c_double) :: late_us = 0
    logical :: overlaps = .false.
  end type gs_reducer_stats

  ! A bucket in the last step, on GPUs the last timed one; times in microseconds since the first
  ! ready of the step.
  type, public :: gs_bucket_stats
    integer(c_int) :: gradients = 0
    integer(c_int) :: first = 0 ! number, from 0, of the gradient that lies first
    integer(c_int64_t) :: bytes = 0
    real(c_double) :: ready_us = 0
    real(c_double) :: begin_us = 0
    real(c_double) :: end_us = 0
    real(c_double) :: exposed_us = 0
  end type gs_bucket_stats

  ! What is known of the values of a feature; all but bad is 0 where count is 0. m2 is the sum of
  ! (x - mean)**2, variance is m2 / count. gs_moments_t, element by element.
  type, bind(c), public :: gs_moments
    integer(c_int64_t) :: count = 0 ! values taken
    integer(c_int64_t) :: bad = 0 ! left out: NaN or infinite
    real(c_double) :: mean = 0
    real(c_double) :: variance = 0
    real(c_double) :: m2 = 0
    real(c_double) :: min = 0
    real(c_double) :: max = 0
  end type gs_moments

  ! What this rank has sent by calls on a communicator, in bytes.
  type, public :: gs_traffic
    integer(c_int64_t) :: calls = 0 ! that went well
    integer(c_int64_t) :: bytes = 0 ! of arrays that this rank handed to them
    integer(c_int64_t) :: within = 0 ! sent to other ranks of its node, as far as is known,
    integer(c_int64_t) :: between = 0 ! and to ranks of other nodes
    logical :: within_known = .true. ! else it sent more than that within its node,
    logical :: between_known = .true. ! or to other nodes, that nobody counts
  end type gs_traffic

  ! An array to be compared across ranks, by address.
  type, public :: gs_array
    character(:), allocatable :: name
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: count = 0 ! elements
    integer(c_int) :: dtype = 0
  end type gs_array

  ! What gs_adjoint_check found, the same on all ranks. gs_adjoint_result_t
  type, bind(c), public :: gs_adjoint_result
    real(c_double) :: forward = 0 ! sum of J d * g, from the forward pass; d and g are random
    real(c_double) :: backward = 0 ! sum of d * J' g, from the backward pass
    real(c_double) :: error = 0 ! |forward - backward| / (|J d| |g|); 0 if both are 0
  end type gs_adjoint_result

end module gradsync_types
