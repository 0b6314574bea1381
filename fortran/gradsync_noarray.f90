! SPDX-License-Identifier: BSD-3-Clause
! gradsync_noarray - stands in for gradsync_array, gradsync_gather_array, gradsync_adjoint_array,
! gradsync_stats_array, gradsync_p2p_array, gradsync_ckpt_array and gradsync_gradient where the
! compiler has no arguments of any type and rank: the collectives, their gradients and messages
! take an address, a count and a dtype only, gradients of reducers are added and given by address,
! and so are arrays of checkpoints.
module gradsync_array
  use gradsync_coll, only: gs_allgather, gs_allreduce, gs_allreduce_avg, gs_allreduce_wavg, &
    gs_broadcast
  implicit none
  public
end module gradsync_array

module gradsync_gather_array
  use gradsync_gather, only: gs_allgatherv, gs_alltoall, gs_alltoallv, gs_gather, &
    gs_gather_field, gs_gatherv, gs_reduce, gs_reduce_scatter, gs_reduce_scatterv, gs_scatter, &
    gs_scatterv
  implicit none
  public
end module gradsync_gather_array

module gradsync_stats_array
  use gradsync_stats, only: gs_compare, gs_stats
  implicit none
  public
end module gradsync_stats_array

module gradsync_adjoint_array
  use gradsync_adjoint, only: gs_allgather_backward, gs_allgatherv_backward, &
    gs_allreduce_backward, gs_alltoall_backward, gs_alltoallv_backward, gs_broadcast_backward, &
    gs_gather_backward, gs_gather_field_backward, gs_gatherv_backward, gs_reduce_backward, &
    gs_reduce_scatter_backward, gs_reduce_scatterv_backward, gs_scatter_backward, &
    gs_scatterv_backward
  implicit none
  public
end module gradsync_adjoint_array

module gradsync_p2p_array
  use gradsync_p2p, only: gs_boundary_backward, gs_boundary_forward, gs_halo_adjoint, &
    gs_halo_exchange, gs_recv, gs_send
  implicit none
  public
end module gradsync_p2p_array

module gradsync_ckpt_array
  use gradsync_ckpt, only: gs_ckpt_add_per_rank, gs_ckpt_add_replicated, gs_ckpt_add_sharded
  implicit none
  public
end module gradsync_ckpt_array

module gradsync_gradient
  use gradsync_reducer, only: gs_reducer_add
  use gradsync_step, only: gs_reducer_grad
  implicit none
  public
end module gradsync_gradient
