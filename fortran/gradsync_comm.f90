! SPDX-License-Identifier: BSD-3-Clause
! gradsync_comm - communicators, results, settings and the log for Fortran.
!
! All contracts are those of the C functions of the same name in gradsync.h; said here is what
! differs. Every subroutine ends in two optional arguments, as allocate has them:
!
!   stat    out    GS_OK or GS_ERR_*; without it a failure is error stop with the text
!   errmsg  inout  the text of a failure; not touched on success
!
! Give optional arguments by keyword. Functions do not stop: with a communicator that was
! destroyed or never created they return -1, '' or c_null_ptr, and gs_last_error says why.
module gradsync_comm
  use, intrinsic :: iso_c_binding
  use gradsync_c
  use gradsync_support
  use gradsync_types
  implicit none
  private

  public :: gs_status_string, gs_last_error, gs_version
  public :: gs_setting_get, gs_build_info, gs_log_f, gs_log_set_sink, gs_dtype_size
  public :: gs_comm_create, gs_unique_id_get, gs_comm_create_from_id, gs_comm_from_mpi
  public :: gs_comm_split_grid, gs_comm_get_times, gs_comm_get_traffic, gs_comm_c_ptr, &
    gs_comm_from_c_ptr

  ! Makes a communicator of the ranks of an MPI communicator: the Fortran integer of module
  ! mpi and mpif.h here, type(MPI_Comm) with module gradsync_mpi. See gs_comm_from_mpi_fint.
  interface gs_comm_from_mpi
    module procedure from_mpi_fint
  end interface gs_comm_from_mpi

  abstract interface
    ! Receives one log line. May be called by any thread, one at a time.
    subroutine gs_log_f(level, line)
      import :: c_int
      integer(c_int), intent(in) :: level
      character(*), intent(in) :: line
    end subroutine gs_log_f
  end interface

  ! What C hands back to forward_line as its context; changed while C has no sink.
  type :: sink_box
    procedure(gs_log_f), pointer, nopass :: sink => null()
  end type sink_box
  type(sink_box), target, save :: current_sink

contains

  ! The name of a value of [stat]: 'GS_ERR_TIMEOUT'.
  function gs_status_string(status) result(name)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: name

    name = text_from_c(c_status_string(status))
  end function gs_status_string

  ! Why the last call of the calling thread failed; '' if it did not.
  function gs_last_error() result(text)
    character(:), allocatable :: text

    text = text_from_c(c_last_error())
  end function gs_last_error

  ! The version of the library that runs, '0.2.0'.
  function gs_version() result(version)
    character(:), allocatable :: version

    version = text_from_c(c_version())
  end function gs_version

  ! One GS_* variable; [index] runs from 0 as in C, past the end stat is GS_ERR_ARG.
  subroutine gs_setting_get(index, setting, stat, errmsg)
    integer(c_int), intent(in) :: index
    type(gs_setting), intent(out) :: setting
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_setting) :: c
    integer(c_int) :: st

    st = c_setting_get(index, c)
    if (st == GS_OK) then
      setting%name = text_from_c(c%name)
      setting%value = text_from_c(c%value)
      setting%origin = text_from_c(c%origin)
      setting%help = text_from_c(c%help)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_setting_get

  ! What was built in: lines 'name: value', separated by new_line('a').
  function gs_build_info() result(info)
    character(:), allocatable :: info

    info = text_from_c(c_build_info())
  end function gs_build_info

  ! Sends log lines to [sink], a module or external procedure, instead of stderr or
  ! GS_DEBUG_FILE; without [sink] back to the default. Not to be called by a sink.
  subroutine gs_log_set_sink(sink)
    procedure(gs_log_f), optional :: sink

    call c_log_set_sink(c_null_funptr, c_null_ptr)
    current_sink%sink => null()
    if (.not. present(sink)) return
    current_sink%sink => sink
    call c_log_set_sink(c_funloc(forward_line), c_loc(current_sink))
  end subroutine gs_log_set_sink

  ! The sink that C sees.
  subroutine forward_line(level, line, context) bind(c, name="gsi_fortran_forward_line")
    integer(c_int), value :: level
    type(c_ptr), value :: line
    type(c_ptr), value :: context
    type(sink_box), pointer :: box

    call c_f_pointer(context, box)
    call box%sink(level, text_from_c(line))
  end subroutine forward_line

  ! The size in bytes of one element of [dtype]; 0 for an unknown type.
  function gs_dtype_size(dtype) result(bytes)
    integer(c_int), intent(in) :: dtype
    integer(c_size_t) :: bytes

    bytes = c_dtype_size(dtype)
  end function gs_dtype_size

  ! Makes the communicator of all ranks of this job step. Collective.
  !
  !   comm             out  the new communicator; never created, if this fails
  !   name             in   shown in messages; 'world' if not given
  !   transport        in   GS_TRANSPORT_*; else what GS_TRANSPORT says
  !   device           in   ordinal of a GPU, GS_DEVICE_AUTO or GS_DEVICE_HOST
  !   timeout_ms       in   deadline of one operation; else GS_TIMEOUT_MS
  !   boot_timeout_ms  in   deadline of the bootstrap; else GS_BOOT_TIMEOUT_MS
  subroutine gs_comm_create(comm, name, transport, device, timeout_ms, boot_timeout_ms, &
               stat, errmsg)
    type(gs_comm), intent(out) :: comm
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: transport, device, timeout_ms, boot_timeout_ms
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(c_comm_opts) :: opts
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    call set_options(opts, c_name, name, transport, device, timeout_ms, boot_timeout_ms)
    st = f_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_create(opts, address)
      call settle(comm, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_create

  ! Makes an id for one gs_comm_create_from_id, on the process that becomes rank 0.
  subroutine gs_unique_id_get(id, stat, errmsg)
    type(gs_unique_id), intent(out) :: id
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_unique_id_get(id), stat, errmsg)
  end subroutine gs_unique_id_get

  ! Makes a communicator of exactly the [size] ranks that call with the same [id].
  ! Collective over them. [rank] runs from 0; options as gs_comm_create.
  subroutine gs_comm_create_from_id(comm, id, rank, size, name, transport, device, &
                   timeout_ms, boot_timeout_ms, stat, errmsg)
    type(gs_comm), intent(out) :: comm
    type(gs_unique_id), intent(in) :: id
    integer(c_int), intent(in) :: rank, size
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: transport, device, timeout_ms, boot_timeout_ms
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(c_comm_opts) :: opts
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    call set_options(opts, c_name, name, transport, device, timeout_ms, boot_timeout_ms)
    st = f_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_create_from_id(id, rank, size, opts, address)
      call settle(comm, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_create_from_id

  ! gs_comm_from_mpi for the Fortran integer of an MPI communicator. Collective over its
  ! ranks. Options as gs_comm_create.
  subroutine from_mpi_fint(comm, mpi_comm, name, transport, device, timeout_ms, &
               boot_timeout_ms, stat, errmsg)
    type(gs_comm), intent(out) :: comm
    integer(c_int), intent(in) :: mpi_comm
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: transport, device, timeout_ms, boot_timeout_ms
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable, target :: c_name(:)
    type(c_comm_opts) :: opts
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    call set_options(opts, c_name, name, transport, device, timeout_ms, boot_timeout_ms)
    st = f_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_from_mpi_fint(mpi_comm, opts, address)
      call settle(comm, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine from_mpi_fint

  ! [c_name] holds the name that [opts] points to.
  subroutine set_options(opts, c_name, name, transport, device, timeout_ms, boot_timeout_ms)
    type(c_comm_opts), intent(out) :: opts
    character(kind=c_char), allocatable, target, intent(out) :: c_name(:)
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: transport, device, timeout_ms, boot_timeout_ms

    opts%size = c_sizeof(opts)
    if (present(name)) then
      c_name = text_to_c(name)
      opts%name = c_loc(c_name)
    end if
    if (present(transport)) opts%transport = transport
    if (present(device)) opts%device = device
    if (present(timeout_ms)) opts%timeout_ms = timeout_ms
    if (present(boot_timeout_ms)) opts%boot_timeout_ms = boot_timeout_ms
  end subroutine set_options

  ! Tells how long the phases of the create took.
  subroutine gs_comm_get_times(comm, times, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_comm_times), intent(out) :: times
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_comm_times) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_comm_get_times', st)
    c%size = c_sizeof(c)
    if (st == GS_OK) st = c_comm_get_times(address, c)
    if (st == GS_OK) times = gs_comm_times(c%open_us, c%exchange_us, c%transport_us)
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_get_times

  ! The gs_comm_t pointer, for the C part of a program; valid until gs_comm_destroy.
  function gs_comm_c_ptr(comm) result(address)
    type(gs_comm), intent(in) :: comm
    type(c_ptr) :: address

    address = found(comm, 'gs_comm_c_ptr')
  end function gs_comm_c_ptr

  ! The handle of a communicator of the C part of a program, or a new one if it has none. Local.
  !
  !   address  in   a gs_comm_t *
  !   comm     out  one of the two parts destroys it; what C has destroyed is not used here then
  subroutine gs_comm_from_c_ptr(address, comm, stat, errmsg)
    type(c_ptr), intent(in) :: address
    type(gs_comm), intent(out) :: comm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    st = f_comm_handle(address, handle)
    if (st == GS_OK) comm = transfer(handle, comm)
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_from_c_ptr

  ! Places the ranks in a grid of [rows] and [columns], 0 for what fits, and makes groups of
  ! its rows and its columns: those that all ranks give. Collective over [comm].
  subroutine gs_comm_split_grid(comm, rows, columns, row, column, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: rows, columns
    type(gs_comm), intent(out), optional :: row, column
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), allocatable :: of_row, of_column ! not allocated it counts as not present
    type(c_ptr) :: parent
    integer(c_int64_t) :: handle(2)
    integer(c_int) :: st

    if (present(row)) of_row = c_null_ptr
    if (present(column)) of_column = c_null_ptr
    parent = find(comm, 'gs_comm_split_grid', st)
    if (st == GS_OK) st = f_handle_open(KIND_COMM, handle(1))
    if (st == GS_OK) then
      st = f_handle_open(KIND_COMM, handle(2))
      if (st /= GS_OK) call f_comm_keep(handle(1), st, c_null_ptr)
    end if
    if (st == GS_OK) then
      st = c_comm_split_grid(parent, rows, columns, of_row, of_column)
      call settle(row, handle(1), st, of_row)
      call settle(column, handle(2), st, of_column)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split_grid

  ! Tells how much this rank has sent by calls of [op], 'allreduce_avg' for instance, or by all.
  subroutine gs_comm_get_traffic(comm, traffic, op, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_traffic), intent(inout) :: traffic
    character(*), intent(in), optional :: op
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable :: c_op(:)
    type(c_traffic) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_comm_get_traffic', st)
    c%size = c_sizeof(c)
    if (present(op)) allocate (c_op, source=text_to_c(op))
    if (st == GS_OK) st = c_comm_get_traffic(address, c_op, c)
    if (st == GS_OK) &
      traffic = gs_traffic(c%calls, c%bytes, c%within, c%between, c%within_known /= 0, &
        c%between_known /= 0)
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_get_traffic

end module gradsync_comm
