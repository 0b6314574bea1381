! SPDX-License-Identifier: BSD-3-Clause
! gradsync_noarray - stands in for gradsync_array where the compiler has no arguments of any type
! and rank: the collectives take an address, a count and a dtype only.
module gradsync_array
  use gradsync_coll, only: gs_allgather, gs_allreduce, gs_allreduce_avg, gs_allreduce_wavg, &
    gs_broadcast
  implicit none
  public
end module gradsync_array
