! SPDX-License-Identifier: BSD-3-Clause
! coarray - what types with allocatable components hold arrives, in programs compiled with any
! -fcoarray; for coarray.sh.
program coarray
  use, intrinsic :: iso_c_binding, only: c_double, c_loc
  use gradsync
  implicit none

  type(gs_comm) :: comm
  type(gs_setting) :: settings(2)
  type(gs_array) :: arrays(3)
  real(c_double), target :: x(3), y(5), z(4)
  character(300) :: errmsg
  integer :: stat

  call gs_comm_create(comm)
  x = gs_comm_rank(comm)
  y = x(1)
  call gs_allreduce_avg(comm, x)
  call gs_broadcast(comm, y, 0)
  z = 1
  call check(all(x == (gs_comm_size(comm) - 1) / 2.0) .and. all(y == 0), 'an average')
  call gs_setting_get(0, settings(1))
  call gs_setting_get(1, settings(2))
  call check(settings(1)%name(:3) == 'GS_' .and. settings(2)%name(:3) == 'GS_' .and. &
    settings(1)%name /= settings(2)%name .and. len(settings(2)%help) > 3, 'settings')
  arrays(1)%name = 'first'
  arrays(1)%data = c_loc(x)
  arrays(1)%count = size(x)
  arrays(1)%dtype = GS_F64
  arrays(2)%name = 'second'
  arrays(2)%data = c_loc(y)
  arrays(2)%count = size(y)
  arrays(2)%dtype = GS_F64
  arrays(3)%name = 'third'
  arrays(3)%data = c_loc(z)
  arrays(3)%count = size(z)
  arrays(3)%dtype = GS_F64
  call gs_arrays_compare(comm, arrays, stat=stat, errmsg=errmsg)
  call check(stat == GS_OK, 'a list of arrays: ' // errmsg)
  arrays(3)%count = -1
  call gs_arrays_compare(comm, arrays, stat=stat, errmsg=errmsg)
  call check(index(errmsg, 'count is -1') > 0, 'the last of them: ' // errmsg)
  call gs_comm_destroy(comm)
  print '(a)', 'all arrived'

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what

    if (.not. holds) error stop 'coarray: ' // trim(what)
  end subroutine check

end program coarray
