! SPDX-License-Identifier: BSD-3-Clause
! gradsync - the one module that programs use: the whole interface, and where it is described.
! Names and constants are those of gradsync.h and its parts, whose contracts hold.
module gradsync
  ! Results
  use gradsync_types, only: GS_OK, GS_ERR_ARG, GS_ERR_MISMATCH, GS_ERR_NOMEM, GS_ERR_BOOT, &
    GS_ERR_TRANSPORT, GS_ERR_DEVICE, GS_ERR_IO, GS_ERR_FORMAT, GS_ERR_TIMEOUT, &
    GS_ERR_UNSUPPORTED, GS_ERR_STATE, &
    GS_VERSION_MAJOR, GS_VERSION_MINOR, GS_VERSION_PATCH
  use gradsync_comm, only: gs_status_string, gs_last_error, gs_version

  ! Settings and log
  use gradsync_types, only: gs_setting, GS_LOG_ERROR, GS_LOG_WARN, GS_LOG_INFO, GS_LOG_TRACE
  use gradsync_comm, only: gs_setting_get, gs_build_info, gs_log_f, gs_log_set_sink

  ! Types
  use gradsync_types, only: GS_F16, GS_BF16, GS_F32, GS_F64, GS_I8, GS_I16, GS_I32, GS_I64, &
    GS_U8, GS_U16, GS_U32, GS_U64, GS_C64, GS_C128, GS_F8_E4M3, GS_F8_E5M2, &
    GS_SUM, GS_PROD, GS_MIN, GS_MAX, GS_AVG, &
    GS_TRANSPORT_AUTO, GS_TRANSPORT_SELF, GS_TRANSPORT_MPI, GS_TRANSPORT_NCCL
  use gradsync_comm, only: gs_dtype_size

  ! Communicators
  use gradsync_types, only: gs_comm, gs_comm_times, gs_unique_id, &
    GS_DEVICE_AUTO, GS_DEVICE_HOST, GS_UNIQUE_ID_BYTES, GS_COLOR_NONE
  use gradsync_comm, only: gs_comm_create, gs_unique_id_get, gs_comm_create_from_id, &
    gs_comm_from_mpi, gs_comm_destroy, gs_comm_abort, gs_comm_check, gs_comm_wait, &
    gs_comm_rank, gs_comm_size, gs_comm_local_rank, gs_comm_local_size, &
    gs_comm_node, gs_comm_nodes, gs_comm_device, &
    gs_comm_transport, gs_comm_host_of, gs_comm_name, gs_comm_get_times, gs_comm_c_ptr

  ! Groups: communicators of some of the ranks of another
  use gradsync_group, only: gs_comm_split, gs_comm_split_node, gs_comm_split_rail, &
    gs_comm_split_grid, gs_comm_split_list

  ! Arrays in memory of the device
  use gradsync_device, only: gs_device_alloc, gs_device_free, gs_device_copy

  ! Collectives: on arrays in gradsync_array, on addresses in gradsync_coll
  use gradsync_array, only: gs_allreduce_avg, gs_allreduce_wavg, gs_allreduce, &
    gs_broadcast, gs_allgather
  use gradsync_coll, only: gs_barrier

  ! The same from and to one rank, or in parts: gradsync_gather_array and gradsync_gather
  use gradsync_gather_array, only: gs_allgatherv, gs_gather, gs_gatherv, gs_scatter, &
    gs_scatterv, gs_alltoall, gs_alltoallv, gs_reduce, gs_reduce_scatter, &
    gs_reduce_scatterv, gs_gather_field
  use gradsync_types, only: GS_FIELD_DIMS_MAX

  ! Gradients of collectives: gradsync_adjoint_array and gradsync_adjoint; a test of gradients
  use gradsync_types, only: gs_adjoint_result, GS_GRAD_ADJOINT, GS_GRAD_OWN_SLOT
  use gradsync_adjoint_array, only: gs_allgather_backward, gs_allgatherv_backward, &
    gs_gather_backward, gs_gatherv_backward, gs_scatter_backward, gs_scatterv_backward, &
    gs_alltoall_backward, gs_alltoallv_backward, gs_broadcast_backward, gs_allreduce_backward, &
    gs_reduce_backward, gs_reduce_scatter_backward, gs_reduce_scatterv_backward, &
    gs_gather_field_backward
  use gradsync_adjoint_check, only: gs_forward_f, gs_backward_f, gs_adjoint_check

  ! Statistics, logical reductions, comparison: arrays in gradsync_stats_array
  use gradsync_types, only: gs_moments, gs_array
  use gradsync_stats_array, only: gs_stats, gs_compare
  use gradsync_stats, only: gs_moments_merge, gs_all, gs_any

  ! What was sent
  use gradsync_types, only: gs_traffic
  use gradsync_stats, only: gs_comm_get_traffic, gs_comm_reset_traffic

  ! Messages between pairs of ranks, boundaries and halos: on arrays in gradsync_p2p_array
  use gradsync_p2p_array, only: gs_send, gs_recv, gs_boundary_forward, gs_boundary_backward, &
    gs_halo_exchange, gs_halo_adjoint
  use gradsync_p2p, only: gs_group_begin, gs_group_end, gs_boundary_create, &
    gs_boundary_destroy, gs_halo_create, gs_halo_destroy
  use gradsync_types, only: gs_boundary, gs_halo, GS_GROUP_MAX, GS_BOUNDARY_DIMS_MAX, &
    GS_HALO_DIMS_MAX

  ! Reducers; gradients as arrays in gradsync_gradient, by address in _reducer and _step
  use gradsync_types, only: gs_reducer, gs_bucket, gs_reducer_stats, gs_bucket_stats, &
    GS_OVERLAP_AUTO, GS_OVERLAP_INLINE, GS_OVERLAP_OFF, GS_OVERLAP_THREAD, &
    GS_SCALAR_SUM, GS_SCALAR_MEAN, GS_SCALAR_MIN, GS_SCALAR_MAX, GS_REDUCER_DIMS_MAX
  use gradsync_gradient, only: gs_reducer_add, gs_reducer_grad
  use gradsync_reducer, only: gs_reducer_create, gs_reducer_add_scalar, gs_reducer_commit, &
    gs_bucket_f, gs_reducer_set_hook, gs_reducer_set_averaged, gs_reducer_relayout, &
    gs_reducer_get_stats, gs_reducer_get_bucket, gs_reducer_report, gs_reducer_destroy, &
    gs_reducer_c_ptr
  use gradsync_step, only: gs_reducer_ready, gs_reducer_skip, gs_reducer_finish, &
    gs_reducer_no_sync, gs_reducer_weight, gs_reducer_join, gs_reducer_set_scalar, &
    gs_reducer_get_scalar, gs_reducer_norm, gs_reducer_broadcast

  ! Checkpoints: plans in gradsync_ckpt, their arrays in gradsync_ckpt_array
  use gradsync_types, only: gs_ckpt, GS_CKPT_LATEST, GS_CKPT_RANKS_ERROR, GS_CKPT_RANKS_KEEP, &
    GS_CKPT_RANKS_FIRST, GS_CKPT_COMPARE_FULL, GS_CKPT_COMPARE_SAMPLE, GS_CKPT_COMPARE_NONE, &
    GS_CKPT_LAYOUT_AUTO, GS_CKPT_LAYOUT_SINGLE, GS_CKPT_LAYOUT_NODE, GS_CKPT_BUSY_WAIT, &
    GS_CKPT_BUSY_SKIP, GS_CKPT_BUSY_ERROR, GS_CKPT_POINTS, GS_CKPT_CELLS, GS_CKPT_DIMS_MAX, &
    GS_CKPT_NAME_MAX, GS_CKPT_STOP_SIGNAL, GS_CKPT_STOP_TIME, GS_CKPT_STOP_FILE, &
    GS_CKPT_EXIT_REQUEUE
  use gradsync_ckpt_array, only: gs_ckpt_add_replicated, gs_ckpt_add_sharded, &
    gs_ckpt_add_per_rank
  use gradsync_ckpt, only: gs_ckpt_create, gs_ckpt_set_attribute, gs_ckpt_set_grid, &
    gs_ckpt_commit, gs_ckpt_write, gs_ckpt_write_async, gs_ckpt_staged, gs_ckpt_test, &
    gs_ckpt_wait, gs_ckpt_list, gs_ckpt_read, gs_stop_requested, gs_ckpt_destroy
  use gradsync_ckpt_filled, only: gs_ckpt_was_read

  implicit none
  public
end module gradsync
