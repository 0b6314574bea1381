! SPDX-License-Identifier: BSD-3-Clause
!
! train - trains a TorchScript network with FTorch on all ranks: libtorch computes the gradients
! of a rank's own samples, gradsync averages them while it does.
!
!   train FILE    a network that network.py has written
program train
  use ftorch
  use gradsync
  use gradsync_ftorch
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_int, c_int64_t, c_ptr
  implicit none
  integer, parameter :: dp = c_double
  integer, parameter :: batch = 256, steps = 100, limit = 128 * 1024 ! bytes of a bucket
  type(gs_comm) :: comm
  type(gs_reducer) :: reducer
  type(gs_ftorch) :: net
  type(torch_model) :: model
  type(torch_optim) :: optimizer
  type(torch_tensor) :: x(1), y, out(1), loss
  type(torch_tensor), allocatable :: parameters(:)
  real(dp), allocatable, target :: x_data(:, :), y_data(:, :), out_data(:, :)
  real(dp), target :: loss_data(1)
  real(dp) :: mean
  integer(c_int) :: number, mean_loss
  integer :: step, averaged = 0, early = 0
  integer(c_int64_t) :: ticks(2), rate
  real(dp) :: backward_us = 0, between_us = 0 ! the passes; from their first gradient to the last
  character(200) :: path

  call get_command_argument(1, path)
  if (path == '') error stop 'train: give the file of a network'
  call gs_comm_create(comm, device=GS_DEVICE_HOST)
  call make_samples()
  call torch_model_load(model, path, torch_kCPU, is_training=.true.)

  ! The thread has buckets travel beside the backward pass though a rank may have one core only.
  call gs_reducer_create(comm, reducer, first_bytes=limit, bucket_bytes=limit, last_bytes=limit, &
    overlap=GS_OVERLAP_THREAD)
  call gs_ftorch_create(model, comm, reducer, net, number)
  call gs_reducer_add_scalar(reducer, 'loss', GS_AVG, mean_loss)
  call gs_reducer_commit(reducer)
  call gs_ftorch_start(net, root=0)

  allocate (parameters(number)) ! FTorch's own handles, for its optimizer
  call torch_model_parameters(model, parameters)
  call torch_optim_Adam(optimizer, parameters, learning_rate=0.002_dp)
  call torch_tensor_from_array(x(1), x_data, torch_kCPU)
  call torch_tensor_from_array(y, y_data, torch_kCPU)
  do step = 1, steps
    call torch_tensor_from_array(out(1), out_data, torch_kCPU)
    call torch_tensor_from_array(loss, loss_data, torch_kCPU)
    call gs_ftorch_zero_grad(net)
    call torch_model_forward(model, x, out, requires_grad=.true.)
    call torch_loss_mse(loss, out(1), y)
    call system_clock(ticks(1), rate)
    call torch_tensor_backward(loss) ! gradients leave from in here
    call system_clock(ticks(2))
    call gs_reducer_set_scalar(reducer, mean_loss, loss_data(1))
    call gs_ftorch_finish(net)
    call optimizer%step()
    call torch_tensor_delete(out(1))
    call torch_tensor_delete(loss)
    backward_us = backward_us + 1e6_dp * (ticks(2) - ticks(1)) / rate
    call count_buckets()
    call gs_reducer_get_scalar(reducer, mean_loss, mean)
    if (gs_comm_rank(comm) == 0 .and. mod(step, 20) == 0) &
      print '(a, i0, a, es22.15)', 'step ', step, ', loss ', mean
  end do
  call report()

  call gs_ftorch_destroy(net) ! before the reducer, whose memory the gradients are
  call gs_reducer_destroy(reducer)
  call gs_comm_destroy(comm)

contains

  ! This rank's part of the batch: a function of two variables on a lattice.
  subroutine make_samples()
    integer :: samples, s, i

    samples = batch / gs_comm_size(comm)
    if (samples * gs_comm_size(comm) /= batch) error stop 'train: run it on 2^n ranks'
    allocate (x_data(samples, 2), y_data(samples, 1), out_data(samples, 1))
    do s = 1, samples
      i = gs_comm_rank(comm) * samples + s
      x_data(s, :) = [mod(0.7548776662_dp * i, 1.0_dp), mod(0.5698402910_dp * i, 1.0_dp)]
      y_data(s, 1) = sin(3 * x_data(s, 1)) * x_data(s, 2)
    end do
  end subroutine make_samples

  ! How many buckets were averaged before the last gradient of the step was there.
  subroutine count_buckets()
    type(gs_reducer_stats) :: stats
    type(gs_bucket_stats), allocatable :: buckets(:)
    integer(c_int) :: i

    call gs_reducer_get_stats(reducer, stats)
    allocate (buckets(stats%buckets))
    do i = 1, stats%buckets
      call gs_reducer_get_bucket(reducer, i - 1, buckets(i))
    end do
    averaged = averaged + size(buckets)
    early = early + count(buckets%end_us < maxval(buckets%ready_us))
    between_us = between_us + maxval(buckets%ready_us)
  end subroutine count_buckets

  ! Whether all ranks have the same bits, and gradients are averaged where libtorch has them.
  subroutine report()
    type(gs_array) :: arrays(number)
    type(gs_ftorch_parameter) :: p
    type(c_ptr) :: memory
    integer :: in_place
    integer(c_int) :: i

    in_place = 0
    do i = 1, number
      call gs_ftorch_get(net, i - 1, p)
      arrays(i) = gs_array(p%name, p%data, product(int(p%shape, c_int64_t)), p%dtype)
      if (p%index < 0) cycle ! it is not trained
      call gs_reducer_get_grad(reducer, p%index, memory)
      if (c_associated(p%grad, memory)) in_place = in_place + 1
    end do
    call gs_arrays_compare(comm, arrays)
    if (gs_comm_rank(comm) /= 0) return
    print '(i0, a, i0, a)', number, ' parameters of ', sum(arrays%count), &
      ' numbers, the same bits on all ranks'
    print '(i0, a)', in_place, ' gradients averaged where libtorch has added them up'
    print '(i0, a, i0, a)', early, ' of ', averaged, &
      ' buckets averaged before the last gradient was there'
    print '(a, i0, a)', 'gradients come in during ', nint(100 * between_us / backward_us), &
      ' % of the backward pass'
  end subroutine report

end program train
