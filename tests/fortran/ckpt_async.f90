! SPDX-License-Identifier: BSD-3-Clause
! slow_disk - what fdatasync, which the library calls in its thread, does in this program: it
! waits while the disk is held.
module slow_disk
  use, intrinsic :: iso_c_binding, only: c_int, c_long, c_null_ptr, c_ptr
  implicit none
  private
  public :: open_disk, hold_disk, let_disk_go

  integer(c_long) :: mutex(16) ! a pthread_mutex_t takes 5 to 8 of them

  interface
    function c_fsync(fd) bind(c, name="fsync") result(rc)
      import :: c_int
      integer(c_int), value :: fd
      integer(c_int) :: rc
    end function c_fsync

    function c_mutex_init(mutex, attributes) bind(c, name="pthread_mutex_init") result(rc)
      import :: c_int, c_long, c_ptr
      integer(c_long) :: mutex(*)
      type(c_ptr), value :: attributes
      integer(c_int) :: rc
    end function c_mutex_init

    function c_mutex_lock(mutex) bind(c, name="pthread_mutex_lock") result(rc)
      import :: c_int, c_long
      integer(c_long) :: mutex(*)
      integer(c_int) :: rc
    end function c_mutex_lock

    function c_mutex_unlock(mutex) bind(c, name="pthread_mutex_unlock") result(rc)
      import :: c_int, c_long
      integer(c_long) :: mutex(*)
      integer(c_int) :: rc
    end function c_mutex_unlock
  end interface

contains

  subroutine open_disk()
    integer(c_int) :: rc

    rc = c_mutex_init(mutex, c_null_ptr)
    if (rc /= 0) error stop 'pthread_mutex_init'
  end subroutine open_disk

  subroutine hold_disk()
    integer(c_int) :: rc

    rc = c_mutex_lock(mutex)
    if (rc /= 0) error stop 'pthread_mutex_lock'
  end subroutine hold_disk

  subroutine let_disk_go()
    integer(c_int) :: rc

    rc = c_mutex_unlock(mutex)
    if (rc /= 0) error stop 'pthread_mutex_unlock'
  end subroutine let_disk_go

  function fdatasync(fd) bind(c, name="fdatasync") result(rc)
    integer(c_int), value :: fd
    integer(c_int) :: rc

    call hold_disk()
    call let_disk_go()
    rc = c_fsync(fd)
  end function fdatasync

end module slow_disk

! ckpt_async - checkpoints that are written while a Fortran program goes on: what they hold is
! what the arrays were; policies, options, handles and what is refused.
program ckpt_async
  use, intrinsic :: iso_fortran_env, only: int64, real32, real64
  use checks
  use failing_calls
  use gradsync
  use scratch
  use slow_disk, only: open_disk, hold_disk, let_disk_go
  implicit none

  integer, parameter :: rows = 50000
  real(real64), target :: weights(0:199999)
  real(real32), target, allocatable :: field(:, :) ! a column of each rank
  integer(int64), target :: clock

  type(gs_comm) :: world
  character(:), allocatable :: folder
  integer :: me, n

  call open_disk()
  call gs_comm_create(world)
  me = gs_comm_rank(world)
  n = gs_comm_size(world)
  call speak_as(me)
  call open_folder(world, 'gs-fortran-async', folder)
  allocate (field(rows, me:me))
  call skip_without_hdf5()
  call check_options()
  call check_busy()
  call check_refusals()
  call check_diverged()
  call check_handles()
  call close_folder(world, folder)
  call gs_comm_destroy(world)
  deallocate (field, folder)
  call finish()

contains

  subroutine skip_without_hdf5()
    type(gs_ckpt) :: plan

    call gs_ckpt_create(world, folder, plan, stat=stat, errmsg=errmsg)
    call gs_ckpt_destroy(plan)
    if (stat /= GS_ERR_UNSUPPORTED) return
    call close_folder(world, folder)
    call gs_comm_destroy(world)
    print '(2a)', 'skip: ', trim(errmsg)
    stop 77
  end subroutine skip_without_hdf5

  subroutine fill(step)
    integer, intent(in) :: step
    integer :: i

    weights = [(step + i / 1048576.0_real64, i=1, size(weights))]
    field(:, me) = [(step + i * real(me + 1, real32), i=1, rows)]
    clock = 1000 * step + me
  end subroutine fill

  function holds(step) result(right)
    integer, intent(in) :: step
    logical :: right
    integer :: i

    right = all(weights == [(step + i / 1048576.0_real64, i=1, size(weights))])
    right = right .and. all(field(:, me) == [(step + i * real(me + 1, real32), i=1, rows)])
    right = right .and. clock == 1000 * step + me
  end function holds

  subroutine add_all(plan)
    type(gs_ckpt), intent(in) :: plan

    call gs_ckpt_add_replicated(plan, 'weights', weights, lbound(weights))
    call gs_ckpt_add_sharded(plan, 'field', field, [0, me], [rows, n])
    call gs_ckpt_add_per_rank(plan, 'clock', clock)
    call gs_ckpt_commit(plan)
  end subroutine add_all

  subroutine check_options()
    integer(int64), parameter :: some = 2**20 ! of the 1.8 MB that a rank has
    type(gs_ckpt) :: plan

    call gs_ckpt_create(world, folder, plan)
    call check_round(plan, 100, 'all in memory')
    call gs_ckpt_create(world, folder, plan, memory=some, direct=.true.)
    call check_round(plan, 200, 'in little memory, past the cache')
    call gs_ckpt_create(world, folder, plan, lazy=.true., compare=GS_CKPT_COMPARE_SAMPLE)
    call check_round(plan, 300, 'from where they are')
    call gs_ckpt_create(world, folder, plan, lazy=.true., memory=some, &
      compare=GS_CKPT_COMPARE_NONE, busy=GS_CKPT_BUSY_WAIT)
    call check_round(plan, 400, 'later, in little memory')
  end subroutine check_options

  ! Arrays may change as soon as the calls say so.
  subroutine check_round(plan, first, what)
    type(gs_ckpt), intent(in) :: plan
    integer, intent(in) :: first
    character(*), intent(in) :: what
    integer(int64) :: written
    integer :: step
    logical :: begun

    call add_all(plan)
    call gs_ckpt_test(plan, written)
    call expect(written == -1, what // ': nothing is under way')
    call gs_ckpt_wait_staged(plan)
    do step = first, first + 2
      call fill(step)
      begun = .false.
      if (step == first) call gs_ckpt_write_async(plan, step, begun)
      if (step > first) call gs_ckpt_write_async(plan, int(step, int64), begun, stream=0_int64)
      call expect(begun, what // ': a write is under way')
      call gs_ckpt_wait_staged(plan)
      call fill(2)
      if (step == first) call step_on(plan, step)
      if (step == first + 1) then
        call gs_ckpt_wait(plan, written)
        call expect(written == step, what // ': what was waited for')
      end if
    end do
    call fill(first + 3)
    call gs_ckpt_write(plan, first + 3) ! which waits for the one before
    call gs_ckpt_wait(plan, written, 0_int64)
    call expect(written == -1, what // ': nothing is under way any more')
    do step = first, first + 3
      call read_back(plan, step, what)
    end do
    call gs_ckpt_destroy(plan)
  end subroutine check_round

  ! Steps of a program until [step] is on disk.
  subroutine step_on(plan, step)
    type(gs_ckpt), intent(in) :: plan
    integer, intent(in) :: step
    integer(int64) :: written, now, begin, rate

    written = -1
    call system_clock(begin, rate)
    now = begin
    do while (written < 0 .and. now - begin < 60 * rate)
      call gs_ckpt_test(plan, written)
      call system_clock(now)
    end do
    call expect(written == step, 'what a test has found')
  end subroutine step_on

  subroutine read_back(plan, step, what)
    type(gs_ckpt), intent(in) :: plan
    integer, intent(in) :: step
    character(*), intent(in) :: what

    call fill(1)
    call gs_ckpt_read(plan, step)
    call expect(holds(step), what // ': arrays as they were')
  end subroutine read_back

  ! Holds the disk of the last rank, or lets it go, between two barriers.
  subroutine hold(yes)
    logical, intent(in) :: yes

    call gs_barrier(world)
    call gs_comm_wait(world)
    if (me == n - 1) then
      if (yes) call hold_disk()
      if (.not. yes) call let_disk_go()
    end if
    call gs_barrier(world)
    call gs_comm_wait(world)
  end subroutine hold

  ! A second write while the disk of the first one takes its time.
  subroutine check_busy()
    type(gs_ckpt) :: plan

    call gs_ckpt_create(world, folder, plan, busy=GS_CKPT_BUSY_SKIP)
    call add_all(plan)
    call write_twice(plan, 500, .true.)
    call gs_ckpt_create(world, folder, plan, busy=GS_CKPT_BUSY_ERROR)
    call add_all(plan)
    call write_twice(plan, 510, .false.)
  end subroutine check_busy

  subroutine write_twice(plan, first, skip)
    type(gs_ckpt), intent(in) :: plan
    integer, intent(in) :: first
    logical, intent(in) :: skip
    integer(int64) :: written
    logical :: begun

    call hold(.true.)
    call fill(first)
    call gs_ckpt_write_async(plan, first, begun)
    call gs_ckpt_test(plan, written)
    call expect(begun .and. written == -1, 'a write whose disk is slow')
    call fill(first + 1)
    begun = .true.
    call gs_ckpt_write_async(plan, first + 1, begun, stat=stat, errmsg=errmsg)
    if (skip) call expect(stat == GS_OK .and. .not. begun, 'a write that is left out')
    if (.not. skip) then
      call refused(GS_ERR_STATE, 'gs_ckpt_write_async|option busy', 'a write that is too many')
      call expect(.not. begun, 'which was not begun')
    end if
    call check_under_way(plan)
    call hold(.false.)
    call gs_ckpt_wait(plan, written)
    call expect(written == first, 'the first of them')
    call read_back(plan, first, 'beside another one')
    call gs_ckpt_destroy(plan)
  end subroutine write_twice

  ! What a plan refuses while it writes; its handle, and copies of it, stay good.
  subroutine check_under_way(plan)
    type(gs_ckpt), intent(in) :: plan
    type(gs_ckpt) :: copy
    integer(int64) :: found

    copy = plan
    call gs_ckpt_destroy(plan, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_destroy|gs_ckpt_wait', 'a destroy too early')
    call gs_ckpt_destroy(copy, stat, errmsg)
    call refused(GS_ERR_STATE, 'still being written', 'and by a copy')
    call gs_ckpt_read(copy, 100, found, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_read|gs_ckpt_wait', 'a read too early')
    call expect(found == -1, 'nothing was read')
    call gs_comm_destroy(world, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_destroy', 'the communicator of a plan')
  end subroutine check_under_way

  subroutine check_refusals()
    type(gs_ckpt) :: plan
    integer(int64) :: written
    logical :: begun

    call gs_ckpt_create(world, folder, plan)
    begun = .true.
    call gs_ckpt_write_async(plan, 600, begun, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_write_async|is not committed', 'a write too early')
    call expect(.not. begun, 'nothing was begun')
    call gs_ckpt_wait_staged(plan, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_wait_staged|is not committed', 'nor was anything staged')
    written = 7
    call gs_ckpt_test(plan, written, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_test|is not committed', 'a test too early')
    call expect(written == -1, 'nothing was written')
    call gs_ckpt_wait(plan, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_wait|is not committed', 'a wait too early')
    call add_all(plan)
    call gs_ckpt_write_async(plan, -4_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_ckpt_write_async|-4', 'a negative step')
    call gs_ckpt_write_async(plan, 100, begun, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, '100.h5|option overwrite', 'a step that is there')
    call gs_ckpt_destroy(plan)
  end subroutine check_refusals

  ! What was met beside the program is told later.
  subroutine check_diverged()
    type(gs_ckpt) :: plan
    integer(int64) :: written
    logical :: begun

    if (n == 1) return
    call gs_ckpt_create(world, folder, plan)
    call add_all(plan)
    call fill(700)
    if (me == n - 1) weights(100000) = 0
    call gs_ckpt_write_async(plan, 700, begun, stat=stat, errmsg=errmsg)
    written = 7
    if (stat == GS_OK) call gs_ckpt_wait(plan, written, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'weights', 'replicas that differ')
    call expect(written == merge(-1, 7, begun), 'no checkpoint')
    call gs_ckpt_destroy(plan)
  end subroutine check_diverged

  subroutine check_handles()
    type(gs_ckpt) :: plan, never

    call gs_ckpt_write_async(never, 1, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_write_async: this type(gs_ckpt) was never', 'no plan')
    call gs_ckpt_create(world, folder, plan, name='gone')
    call gs_ckpt_destroy(plan)
    call gs_ckpt_wait_staged(plan, stat, errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_wait_staged|''gone'' was destroyed', &
              'a plan that is gone')
    call gs_ckpt_test(plan, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_test|''gone'' was destroyed', 'to test')
    call gs_ckpt_wait(plan, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_ckpt_wait|''gone'' was destroyed', 'to wait for')
  end subroutine check_handles

end program ckpt_async
