! SPDX-License-Identifier: BSD-3-Clause
!
! outputs - the files that the program writes, opened before the work begins, so that a path that
! cannot be written is reported in the first second and not after the last.
module outputs
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
  use options, only: settings
  implicit none
  private
  public :: outputs_open, outputs_close

  ! Units; 0 where a file is not asked for.
  type, public :: output_files
    integer :: loss = 0
    integer :: histograms = 0
    integer :: picture = 0
    integer :: page = 0
    integer :: weights = 0
  end type output_files

  interface
    integer(c_int) function c_mkdir(path, mode) bind(c, name='mkdir')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int), value :: mode ! mode_t, 32 bits wide on Linux
    end function c_mkdir
  end interface

contains

  ! On failure problem says which file and why; it is left as it is otherwise.
  subroutine outputs_open(files, set, problem)
    type(output_files), intent(out) :: files
    type(settings), intent(in) :: set
    character(:), allocatable, intent(inout) :: problem
    logical :: comparing ! closures; else there are no histograms and no picture

    comparing = set%run_time > 0
    call make_folders(set%out)
    if (set%checkpoint /= '') call make_folders(set%checkpoint)
    call open_file(set%out // '/loss.csv', files%loss, problem)
    if (comparing) call open_file(set%out // '/histograms.csv', files%histograms, problem)
    if (comparing) call open_file(set%out // '/lorenz96.svg', files%picture, problem)
    if (set%html) call open_file(set%out // '/demo.html', files%page, problem)
    if (set%weights_file /= '') call open_file(set%weights_file, files%weights, problem)
  end subroutine outputs_open

  subroutine outputs_close(files)
    type(output_files), intent(in) :: files

    close (files%loss)
    if (files%histograms /= 0) close (files%histograms)
    if (files%picture /= 0) close (files%picture)
    if (files%page /= 0) close (files%page)
    if (files%weights /= 0) close (files%weights)
  end subroutine outputs_close

  subroutine open_file(path, unit, problem)
    character(*), intent(in) :: path
    integer, intent(out) :: unit
    character(:), allocatable, intent(inout) :: problem
    character(256) :: reason
    integer :: status

    unit = 0
    if (problem /= '') return
    open (newunit=unit, file=path, status='unknown', action='write', iostat=status, iomsg=reason)
    if (status /= 0) problem = 'cannot write ' // path // ': ' // trim(reason)
  end subroutine open_file

  ! Makes the folder and those above it. Nothing is checked here: a folder that is still missing
  ! shows when the first file in it is opened.
  subroutine make_folders(path)
    character(*), intent(in) :: path
    integer :: i, ignored

    do i = 2, len(path)
      if (path(i:i) == '/') ignored = c_mkdir(path(:i - 1) // c_null_char, int(o'777', c_int))
    end do
    ignored = c_mkdir(path // c_null_char, int(o'777', c_int))
  end subroutine make_folders

end module outputs
