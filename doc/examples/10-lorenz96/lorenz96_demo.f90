! SPDX-License-Identifier: BSD-3-Clause
!
! lorenz96_demo - a simulation that trains a closure for what it does not resolve, on any number
! of ranks.
!
! gradsync is called in five files: here, to make and end the communicator; in training.f90, to
! average gradients; in checkpoints.f90, to save the state and to go on from it; in
! evaluation.f90, to add up statistics; in pooled.f90, to have few ranks evaluate the network for
! all. The rest is a serial program.
program lorenz96_demo
  use, intrinsic :: iso_fortran_env, only: error_unit
  use gradsync, only: gs_broadcast, gs_comm, gs_comm_create, gs_comm_destroy, gs_comm_nodes, &
                      gs_comm_rank, gs_comm_size, gs_comm_transport
  use checkpoints, only: training_state
  use ensemble, only: members, members_create
  use evaluation, only: by_network, by_quartic, comparison, evaluate
  use noise, only: noisy_closure
  use options, only: options_help, options_read, settings
  use outputs, only: output_files, outputs_close, outputs_open
  use page, only: write_page
  use picture, only: draw_picture
  use pooled, only: pool_close, pool_open, pooled_closure
  use progress, only: reporter, reporter_create, say
  use quartic, only: quartic_closure
  use tables, only: print_summary, write_histograms, write_loss, write_weights
  use timeline, only: step_timeline
  use training, only: mtu_per_step, train, train_noise
  implicit none
  integer :: status

  call demo(status)
  if (status /= 0) stop status, quiet=.true.

contains

  subroutine demo(status)
    integer, intent(out) :: status ! of the process
    type(gs_comm) :: comm
    type(settings) :: set
    type(output_files) :: files
    character(:), allocatable :: problem
    logical :: first

    call options_read(set, problem)
    call gs_comm_create(comm)
    first = gs_comm_rank(comm) == 0
    if (set%help) then
      if (first) call options_help()
      status = 0
    else
      if (first .and. problem == '') call outputs_open(files, set, problem)
      status = merge(0, 2, problem == '')
      call gs_broadcast(comm, status, 0) ! or the others would go on without a rank that gave up
      if (status == 0) call run(comm, set, files, problem)
      if (problem /= '') status = 2
      if (first .and. status /= 0) write (error_unit, '(3a)') 'lorenz96_demo: ', problem, &
        ' (--help lists the options)'
    end if
    call gs_comm_destroy(comm)
  end subroutine demo

  ! problem is empty, or says on all ranks why nothing was done.
  subroutine run(comm, set, files, problem)
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    type(output_files), intent(in) :: files ! opened on rank 0 only
    character(:), allocatable, intent(inout) :: problem
    type(training_state), target :: trained
    type(members) :: unseen
    type(quartic_closure) :: polynomial
    type(noisy_closure) :: closures(by_quartic:by_network)
    type(pooled_closure) :: by_few
    type(comparison) :: results
    type(step_timeline) :: step
    type(reporter) :: out
    integer :: rank, ranks

    rank = gs_comm_rank(comm)
    ranks = gs_comm_size(comm)
    out = reporter_create(rank == 0, set%live)
    call say(out, 'two-scale Lorenz-96, ' // size_of_run(comm, set))
    trained%own = members_create(set%trajectories, 0, rank, ranks)
    call train(comm, set, out, trained, polynomial, step, problem)
    if (problem /= '') return
    if (rank == 0) call write_loss(files%loss, trained%loss)
    if (rank == 0 .and. files%weights /= 0) call write_weights(files%weights, trained%learned%net)
    if (set%run_time > 0) then
      allocate (closures(by_quartic)%model, source=polynomial)
      allocate (closures(by_network)%model, source=trained%learned)
      call train_noise(comm, trained%own, closures)
      unseen = members_create(set%trajectories, set%trajectories, rank, ranks)
      if (set%pool) then
        call pool_open(comm, trained%learned, by_few)
        deallocate (closures(by_network)%model)
        allocate (closures(by_network)%model, source=by_few)
      end if
      call evaluate(comm, unseen, closures, set%run_time, out, results)
      if (set%pool) call pool_close(by_few)
      if (rank == 0) then
        call print_summary(results, set%trajectories, set%run_time)
        call write_histograms(files%histograms, results)
        call draw_picture(files%picture, results, polynomial, trained%loss, &
                          size_of_run(comm, set))
        if (set%html) call write_page(files%page, comm, set, results, polynomial, trained%loss, &
                                      step, size_of_run(comm, set))
      end if
    end if
    if (rank == 0) call outputs_close(files)
    call say(out, 'done; results are in ' // set%out)
  end subroutine run

  ! "8 trajectories of 1000 MTU on 8 ranks of 2 nodes, transport mpi"
  function size_of_run(comm, set) result(text)
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    character(:), allocatable :: text

    text = counted(set%trajectories, 'trajector', 'y', 'ies') // ' of ' // &
           counted(nint(set%train_steps * mtu_per_step), 'MTU', '', '') // ' on ' // &
           counted(gs_comm_size(comm), 'rank', '', 's') // ' of ' // &
           counted(gs_comm_nodes(comm), 'node', '', 's') // ', transport ' // &
           gs_comm_transport(comm)
  end function size_of_run

  function counted(n, word, one, many) result(text)
    integer, intent(in) :: n
    character(*), intent(in) :: word, one, many
    character(:), allocatable :: text
    character(20) :: number

    write (number, '(i0)') n
    if (n == 1) then
      text = trim(number) // ' ' // word // one
    else
      text = trim(number) // ' ' // word // many
    end if
  end function counted

end program lorenz96_demo
