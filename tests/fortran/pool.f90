! SPDX-License-Identifier: BSD-3-Clause
! pool - rows of many ranks that few evaluate, in Fortran: arrays and addresses, gradients,
! functions in Fortran that fail, and what is refused; within nodes and across them.
module functions_of_pool
  use, intrinsic :: iso_c_binding
  use gradsync
  implicit none
  private
  public :: cube, cube_gradient, failing, inputs, outputs

  integer, parameter :: inputs = 3, outputs = 2
  integer(c_int), target, public :: calls = 0, fails = 0

contains

  ! out(1) is the sum of the cubes of in, out(2) that times in(1).
  function cube(rows, in, out, stream, context) result(status)
    integer(c_int64_t), intent(in) :: rows
    type(c_ptr), intent(in) :: in, out
    integer(c_intptr_t), intent(in) :: stream
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status
    real(c_double), pointer :: x(:, :), y(:, :)
    integer(c_int), pointer :: count

    call c_f_pointer(in, x, [inputs, int(rows)])
    call c_f_pointer(out, y, [outputs, int(rows)])
    call c_f_pointer(context, count)
    count = count + 1
    y(1, :) = sum(x**3, dim=1)
    y(2, :) = y(1, :) * x(1, :)
    status = merge(GS_OK, GS_ERR_ARG, stream == 0)
    if (fails > 0) status = GS_ERR_IO
  end function cube

  function cube_gradient(rows, in, grad_out, grad_in, stream, context) result(status)
    integer(c_int64_t), intent(in) :: rows
    type(c_ptr), intent(in) :: in, grad_out, grad_in
    integer(c_intptr_t), intent(in) :: stream
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status
    real(c_double), pointer :: x(:, :), gy(:, :), gx(:, :)
    integer :: i

    call c_f_pointer(in, x, [inputs, int(rows)])
    call c_f_pointer(grad_out, gy, [outputs, int(rows)])
    call c_f_pointer(grad_in, gx, [inputs, int(rows)])
    do i = 1, inputs
      gx(i, :) = 3 * x(i, :)**2 * (gy(1, :) + gy(2, :) * x(1, :))
    end do
    gx(1, :) = gx(1, :) + sum(x**3, dim=1) * gy(2, :)
    status = merge(GS_OK, GS_ERR_ARG, stream == 0 .and. c_associated(context))
  end function cube_gradient

  ! Has cube fail from now on, or not.
  subroutine failing(yes)
    logical, intent(in) :: yes

    fails = merge(1, 0, yes)
  end subroutine failing
end module functions_of_pool

program pool_of_rows
  use, intrinsic :: iso_c_binding
  use checks
  use functions_of_pool
  use gradsync
  implicit none

  character(400) :: errmsg
  type(gs_comm) :: world
  type(gs_pool) :: pool
  integer(c_int) :: rank, balance
  integer :: stat

  call gs_comm_create(world)
  rank = gs_comm_rank(world)
  call speak_as(rank)
  do balance = GS_BALANCE_WITHIN_NODES, GS_BALANCE_ACROSS_NODES
    calls = 0
    call gs_pool_create(world, inputs, outputs, GS_F64, 20, pool, cube, cube_gradient, &
      max_batch=7, balance=balance, context=c_loc(calls), name='cubes')
    call check_order()
    call check_steps()
    call check_addresses()
    call check_failure()
    call check_refusals()
    call gs_pool_destroy(pool)
  end do
  call gs_pool_destroy(pool, stat, errmsg)
  call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_pool_destroy|pool|destroyed', &
    'a pool that was destroyed')
  call gs_comm_destroy(world)
  call finish()

contains

  ! Rows of this rank in a step.
  subroutine get_rows(step, x)
    integer, intent(in) :: step
    real(c_double), allocatable, intent(out) :: x(:, :)
    integer :: i, n

    n = mod(7 * step + 3 * rank, 21)
    if (mod(step + rank, 3) == 0) n = 0
    allocate (x(inputs, n))
    do i = 1, n
      x(:, i) = 0.125_c_double * mod(i * i + step + rank, 17) - [1.0, 0.5, 0.25]
    end do
  end subroutine get_rows

  function results_of(x) result(y)
    real(c_double), intent(in) :: x(:, :)
    real(c_double) :: y(outputs, size(x, 2))

    y(1, :) = sum(x**3, dim=1)
    y(2, :) = y(1, :) * x(1, :)
  end function results_of

  ! Equal but for what a compiler may round otherwise.
  function near(a, b)
    real(c_double), intent(in) :: a(:, :), b(:, :)
    logical :: near

    near = all(abs(a - b) <= 1e-14_c_double * (1 + abs(b)))
  end function near

  ! By central differences, which are exact but for rounding and the fourth derivative.
  function gradients_of(x, gy) result(gx)
    real(c_double), intent(in) :: x(:, :), gy(:, :)
    real(c_double) :: gx(inputs, size(x, 2)), above(inputs, size(x, 2)), below(inputs, size(x, 2))
    real(c_double), parameter :: h = 1e-4_c_double
    integer :: i

    do i = 1, inputs
      above = x
      below = x
      above(i, :) = x(i, :) + h
      below(i, :) = x(i, :) - h
      gx(i, :) = sum(gy * (results_of(above) - results_of(below)), dim=1) / (2 * h)
    end do
  end function gradients_of

  ! Calls whose step is missing are refused for that, whatever their arrays are.
  subroutine check_order()
    real(c_double) :: x(inputs, 1), y(outputs, 1)

    x = 1
    call gs_pool_end(pool, y, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'no step in flight', 'an end before a begin')
    call gs_pool_backward(pool, y, x, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'no step of', 'a pass back of no step')
    call gs_pool_evaluate(pool, x, y)
    call gs_pool_begin(pool, x)
    call gs_pool_begin(pool, x(:, :0))
    call gs_pool_backward(pool, y, x, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'two steps of', &
      'a pass back whose rows are gone')
    call gs_pool_end(pool, y)
    call gs_pool_end(pool, y(:, :0))
    call expect(all(y(1, :) == 3), 'a step after what was refused')
  end subroutine check_order

  ! Two steps in flight, and gradients of the one that ended.
  subroutine check_steps()
    real(c_double), allocatable :: x(:, :), before(:, :), y(:, :), gy(:, :), gx(:, :)
    type(gs_pool_info) :: info
    logical :: right
    integer :: step

    right = .true.
    call get_rows(0, before)
    call gs_pool_begin(pool, before)
    do step = 1, 12
      call get_rows(step, x)
      call gs_pool_begin(pool, x)
      allocate (y(outputs, size(before, 2)))
      y = -7
      call gs_pool_end(pool, y)
      right = right .and. near(y, results_of(before))
      allocate (gy(outputs, size(before, 2)), gx(inputs, size(before, 2)))
      gy = 0.5_c_double * y + 1
      call gs_pool_backward(pool, gy, gx)
      right = right .and. all(abs(gx - gradients_of(before, gy)) < 1e-5_c_double)
      deallocate (y, gy, gx)
      call move_alloc(x, before)
    end do
    allocate (y(outputs, size(before, 2)))
    call gs_pool_end(pool, y)
    call expect(right .and. near(y, results_of(before)), 'results and gradients of rows')
    call gs_pool_get_info(pool, info)
    call expect(info%steps == 16 .and. info%in_flight == 0 .and. info%evaluators > 0 .and. &
      (info%evaluator .eqv. calls > 0), 'what a pool tells of itself')
  end subroutine check_steps

  subroutine check_addresses()
    real(c_double), allocatable, target :: x(:, :), y(:, :), gy(:, :), gx(:, :)
    real(c_double), pointer :: place(:, :)
    type(c_ptr) :: address
    integer(c_int64_t) :: n

    call get_rows(4, x)
    n = size(x, 2)
    allocate (y(outputs, n), gy(outputs, n), gx(inputs, n))
    gy = 1
    call gs_pool_evaluate(pool, c_loc(x), n, c_loc(y), GS_F64)
    call expect(near(y, results_of(x)), 'rows and results at addresses')
    y = 0
    call gs_pool_begin(pool, c_null_ptr, n, GS_F64)
    call gs_pool_get_rows(pool, address)
    call c_f_pointer(address, place, [inputs, int(n)])
    place = x
    call gs_pool_end(pool, c_loc(y), n, GS_F64)
    call expect(near(y, results_of(x)), 'rows that are written where they are evaluated')
    call gs_pool_backward(pool, c_loc(gy), n, c_loc(gx), GS_F64)
    call expect(all(abs(gx - gradients_of(x, gy)) < 1e-5_c_double), 'gradients at addresses')
    call gs_pool_end(pool, c_loc(y), n, GS_F64, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_pool_end|no step in flight', &
      'an end without a begin, at an address')
  end subroutine check_addresses

  subroutine check_failure()
    real(c_double) :: x(inputs, 5), y(outputs, 5)

    x = 1
    call failing(.true.)
    call gs_pool_evaluate(pool, x, y, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_IO, "on_batch of rank|pool 'cubes'|GS_ERR_IO", &
      'a function that fails')
    call failing(.false.)
    call gs_pool_evaluate(pool, x, y)
    call expect(all(y == 3), 'the pool goes on')
  end subroutine check_failure

  subroutine check_refusals()
    real(c_double) :: x(inputs, 5), y(outputs, 4), turned(5, inputs)
    real :: short(inputs, 5)
    type(gs_pool) :: none

    x = 1
    turned = 1
    call gs_pool_evaluate(pool, x, y, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'out has 8 elements|5 rows', &
      'results of another size')
    call gs_pool_begin(pool, short, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'in is not of the type', 'rows of another type')
    call gs_pool_begin(pool, x(1, :), stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_pool_begin', 'rows with gaps')
    call gs_pool_begin(pool, y(:, 1:2), stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, '4 elements|no rows of 3', 'half a row')
    call gs_pool_begin(pool, turned, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'leading dimensions|in(3, rows)', &
              'rows that are not contiguous')
    call gs_pool_begin(none, x, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_pool_begin', 'a pool that is none')
    call gs_pool_create(world, inputs, 0, GS_F64, 20, none, cube, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'outputs 0', 'a pool without results')
    call gs_pool_create(world, inputs, outputs, GS_F64, -1, none, cube, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'max_rows', 'a pool of less than no rows')
    call gs_pool_create(world, inputs, outputs, GS_F64, 20, none, cube, balance=7, stat=stat, &
      errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'unknown balance 7', 'a balance that is none')
  end subroutine check_refusals
end program pool_of_rows
