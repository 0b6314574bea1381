! SPDX-License-Identifier: BSD-3-Clause
!
! evaluate - a TorchScript network that few ranks of a node evaluate for all, by FTorch: rows that
! arise unevenly are made in memory that the ranks share, and libtorch takes them where they lie.
!
!   evaluate FILE    a network that network.py has written
module batches
  use ftorch
  use gradsync, only: GS_OK
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_int64_t, c_intptr_t, c_ptr
  implicit none
  private
  public :: inputs, outputs, evaluate_batch
  integer, parameter :: inputs = 2, outputs = 1

contains

  ! Rows are contiguous, one behind the other, as libtorch has a batch.
  function evaluate_batch(rows, in, out, stream, context) result(status)
    integer(c_int64_t), intent(in) :: rows
    type(c_ptr), intent(in) :: in, out, context
    integer(c_intptr_t), intent(in) :: stream
    integer(c_int) :: status
    integer(c_int), parameter :: by_rows(2) = [2_c_int, 1_c_int]
    type(torch_model), pointer :: model
    type(torch_tensor) :: x(1), y(1)

    if (stream /= 0) error stop 'evaluate: it has no GPU'
    call c_f_pointer(context, model)
    call torch_tensor_from_blob(x(1), in, 2_c_int, [rows, int(inputs, c_int64_t)], by_rows, &
      torch_kFloat64, torch_kCPU)
    call torch_tensor_from_blob(y(1), out, 2_c_int, [rows, int(outputs, c_int64_t)], by_rows, &
      torch_kFloat64, torch_kCPU)
    call torch_model_forward(model, x, y)
    call torch_tensor_delete(x(1))
    call torch_tensor_delete(y(1))
    status = GS_OK
  end function evaluate_batch

end module batches

program evaluate
  use batches
  use ftorch
  use gradsync
  use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int, c_int64_t, c_intptr_t, &
    c_loc, c_null_ptr, c_ptr
  implicit none
  integer, parameter :: dp = c_double, steps = 10, most = 100 ! rows of a rank
  type(gs_comm) :: comm
  type(gs_pool) :: pool
  type(gs_pool_info) :: info
  type(torch_model), target :: model
  real(dp), target :: own_out(outputs, most), out(outputs, most)
  real(dp), pointer :: rows(:, :)
  real(dp) :: off = 0
  type(c_ptr) :: place
  integer :: step, n
  integer(c_int) :: status
  character(200) :: path

  call get_command_argument(1, path)
  if (path == '') error stop 'evaluate: give the file of a network'
  call gs_comm_create(comm, device=GS_DEVICE_HOST)
  call torch_model_load(model, path, torch_kCPU) ! who evaluates needs it; all do, to compare
  call gs_pool_create(comm, inputs, outputs, GS_F64, most, pool, evaluate_batch, &
    context=c_loc(model), name='network')
  do step = 1, steps
    n = mod(37 * gs_comm_rank(comm) + 11 * step, most + 1)
    call gs_pool_begin(pool, c_null_ptr, int(n, c_int64_t), GS_F64)
    call gs_pool_get_rows(pool, place)
    call c_f_pointer(place, rows, [inputs, n])
    call make_rows()
    ! What this rank can do without the results comes here.
    call gs_pool_end(pool, out(:, :n))
    if (n == 0) cycle
    status = evaluate_batch(int(n, c_int64_t), place, c_loc(own_out), 0_c_intptr_t, c_loc(model))
    off = max(off, maxval(abs(out(:, :n) - own_out(:, :n))))
  end do
  call gs_allreduce(comm, off, GS_MAX)
  call gs_pool_get_info(pool, info)
  if (gs_comm_rank(comm) == 0) print '(2(i0, a), es8.1)', info%batches, ' batches of ', &
    info%taken, ' rows; off the own evaluation of each rank by at most', off
  call gs_pool_destroy(pool)
  call gs_comm_destroy(comm)

contains

  subroutine make_rows()
    integer :: i, k

    do i = 1, n
      k = 1000 * gs_comm_rank(comm) + 100 * step + i
      rows(:, i) = [mod(0.7548776662_dp * k, 1.0_dp), mod(0.5698402910_dp * k, 1.0_dp)]
    end do
  end subroutine make_rows

end program evaluate
