! SPDX-License-Identifier: BSD-3-Clause
!
! checkpoints - the state of the training: saves it, and goes on from there.
!
! This is the other part to copy. What lets any number of ranks go on:
!   - what is equal on all ranks is stored once;
!   - what belongs to trajectories, sums included, is stored by their numbers, whoever owns them;
!   - random numbers depend on the number of a trajectory only: a rank has no generator to save.
module checkpoints
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use gradsync
  use ensemble, only: members
  use lorenz96, only: n_fast, n_slow
  use mlp, only: adam
  use options, only: settings
  use progress, only: reporter, say
  use quartic, only: n_quartic
  use surrogate, only: learned_closure
  implicit none
  private
  public :: checkpoints_open, checkpoints_write, checkpoints_close

  ! All that training changes.
  type, public :: training_state
    type(members) :: own
    type(learned_closure) :: learned
    type(adam), allocatable :: optimiser(:)
    real(real64), allocatable :: sums(:, :) ! of the quartic, for each of the own trajectories
    real(real64), allocatable :: loss(:)    ! of each training step; 0 before it
  end type training_state

  type, public :: checkpoints_plan
    integer :: done = 0 ! the step that the state is of
    character(:), allocatable, private :: folder ! empty: no checkpoints
    integer, private :: every = 0 ! training steps
    logical, private :: ready = .false.
    type(gs_ckpt), private :: plan
    real(real64), allocatable, private :: x(:, :), y(:, :) ! own trajectories, one a column
  end type checkpoints_plan

contains

  ! Tells what is saved, and in which folder; and goes on from the newest checkpoint there, if the
  ! user wants that. problem is left empty, or says on all ranks what is wrong. Collective.
  ! The plan keeps the addresses of what is in s and c: it stays there until the close.
  subroutine checkpoints_open(comm, set, out, s, c, problem)
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    type(reporter), intent(in) :: out
    type(training_state), intent(inout), target :: s
    type(checkpoints_plan), intent(out), target :: c
    character(:), allocatable, intent(inout) :: problem
    integer(int64), allocatable :: steps(:)
    character(500) :: text
    integer :: status

    c%folder = set%checkpoint
    c%every = set%every
    if (c%folder == '') return
    call gs_ckpt_create(comm, c%folder, c%plan, keep_last=2, stat=status, errmsg=text)
    if (status == GS_OK) then
      call add_state(c, s)
      call gs_ckpt_commit(c%plan, status, text)
    end if
    if (status == GS_OK) call gs_ckpt_list(c%plan, steps, stat=status, errmsg=text)
    c%ready = status == GS_OK
    if (status /= GS_OK) then
      problem = trim(text)
    else if (set%resume) then
      call resume(c, out, s, problem)
    else if (size(steps) > 0) then
      problem = c%folder // ' has checkpoints: go on with --resume, or name another folder'
    end if
  end subroutine checkpoints_open

  subroutine add_state(c, s)
    type(checkpoints_plan), intent(inout), target :: c
    type(training_state), intent(inout), target :: s
    character(:), allocatable :: layer
    integer :: first, total, i

    do i = 1, size(s%optimiser)
      layer = '/layer' // achar(iachar('0') + i)
      call gs_ckpt_add_replicated(c%plan, 'network' // layer, s%learned%net%layer(i)%m)
      call gs_ckpt_add_replicated(c%plan, 'adam/mean' // layer, s%optimiser(i)%mean)
      call gs_ckpt_add_replicated(c%plan, 'adam/square' // layer, s%optimiser(i)%square)
      call gs_ckpt_add_replicated(c%plan, 'adam/steps' // layer, s%optimiser(i)%steps)
    end do
    call gs_ckpt_add_replicated(c%plan, 'scaling/x/mean', s%learned%x%mean)
    call gs_ckpt_add_replicated(c%plan, 'scaling/x/deviation', s%learned%x%deviation)
    call gs_ckpt_add_replicated(c%plan, 'scaling/u/mean', s%learned%u%mean)
    call gs_ckpt_add_replicated(c%plan, 'scaling/u/deviation', s%learned%u%deviation)
    call gs_ckpt_add_replicated(c%plan, 'loss', s%loss)

    first = s%own%first
    total = s%own%total
    allocate (c%x(n_slow, size(s%own%state)), c%y(n_slow * n_fast, size(s%own%state)))
    call gs_ckpt_add_sharded(c%plan, 'x', c%x, [0, first], [n_slow, total])
    call gs_ckpt_add_sharded(c%plan, 'y', c%y, [0, first], [n_slow * n_fast, total])
    call gs_ckpt_add_sharded(c%plan, 'quartic', s%sums, [0, first], [n_quartic, total])
    call gs_ckpt_set_attribute(c%plan, 'x', 'long_name', 'slow variables of each trajectory')
    call gs_ckpt_set_attribute(c%plan, 'y', 'long_name', 'fast variables of each trajectory')
  end subroutine add_state

  subroutine resume(c, out, s, problem)
    type(checkpoints_plan), intent(inout), target :: c
    type(reporter), intent(in) :: out
    type(training_state), intent(inout), target :: s
    character(:), allocatable, intent(inout) :: problem
    integer(int64) :: step
    character(500) :: text
    integer :: status, t

    call gs_ckpt_read(c%plan, GS_CKPT_LATEST, step, stat=status, errmsg=text)
    if (status /= GS_OK) then
      problem = trim(text)
    else if (step < 0) then
      call say(out, 'no checkpoint in ' // c%folder // ': from the beginning')
    else
      do t = 1, size(s%own%state)
        s%own%state(t)%x = c%x(:, t)
        s%own%state(t)%y = c%y(:, t)
      end do
      c%done = int(step)
      write (text, '("resumed after step ", i0, ", from")') step
      call say(out, trim(text) // ' ' // c%folder)
    end if
  end subroutine resume

  ! At the end of a step: saves s, when it is time to, while the training goes on. Collective.
  subroutine checkpoints_write(c, step, s, out)
    type(checkpoints_plan), intent(inout), target :: c
    integer, intent(in) :: step
    type(training_state), intent(in), target :: s
    type(reporter), intent(in) :: out
    integer(int64) :: written
    integer :: t
    logical :: due

    if (c%folder == '') return
    due = mod(step, c%every) == 0 .or. step == size(s%loss)
    if (due) then
      call gs_ckpt_wait(c%plan, written) ! for the one before
    else
      call gs_ckpt_test(c%plan, written)
    end if
    call tell(c, out, written)
    if (.not. due) return
    do t = 1, size(s%own%state)
      c%x(:, t) = s%own%state(t)%x
      c%y(:, t) = s%own%state(t)%y
    end do
    call gs_ckpt_write_async(c%plan, step) ! copies: s may change from here on
  end subroutine checkpoints_write

  subroutine tell(c, out, written)
    type(checkpoints_plan), intent(in) :: c
    type(reporter), intent(in) :: out
    integer(int64), intent(in) :: written ! the step that is on disk now, or -1
    character(40) :: text

    if (written < 0) return
    write (text, '("checkpoint of step ", i0, ", in")') written
    call say(out, trim(text) // ' ' // c%folder)
  end subroutine tell

  ! Waits for the last one; what is saved stays. Collective.
  subroutine checkpoints_close(c, out)
    type(checkpoints_plan), intent(inout) :: c
    type(reporter), intent(in) :: out
    integer(int64) :: written

    if (c%ready) then
      call gs_ckpt_wait(c%plan, written)
      call tell(c, out, written)
    end if
    call gs_ckpt_destroy(c%plan) ! if there is one
  end subroutine checkpoints_close

end module checkpoints
