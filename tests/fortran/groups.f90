! SPDX-License-Identifier: BSD-3-Clause
! groups - communicators of some of the ranks of another in Fortran.
program groups
  use, intrinsic :: iso_c_binding, only: c_int, c_double
  use checks
  use gradsync
  implicit none

  character(400) :: errmsg
  type(gs_comm) :: world
  integer(c_int) :: rank, size
  integer :: stat

  call check_never_created()
  call gs_comm_create(world)
  rank = gs_comm_rank(world)
  size = gs_comm_size(world)
  call speak_as(rank)
  call check_colors()
  call check_ready_made()
  call check_grid()
  call check_lists()
  call check_refusals()
  call check_outlives()
  call finish()

contains

  ! The sum of the ranks in world over a group; -1 where there is none.
  function sum_over(group) result(sum)
    type(gs_comm), intent(in) :: group
    real(c_double) :: sum

    sum = rank
    if (gs_comm_size(group) < 0) then
      sum = -1
    else
      call gs_allreduce(group, sum, GS_SUM)
    end if
  end function sum_over

  subroutine check_never_created()
    type(gs_comm) :: never, group

    errmsg = ''
    call gs_comm_split(never, 0, 0, group, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_comm_split|never created', &
              'a split of a communicator that was never created')
  end subroutine check_never_created

  subroutine check_colors()
    type(gs_comm) :: group
    integer(c_int) :: color
    real(c_double) :: wanted
    integer :: r

    color = mod(rank, 2)
    call gs_comm_split(world, color, -rank, group)
    wanted = 0
    do r = color, size - 1, 2
      wanted = wanted + r
    end do
    call expect(gs_comm_rank(group) == (size - 1 - color) / 2 - rank / 2, 'a rank by its key')
    call expect(abs(sum_over(group) - wanted) < 0.5, 'a sum over the ranks of a color')
    call expect(gs_comm_name(group) == merge('world.split0', 'world.split1', color == 0), &
          'the name of a group')
    call gs_comm_destroy(group)
    call gs_comm_split(world, merge(GS_COLOR_NONE, 0, rank == 0), 0, group, stat)
    call expect(stat == GS_OK .and. (gs_comm_size(group) == size - 1 .neqv. rank == 0), &
          'a rank in no group')
    call gs_comm_destroy(group, stat)
    call expect(stat == GS_OK, 'which may be destroyed')
  end subroutine check_colors

  subroutine check_ready_made()
    type(gs_comm) :: node, rail

    call gs_comm_split_node(world, node)
    call gs_comm_split_rail(world, rail)
    call expect(gs_comm_size(node) == gs_comm_local_size(world) .and. &
          gs_comm_rank(node) == gs_comm_local_rank(world), 'the ranks of a node')
    call expect(gs_comm_size(rail) <= gs_comm_nodes(world) .and. &
          gs_comm_size(rail) == gs_comm_nodes(rail) .and. &
          gs_comm_rank(rail) <= gs_comm_node(world), 'the ranks of a rail')
    call gs_comm_destroy(rail)
    call gs_comm_destroy(node)
  end subroutine check_ready_made

  subroutine check_grid()
    type(gs_comm) :: row, column

    call gs_comm_split_grid(world, 0, 2 - mod(size, 2), row, column)
    call expect(gs_comm_size(row) == 2 - mod(size, 2) .and. &
          gs_comm_size(row) * gs_comm_size(column) == size, 'rows and columns')
    call expect(gs_comm_rank(column) * gs_comm_size(row) + gs_comm_rank(row) == rank, &
          'a place in the grid')
    call gs_barrier(row)
    call gs_barrier(column)
    call gs_comm_destroy(row)
    call gs_comm_destroy(column)
    call gs_comm_split_grid(world, 1, 0, row=row)
    call expect(gs_comm_size(row) == size, 'rows alone')
    call gs_comm_destroy(row)
    call gs_comm_split_grid(world, 1, 0, column=column)
    call expect(gs_comm_size(column) == 1, 'columns alone')
    call gs_comm_destroy(column)
    errmsg = ''
    call gs_comm_split_grid(world, size + 1, 0, row, column, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_comm_split_grid|rows', 'too many rows')
    call expect(gs_comm_size(row) == -1, 'and no row')
  end subroutine check_grid

  subroutine check_lists()
    type(gs_comm) :: group
    integer(c_int) :: all(2 * size), none(0), r

    all = [(size - 1 - r / 2, r = 0, 2 * size - 1)]
    call gs_comm_split_list(world, all(1::2), group) ! not contiguous
    call expect(gs_comm_size(group) == size .and. gs_comm_rank(group) == size - 1 - rank, &
          'the ranks of a list, in its order')
    call gs_comm_destroy(group)
    if (rank == 0) then
      call gs_comm_split_list(world, [0_c_int], group)
    else
      call gs_comm_split_list(world, none, group)
    end if
    call expect(gs_comm_size(group) == merge(1, -1, rank == 0), 'a list of one rank')
    call gs_comm_destroy(group)
  end subroutine check_lists

  subroutine check_refusals()
    type(gs_comm) :: group

    errmsg = ''
    call gs_comm_split(world, merge(-2, 0, rank == 0), 0, group, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'rank 0|color -2|GS_COLOR_NONE', &
              'a negative color')
    call gs_comm_split_list(world, [rank, rank], group, stat, errmsg)
    call expect(stat == GS_ERR_ARG, 'a list with a rank twice: ' // trim(errmsg))
  end subroutine check_refusals

  subroutine check_outlives()
    type(gs_comm) :: group, child

    call gs_comm_split_node(world, group)
    call gs_comm_split(group, 0, 0, child)
    call gs_comm_destroy(world)
    call gs_comm_destroy(group)
    call gs_barrier(child, stat=stat)
    call expect(stat == GS_OK, 'a group outlives its parents')
    call gs_comm_destroy(child)
  end subroutine check_outlives

end program groups
