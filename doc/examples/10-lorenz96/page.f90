! SPDX-License-Identifier: BSD-3-Clause
!
! page - the results as one HTML file that needs no other: figures, numbers, how it was run.
module page
  use, intrinsic :: iso_fortran_env, only: compiler_version, real64
  use evaluation, only: by_network, by_quartic, comparison
  use gradsync, only: GS_BF16, GS_F16, gs_comm, gs_comm_nodes, gs_comm_size, gs_comm_transport, &
                      gs_version
  use options, only: settings
  use picture, only: draw_picture
  use quartic, only: quartic_closure
  use svg, only: decimal
  use tables, only: summarize, summary
  use timeline, only: draw_timeline, step_timeline
  implicit none
  private
  public :: write_page

contains

  subroutine write_page(unit, comm, set, c, polynomial, loss, step, subtitle)
    integer, intent(in) :: unit
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    type(comparison), intent(in) :: c
    type(quartic_closure), intent(in) :: polynomial
    real(real64), intent(in) :: loss(:)
    type(step_timeline), intent(in) :: step
    character(*), intent(in) :: subtitle

    write (unit, '(a)') '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8"/>', &
      '<meta name="viewport" content="width=device-width"/>', &
      '<title>gradsync: a closure learned while the simulation runs</title>', '<style>', &
      'body { font: 16px/1.5 Helvetica, Arial, sans-serif; color: #222; margin: 2em auto;', &
      '       max-width: 1100px; padding: 0 1em; }', &
      'svg { max-width: 100%; height: auto; }', &
      'table { border-collapse: collapse; }', &
      'td, th { padding: 2px 16px 2px 0; text-align: left; }', &
      'td.n { text-align: right; font-variant-numeric: tabular-nums; }', &
      'pre { background: #f4f4f4; padding: 1em; overflow-x: auto; }', '</style></head><body>', &
      '<h1>A closure learned while the simulation runs</h1>'
    write (unit, '(3a)') '<p>Two-scale Lorenz-96: ', subtitle, '.</p>'
    call write_results(unit, summarize(c))
    write (unit, '(a)') '<h2>Pictures</h2>'
    call draw_picture(unit, c, polynomial, loss, subtitle, inline=.true.)
    if (step%phases > 1) then
      write (unit, '(a)') '<h2>One training step</h2>'
      call draw_timeline(unit, step)
      write (unit, '(a)') '<p>A bucket travels when the last of its gradients is ready. So', &
        'small a network is one bucket; gradsync-reducer(7) says what larger ones do.</p>'
    end if
    call write_configuration(unit, comm, set)
    call write_commands(unit, set, gs_comm_size(comm))
    write (unit, '(a)') '</body></html>'
  end subroutine write_page

  subroutine write_results(unit, s)
    integer, intent(in) :: unit
    type(summary), intent(in) :: s

    write (unit, '(a)') '<h2>On trajectories not seen in training</h2>', &
      '<table><tr><th></th><th>quartic (Wilks, 2005)</th><th>network</th></tr>'
    call row('Subgrid tendency: explained variance (R2)', s%r2, 4)
    call row('Subgrid tendency: root mean square error', s%rmse, 3)
    call row('Forecast of X, 1 MTU ahead: root mean square error', s%forecast, 3)
    call row('Climate: Hellinger distance of histograms', s%distance, 4)
    write (unit, '(a)') '</table>'

  contains

    subroutine row(title, value, digits)
      character(*), intent(in) :: title
      real(real64), intent(in) :: value(by_quartic:by_network)
      integer, intent(in) :: digits

      write (unit, '(7a)') '<tr><td>', title, '</td><td class="n">', &
        decimal(value(by_quartic), digits), '</td><td class="n">', &
        decimal(value(by_network), digits), '</td></tr>'
    end subroutine row

  end subroutine write_results

  subroutine write_configuration(unit, comm, set)
    integer, intent(in) :: unit
    type(gs_comm), intent(in) :: comm
    type(settings), intent(in) :: set
    character(:), allocatable :: wire

    wire = 'f64, as they are'
    if (set%wire == GS_F16) wire = 'f16, summed in fp32'
    if (set%wire == GS_BF16) wire = 'bf16, summed in fp32'
    write (unit, '(a)') '<h2>Configuration</h2>', '<table>'
    call row('ranks', whole(gs_comm_size(comm)))
    call row('nodes', whole(gs_comm_nodes(comm)))
    call row('transport', gs_comm_transport(comm))
    call row('trajectories', whole(set%trajectories))
    call row('training steps', whole(set%train_steps))
    call row('runs that compare closures, MTU', whole(set%run_time))
    call row('gradients travel as', wire)
    call row('gradsync', gs_version())
    call row('compiler', compiler_version())
    write (unit, '(a)') '</table>'

  contains

    subroutine row(title, value)
      character(*), intent(in) :: title, value

      write (unit, '(5a)') '<tr><td>', title, '</td><td>', escaped(value), '</td></tr>'
    end subroutine row

    pure function whole(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text

      text = decimal(real(number, real64), 0)
    end function whole

  end subroutine write_configuration

  ! How to do it again, and what else there is to see.
  subroutine write_commands(unit, set, ranks)
    integer, intent(in) :: unit, ranks
    type(settings), intent(in) :: set
    character(:), allocatable :: command
    integer :: length

    call get_command(length=length)
    allocate (character(length) :: command)
    call get_command(command)
    write (unit, '(a)') '<h2>Do it again</h2>', '<pre>'
    write (unit, '(a, i0, 2a)') 'mpirun -n ', ranks, ' ', escaped(command)
    if (set%checkpoint /= '') write (unit, '(2a)') &
      'gs-ckpt info ', escaped(set%checkpoint) // '/ck-*.h5   # what was saved'
    write (unit, '(3a)') 'column -s, -t ', escaped(set%out), '/loss.csv   # the loss of each step'
    write (unit, '(a)') '</pre>'
  end subroutine write_commands

  pure function escaped(text) result(html)
    character(*), intent(in) :: text
    character(:), allocatable :: html
    integer :: i

    html = ''
    do i = 1, len(text)
      select case (text(i:i))
      case ('&')
        html = html // '&amp;'
      case ('<')
        html = html // '&lt;'
      case ('>')
        html = html // '&gt;'
      case default
        html = html // text(i:i)
      end select
    end do
  end function escaped

end module page
