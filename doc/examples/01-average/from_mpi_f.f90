! SPDX-License-Identifier: BSD-3-Clause
! from_mpi_f.f90 - a Fortran program with MPI that averages with gradsync.
program from_mpi_f
  use mpi_f08
  use gradsync
  use gradsync_mpi
  implicit none
  type(gs_comm) :: comm
  real(kind(1d0)) :: a(1000), b(1000)
  integer :: rank, size

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  a = rank
  b = a

  ! before
  call MPI_Allreduce(MPI_IN_PLACE, a, 1000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  a = a / size

  ! after
  call gs_comm_from_mpi(comm, MPI_COMM_WORLD)
  call gs_allreduce_avg(comm, b)
  call gs_comm_destroy(comm)

  if (rank == 0 .and. all(a == b)) print '(a, i0, a)', 'the same on ', size, ' ranks'
  if (any(a /= b)) error stop 'not the same'
  call MPI_Finalize()
end program from_mpi_f
