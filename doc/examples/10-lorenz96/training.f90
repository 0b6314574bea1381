! SPDX-License-Identifier: BSD-3-Clause
!
! training - fits both closures to the trajectories while these are simulated.
!
! This is the part to copy: the calls to gradsync below, and those of module checkpoints, are all
! that a serial training loop needs to run on any number of ranks. What makes the result
! independent of that number:
!   - the global batch is all trajectories, whoever owns them;
!   - inputs and targets are normalised with moments of all ranks, not of each;
!   - all ranks start with the same weights and apply the same averaged gradient.
module training
  use, intrinsic :: iso_c_binding, only: c_associated, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  use gradsync
  use checkpoints, only: checkpoints_close, checkpoints_open, checkpoints_plan, &
                         checkpoints_write, training_state
  use ensemble, only: members
  use lorenz96, only: dt_full, dt_reduced, full_advance, n_slow, subgrid_tendency
  use mlp, only: adam_create, adam_step, network, network_backward, network_create, &
                 network_forward, pass
  use noise, only: n_residuals, noise_fit, noisy_closure, residuals_add
  use options, only: settings
  use progress, only: elapsed, reporter, say, say_live
  use quartic, only: n_quartic, quartic_add, quartic_closure, quartic_fit
  use statistics, only: moments_add, moments_scaling, n_moments
  use surrogate, only: learned_closure, stencil_size
  use timeline, only: step_timeline, timeline_begin, timeline_buckets, timeline_mark
  implicit none
  private
  public :: train, train_noise

  integer, parameter :: hidden = 32       ! neurons in each of the two hidden layers
  integer, parameter :: weights_seed = 1996
  integer, parameter :: samples = 4       ! of each trajectory in one training step
  integer, parameter :: sample_steps = 50 ! of the simulation from one sample to the next
  integer, parameter :: scaling_samples = 200, noise_samples = 1000 ! of each trajectory
  real(real64), parameter :: first_rate = 5e-3_real64 ! the learning rate falls from here to 0

  integer, parameter :: batch = samples * n_slow ! what one trajectory gives to a training step
  real(real64), parameter, public :: mtu_per_step = samples * sample_steps * dt_full

  ! The gradient of a layer, where the reducer has it. On GPUs that is memory of the GPU, and the
  ! backward pass of this program runs on the host: there it has arrays beside the reducer's.
  type :: gradient
    real(real64), pointer :: m(:, :) => null()
    real(real64), allocatable :: beside(:, :)
    type(c_ptr) :: on_gpu = c_null_ptr
  end type gradient

contains

  ! Trains both closures, with the trajectories in s, which become a part of the state. s%loss(i)
  ! is the mean squared error of step i over the global batch, in units of the variance of U.
  ! last is where the time of the last step went. problem is left empty, or says on all ranks why
  ! nothing was done. Collective.
  subroutine train(comm, set, out, s, polynomial, last, problem)
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    type(reporter), intent(in) :: out
    type(training_state), intent(inout), target :: s
    type(quartic_closure), intent(out) :: polynomial
    type(step_timeline), intent(out) :: last
    character(:), allocatable, intent(inout) :: problem
    type(checkpoints_plan), target :: saved

    s%learned%net = network_create([stencil_size, hidden, hidden, 1], weights_seed)
    allocate (s%optimiser, source=adam_create(s%learned%net%layer))
    allocate (s%sums(n_quartic, size(s%own%state)), s%loss(set%train_steps), source=0.0_real64)
    call checkpoints_open(comm, set, out, s, saved, problem)
    if (problem == '') then
      if (saved%done == 0) call find_scaling(comm, s%own, s%learned)
      call train_network(comm, set, out, s, saved, last)
      polynomial = fit_of_all(comm, s)
    end if
    call checkpoints_close(saved, out)
  end subroutine train

  ! The steps that are not done.
  subroutine train_network(comm, set, out, s, saved, t)
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    type(reporter), intent(in) :: out
    type(training_state), intent(inout), target :: s
    type(checkpoints_plan), intent(inout), target :: saved
    type(step_timeline), intent(inout) :: t ! of the last step
    type(gs_reducer) :: reducer
    type(gradient), allocatable, target :: g(:) ! of each layer
    type(pass) :: p
    real(real64) :: inputs(stencil_size, batch * size(s%own%state))
    real(real64) :: targets(batch * size(s%own%state)), own_loss, begin
    logical :: weighted
    integer :: step, i

    weighted = mod(s%own%total, gs_comm_size(comm)) /= 0 ! trajectories count the same, not ranks
    call gs_reducer_create(comm, reducer, name='network', wire=set%wire, weighted=weighted)
    call add_layers(comm, reducer, s%learned%net, g)
    if (weighted) call gs_reducer_set_weight(reducer, real(size(s%own%state), real64))
    begin = elapsed(out)
    do step = saved%done + 1, size(s%loss)
      call timeline_begin(t)
      call simulate(s, inputs, targets)
      call timeline_mark(t, 'simulation')
      call network_forward(s%learned%net, inputs, targets, p, own_loss)
      call timeline_mark(t, 'forward pass')
      call gs_reducer_set_scalar(reducer, 0, own_loss)
      do i = size(g), 1, -1
        call network_backward(s%learned%net, p, i, g(i)%m)
        call timeline_mark(t, 'backward, layer ' // achar(iachar('0') + i))
        if (i == size(g)) t%first_ready = t%phases
        call ready(comm, reducer, i, g(i)) ! from now on it may travel
      end do
      call gs_reducer_finish(reducer) ! now all of them, and the loss, are averages
      call timeline_mark(t, 'finish')
      do i = 1, size(g)
        call fetch(comm, g(i))
        call adam_step(s%optimiser(i), s%learned%net%layer(i), g(i)%m, &
                       learning_rate(step, size(s%loss)))
      end do
      call timeline_mark(t, 'update')
      call gs_reducer_get_scalar(reducer, 0, s%loss(step))
      call report(out, reducer, s%loss, step, saved%done, begin)
      call checkpoints_write(saved, step, s, out)
    end do
    call report_averages(out, reducer)
    call timeline_buckets(t, reducer)
    call gs_reducer_destroy(reducer)
  end subroutine train_network

  ! Tells the reducer of the layers and the loss, and all ranks the weights of rank 0.
  subroutine add_layers(comm, reducer, net, g)
    type(gs_comm), intent(in) :: comm
    type(gs_reducer), intent(in) :: reducer
    type(network), intent(inout), target :: net
    type(gradient), allocatable, target, intent(out) :: g(:)
    integer :: i

    allocate (g(size(net%layer)))
    do i = 1, size(g)
      call gs_reducer_add(reducer, 'layer ' // achar(iachar('0') + i), shape(net%layer(i)%m), &
                          GS_F64)
    end do
    call gs_reducer_add_scalar(reducer, 'loss', GS_AVG)
    call gs_reducer_commit(reducer)
    call gs_reducer_broadcast(reducer, [(c_loc(net%layer(i)%m), i=1, size(g))], 0)
    do i = 1, size(g)
      call gs_reducer_get_grad(reducer, i - 1, g(i)%m)
      if (gs_comm_device(comm) == GS_DEVICE_HOST) cycle
      g(i)%on_gpu = c_loc(g(i)%m)
      allocate (g(i)%beside, mold=net%layer(i)%m)
      g(i)%m => g(i)%beside
    end do
  end subroutine add_layers

  ! Says that the gradient of layer i is complete.
  subroutine ready(comm, reducer, i, g)
    type(gs_comm), intent(in) :: comm
    type(gs_reducer), intent(in) :: reducer
    integer, intent(in) :: i
    type(gradient), intent(in) :: g

    if (c_associated(g%on_gpu)) &
      call gs_device_copy(comm, g%on_gpu, c_loc(g%m), size(g%m) * gs_dtype_size(GS_F64))
    call gs_reducer_ready(reducer, i - 1)
  end subroutine ready

  ! Lets g%m be the average.
  subroutine fetch(comm, g)
    type(gs_comm), intent(in) :: comm
    type(gradient), intent(in) :: g

    if (c_associated(g%on_gpu)) &
      call gs_device_copy(comm, c_loc(g%m), g%on_gpu, size(g%m) * gs_dtype_size(GS_F64))
  end subroutine fetch

  ! The scaling of X and U, from samples of all ranks.
  subroutine find_scaling(comm, own, learned)
    type(gs_comm), intent(in) :: comm
    type(members), intent(inout) :: own
    type(learned_closure), intent(inout) :: learned
    real(real64) :: moments(n_moments, 2)
    integer :: i, t

    moments = 0
    do t = 1, size(own%state)
      do i = 1, scaling_samples
        call full_advance(own%state(t), sample_steps)
        call moments_add(moments(:, 1), own%state(t)%x)
        call moments_add(moments(:, 2), subgrid_tendency(own%state(t)))
      end do
    end do
    call gs_allreduce(comm, moments, GS_SUM)
    learned%x = moments_scaling(moments(:, 1))
    learned%u = moments_scaling(moments(:, 2))
  end subroutine find_scaling

  ! Advances this rank's trajectories and takes samples from each: a column of inputs and a target
  ! for every site. They are added to the quartic's sums, too.
  subroutine simulate(s, inputs, targets)
    type(training_state), intent(inout) :: s
    real(real64), intent(out) :: inputs(:, :), targets(:)
    real(real64) :: u(n_slow)
    integer :: t, i, column

    column = 0
    do t = 1, size(s%own%state)
      associate (state => s%own%state(t))
        do i = 1, samples
          call full_advance(state, sample_steps)
          u = subgrid_tendency(state)
          inputs(:, column + 1:column + n_slow) = s%learned%inputs(state%x)
          targets(column + 1:column + n_slow) = s%learned%targets(u)
          call quartic_add(s%sums(:, t), s%learned%x, state%x, u)
          column = column + n_slow
        end do
      end associate
    end do
  end subroutine simulate

  ! The quartic that fits the sums of all trajectories. Collective.
  function fit_of_all(comm, s) result(fit)
    type(gs_comm), intent(in) :: comm
    type(training_state), intent(in) :: s
    type(quartic_closure) :: fit
    real(real64) :: total(n_quartic)

    total = sum(s%sums, dim=2)
    call gs_allreduce(comm, total, GS_SUM)
    fit = quartic_fit(total, s%learned%x)
  end function fit_of_all

  ! Fits the noise of each closure to what it leaves unexplained. Collective.
  subroutine train_noise(comm, own, closures)
    type(gs_comm), intent(in) :: comm
    type(members), intent(inout) :: own
    type(noisy_closure), intent(inout) :: closures(:)
    real(real64) :: sums(n_residuals, size(closures))
    real(real64), dimension(n_slow, size(closures)) :: r, r_before
    integer :: t, i, c

    sums = 0
    do t = 1, size(own%state)
      do i = 0, noise_samples
        call full_advance(own%state(t), sample_steps)
        do c = 1, size(closures)
          r(:, c) = subgrid_tendency(own%state(t)) - closures(c)%tendency(own%state(t)%x)
          if (i > 0) call residuals_add(sums(:, c), r(:, c), r_before(:, c))
        end do
        r_before = r
      end do
    end do
    call gs_allreduce(comm, sums, GS_SUM)
    do c = 1, size(closures)
      call noise_fit(closures(c), sums(:, c), nint(sample_steps * dt_full / dt_reduced))
    end do
  end subroutine train_noise

  ! Half a cosine: steep in the middle, level at both ends.
  pure real(real64) function learning_rate(step, steps) result(rate)
    integer, intent(in) :: step, steps
    real(real64), parameter :: pi = acos(-1.0_real64)

    rate = first_rate * (1 + cos(pi * (step - 1) / steps)) / 2
  end function learning_rate

  ! So small a network is one bucket, which leaves when the backward pass has ended: nothing
  ! overlaps. Larger ones have several. What overlaps on GPUs the host does not see.
  subroutine report_averages(out, reducer)
    type(reporter), intent(in) :: out
    type(gs_reducer), intent(in) :: reducer
    type(gs_reducer_stats) :: s
    character(120) :: line

    call gs_reducer_get_stats(reducer, s)
    write (line, '("averages: ", i0, " steps of ", i0, " bytes, ", i0, " on the wire, buckets ", &
      &i0, ", overlap ", f4.2)') s%steps, s%bytes, s%wire_bytes, s%buckets, s%overlap
    call say(out, trim(line))
  end subroutine report_averages

  ! About twenty lines in all, and in a terminal one that follows the training: how far it is, the
  ! loss, the share of the averages' time that the backward pass hides, and the time that is left.
  subroutine report(out, reducer, loss, step, before, begin)
    type(reporter), intent(in) :: out
    type(gs_reducer), intent(in) :: reducer
    real(real64), intent(in) :: loss(:), begin ! when step before + 1 began
    integer, intent(in) :: step, before
    type(gs_reducer_stats) :: s
    real(real64) :: speed
    integer :: every, mean_of
    character(80) :: line, at, time

    every = max(1, size(loss) / 20)
    if (mod(step, every) /= 0 .and. .not. (out%live .and. mod(step, max(1, every / 25)) == 0)) &
      return
    call gs_reducer_get_stats(reducer, s)
    mean_of = min(step, every)
    speed = (step - before) / max(1e-6_real64, elapsed(out) - begin) ! steps a second
    write (line, '("loss ", f6.4, ", hidden ", f4.2, ", ", f0.1, " steps/s, ", i0, " s left")') &
      sum(loss(step - mean_of + 1:step)) / mean_of, s%overlap, speed, &
      nint((size(loss) - step) / speed)
    write (at, '("step ", i0, " of ", i0, ", ")') step, size(loss)
    if (mod(step, every) == 0) then
      write (time, '(i0, " MTU, ")') nint(step * mtu_per_step)
      call say(out, 'training: ' // trim(at) // ' ' // trim(time) // ' ' // trim(line))
    else
      call say_live(out, trim(at) // ' ' // trim(line))
    end if
  end subroutine report

end module training
