! SPDX-License-Identifier: BSD-3-Clause
!
! training - fits both closures to the trajectories while these are simulated.
!
! This is the part to copy: the calls to gradsync below are all that a serial training loop needs
! to run on any number of ranks. What makes the result independent of that number:
!   - the global batch is all trajectories, whoever owns them;
!   - inputs and targets are normalised with moments of all ranks, not of each;
!   - all ranks start with the same weights and apply the same averaged gradient.
module training
  use, intrinsic :: iso_fortran_env, only: real64
  use gradsync, only: gs_comm, gs_comm_size, gs_allreduce, gs_allreduce_avg, gs_allreduce_wavg, &
                      GS_SUM
  use ensemble, only: members
  use lorenz96, only: dt_full, dt_reduced, full_advance, n_slow, subgrid_tendency
  use mlp, only: adam, adam_create, adam_step, network_create, network_gradient
  use noise, only: n_residuals, noise_fit, noisy_closure, residuals_add
  use progress, only: reporter, say
  use quartic, only: n_quartic, quartic_add, quartic_closure, quartic_fit
  use statistics, only: moments_add, moments_scaling, n_moments
  use surrogate, only: learned_closure, stencil_size
  implicit none
  private
  public :: train, train_noise

  integer, parameter :: hidden = 32       ! neurons in each hidden layer
  integer, parameter :: weights_seed = 1996
  integer, parameter :: samples = 4       ! of each trajectory in one training step
  integer, parameter :: sample_steps = 50 ! of the simulation from one sample to the next
  integer, parameter :: scaling_samples = 200, noise_samples = 1000 ! of each trajectory
  real(real64), parameter :: first_rate = 5e-3_real64 ! the learning rate falls from here to 0

  integer, parameter :: batch = samples * n_slow ! what one trajectory gives to a training step
  real(real64), parameter, public :: mtu_per_step = samples * sample_steps * dt_full

contains

  ! Trains both closures, the network for a number of steps. loss(i) is the mean squared error of
  ! step i over the global batch, in units of the variance of U. Collective.
  subroutine train(comm, own, out, learned, polynomial, loss)
    type(gs_comm), intent(in) :: comm
    type(members), intent(inout) :: own
    type(reporter), intent(in) :: out
    type(learned_closure), intent(out) :: learned
    type(quartic_closure), intent(out) :: polynomial
    real(real64), intent(out) :: loss(:)
    type(adam) :: optimiser
    real(real64) :: sums(n_quartic)
    real(real64), allocatable :: packed(:) ! all gradients, then the loss: one call averages both
    integer :: step, n

    call find_scaling(comm, own, learned)
    learned%net = network_create(stencil_size, hidden, weights_seed)
    optimiser = adam_create(learned%net)
    n = size(learned%net%weights)
    allocate (packed(n + 1))
    sums = 0
    do step = 1, size(loss)
      call simulate_and_differentiate(own, learned, packed, sums)
      call average(comm, packed, own)
      call adam_step(optimiser, learned%net, packed(:n), learning_rate(step, size(loss)))
      loss(step) = packed(n + 1)
      call report(out, loss, step)
    end do
    call gs_allreduce(comm, sums, GS_SUM)
    polynomial = quartic_fit(sums, learned%x)
  end subroutine train

  ! Averages the ranks' gradients, each of which is a mean over the trajectories of that rank.
  ! With unequal shares all trajectories count the same, and a rank without any has weight 0.
  subroutine average(comm, packed, own)
    type(gs_comm), intent(in) :: comm
    real(real64), intent(inout) :: packed(:)
    type(members), intent(in) :: own

    if (mod(own%total, gs_comm_size(comm)) == 0) then
      call gs_allreduce_avg(comm, packed)
    else
      call gs_allreduce_wavg(comm, packed, real(size(own%state), real64))
    end if
  end subroutine average

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

  ! Advances this rank's trajectories and takes a batch of samples from each. packed becomes the
  ! mean of gradient and loss over these batches; the samples are added to the quartic's sums.
  subroutine simulate_and_differentiate(own, learned, packed, sums)
    type(members), intent(inout) :: own
    type(learned_closure), intent(in) :: learned
    real(real64), intent(out) :: packed(:)
    real(real64), intent(inout) :: sums(n_quartic)
    real(real64) :: inputs(stencil_size, batch), targets(batch), u(n_slow), loss
    real(real64) :: gradient(size(packed) - 1)
    integer :: t, i, column

    packed = 0
    do t = 1, size(own%state)
      do i = 1, samples
        column = (i - 1) * n_slow
        call full_advance(own%state(t), sample_steps)
        u = subgrid_tendency(own%state(t))
        inputs(:, column + 1:column + n_slow) = learned%inputs(own%state(t)%x)
        targets(column + 1:column + n_slow) = learned%targets(u)
        call quartic_add(sums, learned%x, own%state(t)%x, u)
      end do
      call network_gradient(learned%net, inputs, targets, gradient, loss)
      packed = packed + [gradient, loss] / size(own%state)
    end do
  end subroutine simulate_and_differentiate

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

  ! About twenty lines in all.
  subroutine report(out, loss, step)
    type(reporter), intent(in) :: out
    real(real64), intent(in) :: loss(:)
    integer, intent(in) :: step
    integer :: every
    character(100) :: line

    every = max(1, size(loss) / 20)
    if (mod(step, every) /= 0) return
    write (line, '("training: step ", i0, " of ", i0, ", simulated ", i0, " MTU, loss ", f6.4)') &
      step, size(loss), nint(step * mtu_per_step), sum(loss(step - every + 1:step)) / every
    call say(out, trim(line))
  end subroutine report

end module training
