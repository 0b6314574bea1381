! SPDX-License-Identifier: BSD-3-Clause
! reducer_refusals - what a reducer refuses: by name, with a cure, and nothing changed.
module idle_callback
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr
  use gradsync, only: gs_bucket, GS_OK
  implicit none
contains
  function idle(bucket, context) result(status)
    type(gs_bucket), intent(in) :: bucket
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status

    associate (unused => bucket%index, unused_too => context)
    end associate
    status = GS_OK
  end function idle
end module idle_callback

program reducer_refusals
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_float, c_int, c_int16_t, &
    c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use checks
  use failing_calls
  use gradsync
  use idle_callback
  implicit none

  type :: cell
    real(real64) :: u = 1
    integer :: id = 2
  end type cell

  type(gs_comm) :: comm
  integer :: me, n

  call gs_comm_create(comm, name='refusals', transport=host_transport(), device=GS_DEVICE_HOST, &
            boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  call speak_as(me)
  call check_create()
  call check_never_created()
  call check_kinds_of_handle()
  call check_shapes()
  call check_arrays()
  call check_before_commit()
  call check_pointers()
  call check_steps()
  call check_mismatch()
  call gs_comm_destroy(comm)
  call finish()

contains

  subroutine check_create()
    type(gs_comm) :: never
    type(gs_reducer) :: r

    call gs_reducer_create(never, r, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_create|never created', 'without a communicator')
    call gs_reducer_create(comm, r, first_bytes=-1_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_create: first_bytes is -1', 'a first bucket below 0')
    call gs_reducer_create(comm, r, bucket_bytes=-2_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'bucket_bytes is -2', 'buckets below 0')
    call gs_reducer_create(comm, r, bucket_bytes=8_int64, last_bytes=-3_int64, stat=stat, &
                errmsg=errmsg)
    call refused(GS_ERR_ARG, 'last_bytes is -3', 'a last bucket below 0')
    call gs_reducer_create(comm, r, overlap=99, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_create|overlap|99', 'an overlap that does not exist')
    call gs_reducer_create(comm, r, wire=GS_I32, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_create|wire', 'integers on the wire')
    call gs_reducer_create(comm, r, max_norm=-1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_create|max_norm', 'a norm below 0')
    call gs_reducer_commit(r, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_commit|never created|gs_reducer_create', &
           'what a failed create leaves')
  end subroutine check_create

  ! The name in the text is that of the call.
  subroutine check_never_created()
    type(gs_reducer) :: never
    type(gs_reducer_stats) :: stats
    type(gs_bucket_stats) :: bucket
    type(c_ptr) :: address
    real(c_double), target :: x(3)
    real(c_double), pointer :: p(:)
    real(c_double) :: value
    integer(c_int) :: index
    logical :: done

    call gs_reducer_add(never, 'x', [3], GS_F64, index=index, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_add: |never created', 'add')
    call expect(index == -1, 'no number')
    call gs_reducer_add(never, 'x', x, index=index, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_add: |never created', 'add of an array')
    call gs_reducer_add_scalar(never, 'x', GS_SUM, index, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_add_scalar: |never created', 'add of a scalar')
    call gs_reducer_commit(never, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_commit: |never created', 'commit')
    p => x
    call gs_reducer_get_grad(never, 0, p, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_grad: |never created', 'grad')
    call expect(.not. associated(p), 'no pointer')
    call gs_reducer_get_grad(never, 0, address, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_grad: |never created', 'address of a gradient')
    call expect(.not. c_associated(address), 'no address')
    call gs_reducer_ready(never, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_ready: |never created', 'ready')
    call gs_reducer_skip(never, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_skip: |never created', 'skip')
    call gs_reducer_finish(never, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_finish: |never created', 'finish')
    call gs_reducer_set_sync(never, .false., stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_sync: |never created', 'set_sync')
    call gs_reducer_set_weight(never, 1.0_real64, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_weight: |never created', 'weight')
    call gs_reducer_join(never, done, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_join: |never created', 'join')
    call expect(.not. done, 'nothing is done')
    call gs_reducer_set_scalar(never, 0, 1.0_real64, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_scalar: |never created', 'set_scalar')
    call gs_reducer_get_scalar(never, 0, value, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_scalar: |never created', 'get_scalar')
    call gs_reducer_get_norm(never, value, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_norm: |never created', 'norm')
    call gs_reducer_broadcast(never, [c_null_ptr], 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_broadcast: |never created', 'broadcast')
    call gs_reducer_set_hook(never, idle, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_hook: |never created', 'set_hook')
    call gs_reducer_set_averaged(never, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_averaged: |never created', 'set_averaged')
    call gs_reducer_relayout(never, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_relayout: |never created', 'relayout')
    call gs_reducer_get_stats(never, stats, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_stats: |never created', 'get_stats')
    call gs_reducer_get_bucket(never, 0, bucket, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_bucket: |never created', 'get_bucket')
    call gs_reducer_report(never, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_report: |never created', 'report')
    call gs_reducer_destroy(never, stat)
    call expect(stat == GS_OK, 'destroying it does nothing, as with NULL in C')
  end subroutine check_never_created

  ! Bits of a handle in a variable of the other type.
  subroutine check_kinds_of_handle()
    type(gs_reducer) :: r

    call gs_reducer_create(comm, r)
    call gs_barrier(transfer(r, comm), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_barrier: |handle of a type(gs_reducer)|type(gs_comm)', &
           'a reducer as a communicator')
    call gs_reducer_commit(transfer(comm, r), stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_commit: |handle of a type(gs_comm)|type(gs_reducer)', &
           'a communicator as a reducer')
    call gs_comm_destroy(transfer(r, comm), stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_comm_destroy: |handle of a type(gs_reducer)', &
           'destroying a reducer as a communicator')
    call gs_reducer_destroy(r)
  end subroutine check_kinds_of_handle

  subroutine check_shapes()
    type(gs_reducer) :: r
    integer(c_int) :: index
    integer :: i

    call gs_reducer_create(comm, r)
    call gs_reducer_add(r, 'first', [3], GS_F64)
    call gs_reducer_add(r, 'x', [3, -1], GS_F64, index=index, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add: shape(2) is -1', 'a negative extent')
    call expect(index == -1, 'no number')
    call gs_reducer_add(r, 'x', [3, 2], GS_F64, lower=[1], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'lower is of size 1|rank 2', 'too few bounds')
    call gs_reducer_add(r, 'x', [3_int64], GS_F64, lower=[1_int64, 1_int64], stat=stat, &
               errmsg=errmsg)
    call refused(GS_ERR_ARG, 'lower is of size 2|rank 1', 'too many bounds')
    call gs_reducer_add(r, 'x', [(1, i=1, 16)], GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'shape has 16 extents|15', 'too many dimensions')
    call gs_reducer_add(r, 'x', [huge(1_int64), 4_int64], GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add|x', 'a size that overflows')
    call gs_reducer_add(r, 'x', [3], GS_I32, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_reducer_add|x', 'integers')
    call gs_reducer_add(r, 'x', [3], 99, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add|99', 'an unknown type')
    call gs_reducer_add_scalar(r, 'loss', 99, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add_scalar|99', 'an unknown op of a scalar')
    call gs_reducer_add(r, 'x', [(1, i=1, 15)], GS_F64, index=index)
    call expect(index == 1, 'what was refused has no number')
    call gs_reducer_destroy(r)
  end subroutine check_shapes

  subroutine check_arrays()
    type(gs_reducer) :: r
    type(c_ptr) :: address
    type(cell) :: cells(2)
    real(real64), target :: x(6, 4)
    real(real64), allocatable, save :: gone(:)
    real(real64), pointer :: p(:, :)
    logical :: flags(2)
    integer :: numbers(3)
    integer(c_int) :: index
    character(8) :: text

    x = 1
    flags = .true.
    numbers = 1
    text = 'abcdefgh'
    call gs_reducer_create(comm, r)
    call gs_reducer_add(r, 'x', x(2, :), index=index, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add: array is a strided section|48 bytes', 'a row')
    call expect(index == -1, 'no number')
    p => x(::2, :)
    call gs_reducer_add(r, 'x', p, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add: array is a strided', 'a pointer with gaps')
    nullify (p)
    call gs_reducer_add(r, 'x', p, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is not allocated|not associated', 'a pointer to nothing')
    call gs_reducer_add(r, 'x', gone, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is not allocated', 'an array that was never allocated')
    call gs_reducer_add(r, 'x', flags, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is logical', 'logical')
    call gs_reducer_add(r, 'x', cells, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is of a derived type', 'a derived type')
    address = c_loc(x)
    call gs_reducer_add(r, 'x', address, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is type(c_ptr)|shape and dtype', 'an address alone')
    call gs_reducer_add(r, 'x', numbers, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_reducer_add', 'an array of integers')
    call gs_reducer_add(r, 'x', x, as=GS_BF16, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add: as=|real64', 'as= of another size')
    call gs_reducer_add(r, 'x', x, lower=[0], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'lower is of size 1|rank 2', 'too few bounds of an array')
    call gs_reducer_add(r, 'x', text, stat=stat, errmsg=errmsg)
    errmsg = gs_last_error()
    call refused(GS_ERR_ARG, 'array is character', 'character')
    call take_assumed_size(r, x)
    call gs_reducer_add(r, 'x', x(:, 2:3), index=index)
    call expect(index == 0, 'what was refused has no number')
    call gs_reducer_destroy(r)
    call expect(all(x == 1) .and. all(flags) .and. all(numbers == 1) .and. text == 'abcdefgh', &
          'what was refused is unchanged')
  end subroutine check_arrays

  subroutine take_assumed_size(r, x)
    type(gs_reducer), intent(in) :: r
    real(real64), intent(inout) :: x(*)

    call gs_reducer_add(r, 'x', x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'array is an assumed-size array|x(1:n)', 'assumed size')
  end subroutine take_assumed_size

  subroutine check_before_commit()
    type(gs_reducer) :: r, twice
    real(c_double), pointer :: p(:)

    nullify (p)
    call gs_reducer_create(comm, r)
    call gs_reducer_commit(r, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_commit', 'a commit of nothing')
    call gs_reducer_add(r, 'x', [3], GS_F64)
    call gs_reducer_get_grad(r, 0, p, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_grad', 'a gradient before the commit')
    call expect(.not. associated(p), 'no pointer before the commit')
    call gs_reducer_ready(r, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_ready', 'ready before the commit')
    call gs_reducer_commit(r)
    call gs_reducer_add(r, 'y', [3], GS_F64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_add', 'an add after the commit')
    call gs_reducer_add_scalar(r, 'y', GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_add_scalar', 'a scalar after the commit')
    call gs_reducer_commit(r, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_commit', 'a second commit')
    call gs_reducer_destroy(r)
    call gs_reducer_create(comm, twice)
    call gs_reducer_add(twice, 'taken', [3], GS_F64)
    call gs_reducer_add(twice, 'taken', [3], GS_F64, stat=stat, errmsg=errmsg)
    if (stat == GS_OK) call gs_reducer_commit(twice, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer|taken', 'a name taken twice')
    call gs_reducer_destroy(twice)
  end subroutine check_before_commit

  ! Each of them starts associated, and ends null.
  subroutine check_pointers()
    type(gs_reducer) :: r
    real(c_double), target :: home(2, 2)
    real(c_double), pointer :: vector(:), matrix(:, :), scalar
    real(c_float), pointer :: single(:, :)
    complex(c_double), pointer :: parts(:, :)
    integer(c_int16_t), pointer :: bits(:, :)

    nullify (single, parts, bits)
    call gs_reducer_create(comm, r)
    call gs_reducer_add(r, 'x', [2, 2], GS_F64)
    call gs_reducer_add(r, 'half', [2, 2], GS_F16)
    call gs_reducer_commit(r)
    vector => home(:, 1)
    call gs_reducer_get_grad(r, 0, vector, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_get_grad: p is real64 of rank 1|0 is real64 of rank 2', &
           'a pointer of another rank')
    scalar => home(1, 1)
    call gs_reducer_get_grad(r, 0, scalar, stat, errmsg)
    call refused(GS_ERR_ARG, 'p is real64 of rank 0', 'a pointer to a scalar')
    call gs_reducer_get_grad(r, 0, single, stat, errmsg)
    call refused(GS_ERR_ARG, 'p is real32 of rank 2|is real64 of rank 2', &
           'a pointer of another real kind')
    call gs_reducer_get_grad(r, 0, parts, stat, errmsg)
    call refused(GS_ERR_ARG, 'p is complex(real64)', 'a pointer of complex')
    call gs_reducer_get_grad(r, 0, bits, stat, errmsg)
    call refused(GS_ERR_ARG, 'p is integer(int16)', 'a pointer of integers')
    matrix => home
    call gs_reducer_get_grad(r, 1, matrix, stat, errmsg)
    call refused(GS_ERR_ARG, 'gradient 1 is integer(int16)', 'a real pointer for f16')
    call expect(.not. (associated(vector) .or. associated(scalar) .or. associated(single) .or. &
              associated(parts) .or. associated(bits) .or. associated(matrix)), &
          'no pointer is left')
    matrix => home
    call gs_reducer_get_grad(r, 2, matrix, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_get_grad|2', 'a gradient past the last')
    call gs_reducer_get_grad(r, -1, matrix, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_get_grad|-1', 'gradient -1')
    call expect(.not. associated(matrix), 'no pointer for no gradient')
    call gs_reducer_get_grad(r, 1, bits)
    call expect(associated(bits), 'f16 in integer(int16)')
    call gs_reducer_destroy(r)
  end subroutine check_pointers

  subroutine check_steps()
    type(gs_reducer) :: r
    type(c_ptr) :: nothing(1)
    real(c_double), target :: y(2)
    real(c_double) :: value
    real(real32) :: x(2)
    logical :: done

    nothing = c_null_ptr
    x = 1
    y = 1
    call gs_reducer_create(comm, r, name='strict')
    call gs_reducer_add(r, 'early', [2], GS_F64)
    call gs_reducer_add(r, 'missing', [2], GS_F64)
    call gs_reducer_add_scalar(r, 'loss', GS_AVG)
    call gs_reducer_commit(r)
    call gs_reducer_get_scalar(r, 0, value, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_scalar', 'a scalar before the first step')
    call gs_reducer_set_scalar(r, 1, 1.0_real64, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_set_scalar|1', 'a scalar past the last')
    call gs_reducer_get_norm(r, value, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_get_norm', 'a norm that was not wanted')
    call gs_reducer_set_weight(r, 1.0_real64, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_weight', 'a weight without the option')
    call gs_reducer_join(r, done, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_join', 'joining without the option')
    call gs_reducer_broadcast(r, nothing, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_broadcast: params has 1 addresses|2 gradients', &
           'too few parameters')
    call gs_reducer_broadcast(r, [c_loc(y), c_loc(y)], n, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'broadcast|root', 'a root that is no rank')
    call gs_reducer_ready(r, 2, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_ready|2', 'ready past the last')
    call gs_reducer_ready(r, 0)
    call gs_reducer_ready(r, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_ready|early', 'ready twice')
    call gs_reducer_skip(r, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_skip|early', 'skipped after ready')
    call gs_reducer_finish(r, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_finish|missing', 'a gradient that is missing')
    call gs_reducer_set_sync(r, .false., stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_sync', 'set_sync in a step')
    call gs_reducer_set_hook(r, idle, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_hook', 'a hook in a step')
    call gs_reducer_set_averaged(r, idle, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_averaged', 'a callback in a step')
    call gs_reducer_relayout(r, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_relayout', 'a relayout in a step')
    call gs_allreduce_avg(comm, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'allreduce_avg|strict', 'another call in a step')
    call gs_reducer_skip(r, 1)
    call gs_reducer_finish(r)
    call gs_allreduce_avg(comm, x)
    call expect(all(x == 1), 'which is right after it')
    call gs_reducer_destroy(r)
    call gs_reducer_create(comm, r, max_norm=1.0_real64)
    call gs_reducer_add(r, 'x', [2], GS_F64)
    call gs_reducer_commit(r)
    call gs_reducer_set_averaged(r, idle, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_reducer_set_averaged|max_norm', 'a callback with max_norm')
    call gs_reducer_destroy(r)
  end subroutine check_steps

  ! Every rank is told, and the reducer can still be ended.
  subroutine check_mismatch()
    type(gs_reducer) :: r

    if (n == 1) return
    call gs_reducer_create(comm, r)
    call gs_reducer_add(r, 'same', [2], GS_F64)
    call gs_reducer_add(r, 'other', [merge(3, 4, me == 0), 5], GS_F64)
    call gs_reducer_commit(r, stat, errmsg)
    call refused(GS_ERR_MISMATCH, 'gs_reducer_commit|other', 'ranks that added different shapes')
    call gs_reducer_destroy(r)
  end subroutine check_mismatch

end program reducer_refusals
