! SPDX-License-Identifier: BSD-3-Clause
! error_stop - fails without stat, in the way its argument says; for error_stop.sh.
program error_stop
  use, intrinsic :: iso_c_binding, only: c_loc, c_double
  use gradsync
  implicit none

  type(gs_comm) :: comm
  type(gs_ckpt) :: plan
  real(c_double), target :: x(4)
  character(100) :: errmsg
  character(20) :: way

  call get_command_argument(1, way)
  call gs_comm_create(comm, name='stopping')
  x = 1
  select case (way)
  case ('dtype')
    call gs_allreduce_avg(comm, c_loc(x), 4, 99)
  case ('errmsg') ! does not replace stat
    call gs_allreduce_avg(comm, c_loc(x), -4, GS_F64, errmsg=errmsg)
  case ('array')
    call gs_broadcast(comm, x(::2), 0)
  case ('plan')
    call gs_ckpt_create(comm, '.', plan)
    call gs_ckpt_commit(plan)
  case ('destroyed')
    call gs_comm_destroy(comm)
    call gs_barrier(comm)
  case ('create')
    call gs_comm_create(comm, transport=99)
  case default
    error stop 'error_stop: dtype, errmsg, array, plan, destroyed or create?'
  end select
  print '(a)', 'survived'
end program error_stop
