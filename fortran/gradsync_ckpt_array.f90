! SPDX-License-Identifier: BSD-3-Clause
! gradsync_ckpt_array - arrays of a plan of checkpoints as Fortran arrays of any kind and rank
! (Fortran 2018).
!
! What gradsync_array says of arrays, as, stat and errmsg holds; assumed-size arrays are refused.
! The program keeps an array until the plan is destroyed: a target or a pointer that is neither
! moved nor freed. These procedures extend the generics of gradsync_ckpt, and can be told apart
! from them because there dtype, a number, stands where here is an array.
!
!   ckpt   in  not yet committed
!   name   in  of the data set
!   array  in  scalars too
!   lower  in  optional: lower bounds that the file tells of, as of lbound, for they do not come
!              along with the array; else 1
!
! N.B. gfortran 12 passes a component of an array of derived type, x%re or grid%u, as a copy. The
! plan would keep its address: such a component must not be added.
module gradsync_ckpt_array
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t
  use gradsync_array, only: array_args, c_describe, conclude_array, is_open, pack_args
  use gradsync_c_reducer, only: gradient
  use gradsync_ckpt, only: add_per_rank, add_replicated, add_sharded, gs_ckpt_add_per_rank, &
    gs_ckpt_add_replicated, gs_ckpt_add_sharded
  use gradsync_support, only: text_to_c
  use gradsync_types, only: gs_ckpt, gs_comm, GS_OK
  implicit none
  private

  public :: gs_ckpt_add_replicated, gs_ckpt_add_sharded, gs_ckpt_add_per_rank

  interface gs_ckpt_add_replicated
    module procedure replicated_array
  end interface gs_ckpt_add_replicated

  interface gs_ckpt_add_per_rank
    module procedure per_rank_array
  end interface gs_ckpt_add_per_rank

  interface gs_ckpt_add_sharded
    module procedure sharded_array, sharded_array_int32
  end interface gs_ckpt_add_sharded

contains

  ! Adds an array of which every rank has the same.
  subroutine replicated_array(ckpt, name, array, lower, as, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    type(gradient) :: g
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present
    integer(c_int) :: st

    if (present(lower)) bounds = lower
    args = pack_args(gs_comm(), as=as)
    st = c_describe(args, text_to_c('gs_ckpt_add_replicated'), array, is_open(array), g)
    if (st == GS_OK) st = add_replicated(ckpt, name, g%shape(:g%dims), g%dtype, g%address, bounds)
    call conclude_array(st, args, stat, errmsg)
  end subroutine replicated_array

  ! Adds an array that each rank has its own of, of one shape.
  subroutine per_rank_array(ckpt, name, array, lower, as, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    type(gradient) :: g
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present
    integer(c_int) :: st

    if (present(lower)) bounds = lower
    args = pack_args(gs_comm(), as=as)
    st = c_describe(args, text_to_c('gs_ckpt_add_per_rank'), array, is_open(array), g)
    if (st == GS_OK) st = add_per_rank(ckpt, name, g%shape(:g%dims), g%dtype, g%address, bounds)
    call conclude_array(st, args, stat, errmsg)
  end subroutine per_rank_array

  ! Adds an array of which each rank has a block, without ghosts: [array]. Its first element is
  ! that of the whole behind offsets(d) others in each dimension d; [shape] and [lower] are of the
  ! whole.
  subroutine sharded_array(ckpt, name, array, offsets, shape, lower, as, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer(c_int64_t), intent(in) :: offsets(:), shape(:)
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    type(gradient) :: g
    integer(c_int) :: st

    args = pack_args(gs_comm(), as=as)
    st = c_describe(args, text_to_c('gs_ckpt_add_sharded'), array, is_open(array), g)
    if (st == GS_OK) &
      st = add_sharded(ckpt, name, g%shape(:g%dims), offsets, shape, g%dtype, g%address, lower)
    call conclude_array(st, args, stat, errmsg)
  end subroutine sharded_array

  subroutine sharded_array_int32(ckpt, name, array, offsets, shape, lower, as, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer(c_int32_t), intent(in) :: offsets(:), shape(:)
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present

    if (present(lower)) bounds = lower
    call sharded_array(ckpt, name, array, int(offsets, c_int64_t), int(shape, c_int64_t), &
      bounds, as, stat, errmsg)
  end subroutine sharded_array_int32

end module gradsync_ckpt_array
