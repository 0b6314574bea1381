! SPDX-License-Identifier: BSD-3-Clause
! gradsync_types - the constants of gradsync.h, and the types of handles and results.
module gradsync_types
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t
  implicit none
  private

  integer(c_int), parameter, public :: GS_VERSION_MAJOR = 0
  integer(c_int), parameter, public :: GS_VERSION_MINOR = 1
  integer(c_int), parameter, public :: GS_VERSION_PATCH = 0

  ! What a call says it did: the values of [stat].
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

  ! Reduction of gs_allreduce.
  integer(c_int), parameter, public :: GS_SUM = 1
  integer(c_int), parameter, public :: GS_PROD = 2
  integer(c_int), parameter, public :: GS_MIN = 3
  integer(c_int), parameter, public :: GS_MAX = 4

  ! What carries the bytes.
  integer(c_int), parameter, public :: GS_TRANSPORT_AUTO = 0
  integer(c_int), parameter, public :: GS_TRANSPORT_SELF = 1
  integer(c_int), parameter, public :: GS_TRANSPORT_MPI = 2
  integer(c_int), parameter, public :: GS_TRANSPORT_NCCL = 3

  integer(c_int), parameter, public :: GS_DEVICE_AUTO = -1
  integer(c_int), parameter, public :: GS_DEVICE_HOST = -2
  integer(c_int), parameter, public :: GS_UNIQUE_ID_BYTES = 256

  ! A communicator: a handle, not the thing. Copies name the same communicator; once it is
  ! destroyed, every copy answers GS_ERR_STATE. There is no finaliser: ending a communicator is
  ! collective, and the compiler, not the program, would choose when.
  type, public :: gs_comm
    private
    integer(c_int64_t) :: handle = 0 ! slot and generation, see handle.c; 0: never created
  end type gs_comm

  ! Names a meeting of ranks. Plain bytes: write them to a file or send them as characters.
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

  ! For the other modules of the binding; not part of module gradsync.
  public :: comm_of_handle, handle_of_comm

contains

  pure function comm_of_handle(handle) result(comm)
    integer(c_int64_t), intent(in) :: handle
    type(gs_comm) :: comm

    comm%handle = handle
  end function comm_of_handle

  pure function handle_of_comm(comm) result(handle)
    type(gs_comm), intent(in) :: comm
    integer(c_int64_t) :: handle

    handle = comm%handle
  end function handle_of_comm

end module gradsync_types
