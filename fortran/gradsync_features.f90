! SPDX-License-Identifier: BSD-3-Clause
! gradsync_features - what calls.def cannot say: options, results in types of Fortran, callbacks
! and lists of reducers, checkpoints and comparisons.
!
! The contracts are those of the headers, and so are the numbers of gradients, scalars and
! buckets: they count from 0. Every subroutine ends in stat and errmsg, as in gradsync_comm.
module gradsync_features
  use, intrinsic :: iso_c_binding
  use gradsync_c
  use gradsync_support
  use gradsync_types
  implicit none
  private

  public :: gs_ckpt_create, gs_ckpt_set_grid, gs_ckpt_list
  public :: gs_reducer_create, gs_reducer_set_hook, gs_reducer_set_averaged, gs_bucket_f
  public :: gs_reducer_get_stats, gs_reducer_get_bucket, gs_reducer_c_ptr
  public :: gs_reducer_destroy
  public :: gs_arrays_compare

  abstract interface
    ! Is called for a bucket, with the context that was set; returns GS_OK, or what the step shall
    ! fail of. May be called by a thread of the reducer's, one bucket at a time.
    function gs_bucket_f(bucket, context) result(status)
      import :: c_int, c_ptr, gs_bucket
      type(gs_bucket), intent(in) :: bucket
      type(c_ptr), intent(in) :: context
      integer(c_int) :: status
    end function gs_bucket_f
  end interface

  type :: bucket_box
    procedure(gs_bucket_f), pointer, nopass :: callback => null()
    type(c_ptr) :: context = c_null_ptr
    type(gs_comm) :: comm
  end type bucket_box

  ! Compares arrays across ranks. Collective over [comm]. One array by itself: calls.def.
  !
  !   arrays     in  names, addresses, elements and types, in the same order on all ranks
  !   tolerance  in  optional, 0: all bits are equal
  interface gs_arrays_compare
    module procedure compare_list
  end interface gs_arrays_compare

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
    type(c_ptr) :: address
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
    call set_bytes(opts%memory, call, 'memory', memory, st)
    if (st == GS_OK) st = f_ckpt_create(transfer(comm, handle), text_to_c(dir), opts, handle)
    if (st == GS_OK) ckpt = transfer(handle, ckpt)
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_create

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
    st = f_handle_find(transfer(ckpt, 0_c_int64_t), KIND_CKPT, text_to_c(call), plan)
    if (st == GS_OK) &
      st = f_check_list(text_to_c(call), text_to_c('spacing'), size(spacing, kind=c_int64_t), &
        int(n, c_int64_t), 0_c_int64_t)
    if (st == GS_OK) &
      st = c_ckpt_set_grid(plan, text_to_c(name), place, n, origin(n:1:-1), spacing(n:1:-1))
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_set_grid

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
    st = f_handle_find(transfer(ckpt, 0_c_int64_t), KIND_CKPT, text_to_c('gs_ckpt_list'), plan)
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

  ! Makes a reducer without gradients.
  !
  !   comm            in   outlives the reducer
  !   reducer         out  the new reducer; never created, if this fails
  !   name            in   shown in messages
  !   first_bytes, bucket_bytes, last_bytes
  !                   in   sizes of the buckets; 0 means the default
  !   overlap         in   GS_OVERLAP_*
  !   wire            in   GS_F16, GS_BF16, GS_F8_E4M3 or GS_F8_E5M2: what f32 and f64 travel as
  !   error_feedback, forward, weighted, average_micro, check_finite, want_norm
  !                   in   as gs_reducer_opts_t; else .false.
  !   max_norm        in   averages are scaled down to this norm
  subroutine gs_reducer_create(comm, reducer, name, first_bytes, bucket_bytes, last_bytes, &
                 overlap, wire, error_feedback, forward, weighted, &
                 average_micro, check_finite, want_norm, max_norm, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_reducer), intent(out) :: reducer
    character(*), intent(in), optional :: name
    class(*), intent(in), optional :: first_bytes, bucket_bytes, last_bytes ! 32 or 64 bits
    integer(c_int), intent(in), optional :: overlap, wire
    logical, intent(in), optional :: error_feedback, forward, weighted
    logical, intent(in), optional :: average_micro, check_finite, want_norm
    real(c_double), intent(in), optional :: max_norm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_reducer_create'
    character(kind=c_char), allocatable, target :: c_name(:)
    type(c_reducer_opts) :: opts
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    opts%size = c_sizeof(opts)
    if (present(name)) then
      c_name = text_to_c(name)
      opts%name = c_loc(c_name)
    end if
    address = find(comm, call, st)
    call set_bytes(opts%first_bytes, call, 'first_bytes', first_bytes, st)
    call set_bytes(opts%bucket_bytes, call, 'bucket_bytes', bucket_bytes, st)
    call set_bytes(opts%last_bytes, call, 'last_bytes', last_bytes, st)
    if (present(overlap)) opts%overlap = overlap
    if (present(wire)) opts%wire = wire
    call set_flag(opts%error_feedback, error_feedback)
    call set_flag(opts%forward, forward)
    call set_flag(opts%weighted, weighted)
    call set_flag(opts%average_micro, average_micro)
    call set_flag(opts%check_finite, check_finite)
    call set_flag(opts%want_norm, want_norm)
    if (present(max_norm)) opts%max_norm = max_norm
    if (st == GS_OK) st = f_reducer_create(transfer(comm, handle), opts, handle)
    if (st == GS_OK) reducer = transfer(handle, reducer)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_create

  ! Puts [hook], a module or external procedure, in the place of the average; without it, back to
  ! the average. [context] is handed to it as it is.
  subroutine gs_reducer_set_hook(reducer, hook, context, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    procedure(gs_bucket_f), optional :: hook
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call set_callback(reducer, 0_c_int, hook, context, stat, errmsg)
  end subroutine gs_reducer_set_hook

  ! Has [averaged], a module or external procedure, called when a bucket has its averages; without
  ! it nothing is called.
  subroutine gs_reducer_set_averaged(reducer, averaged, context, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    procedure(gs_bucket_f), optional :: averaged
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call set_callback(reducer, 1_c_int, averaged, context, stat, errmsg)
  end subroutine gs_reducer_set_averaged

  subroutine set_callback(reducer, is_averaged, callback, context, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: is_averaged
    procedure(gs_bucket_f), optional :: callback
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: box, other
    integer(c_int) :: st

    box = new_box(reducer, callback, context)
    st = f_reducer_set_callback(transfer(reducer, 0_c_int64_t), is_averaged, &
      c_funloc(forward_bucket), box, other)
    call free_box(other)
    call conclude(st, stat, errmsg)
  end subroutine set_callback

  ! What C hands back to forward_bucket as its context; NULL without a callback.
  function new_box(reducer, callback, context) result(address)
    type(gs_reducer), intent(in) :: reducer
    procedure(gs_bucket_f), optional :: callback
    type(c_ptr), intent(in), optional :: context
    type(c_ptr) :: address
    type(bucket_box), pointer :: box
    integer(c_int64_t) :: comm

    address = c_null_ptr
    if (.not. present(callback)) return
    call f_reducer_comm(transfer(reducer, comm), comm)
    allocate (box)
    box%callback => callback
    box%context = given(context, c_null_ptr)
    box%comm = transfer(comm, box%comm)
    address = c_loc(box)
  end function new_box

  subroutine free_box(address)
    type(c_ptr), intent(in) :: address
    type(bucket_box), pointer :: box

    if (.not. c_associated(address)) return
    call c_f_pointer(address, box)
    deallocate (box)
  end subroutine free_box

  ! The callback that C sees.
  function forward_bucket(bucket, context) bind(c, name="gsi_fortran_forward_bucket") &
    result(st)
    type(c_bucket), intent(in) :: bucket
    type(c_ptr), value :: context
    integer(c_int) :: st
    type(bucket_box), pointer :: box
    type(gs_bucket) :: seen

    call c_f_pointer(context, box)
    seen%index = bucket%index
    seen%buckets = bucket%buckets
    seen%gradients = bucket%gradients
    call c_f_pointer(bucket%gradient, seen%gradient, [bucket%gradients])
    call c_f_pointer(bucket%grad, seen%grad, [bucket%gradients])
    call c_f_pointer(bucket%count, seen%count, [bucket%gradients])
    seen%dtype = bucket%dtype
    seen%comm = box%comm
    seen%stream = bucket%stream
    seen%step = bucket%step
    seen%weight = bucket%weight
    st = box%callback(seen, box%context)
  end function forward_bucket

  ! Ends a reducer, for all copies of [reducer], and its gradients; before gs_comm_destroy. One
  ! that was never created is ignored. In a step it is refused, and nothing ends.
  subroutine gs_reducer_destroy(reducer, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: hook, averaged
    integer(c_int) :: st

    st = f_reducer_destroy(transfer(reducer, 0_c_int64_t), hook, averaged)
    call free_box(hook)
    call free_box(averaged)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_destroy

  ! Tells what a reducer did.
  subroutine gs_reducer_get_stats(reducer, stats, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    type(gs_reducer_stats), intent(out) :: stats
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_reducer_stats) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_get_stats', st)
    c%size = c_sizeof(c)
    if (st == GS_OK) st = c_reducer_get_stats(address, c)
    if (st == GS_OK) &
      stats = gs_reducer_stats(c%steps, c%buckets, c%rebuilds, c%bytes, c%wire_bytes, c%step_us, &
                   c%busy_us, c%exposed_us, c%overlap, c%latency_us, c%bytes_per_us, &
                   c%recommended_bytes, c%late_rank, c%late_us, c%overlaps /= 0)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_get_stats

  ! Tells how a bucket went in the last step; [bucket] runs from 0, past the end stat is
  ! GS_ERR_ARG.
  subroutine gs_reducer_get_bucket(reducer, bucket, stats, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: bucket
    type(gs_bucket_stats), intent(out) :: stats
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_bucket_stats) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_get_bucket', st)
    c%size = c_sizeof(c)
    if (st == GS_OK) st = c_reducer_get_bucket(address, bucket, c)
    if (st == GS_OK) &
      stats = gs_bucket_stats(c%gradients, c%first, c%bytes, c%ready_us, c%begin_us, c%end_us, &
                  c%exposed_us)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_get_bucket

  ! The gs_reducer_t pointer, for the C part of a program; valid until gs_reducer_destroy.
  function gs_reducer_c_ptr(reducer) result(address)
    type(gs_reducer), intent(in) :: reducer
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_c_ptr', st)
  end function gs_reducer_c_ptr

  subroutine compare_list(comm, arrays, tolerance, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_array), intent(in) :: arrays(:)
    real(c_double), intent(in), optional :: tolerance
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_array) :: list(size(arrays))
    character(kind=c_char), allocatable, target :: names(:)
    type(c_ptr) :: address
    integer :: i, at
    integer(c_int) :: st

    address = find(comm, 'gs_arrays_compare', st)
    allocate (names(sum([(length(arrays(i)) + 1, i=1, size(arrays))])))
    at = 1
    do i = 1, size(arrays)
      list(i) = c_array(c_null_ptr, arrays(i)%data, arrays(i)%count, arrays(i)%dtype)
      if (st == GS_OK) st = f_check_amount(text_to_c('gs_arrays_compare'), text_to_c('count'), &
        arrays(i)%count)
      if (.not. allocated(arrays(i)%name)) cycle ! which is refused
      names(at:at + length(arrays(i))) = text_to_c(arrays(i)%name)
      list(i)%name = c_loc(names(at))
      at = at + length(arrays(i)) + 1
    end do
    if (st == GS_OK) &
      st = c_arrays_compare(address, list, size(list, kind=c_size_t), &
        given(tolerance, 0.0_c_double), given(stream, 0_c_intptr_t))
    call conclude(st, stat, errmsg)
  end subroutine compare_list

  ! Of the name, without the NUL that C wants.
  pure function length(array)
    type(gs_array), intent(in) :: array
    integer :: length

    length = 0
    if (allocated(array%name)) length = len_trim(array%name)
  end function length

  ! The reducer of C behind a handle for procedure [call].
  function find_reducer(reducer, call, st) result(address)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(c_ptr) :: address

    st = f_handle_find(transfer(reducer, 0_c_int64_t), KIND_REDUCER, text_to_c(call), address)
  end function find_reducer

end module gradsync_features
