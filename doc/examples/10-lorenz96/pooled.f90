! SPDX-License-Identifier: BSD-3-Clause
!
! pooled - the learned closure, evaluated for all ranks of a node by few of them (gs_pool).
!
! A row is the state X of one system, its result U. All ranks take part in each evaluation, which
! is a step of the pool: who has no system in it gives no row. With a network that runs on a GPU
! the few are the ranks that have one; here it is the first rank of each node.
module pooled
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_int64_t, c_intptr_t, c_loc, c_ptr
  use, intrinsic :: iso_fortran_env, only: real64
  use gradsync, only: gs_comm, gs_pool, gs_pool_create, gs_pool_destroy, gs_pool_evaluate, &
                      GS_ERR_ARG, GS_F64, GS_OK
  use lorenz96, only: closure, n_slow
  use surrogate, only: learned_closure
  implicit none
  private
  public :: pool_open, pool_close

  type, extends(closure), public :: pooled_closure
    type(gs_pool) :: pool
  contains
    procedure :: tendency
    procedure :: pass
  end type pooled_closure

contains

  ! Collective. learned stays where it is until pool_close.
  subroutine pool_open(comm, learned, pooled)
    type(gs_comm), intent(in) :: comm
    type(learned_closure), intent(in), target :: learned
    type(pooled_closure), intent(out) :: pooled

    call gs_pool_create(comm, n_slow, n_slow, GS_F64, 1, pooled%pool, evaluate_rows, &
                        context=c_loc(learned), name='closure')
  end subroutine pool_open

  subroutine pool_close(pooled)
    type(pooled_closure), intent(in) :: pooled

    call gs_pool_destroy(pooled%pool)
  end subroutine pool_close

  ! U of this rank's system, while the other ranks have theirs evaluated or pass.
  function tendency(self, x) result(u)
    class(pooled_closure), intent(in) :: self
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: u(n_slow)

    call gs_pool_evaluate(self%pool, x, u)
  end function tendency

  ! Takes part without a system.
  subroutine pass(self)
    class(pooled_closure), intent(in) :: self
    real(real64) :: x(n_slow, 0), u(n_slow, 0)

    call gs_pool_evaluate(self%pool, x, u)
  end subroutine pass

  ! Called by gradsync, on the ranks that evaluate. Row by row, since a product of larger matrices
  ! may round otherwise: so results are the same bits with and without a pool.
  function evaluate_rows(rows, in, out, stream, context) result(status)
    integer(c_int64_t), intent(in) :: rows
    type(c_ptr), intent(in) :: in, out
    integer(c_intptr_t), intent(in) :: stream ! 0, as none was given
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status
    type(learned_closure), pointer :: learned
    real(real64), pointer :: x(:, :), u(:, :)
    integer :: i

    call c_f_pointer(context, learned)
    call c_f_pointer(in, x, [n_slow, int(rows)])
    call c_f_pointer(out, u, [n_slow, int(rows)])
    do i = 1, int(rows)
      u(:, i) = learned%tendency(x(:, i))
    end do
    status = merge(GS_OK, GS_ERR_ARG, stream == 0)
  end function evaluate_rows

end module pooled
