! SPDX-License-Identifier: BSD-3-Clause
! checks - counts what holds and what does not, for test programs of one or many ranks, and knows
! how to stay on hosts.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use gradsync
  implicit none
  private
  public :: expect, expect_failure, finish, host_transport, mixed, speak_as

  integer :: my_rank = 0
  integer :: failures = 0

contains

  ! For a communicator whose memory the program follows, also where all else runs on GPUs.
  function host_transport() result(transport)
    integer :: transport
    character(8) :: asked

    call get_environment_variable('GS_TRANSPORT', asked)
    transport = merge(GS_TRANSPORT_MPI, GS_TRANSPORT_AUTO, asked == 'nccl')
  end function host_transport

  ! Whether some ranks have a GPU, and others none: what they do by that differs.
  function mixed()
    logical :: mixed
    character(8) :: every

    call get_environment_variable('SIM_BLIND_EVERY', every)
    mixed = every /= ''
  end function mixed

  ! From now on only rank 0 reports successes; failures name their rank.
  subroutine speak_as(rank)
    integer, intent(in) :: rank

    my_rank = rank
  end subroutine speak_as

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what

    if (.not. holds) then
      failures = failures + 1
      write (error_unit, '(a, i0, 2a)') 'not ok - rank ', my_rank, ': ', what
    else if (my_rank == 0) then
      write (output_unit, '(2a)') 'ok - ', what
    end if
  end subroutine expect

  ! A call ended with status [wanted], and its message has each of [words], which are separated
  ! by '|'.
  subroutine expect_failure(stat, errmsg, wanted, words, what)
    integer, intent(in) :: stat, wanted
    character(*), intent(in) :: errmsg, words, what
    logical :: holds
    integer :: from, length

    holds = stat == wanted
    from = 1
    do while (from <= len(words))
      length = index(words(from:) // '|', '|') - 1
      holds = holds .and. index(errmsg, words(from:from + length - 1)) > 0
      from = from + length + 1
    end do
    if (holds) then
      call expect(.true., what // ': ' // trim(errmsg))
    else
      call expect(.false., what // ': expected ' // gs_status_string(wanted) // ' and ' // &
            words // '; got ' // gs_status_string(stat) // ' and ' // trim(errmsg))
    end if
  end subroutine expect_failure

  ! The end of a test program.
  subroutine finish()
    if (failures > 0) then
      write (error_unit, '(2(a, i0))') 'rank ', my_rank, ' failures: ', failures
      error stop 1
    end if
    if (my_rank == 0) write (output_unit, '(a)') 'all checks passed'
  end subroutine finish

end module checks

! failing_calls - calls that shall fail, with [stat] and [errmsg], and what they should say.
module failing_calls
  use checks, only: expect_failure
  implicit none
  private
  public :: errmsg, refused, stat

  character(300) :: errmsg = ''
  integer :: stat = -1

contains

  ! As expect_failure; the next call is checked on its own.
  subroutine refused(wanted, words, what)
    integer, intent(in) :: wanted
    character(*), intent(in) :: words, what

    call expect_failure(stat, errmsg, wanted, words, what)
    stat = -1
    errmsg = ''
  end subroutine refused

end module failing_calls

! scratch - a folder that all ranks of a test see, and commands that rank 0 runs.
module scratch
  use checks, only: expect
  use gradsync
  implicit none
  private
  public :: on_first, open_folder, close_folder

contains

  ! Makes a folder [name] where temporary files belong.
  subroutine open_folder(comm, name, folder)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: name
    character(:), allocatable, intent(out) :: folder
    character(1000) :: parent

    call get_environment_variable('TMPDIR', parent)
    if (parent == '') parent = '/tmp'
    folder = trim(parent) // '/' // name
    call on_first(comm, 'rm -rf ''' // folder // ''' && mkdir ''' // folder // '''')
  end subroutine open_folder

  subroutine close_folder(comm, folder)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: folder

    call on_first(comm, 'rm -rf ''' // folder // '''')
  end subroutine close_folder

  ! Rank 0 runs a command, while the others wait.
  subroutine on_first(comm, command)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: command
    integer :: code

    code = 0
    call gs_barrier(comm)
    call gs_comm_wait(comm)
    if (gs_comm_rank(comm) == 0) call execute_command_line(command, exitstat=code)
    call expect(code == 0, command)
    call gs_barrier(comm)
    call gs_comm_wait(comm)
  end subroutine on_first

end module scratch
