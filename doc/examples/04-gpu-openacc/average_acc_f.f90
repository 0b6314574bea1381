! SPDX-License-Identifier: BSD-3-Clause
!
! average_acc_f - averages an array that OpenACC keeps on the GPU: average_acc.c in Fortran.
program average_acc_f
  use gradsync
  implicit none
  integer, parameter :: n = 1000000
  type(gs_comm) :: comm
  real, save :: g(n)
  integer :: rank, i

  call gs_comm_create(comm) ! rank i of a node takes GPU i, or all ranks are on hosts
  rank = gs_comm_rank(comm)

  !$acc data copyout(g)
  !$acc parallel loop present(g)
  do i = 1, n ! stands for the backward pass
    g(i) = rank + mod(i - 1, 3)
  end do
  !$acc wait
  !$acc host_data use_device(g)
  call gs_allreduce_avg(comm, g) ! queued on a GPU
  !$acc end host_data
  call gs_comm_wait(comm) ! before OpenACC uses g again
  !$acc end data

  if (rank == 0) print '(a, i0, 3a, 3f5.2)', 'average over ', gs_comm_size(comm), ' ranks on ', &
    trim(merge('GPUs ', 'hosts', gs_comm_device(comm) >= 0)), ':', g(:3)
  call gs_comm_destroy(comm)
end program average_acc_f
