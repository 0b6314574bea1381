! SPDX-License-Identifier: BSD-3-Clause
!
! pipeline - trains a network in two stages: even ranks have its first layer, odd ones the second.
! Activations go forward over the boundary between them, gradients back. Several pairs of ranks
! share a batch, and average the gradients of each stage.
!
! A batch is cut into pieces. While the second stage works on one, the first works on the next:
! its activations and the gradients of the piece before cross in one group of messages.
program pipeline
  use gradsync
  use, intrinsic :: iso_c_binding, only: c_double
  implicit none
  integer, parameter :: dp = c_double
  integer, parameter :: inputs = 2, hidden = 16
  integer, parameter :: pieces = 4, batch = 256, steps = 3000
  real(dp), parameter :: rate = 0.1_dp
  type(gs_comm) :: world, peers
  type(gs_boundary) :: boundary
  type(gs_traffic) :: traffic
  integer :: rank, samples, first
  ! What stage 0 or 1 has: its weights with their bias, last column, and their gradients.
  real(dp), allocatable :: weights(:, :), gradient(:, :)
  real(dp), allocatable :: x(:, :, :), y(:, :, :)
  real(dp), allocatable, asynchronous :: h(:, :, :), dh(:, :, :) ! what crosses, of each piece
  real(dp) :: loss
  integer :: step

  call gs_comm_create(world)
  rank = gs_comm_rank(world)
  if (mod(gs_comm_size(world), 2) /= 0) error stop 'pipeline: run it on an even number of ranks'
  call gs_comm_split(world, mod(rank, 2), rank, peers)
  samples = batch / pieces / gs_comm_size(peers) ! of a piece, on each pair
  if (samples * pieces * gs_comm_size(peers) /= batch) error stop 'pipeline: run it on 2^n ranks'
  first = rank / 2 * samples * pieces

  allocate (h(hidden, samples, pieces), dh(hidden, samples, pieces))
  call gs_boundary_create(world, rank / 2 * 2, rank / 2 * 2 + 1, [hidden, samples], GS_F64, &
    boundary)
  call make_batch()
  if (mod(rank, 2) == 0) call make_weights(hidden, inputs)
  if (mod(rank, 2) == 1) call make_weights(1, hidden)
  do step = 1, steps
    if (step == 3) call gs_comm_reset_traffic(world)
    loss = 0
    gradient = 0
    if (mod(rank, 2) == 0) call first_stage()
    if (mod(rank, 2) == 1) call second_stage()
    call gs_allreduce_avg(peers, gradient)
    call gs_allreduce_avg(peers, loss)
    weights = weights - rate * gradient
    if (rank == 1 .and. (step == 1 .or. mod(step, 1000) == 0)) &
      print '(a, i0, a, es22.15)', 'step ', step, ', loss ', loss
  end do
  call gs_comm_get_traffic(world, traffic)
  if (rank == 1) print '(a, i0, a)', 'the second stage sends ', &
    traffic%bytes / (steps - 2), ' bytes a step over the boundary'
  deallocate (weights, gradient, x, y, h, dh)
  call gs_boundary_destroy(boundary)
  call gs_comm_destroy(peers)
  call gs_comm_destroy(world)

contains

  subroutine first_stage()
    integer :: p

    do p = 1, pieces
      h(:, :, p) = tanh(layer(x(:, :, p)))
      call gs_group_begin(world)
      call gs_boundary_forward(boundary, h(:, :, p))
      if (p > 1) call gs_boundary_backward(boundary, dh(:, :, p - 1))
      call gs_group_end(world)
      if (p > 1) call first_backward(p - 1)
    end do
    call gs_boundary_backward(boundary, dh(:, :, pieces))
    call first_backward(pieces)
  end subroutine first_stage

  subroutine second_stage()
    integer :: p

    call gs_boundary_forward(boundary, h(:, :, 1))
    do p = 1, pieces
      call second_forward_and_backward(p)
      call gs_group_begin(world)
      call gs_boundary_backward(boundary, dh(:, :, p))
      if (p < pieces) call gs_boundary_forward(boundary, h(:, :, p + 1))
      call gs_group_end(world)
    end do
  end subroutine second_stage

  subroutine first_backward(p)
    integer, intent(in) :: p

    call add_gradient(dh(:, :, p) * (1 - h(:, :, p)**2), x(:, :, p))
  end subroutine first_backward

  ! The loss is the mean of the squares over the samples of this pair; the mean over the pairs is
  ! that of the batch.
  subroutine second_forward_and_backward(p)
    integer, intent(in) :: p
    real(dp) :: off(1, samples)

    off = layer(h(:, :, p)) - y(:, :, p)
    loss = loss + sum(off**2) / (samples * pieces)
    off = 2 * off / (samples * pieces)
    dh(:, :, p) = matmul(transpose(weights(:, :hidden)), off)
    call add_gradient(off, h(:, :, p))
  end subroutine second_forward_and_backward

  function layer(in) result(out)
    real(dp), intent(in) :: in(:, :)
    real(dp) :: out(size(weights, 1), size(in, 2))

    out = matmul(weights(:, :size(in, 1)), in) + spread(weights(:, size(in, 1) + 1), 2, samples)
  end function layer

  subroutine add_gradient(out, in)
    real(dp), intent(in) :: out(:, :), in(:, :)

    gradient(:, :size(in, 1)) = gradient(:, :size(in, 1)) + matmul(out, transpose(in))
    gradient(:, size(in, 1) + 1) = gradient(:, size(in, 1) + 1) + sum(out, dim=2)
  end subroutine add_gradient

  ! The same on all pairs, whatever their number.
  subroutine make_weights(outputs, from)
    integer, intent(in) :: outputs, from
    integer :: i, j

    allocate (weights(outputs, from + 1), gradient(outputs, from + 1))
    do j = 1, from + 1
      do i = 1, outputs
        weights(i, j) = sin(12.9898_dp * i + 78.233_dp * j) / sqrt(real(from, dp))
      end do
    end do
  end subroutine make_weights

  ! This pair's samples of the batch: a function of two variables on a lattice.
  subroutine make_batch()
    integer :: p, s, i

    allocate (x(inputs, samples, pieces), y(1, samples, pieces))
    do p = 1, pieces
      do s = 1, samples
        i = first + (p - 1) * samples + s - 1
        x(:, s, p) = [mod(0.7548776662_dp * i, 1.0_dp), mod(0.5698402910_dp * i, 1.0_dp)]
        y(1, s, p) = sin(3 * x(1, s, p)) * x(2, s, p)
      end do
    end do
  end subroutine make_batch

end program pipeline
