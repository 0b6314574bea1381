! SPDX-License-Identifier: BSD-3-Clause
! gradsync_ckpt - plans of checkpoints; what is in memory given by address here, arrays in
! gradsync_ckpt_array.
!
! The contracts are those of gradsync_ckpt.h. Dimensions are in Fortran's order, in files in that
! of C; these tell that the array is Fortran's, with its bounds.
module gradsync_ckpt
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_int, c_int32_t, &
    c_int64_t, c_intptr_t, c_loc, c_ptr, c_size_t, c_sizeof
  use gradsync_c, only: c_handle_bind, c_handle_close, c_handle_find, c_handle_open, &
    c_handle_take, KIND_CKPT
  use gradsync_c_ckpt
  use gradsync_c_gather, only: c_check_list
  use gradsync_gather, only: check_list, turned
  use gradsync_support
  use gradsync_types, only: ckpt_of_handle, gs_ckpt, gs_comm, handle_of_ckpt, GS_OK
  implicit none
  private

  public :: gs_ckpt_create, gs_ckpt_add_replicated, gs_ckpt_add_sharded, gs_ckpt_add_per_rank
  public :: gs_ckpt_set_attribute, gs_ckpt_set_grid, gs_ckpt_commit, gs_ckpt_write
  public :: gs_ckpt_write_async, gs_ckpt_staged, gs_ckpt_test, gs_ckpt_wait
  public :: gs_ckpt_list, gs_ckpt_read, gs_stop_requested, gs_ckpt_destroy

  ! For gradsync_ckpt_array and _filled; not part of module gradsync.
  public :: add_replicated, add_sharded, add_per_rank, find_plan

  ! Adds an array in memory of the program's, which keeps it until the plan is destroyed.
  !
  !   ckpt   in  not yet committed
  !   name   in  of its data set
  !   shape  in  extents, integer(int32) or integer(int64); [integer ::] for a scalar
  !   dtype  in  GS_F32, ...
  !   ptr    in  address of memory of the device or of the host
  !   lower  in  optional: lower bounds that the file tells of, of the kind of shape; else 1
  interface gs_ckpt_add_replicated
    module procedure replicated_address, replicated_address_int32
  end interface gs_ckpt_add_replicated

  interface gs_ckpt_add_per_rank
    module procedure per_rank_address, per_rank_address_int32
  end interface gs_ckpt_add_per_rank

  ! Adds this rank's block of an array, at [ptr]; offsets, shape and lower are of the array.
  !
  !   extents  in  of the block
  !   offsets  in  how many elements of the array lie before the block, in each dimension
  interface gs_ckpt_add_sharded
    module procedure sharded_address, sharded_address_int32
  end interface gs_ckpt_add_sharded

  ! Steps are integers of 64 or 32 bits; so is each argument of class(*).
  interface gs_ckpt_write
    module procedure write_step, write_step_int32
  end interface gs_ckpt_write

  interface gs_ckpt_write_async
    module procedure begin_step, begin_step_int32
  end interface gs_ckpt_write_async

  interface gs_ckpt_read
    module procedure read_step, read_step_int32
  end interface gs_ckpt_read

contains

  ! Makes a plan without arrays.
  !
  !   comm        in   outlives the plan
  !   dir         in   folder of the files
  !   ckpt        out  the new plan; never created, if this fails
  !   name        in   shown in messages
  !   keep_last   in   so many of the newest files stay; else all
  !   keep_every  in   those of steps that are multiples of it stay in any case
  !   compare     in   GS_CKPT_COMPARE_*
  !   layout      in   GS_CKPT_LAYOUT_*
  !   busy        in   GS_CKPT_BUSY_*
  !   memory      in   bytes on a rank for copies of arrays; 0 means as much as they have
  !   ranks       in   GS_CKPT_RANKS_*
  !   signals     in   that ask to stop; else 'USR1,TERM'
  !   stop_margin_s
  !               in   seconds to be left at the end of the job; else 60
  !   overwrite, allow_missing, allow_extra, lazy, direct, read_only, create_folder
  !               in   as gs_ckpt_opts_t; else .false.
  subroutine gs_ckpt_create(comm, dir, ckpt, name, keep_last, keep_every, overwrite, &
    allow_missing, allow_extra, compare, layout, busy, lazy, direct, memory, ranks, &
    read_only, signals, stop_margin_s, create_folder, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: dir
    type(gs_ckpt), intent(out) :: ckpt
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: keep_last
    class(*), intent(in), optional :: keep_every, memory
    logical, intent(in), optional :: overwrite, allow_missing, allow_extra, lazy, direct
    logical, intent(in), optional :: read_only, create_folder
    integer(c_int), intent(in), optional :: compare, layout, busy, ranks
    character(*), intent(in), optional :: signals
    real(c_double), intent(in), optional :: stop_margin_s
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_ckpt_create'
    character(kind=c_char), allocatable, target :: c_name(:), c_signals(:)
    type(c_ckpt_opts) :: opts
    type(c_ptr) :: address, plan
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    opts%size = c_sizeof(opts)
    if (present(name)) then
      c_name = text_to_c(name)
      opts%name = c_loc(c_name)
    end if
    if (present(keep_last)) opts%keep_last = keep_last
    call set_flag(opts%overwrite, overwrite)
    call set_flag(opts%allow_missing, allow_missing)
    call set_flag(opts%allow_extra, allow_extra)
    call set_flag(opts%lazy, lazy)
    call set_flag(opts%direct, direct)
    call set_flag(opts%read_only, read_only)
    call set_flag(opts%create_folder, create_folder)
    if (present(compare)) opts%compare = compare
    if (present(layout)) opts%layout = layout
    if (present(busy)) opts%busy = busy
    if (present(ranks)) opts%ranks = ranks
    if (present(signals)) then
      c_signals = text_to_c(signals)
      opts%signals = c_loc(c_signals)
    end if
    if (present(stop_margin_s)) opts%stop_margin_s = stop_margin_s
    address = find(comm, call, st)
    call get_integer(opts%keep_every, keep_every, call, 'keep_every', st)
    call set_bytes(opts%memory, comm, call, 'memory', memory, st)
    if (st == GS_OK) st = c_handle_open(KIND_CKPT, handle)
    if (st == GS_OK) then
      st = c_ckpt_create(address, text_to_c(dir), opts, plan)
      ! Gives the handle back if there is no plan.
      call c_handle_bind(handle, plan, address, opts%name)
      if (st == GS_OK) ckpt = ckpt_of_handle(handle)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_create

  subroutine replicated_address(ckpt, name, shape, dtype, ptr, lower, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(add_replicated(ckpt, name, shape, dtype, ptr, lower), stat, errmsg)
  end subroutine replicated_address

  subroutine replicated_address_int32(ckpt, name, shape, dtype, ptr, lower, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present

    if (present(lower)) bounds = lower
    call replicated_address(ckpt, name, int(shape, c_int64_t), dtype, ptr, bounds, stat, errmsg)
  end subroutine replicated_address_int32

  subroutine per_rank_address(ckpt, name, shape, dtype, ptr, lower, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(add_per_rank(ckpt, name, shape, dtype, ptr, lower), stat, errmsg)
  end subroutine per_rank_address

  subroutine per_rank_address_int32(ckpt, name, shape, dtype, ptr, lower, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present

    if (present(lower)) bounds = lower
    call per_rank_address(ckpt, name, int(shape, c_int64_t), dtype, ptr, bounds, stat, errmsg)
  end subroutine per_rank_address_int32

  subroutine sharded_address(ckpt, name, extents, offsets, shape, dtype, ptr, lower, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: extents(:), offsets(:), shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(add_sharded(ckpt, name, extents, offsets, shape, dtype, ptr, lower), stat, &
      errmsg)
  end subroutine sharded_address

  subroutine sharded_address_int32(ckpt, name, extents, offsets, shape, dtype, ptr, lower, stat, &
    errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: extents(:), offsets(:), shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present

    if (present(lower)) bounds = lower
    call sharded_address(ckpt, name, int(extents, c_int64_t), int(offsets, c_int64_t), &
      int(shape, c_int64_t), dtype, ptr, bounds, stat, errmsg)
  end subroutine sharded_address_int32

  ! Gives an array a text that readers of the file find: a unit, a long name.
  subroutine gs_ckpt_set_attribute(ckpt, name, attribute, text, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name, attribute, text
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st

    plan = find_plan(ckpt, 'gs_ckpt_set_attribute', st)
    if (st == GS_OK) &
      st = c_ckpt_set_attribute(plan, text_to_c(name), text_to_c(attribute), text_to_c(text))
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_set_attribute

  ! Says that a sharded array is a field on a regular grid, of as many dimensions as origin has:
  ! ParaView and VTK show it. An array of one dimension more has components in its first.
  !
  !   place    in  GS_CKPT_POINTS or GS_CKPT_CELLS
  !   origin   in  the first point: x, y, z, in the order of the array's dimensions
  !   spacing  in  between points, in the same order
  subroutine gs_ckpt_set_grid(ckpt, name, place, origin, spacing, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: place
    real(c_double), intent(in) :: origin(:), spacing(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_ckpt_set_grid'
    type(c_ptr) :: plan
    integer(c_int) :: n, st

    n = size(origin)
    plan = find_plan(ckpt, call, st)
    if (st == GS_OK) &
      st = c_check_list(text_to_c(call), text_to_c('spacing'), size(spacing, kind=c_int64_t), &
        int(n, c_int64_t), 0_c_int64_t)
    if (st == GS_OK) &
      st = c_ckpt_set_grid(plan, text_to_c(name), place, n, origin(n:1:-1), spacing(n:1:-1))
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_set_grid

  ! Ends the adds: compares what all ranks added, and lays out the file. Collective.
  subroutine gs_ckpt_commit(ckpt, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st

    plan = find_plan(ckpt, 'gs_ckpt_commit', st)
    if (st == GS_OK) st = c_ckpt_commit(plan)
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_commit

  ! Writes all arrays as they are to the file of [step]. Collective.
  subroutine write_step(ckpt, step, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int64_t), intent(in) :: step
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st

    plan = find_plan(ckpt, 'gs_ckpt_write', st)
    if (st == GS_OK) st = c_ckpt_write(plan, step, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine write_step

  subroutine write_step_int32(ckpt, step, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int32_t), intent(in) :: step
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call write_step(ckpt, int(step, c_int64_t), stream, stat, errmsg)
  end subroutine write_step_int32

  ! Begins such a write, which goes on beside the program: until gs_ckpt_test or gs_ckpt_wait.
  ! Collective.
  !
  !   begun  out  optional: .false. if busy is GS_CKPT_BUSY_SKIP and the write before is under
  !               way, or on failure
  subroutine begin_step(ckpt, step, begun, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int64_t), intent(in) :: step
    logical, intent(out), optional :: begun
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st, yes

    yes = 0
    plan = find_plan(ckpt, 'gs_ckpt_write_async', st)
    if (st == GS_OK) st = c_ckpt_write_async(plan, step, yes, stream_or_default(stream))
    if (present(begun)) begun = yes == 1
    call conclude(st, stat, errmsg)
  end subroutine begin_step

  subroutine begin_step_int32(ckpt, step, begun, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int32_t), intent(in) :: step
    logical, intent(out), optional :: begun
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call begin_step(ckpt, int(step, c_int64_t), begun, stream, stat, errmsg)
  end subroutine begin_step_int32

  ! With the option lazy: waits until the arrays may be changed again.
  subroutine gs_ckpt_staged(ckpt, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st

    plan = find_plan(ckpt, 'gs_ckpt_staged', st)
    if (st == GS_OK) st = c_ckpt_staged(plan)
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_staged

  ! At the end of a time step: looks whether the write that is under way has ended on all ranks,
  ! and if so makes its file a checkpoint. Collective.
  !
  !   written  out  optional: the step that is on disk now; -1 if none has come to it
  subroutine gs_ckpt_test(ckpt, written, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    class(*), intent(inout), optional :: written
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(end_step(c_ckpt_test, 'gs_ckpt_test', ckpt, written, stream), stat, errmsg)
  end subroutine gs_ckpt_test

  ! Waits for the write that is under way, if there is one; else as gs_ckpt_test. Collective.
  subroutine gs_ckpt_wait(ckpt, written, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    class(*), intent(inout), optional :: written
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(end_step(c_ckpt_wait, 'gs_ckpt_wait', ckpt, written, stream), stat, errmsg)
  end subroutine gs_ckpt_wait

  ! What both of these do, by function [ender] of C.
  function end_step(ender, call, ckpt, written, stream) result(st)
    procedure(c_ckpt_ender) :: ender
    character(*), intent(in) :: call
    type(gs_ckpt), intent(in) :: ckpt
    class(*), intent(inout), optional :: written
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int) :: st
    type(c_ptr) :: plan
    integer(c_int64_t) :: step

    step = -1
    plan = find_plan(ckpt, call, st)
    if (st == GS_OK) st = ender(plan, step, stream_or_default(stream))
    call put_integer(written, step, call, 'written', st)
  end function end_step

  ! The steps of the checkpoints in the folder, oldest first, and how many they are; of size 0
  ! after a failure. Collective.
  subroutine gs_ckpt_list(ckpt, steps, number, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int64_t), intent(out), allocatable :: steps(:)
    class(*), intent(inout), optional :: number
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_size_t) :: room, there
    integer(c_int) :: st

    room = 0
    there = 0
    allocate (steps(room))
    plan = find_plan(ckpt, 'gs_ckpt_list', st)
    if (st == GS_OK) st = c_ckpt_list(plan, steps, room, there)
    do while (st == GS_OK .and. there > room) ! again if others have written in between
      room = there
      deallocate (steps)
      allocate (steps(room))
      st = c_ckpt_list(plan, steps, room, there)
    end do
    if (st /= GS_OK) there = 0
    steps = steps(:there)
    call put_integer(number, int(there, c_int64_t), 'gs_ckpt_list', 'number', st)
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_list

  ! Fills all arrays from the file of [step], or with GS_CKPT_LATEST from the newest that is
  ! whole. Collective.
  !
  !   found  out  optional: the step that was read; -1 if there is no file yet, or on failure
  subroutine read_step(ckpt, step, found, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int64_t), intent(in) :: step
    class(*), intent(inout), optional :: found
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int64_t) :: was_read
    integer(c_int) :: st

    was_read = -1
    plan = find_plan(ckpt, 'gs_ckpt_read', st)
    if (st == GS_OK) st = c_ckpt_read(plan, step, was_read, stream_or_default(stream))
    if (st /= GS_OK) was_read = -1
    call put_integer(found, was_read, 'gs_ckpt_read', 'found', st)
    call conclude(st, stat, errmsg)
  end subroutine read_step

  subroutine read_step_int32(ckpt, step, found, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int32_t), intent(in) :: step
    class(*), intent(inout), optional :: found
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call read_step(ckpt, int(step, c_int64_t), found, stream, stat, errmsg)
  end subroutine read_step_int32

  ! Asks whether the program should write a checkpoint and end. Collective.
  !
  !   reasons  out  0: go on; else one or more of GS_CKPT_STOP_* added up; 0 on failure
  subroutine gs_stop_requested(ckpt, reasons, stream, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int), intent(out) :: reasons
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st

    reasons = 0
    plan = find_plan(ckpt, 'gs_stop_requested', st)
    if (st == GS_OK) st = c_stop_requested(plan, reasons, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_stop_requested

  ! Ends a plan, for all copies of [ckpt]; before gs_comm_destroy. One that was never created is
  ! ignored. While a write is under way it is refused, and nothing ends.
  subroutine gs_ckpt_destroy(ckpt, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    handle = handle_of_ckpt(ckpt)
    st = c_handle_take(handle, KIND_CKPT, text_to_c('gs_ckpt_destroy'), plan)
    if (c_associated(plan)) st = c_handle_close(handle, plan, c_ckpt_destroy(plan))
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_destroy

  ! The plan behind a handle for procedure [call]; NULL with GS_ERR_STATE if it is gone.
  function find_plan(ckpt, call, st) result(plan)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(c_ptr) :: plan

    st = c_handle_find(handle_of_ckpt(ckpt), KIND_CKPT, text_to_c(call), plan)
  end function find_plan

  function add_replicated(ckpt, name, shape, dtype, ptr, lower) result(st)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st

    st = add(c_ckpt_add_replicated, 'gs_ckpt_add_replicated', ckpt, name, shape, dtype, ptr, &
      lower)
  end function add_replicated

  function add_per_rank(ckpt, name, shape, dtype, ptr, lower) result(st)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st

    st = add(c_ckpt_add_per_rank, 'gs_ckpt_add_per_rank', ckpt, name, shape, dtype, ptr, lower)
  end function add_per_rank

  ! Adds what both of these do, by function [adder] of C.
  function add(adder, call, ckpt, name, shape, dtype, ptr, lower) result(st)
    procedure(c_ckpt_adder) :: adder
    character(*), intent(in) :: call, name
    type(gs_ckpt), intent(in) :: ckpt
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st
    type(c_ptr) :: plan

    plan = find_plan(ckpt, call, st)
    if (st == GS_OK) st = check_list(call, 'shape', size(shape, kind=c_int64_t), shape)
    if (st == GS_OK) st = check_lower(call, size(shape), lower)
    if (st == GS_OK) &
      st = adder(plan, text_to_c(name), size(shape), turned(shape), dtype, ptr)
    if (st == GS_OK) st = bound(plan, name, size(shape), lower)
  end function add

  function add_sharded(ckpt, name, extents, offsets, shape, dtype, ptr, lower) result(st)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: extents(:), offsets(:), shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st
    character(*), parameter :: call = 'gs_ckpt_add_sharded'
    type(c_ptr) :: plan
    integer(c_int64_t) :: dims

    dims = size(extents, kind=c_int64_t)
    plan = find_plan(ckpt, call, st)
    if (st == GS_OK) st = check_list(call, 'extents', dims, extents)
    if (st == GS_OK) st = check_list(call, 'offsets', dims, offsets)
    if (st == GS_OK) st = check_list(call, 'shape', dims, shape)
    if (st == GS_OK) st = check_lower(call, size(extents), lower)
    if (st == GS_OK) &
      st = c_ckpt_add_sharded(plan, text_to_c(name), size(extents), turned(extents), &
        turned(offsets), turned(shape), dtype, ptr)
    if (st == GS_OK) st = bound(plan, name, size(extents), lower)
  end function add_sharded

  function check_lower(call, dims, lower) result(st)
    character(*), intent(in) :: call
    integer(c_int), intent(in) :: dims
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st

    st = GS_OK
    if (present(lower)) &
      st = c_check_list(text_to_c(call), text_to_c('lower'), size(lower, kind=c_int64_t), &
        int(dims, c_int64_t), 0_c_int64_t)
  end function check_lower

  ! Has the file tell that an array is one of Fortran, and its bounds.
  function bound(plan, name, dims, lower) result(st)
    type(c_ptr), intent(in) :: plan
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: dims
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int) :: st
    integer(c_int64_t) :: bounds(dims)

    bounds = 1
    if (present(lower)) bounds = lower
    st = c_ckpt_set_bounds(plan, text_to_c(name), bounds)
  end function bound

end module gradsync_ckpt
