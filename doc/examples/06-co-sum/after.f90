! SPDX-License-Identifier: BSD-3-Clause
!
! after - the same with gradsync: ranks count from 0, images from 1.
program after
  use gradsync
  implicit none
  type(gs_comm) :: comm
  real :: w(3), g(3)

  call gs_comm_create(comm)
  w = gs_comm_rank(comm) + 1
  call gs_broadcast(comm, w, 0)

  g = w + gs_comm_rank(comm)
  call gs_allreduce_avg(comm, g)

  if (gs_comm_rank(comm) == 0) print '(a, i0, a, 3f5.2)', 'average over ', gs_comm_size(comm), &
    ' ranks:', g
  call gs_comm_destroy(comm)
end program after
