! SPDX-License-Identifier: BSD-3-Clause
! ckpt - checkpoints in Fortran: arrays of many kinds and ranks, in Fortran's order of dimensions
! and with their bounds, come back as they were; steps; options; what is refused.
program ckpt
  use, intrinsic :: iso_c_binding, only: c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int16, int64, int8, real32, real64
  use checks
  use failing_calls
  use gradsync
  use scratch
  implicit none

  ! The state of a model.
  real(real32), target :: bias(-2:4)
  real(real64), target :: weights(0:3, -1:2, 5)
  complex(real32), target :: spectrum(3, 2)
  complex(real64), target :: phase
  integer(int8), target :: flags(7)
  integer(int16), target :: half(4)
  integer, target :: epoch
  real(real32), target :: nothing(0, 3)
  integer(int64), target :: seeds(-1:1), clock
  real(real64), allocatable, target :: field(:, :)
  integer, parameter :: rows = 6
  integer :: columns

  type(gs_comm) :: world
  character(:), allocatable :: folder
  integer :: me, n

  call gs_comm_create(world)
  me = gs_comm_rank(world)
  n = gs_comm_size(world)
  columns = 2 * n + 1
  call speak_as(me)
  call open_folder(world, 'gs-fortran-ckpt', folder)
  call skip_without_hdf5()
  call check_round()
  call check_file()
  call check_blocks()
  call check_addresses()
  call check_steps()
  call check_options()
  call check_ranks()
  call check_stop()
  call check_adds()
  call check_calls()
  call check_handles()
  call close_folder(world, folder)
  call gs_comm_destroy(world)
  deallocate (field, folder)
  call finish()

contains

  subroutine empty_folder()
    call on_first(world, 'rm -f ''' // folder // '''/*')
  end subroutine empty_folder

  subroutine skip_without_hdf5()
    type(gs_ckpt) :: plan

    call gs_ckpt_create(world, folder, plan, stat=stat, errmsg=errmsg)
    if (stat == GS_ERR_UNSUPPORTED) then
      call close_folder(world, folder)
      call gs_comm_destroy(world)
      print '(2a)', 'skip: ', trim(errmsg)
      stop 77
    end if
    call expect(stat == GS_OK, 'a plan')
    call gs_ckpt_destroy(plan)
  end subroutine skip_without_hdf5

  pure function value_at(i, j, step) result(x)
    integer, intent(in) :: i, j, step
    real(real64) :: x

    x = 10000 * step + 100 * i + j
  end function value_at

  ! All that a rank has: its columns of the field are 2, and 1 more of the last one.
  subroutine fill(step)
    integer, intent(in) :: step
    integer :: i, j

    bias = [(real(step + i / 4.0), i=1, 7)]
    weights = reshape([(step - i / 3.0_real64, i=1, 80)], shape(weights))
    spectrum = reshape([(cmplx(step, i), i=1, 6)], shape(spectrum))
    phase = cmplx(-step, 0.1_real64, real64)
    flags = [(int(step + i, int8), i=1, 7)]
    half = [(int(16256 + i, int16), i=1, 4)]
    epoch = step
    seeds = [(int(step + i, int64) * (me + 1) * 3000000000_int64, i=1, 3)]
    clock = 1000 * step + me
    if (allocated(field)) deallocate (field)
    allocate (field(rows, 2 * me:2 * me + merge(2, 1, me == n - 1)))
    do j = lbound(field, 2), ubound(field, 2)
      field(:, j) = [(value_at(i, j + 1, step), i=1, rows)]
    end do
  end subroutine fill

  ! Only what is there already, as the plan knows where it is.
  subroutine wipe()
    bias = 0
    weights = 0
    spectrum = 0
    phase = 0
    flags = 0
    half = 0
    epoch = 0
    seeds = 0
    clock = 0
    field = 0
  end subroutine wipe

  function contents() result(x)
    real(real64) :: x(117 + size(field))

    x = [real(bias, real64), [weights], real([spectrum], real64), &
      real(aimag([spectrum]), real64), real(phase), aimag(phase), real(flags, real64), &
      real(half, real64), real(epoch, real64), real(seeds, real64), real(clock, real64), [field]]
  end function contents

  subroutine add_all(plan)
    type(gs_ckpt), intent(in) :: plan

    call gs_ckpt_add_replicated(plan, 'model/bias', bias, lbound(bias))
    call gs_ckpt_add_replicated(plan, 'model/weights', weights, lower=lbound(weights))
    call gs_ckpt_add_replicated(plan, 'model/spectrum', spectrum)
    call gs_ckpt_add_replicated(plan, 'phase', phase)
    call gs_ckpt_add_replicated(plan, 'flags', flags)
    call gs_ckpt_add_replicated(plan, 'half', half, as=GS_BF16)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_add_replicated(plan, 'nothing', nothing)
    call gs_ckpt_add_per_rank(plan, 'seeds', seeds, lbound(seeds))
    call gs_ckpt_add_per_rank(plan, 'clock', clock)
    call gs_ckpt_add_sharded(plan, 'field', field, [0, 2 * me], [rows, columns])
    call gs_ckpt_set_attribute(plan, 'field', 'units', 'm s-1')
    call gs_ckpt_set_grid(plan, 'field', GS_CKPT_POINTS, [0.5_real64, -1.0_real64], &
      [0.25_real64, 2.0_real64])
  end subroutine add_all

  subroutine check_round()
    type(gs_ckpt) :: plan
    real(real64), allocatable :: first(:), second(:)
    integer(int64) :: found

    call gs_ckpt_create(world, folder, plan, name='round')
    call fill(1)
    allocate (first(size(contents())), second(size(contents())))
    call add_all(plan)
    call gs_ckpt_commit(plan)
    found = 0
    call gs_ckpt_read(plan, GS_CKPT_LATEST, found)
    call expect(found == -1, 'no checkpoint yet')
    first = contents()
    call gs_ckpt_write(plan, 1)
    call expect(all(contents() == first), 'arrays after a write')
    bias = bias + 1
    field = -field
    clock = clock + 1
    second = contents()
    call gs_ckpt_write(plan, 5000000000_int64)
    call wipe()
    call gs_ckpt_read(plan, 1, found)
    call expect(found == 1 .and. all(contents() == first), 'all arrays of a step')
    call check_kinds(plan)
    call wipe()
    call gs_ckpt_read(plan, GS_CKPT_LATEST, found, stream=0_int64)
    call expect(found == 5000000000_int64 .and. all(contents() == second), 'all of the latest')
    call gs_ckpt_destroy(plan)
    call expect(all(contents() == second), 'arrays outlive the plan')
  end subroutine check_round

  ! Readers of the file find the bounds.
  subroutine check_file()
    character(:), allocatable :: bytes
    character(40) :: bounds
    integer :: unit, length

    if (me /= 0) return
    open (newunit=unit, file=folder // '/ck-000000000001.h5', access='stream', status='old', &
      action='read', iostat=stat)
    call expect(stat == 0, 'a file of step 1')
    if (stat /= 0) return
    inquire (unit=unit, size=length)
    allocate (character(length) :: bytes)
    read (unit) bytes
    close (unit)
    call expect(index(bytes, '(0:3, -1:2, 1:5)') > 0 .and. index(bytes, '(-2:4)') > 0, &
      'it has bounds of whole arrays')
    call expect(index(bytes, '(-1:1)') > 0, 'and of those of ranks')
    write (bounds, '(a, i0, a)') '(1:6, 1:', columns, ')'
    call expect(index(bytes, trim(bounds)) > 0, 'and of a field')
    call expect(index(bytes, 'Fortran') > 0 .and. index(bytes, 'm s-1') > 0, 'and attributes')
    call check_grid(bytes)
  end subroutine check_file

  ! Attributes for VTK, x first; they lie in the file one number behind the other.
  subroutine check_grid(bytes)
    character(*), intent(in) :: bytes
    character(24) :: numbers
    character(48) :: extent

    numbers = transfer([0.5_real64, -1.0_real64, 0.0_real64], numbers)
    call expect(index(bytes, numbers) > 0, 'the origin of its grid')
    numbers = transfer([0.25_real64, 2.0_real64, 1.0_real64], numbers)
    call expect(index(bytes, numbers) > 0, 'the spacing')
    extent = transfer(int([0, rows - 1, 0, columns - 1, 0, 0], int64), extent)
    call expect(index(bytes, extent) > 0, 'and the extent')
  end subroutine check_grid

  ! Numbers of the default kind, where those of integer(int64) are taken.
  subroutine check_kinds(plan)
    type(gs_ckpt), intent(in) :: plan
    type(gs_ckpt) :: other
    integer(int64), allocatable :: steps(:)
    integer :: found, written, number
    real :: no_step

    found = 0
    call gs_ckpt_read(plan, 1, found)
    call expect(found == 1, 'a step of the default kind')
    call gs_ckpt_read(plan, 1_int64, found)
    call expect(found == 1, 'the same of another one')
    call gs_ckpt_read(plan, GS_CKPT_LATEST, found, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'found would be 5000000000|integer(int64)', 'a large step')
    call gs_ckpt_read(plan, 1, no_step, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_read: found is not an integer', 'a step that is real')
    call gs_ckpt_test(plan, written)
    call expect(written == -1, 'nothing has been written')
    call gs_ckpt_list(plan, steps, number)
    call expect(number == size(steps), 'a number of the default kind')
    call gs_ckpt_create(world, folder, other, keep_every=10, memory=2000000)
    call gs_ckpt_destroy(other)
  end subroutine check_kinds

  ! What was written in columns is read in rows, by a plan that has nothing else.
  subroutine check_blocks()
    type(gs_ckpt) :: plan
    real(real64), allocatable, target :: band(:, :)
    integer :: first, last, i, j
    logical :: right

    first = rows * me / n
    last = rows * (me + 1) / n
    allocate (band(first:last - 1, columns))
    band = 0
    call gs_ckpt_create(world, folder, plan, allow_extra=.true.)
    call gs_ckpt_add_sharded(plan, 'field', band, [int(first, int64), 0_int64], &
      [int(rows, int64), int(columns, int64)], lower=[0_int64, 1_int64])
    call gs_ckpt_commit(plan)
    call gs_ckpt_read(plan, 1)
    right = .true.
    do j = 1, columns
      do i = first, last - 1
        right = right .and. band(i, j) == value_at(i + 1, j, 1)
      end do
    end do
    call expect(right, 'blocks of another shape')
    call gs_ckpt_destroy(plan)
  end subroutine check_blocks

  ! Memory of the device, and of the host, by address.
  subroutine check_addresses()
    type(gs_ckpt) :: plan
    type(c_ptr) :: memory
    real(real64), target :: x(2, 3)
    integer(int64), target :: total

    call empty_folder()
    x = reshape([1, 2, 3, 4, 5, 6], [2, 3])
    total = 7
    call gs_device_alloc(world, 48, memory)
    call gs_device_copy(world, memory, c_loc(x), 48)
    call gs_ckpt_create(world, folder, plan)
    call gs_ckpt_add_replicated(plan, 'x', shape(x), GS_F64, memory, [0, -3])
    call gs_ckpt_add_replicated(plan, 'total', [integer(int64) ::], GS_I64, c_loc(total))
    call gs_ckpt_add_per_rank(plan, 'own', [3_int64], GS_F64, c_loc(x), [2_int64])
    call gs_ckpt_add_per_rank(plan, 'empty', [0, 2], GS_F32, c_null_ptr)
    call gs_ckpt_add_sharded(plan, 'line', [1, 2], [me, 0], [n, 2], GS_F64, c_loc(x(1, 3)))
    call gs_ckpt_add_sharded(plan, 'again', [2_int64, 1_int64], [0_int64, int(me, int64)], &
      [2_int64, int(n, int64)], GS_F64, c_loc(x(1, 3)), lower=[0_int64, 5_int64])
    call gs_ckpt_commit(plan)
    call gs_ckpt_write(plan, 4)
    total = 0
    x = 0
    call gs_device_copy(world, memory, c_loc(x), 48)
    call gs_comm_wait(world)
    call gs_ckpt_read(plan, 4)
    call expect(total == 7 .and. all([x] == [1, 2, 3, 0, 5, 6]), 'memory by address')
    call gs_device_copy(world, c_loc(x), memory, 48)
    call gs_comm_wait(world)
    call expect(all([x] == [1, 2, 3, 4, 5, 6]), 'memory of the device')
    call gs_ckpt_destroy(plan)
    call gs_device_free(world, memory)
  end subroutine check_addresses

  subroutine check_steps()
    type(gs_ckpt) :: plan
    integer(int64), allocatable :: steps(:)
    integer(int64) :: number
    integer :: step
    logical :: filled

    call empty_folder()
    call gs_ckpt_create(world, folder, plan, keep_last=2, keep_every=10_int64)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    call gs_ckpt_list(plan, steps, number)
    call expect(size(steps) == 0 .and. number == 0, 'no steps')
    do step = 10, 13
      epoch = step
      call gs_ckpt_write(plan, step)
    end do
    call gs_ckpt_list(plan, steps, number)
    call expect(number == 3 .and. all(steps == [10, 12, 13]), 'the steps that are kept')
    call gs_ckpt_list(plan, steps)
    call expect(size(steps) == 3, 'the same into an array that is allocated')
    call gs_ckpt_read(plan, 12)
    call expect(epoch == 12, 'one of them')
    call gs_ckpt_was_read(plan, 'epoch', filled)
    call expect(filled, 'which has the array')
    call gs_ckpt_was_read(plan, 'era', filled, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_was_read: |era', 'an array that was not added')
    call expect(.not. filled, 'and not another one')
    call gs_ckpt_destroy(plan)
    call gs_ckpt_list(plan, steps, number, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_list: |was destroyed', 'a list of no plan')
    call expect(size(steps) == 0 .and. number == 0, 'which is empty')
  end subroutine check_steps

  subroutine check_options()
    type(gs_ckpt) :: plan
    integer(int64) :: found

    call gs_ckpt_create(world, folder, plan, overwrite=.true., allow_missing=.true.)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_add_replicated(plan, 'phase', phase)
    call gs_ckpt_commit(plan)
    epoch = 0
    phase = 3
    call gs_ckpt_read(plan, 13)
    call expect(epoch == 13 .and. phase == 3, 'an array that the file does not have')
    epoch = 14
    call gs_ckpt_write(plan, 13)
    epoch = 0
    call gs_ckpt_read(plan, GS_CKPT_LATEST, found)
    call expect(found == 13 .and. epoch == 14, 'a step that was replaced')
    call gs_ckpt_destroy(plan)

    call gs_ckpt_create(world, folder, plan, overwrite=.false., &
      compare=GS_CKPT_COMPARE_NONE)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    epoch = me
    call gs_ckpt_write(plan, 20)
    call expect(.true., 'replicas that nobody compares')
    call gs_ckpt_write(plan, 20, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, '20.h5|option overwrite', 'a step that is there')
    call gs_ckpt_read(plan, 13, found, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'phase', 'more arrays than the plan has')
    call expect(found == -1, 'nothing was read')
    call gs_ckpt_destroy(plan)

    call gs_ckpt_create(world, folder, plan, allow_extra=.true., read_only=.true.)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    call gs_ckpt_read(plan, 13)
    call expect(epoch == 14, 'a plan that only reads')
    call gs_ckpt_write(plan, 22, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'option read_only', 'a plan that only reads writes')
    call gs_ckpt_destroy(plan)
    call gs_ckpt_create(world, folder // '/made', plan, create_folder=.true.)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    call gs_ckpt_destroy(plan)
    call on_first(world, 'rmdir ''' // folder // '/made''')
    if (n == 1) return
    call gs_ckpt_create(world, folder, plan)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    epoch = me
    call gs_ckpt_write(plan, 21, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'epoch', 'replicas that differ')
    call gs_ckpt_destroy(plan)
  end subroutine check_options

  ! What all ranks wrote, rank 0 reads alone.
  subroutine check_ranks()
    type(gs_comm) :: first
    type(gs_ckpt) :: plan

    if (n == 1) return
    call gs_ckpt_create(world, folder, plan)
    call gs_ckpt_add_per_rank(plan, 'clock', clock)
    call gs_ckpt_commit(plan)
    clock = me + 40
    call gs_ckpt_write(plan, 30)
    call gs_ckpt_destroy(plan)
    call gs_comm_split(world, merge(0, GS_COLOR_NONE, me == 0), 0, first)
    if (me /= 0) return
    call gs_ckpt_create(first, folder, plan)
    call gs_ckpt_add_per_rank(plan, 'clock', clock)
    call gs_ckpt_commit(plan)
    call gs_ckpt_read(plan, 30, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'clock|option ranks', 'another number of ranks')
    call gs_ckpt_destroy(plan)
    call gs_ckpt_create(first, folder, plan, ranks=GS_CKPT_RANKS_FIRST)
    call gs_ckpt_add_per_rank(plan, 'clock', clock)
    call gs_ckpt_commit(plan)
    clock = 0
    call gs_ckpt_read(plan, 30)
    call expect(clock == 40, 'the state of the first rank')
    call gs_ckpt_destroy(plan)
    call gs_comm_destroy(first)
  end subroutine check_ranks

  ! A file asks to stop; what says so goes with it.
  subroutine check_stop()
    type(gs_ckpt) :: plan
    integer :: reasons

    call gs_ckpt_create(world, folder, plan, signals='SIGUSR2, hup', stop_margin_s=2.5_real64)
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_stop_requested(plan, reasons, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_stop_requested|is not committed', 'a plan that is not')
    call gs_ckpt_commit(plan)
    reasons = 7
    call gs_stop_requested(plan, reasons)
    call expect(reasons == 0, 'no reason to stop')
    call gs_ckpt_destroy(plan)
    call gs_stop_requested(plan, reasons, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_stop_requested: |was destroyed', 'no plan')

    call on_first(world, 'touch ''' // folder // '/stop''')
    call gs_ckpt_create(world, folder, plan, signals='none')
    call gs_ckpt_add_replicated(plan, 'epoch', epoch)
    call gs_ckpt_commit(plan)
    call gs_stop_requested(plan, reasons)
    call expect(reasons == GS_CKPT_STOP_FILE, 'a file that asks to stop')
    call gs_ckpt_destroy(plan)
    call on_first(world, 'rm ''' // folder // '/stop''')

    call gs_ckpt_create(world, folder, plan, signals='USR1,NOBODY', stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_create: signals ''USR1,NOBODY''|''NOBODY''', 'no signal')
    call gs_ckpt_create(world, folder, plan, stop_margin_s=-1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'stop_margin_s is -1', 'a negative margin')
  end subroutine check_stop

  subroutine check_adds()
    type(gs_ckpt) :: plan
    logical, target :: mask(2)

    mask = .true.
    call gs_ckpt_create(world, folder, plan, name='refuser')
    call gs_ckpt_add_replicated(plan, 'x', weights(0:2, :, :), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_add_replicated: array is a strided section', 'a section')
    call gs_ckpt_add_per_rank(plan, 'x', mask, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_add_per_rank: array is logical', 'logical')
    call assumed_size(plan, bias)
    call gs_ckpt_add_replicated(plan, 'x', weights, [1, 2], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'lower has 2 elements, but needs 3', 'bounds of another rank')
    call gs_ckpt_add_sharded(plan, 'x', spectrum, [0, 0, 0], [3, 2], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_add_sharded: offsets has 3 elements', 'too many offsets')
    call gs_ckpt_add_sharded(plan, 'x', spectrum, [0, -1], [3, 2], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'an element of offsets is -1', 'a negative offset')
    call gs_ckpt_add_sharded(plan, 'x', spectrum, [0, 0], [3], stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'shape has 1 elements', 'a short shape')
    call gs_ckpt_add_sharded(plan, 'x', epoch, [integer ::], [integer ::], stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, '''x'' is a scalar', 'a block of a scalar')
    call gs_ckpt_add_replicated(plan, 'x', [3, -1], GS_F32, c_null_ptr, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'an element of shape is -1', 'a negative extent')
    call gs_ckpt_add_replicated(plan, 'x', [3], GS_F32, c_null_ptr, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_add_replicated: ''x''', 'no memory')
    call gs_ckpt_add_replicated(plan, '', bias, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'name is empty', 'no name')
    call gs_ckpt_commit(plan, stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_commit|refuser', 'nothing was added')
    call gs_ckpt_add_replicated(plan, 'x', bias)
    call gs_ckpt_add_per_rank(plan, 'x', bias, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, '''x'' was added already', 'a name twice')
    call gs_ckpt_set_attribute(plan, 'nobody', 'units', 'K', stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_set_attribute: no array ''nobody''', 'an unknown name')
    call gs_ckpt_set_attribute(plan, 'x', 'gs_order', 'C', stat, errmsg)
    call refused(GS_ERR_ARG, '''gs_order''', 'an attribute of our own')
    call gs_ckpt_set_grid(plan, 'x', GS_CKPT_CELLS, [0.0_real64, 0.0_real64], [1.0_real64], &
      stat, errmsg)
    call refused(GS_ERR_ARG, 'spacing has 1 elements, but needs 2', 'a short spacing')
    call gs_ckpt_set_grid(plan, 'x', GS_CKPT_CELLS, [0.0_real64, 0.0_real64], &
      [1.0_real64, 1.0_real64], stat, errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_set_grid: ''x'' is not sharded', 'a grid of replicas')
    call gs_ckpt_commit(plan)
    call gs_ckpt_add_replicated(plan, 'y', spectrum, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'plan ''refuser'' is committed', 'an add after the commit')
    call gs_ckpt_destroy(plan)
  end subroutine check_adds

  subroutine assumed_size(plan, x)
    type(gs_ckpt), intent(in) :: plan
    real(real32), intent(inout), target :: x(*)

    call gs_ckpt_add_replicated(plan, 'x', x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_add_replicated: array is an assumed-size', 'assumed size')
  end subroutine assumed_size

  subroutine check_calls()
    type(gs_ckpt) :: plan
    type(gs_comm) :: no_comm

    call gs_ckpt_create(no_comm, folder, plan, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_create: this type(gs_comm) was never', 'no communicator')
    call gs_ckpt_create(world, ' ', plan, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'dir is empty', 'no folder')
    call gs_ckpt_create(world, folder, plan, keep_last=-1, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'keep_last is -1', 'a negative option')
    call gs_ckpt_create(world, folder, plan, ranks=99, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'unknown ranks 99', 'an unknown option')
    call gs_ckpt_create(world, folder, plan, compare=98, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'unknown compare 98', 'an unknown way to compare')
    call gs_ckpt_create(world, folder, plan, layout=96, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'unknown layout 96', 'an unknown layout')
    call gs_ckpt_create(world, folder, plan, busy=97, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'unknown busy 97', 'an unknown policy')
    call gs_ckpt_create(world, folder, plan, memory=4711_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'memory is 4711', 'too little memory')
    call gs_ckpt_create(world, folder, plan, memory=-1_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_create: memory is -1', 'a negative size')
    call gs_ckpt_create(world, folder // '/none', plan)
    call gs_ckpt_add_replicated(plan, 'x', bias)
    call gs_ckpt_write(plan, 1, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_write|is not committed', 'a write before the commit')
    call gs_ckpt_commit(plan, stat, errmsg)
    call refused(GS_ERR_IO, folder // '/none', 'a folder that is not there')
    call gs_ckpt_destroy(plan)
    call gs_ckpt_create(world, folder, plan)
    call gs_ckpt_add_replicated(plan, 'x', bias)
    call gs_ckpt_commit(plan)
    call gs_ckpt_write(plan, -3, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_write|-3', 'a negative step')
    call gs_ckpt_read(plan, 77, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_IO, '77.h5', 'a step that is not there')
    call gs_ckpt_destroy(plan)
  end subroutine check_calls

  subroutine check_handles()
    type(gs_ckpt) :: plan, copy, never

    call gs_ckpt_destroy(never)
    call gs_ckpt_commit(never, stat, errmsg)
    call refused(GS_ERR_STATE, 'type(gs_ckpt) was never created: call gs_ckpt_create', 'no plan')
    call gs_ckpt_create(world, folder, plan, name='short')
    copy = plan
    call gs_ckpt_add_replicated(copy, 'x', bias)
    call gs_ckpt_destroy(copy)
    call gs_ckpt_add_replicated(plan, 'y', bias, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'checkpoint plan ''short'' was destroyed', 'use after destroy')
    call gs_ckpt_destroy(plan, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_destroy|was destroyed', 'a second destroy')
  end subroutine check_handles

end program ckpt
