! SPDX-License-Identifier: BSD-3-Clause
! adjoint_check - gs_adjoint_check on passes written in Fortran, whose gradients are right, or
! wrong in the ways that happen.
module passes
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  use gradsync
  implicit none

  ! What the passes of this file are given as context.
  type :: model
    type(gs_comm) :: comm
    integer :: calls = 0
    integer :: contract = GS_GRAD_ADJOINT
    integer :: failing = -1 ! the rank whose pass fails
    logical :: fits = .true. ! all arrays came in the sizes that were told
    integer :: nx = 0, ny = 0
  end type model

contains

  ! y = x of all ranks.
  subroutine gather_pass(x, y, context, stat)
    real(c_double), intent(in) :: x(:)
    real(c_double), intent(out) :: y(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat

    y = 0
    if (.not. present(context)) return
    select type (context)
    type is (model)
      context%calls = context%calls + 1
      context%fits = context%fits .and. size(x) == context%nx .and. size(y) == context%ny
      call gs_allgather(context%comm, x, y, stat=stat)
      if (gs_comm_rank(context%comm) == context%failing) stat = GS_ERR_STATE
    end select
  end subroutine gather_pass

  subroutine gather_back(x, grad_y, grad_x, context, stat)
    real(c_double), intent(in) :: x(:), grad_y(:)
    real(c_double), intent(out) :: grad_x(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat

    grad_x = 0
    if (.not. present(context)) return
    select type (context)
    type is (model)
      context%calls = context%calls + 100
      context%fits = context%fits .and. size(x) == context%nx .and. &
        size(grad_y) == context%ny .and. size(grad_x) == context%nx
      call gs_allgather_backward(context%comm, grad_y, grad_x, context%contract, stat=stat)
    end select
  end subroutine gather_back

  ! y = (sum over the ranks and elements of x**2) * sin (x).
  subroutine curved_pass(x, y, context, stat)
    real(c_double), intent(in) :: x(:)
    real(c_double), intent(out) :: y(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat
    real(c_double) :: total

    total = sum(x**2)
    select type (context)
    type is (model)
      context%calls = context%calls + 1
      call gs_allreduce(context%comm, total, GS_SUM, stat=stat)
    end select
    y = total * sin(x)
  end subroutine curved_pass

  subroutine curved_back(x, grad_y, grad_x, context, stat)
    real(c_double), intent(in) :: x(:), grad_y(:)
    real(c_double), intent(out) :: grad_x(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat
    real(c_double) :: sums(2)

    sums = [sum(x**2), sum(grad_y * sin(x))]
    select type (context)
    type is (model)
      context%calls = context%calls + 100
      call gs_allreduce(context%comm, sums(1), GS_SUM, stat=stat)
      if (stat == GS_OK) call gs_allreduce_backward(context%comm, sums(2), GS_SUM, stat=stat)
    end select
    grad_x = sums(1) * cos(x) * grad_y + 2 * x * sums(2)
  end subroutine curved_back

  ! Forgets that the sum is of x too.
  subroutine curved_wrong(x, grad_y, grad_x, context, stat)
    real(c_double), intent(in) :: x(:), grad_y(:)
    real(c_double), intent(out) :: grad_x(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat
    real(c_double) :: total

    total = sum(x**2)
    select type (context)
    type is (model)
      call gs_allreduce(context%comm, total, GS_SUM, stat=stat)
    end select
    grad_x = total * cos(x) * grad_y
  end subroutine curved_wrong
end module passes

program adjoint_check
  use, intrinsic :: iso_c_binding, only: c_double, c_int
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use checks
  use failing_calls
  use gradsync
  use passes
  implicit none

  type(gs_comm) :: comm
  integer :: me, n
  real(c_double), allocatable, save :: matrix(:, :) ! of this rank's part of a linear function
  logical, save :: was_absent = .true. ! the context, in all calls

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  call speak_as(me)
  call check_linear()
  call check_contracts()
  call check_curved()
  call check_internal()
  call check_failures()
  call check_refusals()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  ! The same on all ranks, bit by bit.
  function same_everywhere(found) result(same)
    type(gs_adjoint_result), intent(in) :: found
    logical :: same
    real(real64) :: most(3), least(3)

    most = [found%forward, found%backward, found%error]
    least = most
    call gs_allreduce(comm, most, GS_MAX)
    call gs_allreduce(comm, least, GS_MIN)
    same = all(most == least)
  end function same_everywhere

  function model_of(nx, ny) result(m)
    integer, intent(in) :: nx, ny
    type(model) :: m

    m%comm = comm
    m%nx = nx
    m%ny = ny
  end function model_of

  subroutine check_linear()
    type(gs_adjoint_result) :: found, again
    type(model) :: m

    m = model_of(7, 7 * n)
    call gs_adjoint_check(comm, gather_pass, gather_back, 7, 7 * n, context=m, linear=.true., &
      found=found)
    call expect(m%calls == 101, 'a linear function is called once, its gradient too')
    call expect(m%fits, 'arrays have the sizes that were told')
    call expect(abs(found%forward - found%backward) <= 1e-12_real64 * abs(found%forward) + &
      1e-12_real64 .and. found%forward /= 0 .and. found%error < 1e-12_real64, &
      'both sides are one')
    call expect(same_everywhere(found), 'all ranks find the same')
    call gs_adjoint_check(comm, gather_pass, gather_back, 7_int64, 7_int64 * n, context=m, &
      linear=.true., seed=5_int64, found=again)
    call expect(again%forward /= found%forward, 'another seed is another test')
    call gs_adjoint_check(comm, gather_pass, gather_back, 7, 7 * n, context=m, linear=.true., &
      found=again)
    call expect(again%forward == found%forward .and. again%backward == found%backward, &
      'the same test again')
  end subroutine check_linear

  ! GS_GRAD_OWN_SLOT is the gradient if all ranks have the same loss, and only then.
  subroutine check_contracts()
    type(gs_adjoint_result) :: found
    type(model) :: m

    m = model_of(4, 4 * n)
    m%contract = GS_GRAD_OWN_SLOT
    call gs_adjoint_check(comm, gather_pass, gather_back, 4, 4 * n, context=m, linear=.true., &
      same_loss=.true., found=found)
    call expect(found%error < 1e-12_real64, 'own slots are right for the same loss')
    call gs_adjoint_check(comm, gather_pass, gather_back, 4, 4 * n, context=m, linear=.true., &
      found=found, stat=stat, errmsg=errmsg)
    if (n == 1) then
      call expect(stat == GS_OK, 'own slots are right on one rank')
    else
      call refused(GS_ERR_MISMATCH, 'gradient', 'own slots are wrong for other losses')
    end if
  end subroutine check_contracts

  subroutine check_curved()
    type(gs_adjoint_result) :: found
    type(model) :: m
    real(real64) :: x(me + 1), before(me + 1)
    integer :: i

    x = [(0.5_real64 + 0.1_real64 * i - 0.2_real64 * me, i=0, me)]
    before = x
    m = model_of(me + 1, me + 1)
    call gs_adjoint_check(comm, curved_pass, curved_back, me + 1, me + 1, x, m, found=found)
    call expect(m%calls == 104, 'another function is called four times')
    call expect(all(x == before), 'x stays as it is')
    call expect(found%error < 1e-6_real64 .and. same_everywhere(found), 'a curved function')
    call gs_adjoint_check(comm, curved_pass, curved_back, 3, 3, context=m, tolerance=1e-5_real64)
    call expect(.true., 'a curved function at a random place')
    call gs_adjoint_check(comm, curved_pass, curved_back, size(x), size(x), x, m, &
      tolerance=1e-14_real64, step=0.5_real64, found=found, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'gs_adjoint_check: |is not the gradient|1e-14', &
      'steps that are too long for the tolerance')
    call gs_adjoint_check(comm, curved_pass, curved_wrong, size(x), size(x), x, m, found=found, &
      stat=stat, errmsg=errmsg)
    call refused(GS_ERR_MISMATCH, 'gs_adjoint_check: |is not the gradient', 'a wrong gradient')
    call expect(found%error > 1e-6_real64 .and. same_everywhere(found), &
      'all ranks are told by how much')
  end subroutine check_curved

  ! Internal procedures, which see the variables of the program, need no context. As these are
  ! saved, gfortran needs no code on the stack for it. Rank 0 has no x, the last rank no y.
  subroutine check_internal()
    type(gs_adjoint_result) :: found

    allocate (matrix(merge(0, 3, me == n - 1), merge(0, 4, me == 0)))
    call random_number(matrix)
    call gs_adjoint_check(comm, multiply, multiply_back, size(matrix, 2), size(matrix, 1), &
      linear=.true., found=found)
    call expect(was_absent, 'a context that is not given is not present')
    call expect(found%error < 1e-12_real64 .and. same_everywhere(found), 'internal procedures')
  end subroutine check_internal

  subroutine multiply(x, y, context, stat)
    real(c_double), intent(in) :: x(:)
    real(c_double), intent(out) :: y(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat

    was_absent = was_absent .and. .not. present(context) .and. stat == GS_OK
    y = matmul(matrix, x)
  end subroutine multiply

  subroutine multiply_back(x, grad_y, grad_x, context, stat)
    real(c_double), intent(in) :: x(:), grad_y(:)
    real(c_double), intent(out) :: grad_x(:)
    class(*), intent(inout), optional :: context
    integer(c_int), intent(inout) :: stat

    was_absent = was_absent .and. .not. present(context) .and. stat == GS_OK .and. &
      size(x) == size(grad_x)
    grad_x = matmul(transpose(matrix), grad_y)
  end subroutine multiply_back

  ! What one rank's pass returns, all ranks do.
  subroutine check_failures()
    type(gs_adjoint_result) :: found
    type(model) :: m

    m = model_of(2, 2 * n)
    m%failing = n - 1
    found%error = 9
    call gs_adjoint_check(comm, gather_pass, gather_back, 2, 2 * n, context=m, linear=.true., &
      found=found, stat=stat)
    call expect(stat == GS_ERR_STATE .and. m%calls == 1, 'a pass that fails ends the test')
    call expect(found%error == 0, 'nothing was found then')
  end subroutine check_failures

  subroutine check_refusals()
    type(gs_comm) :: never
    type(model) :: m
    real(real64) :: x(3)

    m = model_of(3, 3 * n)
    x = 1
    call gs_adjoint_check(never, gather_pass, gather_back, 3, 3 * n, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_adjoint_check: |never created', 'without a communicator')
    call gs_adjoint_check(comm, gather_pass, gather_back, -1, 3, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_adjoint_check: nx is -1', 'a size below 0')
    call gs_adjoint_check(comm, gather_pass, gather_back, 1, -3, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_adjoint_check: ny is -3', 'a size of y below 0')
    call gs_adjoint_check(comm, gather_pass, gather_back, 4, 4 * n, x, m, stat=stat, &
      errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_adjoint_check: x has 3 elements, but needs 4', 'a short x')
    call gs_adjoint_check(comm, gather_pass, gather_back, 3, 3 * n, x, m, &
      tolerance=-1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_adjoint_check: tolerance is -1', 'a tolerance below 0')
    call expect(m%calls == 0, 'no pass was called')
  end subroutine check_refusals

end program adjoint_check
