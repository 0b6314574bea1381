! SPDX-License-Identifier: BSD-3-Clause
!
! ensemble - which trajectories belong to which rank.
!
! Trajectories are numbered globally and each rank owns a contiguous share. The initial state of
! a trajectory depends on its number only, so that the ensemble as a whole, and with it the
! training batch, is the same on any number of ranks.
module ensemble
  use, intrinsic :: iso_fortran_env, only: real64
  use lorenz96, only: full_state, full_start, full_advance, dt_full
  implicit none
  private
  public :: members_create

  ! The trajectories of one rank: numbers first, first + 1, ...; possibly none.
  type, public :: members
    integer :: total = 0 ! trajectories on all ranks together
    integer :: first = 0
    type(full_state), allocatable :: state(:)
  end type members

  real(real64), parameter :: spin_up = 10 ! MTU until a trajectory is on the attractor

contains

  ! This rank's share of total trajectories, whose numbers start at offset.
  type(members) function members_create(total, offset, rank, ranks) result(m)
    integer, intent(in) :: total, offset, rank, ranks
    integer :: mine, i

    m%total = total
    m%first = offset + rank * (total / ranks) + min(rank, mod(total, ranks))
    mine = total / ranks
    if (rank < mod(total, ranks)) mine = mine + 1 ! so rank 0 always owns the first one
    allocate (m%state(mine))
    do i = 1, mine
      m%state(i) = full_start(m%first + i - 1)
      call full_advance(m%state(i), nint(spin_up / dt_full))
    end do
  end function members_create

end module ensemble
