! SPDX-License-Identifier: BSD-3-Clause
!
! average_f - averages an array over all ranks.
program average_f
  use gradsync
  implicit none
  type(gs_comm) :: comm
  real :: g(3)

  call gs_comm_create(comm)         ! all ranks of this job; a failure stops with its text
  g = gs_comm_rank(comm) + [0, 1, 2]
  call gs_allreduce_avg(comm, g)    ! in place; any real or complex kind and rank
  if (gs_comm_rank(comm) == 0) &
    print '(a, i0, a, 3f5.2)', 'average over ', gs_comm_size(comm), ' ranks:', g
  call gs_comm_destroy(comm)
end program average_f
