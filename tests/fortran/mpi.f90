! SPDX-License-Identifier: BSD-3-Clause
! mpi - gs_comm_from_mpi with an integer and with type(MPI_Comm), and gs_comm_create_from_id, in
! a job in which the last two ranks never call gradsync, as the I/O servers of a coupled code.
!
! It runs with fewer ranks too: at least one takes part.
program mpi
  use, intrinsic :: iso_fortran_env, only: real64
  use checks
  use gradsync
  use gradsync_mpi
  use mpi_f08
  implicit none

  type(MPI_Comm) :: workers
  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat, world_rank, world_size, count

  call check_before_init()
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, world_rank)
  call MPI_Comm_size(MPI_COMM_WORLD, world_size)
  call speak_as(world_rank)
  count = max(1, world_size - 2)
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, world_rank < count), &
            -world_rank, workers) ! ranks in reverse order
  if (workers /= MPI_COMM_NULL) then
    call check_from_mpi()
    call check_from_id()
    call MPI_Comm_free(workers)
  end if
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Finalize()
  call finish()

contains

  subroutine check_before_init()
    call gs_comm_from_mpi(comm, 0, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'MPI', 'before MPI_Init')
  end subroutine check_before_init

  subroutine check_from_mpi()
    call gs_comm_from_mpi(comm, workers, name='f08', boot_timeout_ms=30000)
    call check_members('f08')
    call gs_comm_from_mpi(comm, workers%MPI_VAL, name='integer', boot_timeout_ms=30000)
    call check_members('integer')
    call gs_comm_from_mpi(comm, MPI_COMM_NULL, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'MPI_COMM_NULL', 'MPI_COMM_NULL')
  end subroutine check_from_mpi

  ! The id goes from rank 0 to the others as characters.
  subroutine check_from_id()
    type(gs_unique_id) :: id
    integer :: rank, size

    if (index(gs_build_info(), 'openssl: no') > 0) return
    call MPI_Comm_rank(workers, rank)
    call MPI_Comm_size(workers, size)
    if (rank == 0) call gs_unique_id_get(id)
    call MPI_Bcast(id%bytes, GS_UNIQUE_ID_BYTES, MPI_CHARACTER, 0, workers)
    call gs_comm_create_from_id(comm, id, rank, size, name='id', boot_timeout_ms=30000)
    call check_members('id')
  end subroutine check_from_id

  ! The ranks of comm are those of workers, they work together, and comm can be destroyed.
  subroutine check_members(name)
    use, intrinsic :: iso_c_binding, only: c_loc
    character(*), intent(in) :: name
    real(real64), target :: x(3)
    integer :: rank

    call MPI_Comm_rank(workers, rank)
    call expect(gs_comm_name(comm) == name .and. gs_comm_size(comm) == count .and. &
          gs_comm_rank(comm) == rank .and. rank == count - 1 - world_rank, &
          name // ': the ranks')
    x = rank
    call gs_allreduce_avg(comm, c_loc(x), size(x), GS_F64)
    call expect(all(x == (count - 1) / 2.0_real64), name // ': average')
    call gs_comm_destroy(comm)
  end subroutine check_members

end program mpi
