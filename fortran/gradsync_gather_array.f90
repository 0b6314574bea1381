! SPDX-License-Identifier: BSD-3-Clause
! gradsync_gather_array - the collectives of gradsync_gather.h on Fortran arrays of any type and
! rank (Fortran 2018).
!
! What gradsync_array says of arrays, count, stream, as, stat and errmsg holds. send and recv have
! the same type and kind. What only the root uses is not looked at on other ranks: give any array
! there, for example one of size 0.
!
! Where pieces differ in length, they are counted in slices: what one index of the last dimension
! has. In an array a(n1,n2,:) a slice has n1*n2 elements; in one of rank 1, and in a scalar, one.
! On all ranks send and recv are alike in all dimensions but the last; so what is gathered along
! the last dimension is the global array.
!
!   counts  in   integer(int64), of as many elements as there are ranks: the slices of each
!   displs  in   the same: how many slices of the array come before the piece of each rank
!
! N.B. the order of arguments is what tells these from the procedures of gradsync_gather; see
! gradsync_array.
module gradsync_gather_array
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t
  use gradsync_array, only: array_args, conclude_array, is_open, pack_args
  use gradsync_gather, only: gs_allgatherv, gs_alltoall, gs_alltoallv, gs_gather, &
    gs_gather_field, gs_gatherv, gs_reduce, gs_reduce_scatter, gs_reduce_scatterv, gs_scatter, &
    gs_scatterv
  use gradsync_types, only: gs_comm
  implicit none
  private

  public :: gs_allgatherv, gs_gather, gs_gatherv, gs_scatter, gs_scatterv, gs_alltoall, &
    gs_alltoallv, gs_reduce, gs_reduce_scatter, gs_reduce_scatterv, gs_gather_field

  ! For gradsync_adjoint_array; not part of module gradsync.
  public :: c_allgatherv_array, c_alltoall_array, c_alltoallv_array, c_gather_array, &
    c_gatherv_array, c_reduce_array, c_reduce_scatter_array, c_reduce_scatterv_array, &
    c_scatter_array, c_scatterv_array

  interface gs_allgatherv
    module procedure allgatherv_array
  end interface gs_allgatherv

  interface gs_gather
    module procedure gather_array, gather_array_int32
  end interface gs_gather

  interface gs_gatherv
    module procedure gatherv_array
  end interface gs_gatherv

  interface gs_scatter
    module procedure scatter_array, scatter_array_int32
  end interface gs_scatter

  interface gs_scatterv
    module procedure scatterv_array
  end interface gs_scatterv

  interface gs_alltoall
    module procedure alltoall_array, alltoall_array_int32
  end interface gs_alltoall

  interface gs_alltoallv
    module procedure alltoallv_array
  end interface gs_alltoallv

  interface gs_reduce
    module procedure reduce_array, reduce_array_int32
  end interface gs_reduce

  interface gs_reduce_scatter
    module procedure reduce_scatter_array, reduce_scatter_array_int32
  end interface gs_reduce_scatter

  interface gs_reduce_scatterv
    module procedure reduce_scatterv_array
  end interface gs_reduce_scatterv

  interface gs_gather_field
    module procedure field_array, field_array_int32
  end interface gs_gather_field

  ! cfi_gather.h, in its order.
  interface
    function c_gather_array(args, send, send_is_open, recv, recv_is_open, root) &
      bind(c, name="gsi_fortran_gather") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, root
      integer(c_int) :: st
    end function c_gather_array

    function c_scatter_array(args, send, send_is_open, recv, recv_is_open, root) &
      bind(c, name="gsi_fortran_scatter") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, root
      integer(c_int) :: st
    end function c_scatter_array

    function c_alltoall_array(args, send, send_is_open, recv, recv_is_open) &
      bind(c, name="gsi_fortran_alltoall") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open
      integer(c_int) :: st
    end function c_alltoall_array

    function c_reduce_array(args, send, send_is_open, recv, recv_is_open, op, root) &
      bind(c, name="gsi_fortran_reduce") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, op, root
      integer(c_int) :: st
    end function c_reduce_array

    function c_reduce_scatter_array(args, send, send_is_open, recv, recv_is_open, op) &
      bind(c, name="gsi_fortran_reduce_scatter") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, op
      integer(c_int) :: st
    end function c_reduce_scatter_array

    function c_allgatherv_array(args, send, send_is_open, recv, recv_is_open, counts, &
      displs) bind(c, name="gsi_fortran_allgatherv") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open
      integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
      integer(c_int) :: st
    end function c_allgatherv_array

    function c_gatherv_array(args, send, send_is_open, recv, recv_is_open, root, counts, &
      displs) bind(c, name="gsi_fortran_gatherv") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, root
      integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
      integer(c_int) :: st
    end function c_gatherv_array

    function c_scatterv_array(args, send, send_is_open, recv, recv_is_open, root, counts, &
      displs) bind(c, name="gsi_fortran_scatterv") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, root
      integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
      integer(c_int) :: st
    end function c_scatterv_array

    function c_alltoallv_array(args, send, send_is_open, recv, recv_is_open, send_counts, &
      recv_counts, send_displs, recv_displs) bind(c, name="gsi_fortran_alltoallv") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open
      integer(c_int64_t), intent(in) :: send_counts(:), recv_counts(:)
      integer(c_int64_t), intent(in), optional :: send_displs(:), recv_displs(:)
      integer(c_int) :: st
    end function c_alltoallv_array

    function c_reduce_scatterv_array(args, send, send_is_open, recv, recv_is_open, op, counts, &
      displs) bind(c, name="gsi_fortran_reduce_scatterv") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: send_is_open, recv_is_open, op
      integer(c_int64_t), intent(in) :: counts(:)
      integer(c_int64_t), intent(in), optional :: displs(:)
      integer(c_int) :: st
    end function c_reduce_scatterv_array

    function c_field_array(args, block, block_is_open, offsets, field, field_is_open, &
      root) bind(c, name="gsi_fortran_gather_field") result(st)
      import :: array_args, c_int, c_int64_t
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: block
      type(*), dimension(..), asynchronous, intent(inout) :: field
      integer(c_int), value :: block_is_open, field_is_open, root
      integer(c_int64_t), intent(in) :: offsets(:)
      integer(c_int) :: st
    end function c_field_array
  end interface

contains

  ! recv of rank [root] = send of all ranks in rank order; size(recv) is the number of ranks times
  ! size(send). With [count], that many elements are sent from the start of send.
  subroutine gather_array(comm, send, recv, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_gather_array(args, send, is_open(send), recv, is_open(recv), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine gather_array

  subroutine gather_array_int32(comm, send, recv, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call gather_array(comm, send, recv, root, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine gather_array_int32

  ! recv = this rank's part of send of rank [root]; size(send) is the number of ranks times
  ! size(recv). With [count], each rank receives that many.
  subroutine scatter_array(comm, send, recv, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_scatter_array(args, send, is_open(send), recv, is_open(recv), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine scatter_array

  subroutine scatter_array_int32(comm, send, recv, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call scatter_array(comm, send, recv, root, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine scatter_array_int32

  ! recv = the parts for this rank of send of all ranks; send and recv are of one size, a
  ! multiple of the number of ranks. With [count], that many elements go from each rank to
  ! each.
  subroutine alltoall_array(comm, send, recv, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_alltoall_array(args, send, is_open(send), recv, is_open(recv))
    call conclude_array(st, args, stat, errmsg)
  end subroutine alltoall_array

  subroutine alltoall_array_int32(comm, send, recv, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call alltoall_array(comm, send, recv, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine alltoall_array_int32

  ! recv of rank [root] = sum, product, minimum, maximum or average of send over the ranks, by
  ! [op].
  subroutine reduce_array(comm, send, recv, op, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: op, root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_reduce_array(args, send, is_open(send), recv, is_open(recv), op, root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_array

  subroutine reduce_array_int32(comm, send, recv, op, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: op, root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_array(comm, send, recv, op, root, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine reduce_array_int32

  ! recv = this rank's part of the sum, product, ... of send over the ranks; size(send) is the
  ! number of ranks times size(recv).
  subroutine reduce_scatter_array(comm, send, recv, op, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: op
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_reduce_scatter_array(args, send, is_open(send), recv, is_open(recv), op)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_scatter_array

  subroutine reduce_scatter_array_int32(comm, send, recv, op, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: op
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_scatter_array(comm, send, recv, op, int(count, c_int64_t), stream, as, stat, &
      errmsg)
  end subroutine reduce_scatter_array_int32

  ! recv = the slices of all ranks in rank order, or where [displs] says. Without [counts] the
  ! ranks tell each other.
  subroutine allgatherv_array(comm, send, recv, counts, displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_allgatherv_array(args, send, is_open(send), recv, is_open(recv), counts, displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine allgatherv_array

  ! recv of rank [root] = the slices of all ranks, as gs_allgatherv.
  subroutine gatherv_array(comm, send, recv, root, counts, displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_gatherv_array(args, send, is_open(send), recv, is_open(recv), root, counts, displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine gatherv_array

  ! recv = this rank's slices of send of rank [root], which gives [counts].
  subroutine scatterv_array(comm, send, recv, root, counts, displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_scatterv_array(args, send, is_open(send), recv, is_open(recv), root, counts, displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine scatterv_array

  ! recv = the slices for this rank of send of all ranks.
  subroutine alltoallv_array(comm, send, send_counts, recv, recv_counts, send_displs, &
    recv_displs, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int64_t), intent(in) :: send_counts(:), recv_counts(:)
    integer(c_int64_t), intent(in), optional :: send_displs(:), recv_displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_alltoallv_array(args, send, is_open(send), recv, is_open(recv), send_counts, &
      recv_counts, send_displs, recv_displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine alltoallv_array

  ! recv = this rank's slices of the sum, product, ... of send over the ranks; rank r has
  ! counts(r+1) of them.
  subroutine reduce_scatterv_array(comm, send, recv, op, counts, displs, stream, as, stat, &
    errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int), intent(in) :: op
    integer(c_int64_t), intent(in) :: counts(:)
    integer(c_int64_t), intent(in), optional :: displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_reduce_scatterv_array(args, send, is_open(send), recv, is_open(recv), op, counts, &
      displs)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_scatterv_array

  ! field of rank [root], or without it of all ranks, = the blocks of all ranks. The first element
  ! of block is that of field behind offsets(d) others in each dimension d. What no block covers
  ! stays as it is.
  subroutine field_array(comm, block, offsets, field, root, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: block
    type(*), dimension(..), asynchronous, intent(inout) :: field
    integer(c_int64_t), intent(in) :: offsets(:)
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st, receiver

    args = pack_args(comm, stream=stream, as=as)
    receiver = -1
    if (present(root)) receiver = root
    st = c_field_array(args, block, is_open(block), offsets, field, is_open(field), receiver)
    call conclude_array(st, args, stat, errmsg)
  end subroutine field_array

  subroutine field_array_int32(comm, block, offsets, field, root, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: block
    integer(c_int32_t), intent(in) :: offsets(:)
    type(*), dimension(..), asynchronous, intent(inout) :: field
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call field_array(comm, block, int(offsets, c_int64_t), field, root, stream, as, stat, errmsg)
  end subroutine field_array_int32

end module gradsync_gather_array
