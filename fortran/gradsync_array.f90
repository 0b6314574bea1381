! SPDX-License-Identifier: BSD-3-Clause
! gradsync_array - the collectives on Fortran arrays of any type and rank (Fortran 2018).
!
! Accepted is plain memory of a known kind: scalars, whole arrays with any lower bounds,
! allocatables, pointers, contiguous sections, size 0; real32, real64, complex of both, integers
! of 8 to 64 bits. Strided sections, unallocated and unassociated arrays, character, logical,
! derived types and other kinds are refused by name, and nothing is changed.
!
!   comm    in      every rank calls, with the same count and type
!   buf     in,out  the array
!   count   in      optional: the first [count] elements only; needed for assumed-size arrays,
!                   which do not know their size. integer(int64)
!   stream  in      optional: a CUDA stream as an integer; ignored on hosts
!   as      in      optional: what the elements of an integer array stand for, where Fortran
!                   has no kind: GS_F16 and GS_BF16 in integer(int16), unsigned types
!   stat, errmsg    optional: see gradsync_comm; a refused character array leaves errmsg alone
!
! These procedures extend the generics of gradsync_coll. Their optional arguments stand in this
! order, and the type is as= here and dtype= there, because the standard (15.4.3.4.5) tells two
! procedures of a generic apart by argument kinds and keywords only: a type(*) argument takes a
! type(c_ptr) too. So (comm, ptr, count, dtype) can mean one thing only.
!
! N.B. gfortran 12 passes a component of an array of derived type, x%re or grid%u, as a copy and
! copies it back when the procedure returns. On hosts the result is right; a stream would outlive
! the copy.
module gradsync_array
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int32_t, c_int64_t, c_intptr_t
  use gradsync_c_reducer, only: gradient
  use gradsync_coll, only: gs_allgather, gs_allreduce, gs_allreduce_avg, gs_allreduce_wavg, &
    gs_broadcast
  use gradsync_support, only: conclude, stream_or_default
  use gradsync_types, only: gs_comm, handle_of_comm
  implicit none
  private

  public :: gs_allreduce_avg, gs_allreduce_wavg, gs_allreduce, gs_broadcast, gs_allgather

  ! For the other modules of arrays and gradsync_gradient; not part of module gradsync.
  public :: array_args, conclude_array, is_open, pack_args
  public :: c_allgather_array, c_allreduce_array, c_broadcast_array, c_describe

  interface gs_allreduce_avg
    module procedure avg_array, avg_array_int32
  end interface gs_allreduce_avg

  interface gs_allreduce_wavg
    module procedure wavg_array, wavg_array_int32
  end interface gs_allreduce_wavg

  interface gs_allreduce
    module procedure reduce_array, reduce_array_int32
  end interface gs_allreduce

  interface gs_broadcast
    module procedure broadcast_array, broadcast_array_int32
  end interface gs_broadcast

  interface gs_allgather
    module procedure allgather_array, allgather_array_int32
  end interface gs_allgather

  ! struct gsi_fortran_args of cfi.h.
  type, bind(c) :: array_args
    integer(c_int64_t) :: handle
    integer(c_int64_t) :: count
    integer(c_intptr_t) :: stream
    integer(c_int) :: as
    integer(c_int) :: count_given
    integer(c_int) :: as_given
    integer(c_int) :: is_character
    integer(c_int) :: is_backward
  end type array_args

  ! cfi.h, in its order.
  interface
    function c_avg_array(args, buf, is_open) bind(c, name="gsi_fortran_allreduce_avg") &
      result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open
      integer(c_int) :: st
    end function c_avg_array

    function c_wavg_array(args, buf, is_open, weight) &
      bind(c, name="gsi_fortran_allreduce_wavg") result(st)
      import :: array_args, c_double, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open
      real(c_double), value :: weight
      integer(c_int) :: st
    end function c_wavg_array

    function c_allreduce_array(args, buf, is_open, op) &
      bind(c, name="gsi_fortran_allreduce") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open
      integer(c_int), value :: op
      integer(c_int) :: st
    end function c_allreduce_array

    function c_broadcast_array(args, buf, is_open, root) &
      bind(c, name="gsi_fortran_broadcast") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open
      integer(c_int), value :: root
      integer(c_int) :: st
    end function c_broadcast_array

    function c_allgather_array(args, send, send_is_open, recv, recv_is_open) &
      bind(c, name="gsi_fortran_allgather") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: send
      integer(c_int), value :: send_is_open
      type(*), dimension(..), asynchronous, intent(inout) :: recv
      integer(c_int), value :: recv_is_open
      integer(c_int) :: st
    end function c_allgather_array

    function c_describe(args, call, array, is_open, g) bind(c, name="gsi_fortran_describe") &
      result(st)
      import :: array_args, c_char, c_int, gradient
      type(array_args), intent(inout) :: args
      character(kind=c_char), intent(in) :: call(*)
      type(*), dimension(..), target, asynchronous, intent(inout) :: array
      integer(c_int), value :: is_open
      type(gradient), intent(inout) :: g
      integer(c_int) :: st
    end function c_describe
  end interface

contains

  ! buf = average of buf over the ranks.
  subroutine avg_array(comm, buf, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_avg_array(args, buf, is_open(buf))
    call conclude_array(st, args, stat, errmsg)
  end subroutine avg_array

  subroutine avg_array_int32(comm, buf, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call avg_array(comm, buf, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine avg_array_int32

  ! buf = average of buf over the ranks, each counted [weight] times.
  subroutine wavg_array(comm, buf, weight, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    real(c_double), intent(in) :: weight
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_wavg_array(args, buf, is_open(buf), weight)
    call conclude_array(st, args, stat, errmsg)
  end subroutine wavg_array

  subroutine wavg_array_int32(comm, buf, weight, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    real(c_double), intent(in) :: weight
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call wavg_array(comm, buf, weight, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine wavg_array_int32

  ! buf = sum, product, minimum or maximum of buf over the ranks, by [op].
  subroutine reduce_array(comm, buf, op, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: op
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_allreduce_array(args, buf, is_open(buf), op)
    call conclude_array(st, args, stat, errmsg)
  end subroutine reduce_array

  subroutine reduce_array_int32(comm, buf, op, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: op
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_array(comm, buf, op, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine reduce_array_int32

  ! buf = buf of rank [root].
  subroutine broadcast_array(comm, buf, root, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: root
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_broadcast_array(args, buf, is_open(buf), root)
    call conclude_array(st, args, stat, errmsg)
  end subroutine broadcast_array

  subroutine broadcast_array_int32(comm, buf, root, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: root
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call broadcast_array(comm, buf, root, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine broadcast_array_int32

  ! recv = send of all ranks in rank order; size(recv) is the number of ranks times size(send),
  ! in any shape. With [count], that many elements are sent from the start of send.
  subroutine allgather_array(comm, send, recv, count, stream, as, stat, errmsg)
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
    st = c_allgather_array(args, send, is_open(send), recv, is_open(recv))
    call conclude_array(st, args, stat, errmsg)
  end subroutine allgather_array

  subroutine allgather_array_int32(comm, send, recv, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: send
    type(*), dimension(..), asynchronous, intent(inout) :: recv
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allgather_array(comm, send, recv, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine allgather_array_int32

  ! 1 for an assumed-size array, whose last extent Fortran gives as -1.
  ! N.B. it must be asked here: gfortran 12 gives the C descriptor of x(0:*) an extent of 0 and
  ! that of x(-3:*) one of 3. But it gives -1 for x(3:1) and other empty sections that end two
  ! before their start, so these are taken for assumed-size; gfortran 14 for any empty expression.
  function is_open(array)
    type(*), dimension(..), asynchronous, intent(in) :: array
    integer(c_int) :: is_open

    is_open = 0
    if (rank(array) > 0) then
      if (size(array, dim=rank(array), kind=c_int64_t) < 0) is_open = 1
    end if
  end function is_open

  function pack_args(comm, count, stream, as) result(args)
    type(gs_comm), intent(in) :: comm
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    type(array_args) :: args

    args = array_args(handle_of_comm(comm), 0, stream_or_default(stream), 0, 0, 0, 0, 0)
    if (present(count)) then
      args%count = count
      args%count_given = 1
    end if
    if (present(as)) then
      args%as = as
      args%as_given = 1
    end if
  end function pack_args

  ! N.B. for a character array as the actual argument gfortran 12 passes a hidden length that a
  ! type(*) dummy does not have, and we would take it for that of errmsg. So errmsg is not
  ! written then; gs_last_error has the text.
  subroutine conclude_array(st, args, stat, errmsg)
    integer(c_int), intent(in) :: st
    type(array_args), intent(in) :: args
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    if (args%is_character /= 0) then
      call conclude(st, stat)
    else
      call conclude(st, stat, errmsg)
    end if
  end subroutine conclude_array

end module gradsync_array
