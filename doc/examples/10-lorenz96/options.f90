! SPDX-License-Identifier: BSD-3-Clause
!
! options - the command line.
module options
  use, intrinsic :: iso_fortran_env, only: output_unit
  use gradsync, only: GS_BF16, GS_F16
  implicit none
  private
  public :: options_read, options_help

  type, public :: settings
    integer :: trajectories = 8
    integer :: train_steps = 5000
    integer :: run_time = 200 ! MTU
    integer :: wire = 0 ! GS_F16 or GS_BF16; 0: gradients travel as they are
    character(:), allocatable :: out
    character(:), allocatable :: weights_file ! empty: none
    character(:), allocatable :: checkpoint ! folder; empty: none
    integer :: every = 500 ! training steps
    logical :: resume = .false.
    logical :: html = .false.
    logical :: live = .false.
    logical :: pool = .false.
    logical :: help = .false.
  end type settings

contains

  subroutine options_help()
    write (output_unit, '(a)') &
      'usage: lorenz96_demo [option ...]', &
      '', &
      'Simulates the two-scale Lorenz-96 system, trains a small network for the effect of its', &
      'fast scale while simulating, and compares it with the quartic fit of Wilks (2005).', &
      'Runs on any number of ranks: start it alone, or with srun or mpirun.', &
      '', &
      '  --trajectories N     trajectories on all ranks together          (default 8)', &
      '  --train-steps N      training steps of 0.2 model time units      (default 5000)', &
      '  --run-time N         model time units of the runs that compare   (default 200)', &
      '                       closures after training; 0 leaves them out', &
      '  --wire TYPE          gradients travel as f64, f16 or bf16        (default f64)', &
      '  --pool               when closures compare, few ranks evaluate the network for all', &
      '  --out FOLDER         for picture and tables, made if absent      (default demo-out)', &
      '  --weights-file FILE  write the trained weights there, one a line', &
      '  --checkpoint FOLDER  save the state of the training there, in HDF5 files; the newest', &
      '                       two stay; made if absent                (default: not saved)', &
      '  --every N            training steps from one to the next     (default 500)', &
      '  --resume             go on from the newest one in FOLDER, on any number of ranks', &
      '  --html               write all results into one page, demo.html beside the picture', &
      '  --live               show the progress of the training in one line of a terminal', &
      '  --help               print this and stop'
  end subroutine options_help

  ! Reads the command line. problem is empty, or says what is wrong.
  subroutine options_read(s, problem)
    type(settings), intent(out) :: s
    character(:), allocatable, intent(out) :: problem
    character(:), allocatable :: name, value
    logical :: every
    integer :: i

    s%out = 'demo-out'
    s%weights_file = ''
    s%checkpoint = ''
    every = .false.
    problem = ''
    i = 1
    do while (i <= command_argument_count() .and. problem == '')
      call next_option(i, name, value)
      select case (name)
      case ('--trajectories')
        call read_number(name, value, 1, 4096, s%trajectories, problem)
      case ('--train-steps')
        call read_number(name, value, 1, 1000000, s%train_steps, problem)
      case ('--run-time')
        call read_number(name, value, 0, 1000000, s%run_time, problem)
      case ('--wire')
        call read_type(name, value, s%wire, problem)
      case ('--out')
        call read_path(name, value, s%out, problem)
      case ('--weights-file')
        call read_path(name, value, s%weights_file, problem)
      case ('--checkpoint')
        call read_path(name, value, s%checkpoint, problem)
      case ('--every')
        call read_number(name, value, 1, 1000000, s%every, problem)
        every = .true.
      case ('--resume')
        call read_flag(name, value, s%resume, problem)
      case ('--html')
        call read_flag(name, value, s%html, problem)
      case ('--live')
        call read_flag(name, value, s%live, problem)
      case ('--pool')
        call read_flag(name, value, s%pool, problem)
      case ('--help', '-h')
        s%help = .true.
      case default
        problem = 'unknown option ' // name
      end select
    end do
    if (problem == '' .and. s%checkpoint == '' .and. (every .or. s%resume)) &
      problem = '--every and --resume need --checkpoint FOLDER'
    if (problem == '' .and. s%html .and. s%run_time == 0) &
      problem = '--html shows how closures compare, which --run-time 0 leaves out'
  end subroutine options_read

  ! Takes "--name value" or "--name=value" at argument i and moves i past it.
  subroutine next_option(i, name, value)
    integer, intent(inout) :: i
    character(:), allocatable, intent(out) :: name, value
    integer :: equals

    name = argument(i)
    i = i + 1
    equals = index(name, '=')
    if (equals > 0) then
      value = name(equals + 1:)
      name = name(:equals - 1)
    else if (any(name == [character(8) :: '--help', '-h', '--resume', '--html', '--live', &
                          '--pool'])) then
      value = ''
    else
      value = argument(i) ! empty past the end, which no option accepts
      i = i + 1
    end if
  end subroutine next_option

  function argument(i) result(text)
    integer, intent(in) :: i
    character(:), allocatable :: text
    integer :: length

    if (i > command_argument_count()) then
      text = ''
      return
    end if
    call get_command_argument(i, length=length)
    allocate (character(length) :: text)
    call get_command_argument(i, text)
  end function argument

  subroutine read_number(name, value, lowest, highest, number, problem)
    character(*), intent(in) :: name, value
    integer, intent(in) :: lowest, highest
    integer, intent(inout) :: number
    character(:), allocatable, intent(inout) :: problem
    integer :: read_as
    character(80) :: range

    read_as = lowest - 1
    if (len(value) >= 1 .and. len(value) <= 9 .and. verify(value, '0123456789') == 0) &
      read (value, '(i9)') read_as
    if (read_as >= lowest .and. read_as <= highest) then
      number = read_as
    else
      write (range, '("a whole number from ", i0, " to ", i0)') lowest, highest
      problem = name // ' needs ' // trim(range) // ", not '" // value // "'"
    end if
  end subroutine read_number

  subroutine read_flag(name, value, flag, problem)
    character(*), intent(in) :: name, value
    logical, intent(out) :: flag
    character(:), allocatable, intent(inout) :: problem

    flag = .true.
    if (value /= '') problem = name // ' takes no value'
  end subroutine read_flag

  subroutine read_type(name, value, dtype, problem)
    character(*), intent(in) :: name, value
    integer, intent(out) :: dtype
    character(:), allocatable, intent(inout) :: problem

    dtype = 0
    select case (value)
    case ('f64')
    case ('f16')
      dtype = GS_F16
    case ('bf16')
      dtype = GS_BF16
    case default
      problem = name // " needs f64, f16 or bf16, not '" // value // "'"
    end select
  end subroutine read_type

  subroutine read_path(name, value, path, problem)
    character(*), intent(in) :: name, value
    character(:), allocatable, intent(inout) :: path, problem

    if (value == '') then
      problem = name // ' needs a path'
    else
      path = value
    end if
  end subroutine read_path

end module options
