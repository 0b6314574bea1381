! SPDX-License-Identifier: BSD-3-Clause
! gradsync_group - groups, communicators of some of the ranks of another, for Fortran.
!
! The contracts are those of gradsync_group.h. A rank that is in no group gets a communicator that
! was never created: gs_comm_size gives -1, and gs_comm_destroy ignores it. Every subroutine ends
! in stat and errmsg, as in gradsync_comm.
module gradsync_group
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_loc, c_null_ptr, c_ptr
  use gradsync_c
  use gradsync_support, only: conclude, find, settle
  use gradsync_types, only: gs_comm, GS_OK
  implicit none
  private

  public :: gs_comm_split, gs_comm_split_node, gs_comm_split_rail, gs_comm_split_grid, &
    gs_comm_split_list

contains

  ! Makes a group of the ranks with each [color], ordered by [key]. Collective over [comm].
  subroutine gs_comm_split(comm, color, key, group, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: color, key
    type(gs_comm), intent(out) :: group
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: parent, address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    parent = find(comm, 'gs_comm_split', st)
    if (st == GS_OK) st = c_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_split(parent, color, key, address)
      call settle(group, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split

  ! Makes a group of the ranks of each node. Collective over [comm].
  subroutine gs_comm_split_node(comm, group, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_comm), intent(out) :: group
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: parent, address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    parent = find(comm, 'gs_comm_split_node', st)
    if (st == GS_OK) st = c_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_split_node(parent, address)
      call settle(group, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split_node

  ! Makes a group of the ranks with the same local rank. Collective over [comm].
  subroutine gs_comm_split_rail(comm, group, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_comm), intent(out) :: group
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: parent, address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    parent = find(comm, 'gs_comm_split_rail', st)
    if (st == GS_OK) st = c_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_split_rail(parent, address)
      call settle(group, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split_rail

  ! Places the ranks in a grid of [rows] and [columns], 0 for what fits, and makes groups of
  ! its rows and its columns: those that all ranks give. Collective over [comm].
  subroutine gs_comm_split_grid(comm, rows, columns, row, column, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: rows, columns
    type(gs_comm), intent(out), optional :: row, column
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr), target :: address(2)
    type(c_ptr) :: parent, wanted(2)
    integer(c_int64_t) :: handle(2)
    integer(c_int) :: st

    address = c_null_ptr
    wanted = c_null_ptr
    if (present(row)) wanted(1) = c_loc(address(1))
    if (present(column)) wanted(2) = c_loc(address(2))
    parent = find(comm, 'gs_comm_split_grid', st)
    if (st == GS_OK) st = c_handle_open(KIND_COMM, handle(1))
    if (st == GS_OK) then
      st = c_handle_open(KIND_COMM, handle(2))
      if (st /= GS_OK) call c_handle_bind(handle(1), c_null_ptr, c_null_ptr, c_null_ptr)
    end if
    if (st == GS_OK) then
      st = c_comm_split_grid(parent, rows, columns, wanted(1), wanted(2))
      call keep(handle(1), st, address(1), row)
      call keep(handle(2), st, address(2), column)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split_grid

  ! settle, for a group that may not be wanted.
  subroutine keep(handle, st, address, group)
    integer(c_int64_t), intent(in) :: handle
    integer(c_int), intent(in) :: st
    type(c_ptr), intent(in) :: address
    type(gs_comm), intent(inout), optional :: group
    type(gs_comm) :: made

    call settle(made, handle, st, address)
    if (present(group)) group = made
  end subroutine keep

  ! Makes groups of lists of ranks, which count from 0: each rank gives that of its own group, or
  ! an array of size 0. Collective over [comm].
  subroutine gs_comm_split_list(comm, ranks, group, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: ranks(:)
    type(gs_comm), intent(out) :: group
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: parent, address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    parent = find(comm, 'gs_comm_split_list', st)
    if (st == GS_OK) st = c_handle_open(KIND_COMM, handle)
    if (st == GS_OK) then
      st = c_comm_split_list(parent, size(ranks, kind=c_int), ranks, address)
      call settle(group, handle, st, address)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_split_list

end module gradsync_group
