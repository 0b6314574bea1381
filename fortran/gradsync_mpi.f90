! SPDX-License-Identifier: BSD-3-Clause
! gradsync_mpi - gs_comm_from_mpi for programs with use mpi_f08.
!
! A module of its own, so that module gradsync needs no MPI. The handle is a Fortran integer
! inside type(MPI_Comm), so nothing here calls MPI and the library links to none.
module gradsync_mpi
  use, intrinsic :: iso_c_binding, only: c_int
  use mpi_f08, only: mpi_handle => MPI_Comm
  use gradsync_comm, only: gs_comm_from_mpi
  use gradsync_types, only: gs_comm
  implicit none
  private
  public :: gs_comm_from_mpi

  interface gs_comm_from_mpi
    module procedure from_mpi_f08
  end interface gs_comm_from_mpi

contains

  ! Makes a communicator of the ranks of [mpi_comm]. Collective over them. Options as
  ! gs_comm_create.
  subroutine from_mpi_f08(comm, mpi_comm, name, transport, device, timeout_ms, &
              boot_timeout_ms, stat, errmsg)
    type(gs_comm), intent(out) :: comm
    type(mpi_handle), intent(in) :: mpi_comm
    character(*), intent(in), optional :: name
    integer(c_int), intent(in), optional :: transport, device, timeout_ms, boot_timeout_ms
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call gs_comm_from_mpi(comm, int(mpi_comm%MPI_VAL, c_int), name, transport, device, &
               timeout_ms, boot_timeout_ms, stat, errmsg)
  end subroutine from_mpi_f08

end module gradsync_mpi
