! SPDX-License-Identifier: BSD-3-Clause
! gradsync_reducer - making, describing and ending reducers, which average gradients in buckets
! while others are computed; their steps are in gradsync_step.
!
! The contracts are those of gradsync_reducer.h, and so are the numbers of gradients, scalars and
! buckets: they count from 0.
!
!   reducer  in   a reducer
!   index    out  optional: the number of what was added; -1 on failure
!   stat, errmsg  optional: see gradsync_comm
module gradsync_reducer
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_funloc, &
    c_funptr, c_int, c_int32_t, c_int64_t, c_loc, c_null_funptr, c_null_ptr, c_ptr, c_sizeof
  use gradsync_c, only: c_handle_bind, c_handle_close, c_handle_open, c_handle_take, KIND_REDUCER
  use gradsync_c_reducer
  use gradsync_state, only: add_gradient, bucket_box, find_reducer, find_state, gs_bucket_f, &
    reducer_state
  use gradsync_support, only: conclude, find, set_bytes, set_flag, text_to_c
  use gradsync_types, only: gs_bucket, gs_bucket_stats, gs_comm, gs_reducer, gs_reducer_stats, &
    handle_of_reducer, reducer_of_handle, GS_ERR_STATE, GS_OK
  implicit none
  private

  public :: gs_reducer_create, gs_reducer_add, gs_reducer_add_scalar, gs_reducer_commit
  public :: gs_bucket_f, gs_reducer_set_hook, gs_reducer_set_averaged
  public :: gs_reducer_relayout, gs_reducer_get_stats, gs_reducer_get_bucket, gs_reducer_report
  public :: gs_reducer_destroy, gs_reducer_c_ptr

  ! Adds a gradient by its shape: in storage of the reducer's, or with [ptr] in memory of the
  ! program's. Module gradsync_gradient adds arrays.
  !
  !   name   in  names it in messages, different from the others
  !   shape  in  extents in Fortran's order, integer(int32) or integer(int64); [integer ::] for
  !              a scalar
  !   dtype  in  GS_F32, ...
  !   ptr    in  address of memory of the communicator's device
  !   lower  in  optional: lower bounds for gs_reducer_grad, of the kind of shape; else 1
  interface gs_reducer_add
    module procedure add_shape, add_shape_int32, add_address, add_address_int32
  end interface gs_reducer_add

contains

  ! Makes a reducer without gradients.
  !
  !   comm            in   outlives the reducer
  !   reducer         out  the new reducer; never created, if this fails
  !   name            in   shown in messages
  !   first_bytes, bucket_bytes, last_bytes
  !                   in   sizes of the buckets; 0 means the default
  !   overlap         in   GS_OVERLAP_*
  !   wire            in   GS_F16 or GS_BF16: what f32 and f64 travel as
  !   error_feedback, forward, is_static, weighted, average_micro, check_finite, want_norm
  !                   in   as gs_reducer_opts_t; else .false.
  !   max_norm        in   averages are scaled down to this norm
  subroutine gs_reducer_create(comm, reducer, name, first_bytes, bucket_bytes, last_bytes, &
                 overlap, wire, error_feedback, forward, is_static, weighted, &
                 average_micro, check_finite, want_norm, max_norm, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_reducer), intent(out) :: reducer
    character(*), intent(in), optional :: name
    class(*), intent(in), optional :: first_bytes, bucket_bytes, last_bytes ! 32 or 64 bits
    integer(c_int), intent(in), optional :: overlap, wire
    logical, intent(in), optional :: error_feedback, forward, is_static, weighted
    logical, intent(in), optional :: average_micro, check_finite, want_norm
    real(c_double), intent(in), optional :: max_norm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_reducer_create'
    character(kind=c_char), allocatable, target :: c_name(:)
    type(c_reducer_opts) :: opts
    type(c_ptr) :: address
    integer(c_int) :: st

    opts%size = c_sizeof(opts)
    if (present(name)) then
      c_name = text_to_c(name)
      opts%name = c_loc(c_name)
    end if
    address = find(comm, call, st)
    call set_bytes(opts%first_bytes, comm, call, 'first_bytes', first_bytes, st)
    call set_bytes(opts%bucket_bytes, comm, call, 'bucket_bytes', bucket_bytes, st)
    call set_bytes(opts%last_bytes, comm, call, 'last_bytes', last_bytes, st)
    if (present(overlap)) opts%overlap = overlap
    if (present(wire)) opts%wire = wire
    call set_flag(opts%error_feedback, error_feedback)
    call set_flag(opts%forward, forward)
    call set_flag(opts%is_static, is_static)
    call set_flag(opts%weighted, weighted)
    call set_flag(opts%average_micro, average_micro)
    call set_flag(opts%check_finite, check_finite)
    call set_flag(opts%want_norm, want_norm)
    if (present(max_norm)) opts%max_norm = max_norm
    if (st == GS_OK) call make(reducer, comm, address, opts, st)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_create

  ! Makes a reducer of the communicator of C at [address], and its handle.
  subroutine make(reducer, comm, address, opts, st)
    type(gs_reducer), intent(out) :: reducer
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: address
    type(c_reducer_opts), intent(in) :: opts
    integer(c_int), intent(out) :: st
    type(reducer_state), pointer :: state
    integer(c_int64_t) :: handle

    st = c_handle_open(KIND_REDUCER, handle)
    if (st /= GS_OK) return
    allocate (state)
    allocate (state%gradients(0))
    state%comm = comm
    st = c_reducer_create(address, opts, state%reducer)
    if (st == GS_OK) then
      call c_handle_bind(handle, c_loc(state), address, opts%name)
      reducer = reducer_of_handle(handle)
    else
      call c_handle_bind(handle, c_null_ptr, c_null_ptr, c_null_ptr)
      deallocate (state)
    end if
  end subroutine make

  subroutine add_shape(reducer, name, shape, dtype, lower, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: st

    st = add_gradient(reducer, name, shape, dtype, c_null_ptr, lower, index)
    call conclude(st, stat, errmsg)
  end subroutine add_shape

  subroutine add_shape_int32(reducer, name, shape, dtype, lower, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call add_address_int32(reducer, name, shape, dtype, c_null_ptr, lower, index, stat, errmsg)
  end subroutine add_shape_int32

  subroutine add_address(reducer, name, shape, dtype, ptr, lower, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: st

    st = add_gradient(reducer, name, shape, dtype, ptr, lower, index)
    call conclude(st, stat, errmsg)
  end subroutine add_address

  subroutine add_address_int32(reducer, name, shape, dtype, ptr, lower, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int32_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present

    if (present(lower)) bounds = lower
    call add_address(reducer, name, int(shape, c_int64_t), dtype, ptr, bounds, index, stat, &
             errmsg)
  end subroutine add_address_int32

  ! Adds a number that travels with the gradients; [op] is GS_SCALAR_*.
  subroutine gs_reducer_add_scalar(reducer, name, op, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int), intent(in) :: op
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, number

    number = -1
    address = find_reducer(reducer, 'gs_reducer_add_scalar', st)
    if (st == GS_OK) st = c_reducer_add_scalar(address, text_to_c(name), op, number)
    if (present(index)) index = number
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_add_scalar

  ! Ends the adds: compares what all ranks added, and makes storage and buckets. Collective.
  subroutine gs_reducer_commit(reducer, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_commit', st)
    if (st == GS_OK) st = c_reducer_commit(address)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_commit

  ! Puts [hook], a module or external procedure, in the place of the average; without it, back to
  ! the average. [context] is handed to it as it is.
  subroutine gs_reducer_set_hook(reducer, hook, context, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    procedure(gs_bucket_f), optional :: hook
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(reducer_state), pointer :: state
    type(bucket_box), pointer :: box
    integer(c_int) :: st

    state => find_state(reducer, 'gs_reducer_set_hook', st)
    if (st == GS_OK) then
      box => new_box(state, hook, context)
      st = c_reducer_set_hook(state%reducer, forward_of(box), address_of(box))
      call replace(state%hook, box, st)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_set_hook

  ! Has [averaged], a module or external procedure, called when a bucket has its averages; without
  ! it nothing is called.
  subroutine gs_reducer_set_averaged(reducer, averaged, context, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    procedure(gs_bucket_f), optional :: averaged
    type(c_ptr), intent(in), optional :: context
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(reducer_state), pointer :: state
    type(bucket_box), pointer :: box
    integer(c_int) :: st

    state => find_state(reducer, 'gs_reducer_set_averaged', st)
    if (st == GS_OK) then
      box => new_box(state, averaged, context)
      st = c_reducer_set_averaged(state%reducer, forward_of(box), address_of(box))
      call replace(state%averaged, box, st)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_set_averaged

  ! Null without a callback, as are the next two for it.
  function new_box(state, callback, context) result(box)
    type(reducer_state), intent(in) :: state
    procedure(gs_bucket_f), optional :: callback
    type(c_ptr), intent(in), optional :: context
    type(bucket_box), pointer :: box

    nullify (box)
    if (.not. present(callback)) return
    allocate (box)
    box%callback => callback
    if (present(context)) box%context = context
    box%comm = state%comm
  end function new_box

  function forward_of(box) result(address)
    type(bucket_box), pointer, intent(in) :: box
    type(c_funptr) :: address

    address = c_null_funptr
    if (associated(box)) address = c_funloc(forward_bucket)
  end function forward_of

  function address_of(box) result(address)
    type(bucket_box), pointer, intent(in) :: box
    type(c_ptr) :: address

    address = c_null_ptr
    if (associated(box)) address = c_loc(box)
  end function address_of

  ! Keeps what C took in the place of [kept], and frees the other.
  subroutine replace(kept, box, st)
    type(bucket_box), pointer, intent(inout) :: kept
    type(bucket_box), pointer, intent(in) :: box
    integer(c_int), intent(in) :: st
    type(bucket_box), pointer :: other

    other => box
    if (st == GS_OK) then
      other => kept
      kept => box
    end if
    if (associated(other)) deallocate (other)
  end subroutine replace

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

  ! Lays the reducer's storage out anew: all pointers of gs_reducer_grad are to be asked for
  ! again. Collective.
  subroutine gs_reducer_relayout(reducer, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_relayout', st)
    if (st == GS_OK) st = c_reducer_relayout(address)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_relayout

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
                   c%recommended_bytes, c%late_rank, c%late_us, c%beside /= 0)
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

  ! Writes both on rank 0: to the log, or with [path] as JSON to a file.
  subroutine gs_reducer_report(reducer, path, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in), optional :: path
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(kind=c_char), allocatable :: c_path(:)
    type(c_ptr) :: address
    integer(c_int) :: st

    if (present(path)) c_path = text_to_c(path)
    address = find_reducer(reducer, 'gs_reducer_report', st)
    if (st == GS_OK) st = c_reducer_report(address, c_path)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_report

  ! Ends a reducer, for all copies of [reducer], and its gradients; before gs_comm_destroy. One
  ! that was never created is ignored. In a step it is refused, and nothing ends.
  subroutine gs_reducer_destroy(reducer, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(reducer_state), pointer :: state
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    handle = handle_of_reducer(reducer)
    st = c_handle_take(handle, KIND_REDUCER, text_to_c('gs_reducer_destroy'), address)
    if (c_associated(address)) then
      call c_f_pointer(address, state)
      st = c_handle_close(handle, address, c_reducer_destroy(state%reducer))
      if (st /= GS_ERR_STATE) call free(state)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_destroy

  subroutine free(state)
    type(reducer_state), pointer, intent(inout) :: state

    if (associated(state%hook)) deallocate (state%hook)
    if (associated(state%averaged)) deallocate (state%averaged)
    deallocate (state)
  end subroutine free

  ! The gs_reducer_t pointer, for the C part of a program; valid until gs_reducer_destroy.
  function gs_reducer_c_ptr(reducer) result(address)
    type(gs_reducer), intent(in) :: reducer
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_c_ptr', st)
  end function gs_reducer_c_ptr

end module gradsync_reducer
