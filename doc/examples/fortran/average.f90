! SPDX-License-Identifier: BSD-3-Clause
!
! average - averages an array over all ranks.
program average
  use gradsync
  implicit none
  type(gs_comm) :: comm
  real :: gradient(3)

  call gs_comm_create(comm)
  gradient = gs_comm_rank(comm) + [0, 1, 2]
  call gs_allreduce_avg(comm, gradient)
  if (gs_comm_rank(comm) == 0) &
    print '(a, i0, a, 3f5.2)', 'average over ', gs_comm_size(comm), ' ranks:', gradient
  call gs_comm_destroy(comm)
end program average
