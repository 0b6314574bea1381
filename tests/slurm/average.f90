! SPDX-License-Identifier: BSD-3-Clause
!
! average - a Fortran rank that averages its number once; the C and Python ranks of a mixed step
! do the same.
program average
    use, intrinsic :: iso_fortran_env, only: real64
    use gradsync
    implicit none
    type(gs_comm) :: comm
    real(real64) :: x(1)

    call gs_comm_create(comm)
    x = real(gs_comm_rank(comm), real64)
    call gs_allreduce_avg(comm, x)
    if (abs(x(1) - (gs_comm_size(comm) - 1)/2.0_real64) > 0) error stop "wrong average"
    print '(a,i0)', 'Fortran rank ', gs_comm_rank(comm)
    call gs_comm_destroy(comm)
end program average
