! SPDX-License-Identifier: BSD-3-Clause
! gradsync_adjoint_array - the gradients of collectives on Fortran arrays of any type and rank
! (Fortran 2018).
!
! What gradsync_adjoint.h says of grad_y, grad_x and contracts holds; of arrays, count, stream,
! as, stat and errmsg what gradsync_array says, of slices, counts and displs what
! gradsync_gather_array says. grad_y is like the array that the collective wrote, grad_x like the
! one that it was given, and both have the same type and kind, real or complex.
!
!   contract  in  optional: GS_GRAD_ADJOINT, which it is without, or GS_GRAD_OWN_SLOT
!
! N.B. the order of arguments is what tells these from the procedures of gradsync_adjoint; see
! gradsync_array.
module gradsync_adjoint_array
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t
  use gradsync_adjoint, only: contract_or_default, gs_allgather_backward, &
    gs_allgatherv_backward, gs_allreduce_backward, gs_alltoall_backward, &
    gs_alltoallv_backward, gs_broadcast_backward, gs_gather_backward, &
    gs_gather_field_backward, gs_gatherv_backward, gs_reduce_backward, &
    gs_reduce_scatter_backward, gs_reduce_scatterv_backward, gs_scatter_backward, &
    gs_scatterv_backward
  use gradsync_array, only: array_args, conclude_array, is_open, pack_args, c_allgather_array, &
    c_allreduce_array, c_broadcast_array
  use gradsync_gather_array, only: c_allgatherv_array, c_alltoall_array, c_alltoallv_array, &
    c_gather_array, c_gatherv_array, c_reduce_array, c_reduce_scatter_array, &
    c_reduce_scatterv_array, c_scatter_array, c_scatterv_array
  use gradsync_types, only: gs_comm, GS_SUM
  implicit none
  private

  public :: gs_allgather_backward, gs_allgatherv_backward, gs_gather_backward, &
    gs_gatherv_backward, gs_scatter_backward, gs_scatterv_backward, gs_alltoall_backward, &
    gs_alltoallv_backward, gs_broadcast_backward, gs_allreduce_backward, gs_reduce_backward, &
    gs_reduce_scatter_backward, gs_reduce_scatterv_backward, gs_gather_field_backward

  interface gs_allgather_backward
    module procedure allgather_array, allgather_array_int32
  end interface gs_allgather_backward

  interface gs_allgatherv_backward
    module procedure allgatherv_array
  end interface gs_allgatherv_backward

  interface gs_gather_backward
    module procedure gather_array, gather_array_int32
  end interface gs_gather_backward

  interface gs_gatherv_backward
    module procedure gatherv_array
  end interface gs_gatherv_backward

  interface gs_scatter_backward
    module procedure scatter_array, scatter_array_int32
  end interface gs_scatter_backward

  interface gs_scatterv_backward
    module procedure scatterv_array
  end interface gs_scatterv_backward

  interface gs_alltoall_backward
    module procedure alltoall_array, alltoall_array_int32
  end interface gs_alltoall_backward

  interface gs_alltoallv_backward
    module procedure alltoallv_array
  end interface gs_alltoallv_backward

  interface gs_broadcast_backward
    module procedure broadcast_array, broadcast_array_int32
  end interface gs_broadcast_backward

  interface gs_allreduce_backward
    module procedure allreduce_array, allreduce_array_int32
  end interface gs_allreduce_backward

  interface gs_reduce_backward
    module procedure reduce_array, reduce_array_int32
  end interface gs_reduce_backward

  interface gs_reduce_scatter_backward
    module procedure reduce_scatter_array, reduce_scatter_array_int32
  end interface gs_reduce_scatter_backward

  interface gs_reduce_scatterv_backward
    module procedure reduce_scatterv_array
  end interface gs_reduce_scatterv_backward

  interface gs_gather_field_backward
    module procedure field_array, field_array_int32
  end interface gs_gather_field_backward

  ! cfi_gather.h; the others do the work of their collectives too, and are declared there.
  interface
    function c_field_backward(args, grad_y, grad_y_is_open, grad_x, grad_x_is_open, offsets, &
      root) bind(c, name="gsi_fortran_gather_field_backward") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: grad_y
      type(*), dimension(..), asynchronous, intent(inout) :: grad_x
      integer(c_int), value :: grad_y_is_open, grad_x_is_open, root
      integer(c_int64_t), intent(in) :: offsets(:)
      integer(c_int) :: st
    end function c_field_backward
  end interface

contains

  ! Of gs_allgather: size(grad_y) is the number of ranks times size(grad_x). grad_x = this rank's
  ! part of the sum of grad_y over the ranks, or with GS_GRAD_OWN_SLOT of its own grad_y times
  ! their number.
  subroutine allgather_array(comm, grad_y, grad_x, contract, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in), optional :: contract
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_reduce_scatter_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), &
      contract_or_default(contract))
    call conclude_array(st, args, stat, errmsg)
  end subroutine allgather_array

  subroutine allgather_array_int32(comm, grad_y, grad_x, contract, stream, count, as, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in), optional :: contract
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allgather_array(comm, grad_y, grad_x, contract, int(count, c_int64_t), stream, as, &
      stat, errmsg)
  end subroutine allgather_array_int32

  ! Of gs_allgatherv: grad_y is the global array, grad_x this rank's slices; rank r has
  ! counts(r+1) of them. What is in gaps of grad_y does not count.
  subroutine allgatherv_array(comm, grad_y, grad_x, counts, displs, contract, stream, as, &
    stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int64_t), intent(in), optional :: displs(:)
    integer(c_int), intent(in), optional :: contract
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, stream=stream, as=as)
    st = c_reduce_scatterv_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), &
      contract_or_default(contract), counts, displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine allgatherv_array

  ! Of gs_gather: grad_x = this rank's part of grad_y of rank [root].
  subroutine gather_array(comm, grad_y, grad_x, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_scatter_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine gather_array

  subroutine gather_array_int32(comm, grad_y, grad_x, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call gather_array(comm, grad_y, grad_x, root, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine gather_array_int32

  ! Of gs_gatherv: grad_x = this rank's slices of grad_y of rank [root], which gives [counts].
  subroutine gatherv_array(comm, grad_y, grad_x, root, counts, displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, stream=stream, as=as)
    st = c_scatterv_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), root, &
      counts, displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine gatherv_array

  ! Of gs_scatter: grad_x of rank [root] = grad_y of all ranks in rank order.
  subroutine scatter_array(comm, grad_y, grad_x, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_gather_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine scatter_array

  subroutine scatter_array_int32(comm, grad_y, grad_x, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call scatter_array(comm, grad_y, grad_x, root, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine scatter_array_int32

  ! Of gs_scatterv: grad_x of rank [root] = the slices of all ranks in rank order, or where
  ! [displs] says. Without [counts] the ranks tell each other.
  subroutine scatterv_array(comm, grad_y, grad_x, root, counts, displs, stream, as, stat, &
    errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, stream=stream, as=as)
    st = c_gatherv_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), root, counts, &
      displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine scatterv_array

  ! Of gs_alltoall: what went from each rank to each goes back.
  subroutine alltoall_array(comm, grad_y, grad_x, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_alltoall_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x))
    call conclude_array(st, args, stat, errmsg)
  end subroutine alltoall_array

  subroutine alltoall_array_int32(comm, grad_y, grad_x, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call alltoall_array(comm, grad_y, grad_x, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine alltoall_array_int32

  ! Of gs_alltoallv, whose counts and places are given as they were.
  subroutine alltoallv_array(comm, grad_y, recv_counts, grad_x, send_counts, recv_displs, &
    send_displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in) :: recv_counts(:), send_counts(:)
    integer(c_int64_t), intent(in), optional :: recv_displs(:), send_displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, stream=stream, as=as)
    st = c_alltoallv_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), &
      recv_counts, send_counts, recv_displs, send_displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine alltoallv_array

  ! Of gs_broadcast: grad_x of rank [root] = sum of grad_y over the ranks. That of others is 0,
  ! and not written.
  subroutine broadcast_array(comm, grad_y, grad_x, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_reduce_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), GS_SUM, root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine broadcast_array

  subroutine broadcast_array_int32(comm, grad_y, grad_x, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call broadcast_array(comm, grad_y, grad_x, root, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine broadcast_array_int32

  ! Of gs_allreduce with [op] GS_SUM, and of gs_allreduce_avg with GS_AVG: grad_y becomes grad_x.
  subroutine allreduce_array(comm, grad, op, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: grad
    integer(c_int), intent(in) :: op
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_allreduce_array(args, grad, is_open(grad), op)
    call conclude_array(st, args, stat, errmsg)
  end subroutine allreduce_array

  subroutine allreduce_array_int32(comm, grad, op, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: grad
    integer(c_int), intent(in) :: op
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allreduce_array(comm, grad, op, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine allreduce_array_int32

  ! Of gs_reduce with GS_SUM: grad of all ranks = that of rank [root].
  subroutine reduce_array(comm, grad, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: grad
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_broadcast_array(args, grad, is_open(grad), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_array

  subroutine reduce_array_int32(comm, grad, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: grad
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_array(comm, grad, root, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine reduce_array_int32

  ! Of gs_reduce_scatter with GS_SUM: grad_x = grad_y of all ranks in rank order.
  subroutine reduce_scatter_array(comm, grad_y, grad_x, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, count, stream, as)
    st = c_allgather_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x))
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_scatter_array

  subroutine reduce_scatter_array_int32(comm, grad_y, grad_x, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_scatter_array(comm, grad_y, grad_x, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine reduce_scatter_array_int32

  ! Of gs_reduce_scatterv with GS_SUM: grad_x = the slices of all ranks in rank order, or where
  ! [displs] says.
  subroutine reduce_scatterv_array(comm, grad_y, grad_x, counts, displs, stream, as, stat, &
    errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int64_t), intent(in), optional :: displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_backward(comm, stream=stream, as=as)
    st = c_allgatherv_array(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), counts, &
      displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_scatterv_array

  ! Of gs_gather_field: grad_x = this rank's block of grad_y of rank [root], or without it of the
  ! sum of grad_y over the ranks. The first element of grad_x is that of grad_y behind offsets(d)
  ! others in each dimension d.
  subroutine field_array(comm, grad_y, grad_x, offsets, root, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int64_t), intent(in) :: offsets(:)
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st, receiver

    args = pack_backward(comm, stream=stream, as=as)
    receiver = -1
    if (present(root)) receiver = root
    st = c_field_backward(args, grad_y, is_open(grad_y), grad_x, is_open(grad_x), offsets, &
      receiver)
    call conclude_array(st, args, stat, errmsg)
  end subroutine field_array

  subroutine field_array_int32(comm, grad_y, grad_x, offsets, root, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: grad_y
    type(*), dimension(..), asynchronous, intent(inout) :: grad_x
    integer(c_int32_t), intent(in) :: offsets(:)
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call field_array(comm, grad_y, grad_x, int(offsets, c_int64_t), root, stream, as, stat, &
      errmsg)
  end subroutine field_array_int32

  ! For a collective that does the work of a gradient.
  function pack_backward(comm, count, stream, as) result(args)
    type(gs_comm), intent(in) :: comm
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    type(array_args) :: args

    args = pack_args(comm, count, stream, as)
    args%is_backward = 1
  end function pack_backward

end module gradsync_adjoint_array
