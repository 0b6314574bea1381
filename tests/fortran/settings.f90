! SPDX-License-Identifier: BSD-3-Clause
! settings - version, names, GS_* variables and the log sink in Fortran.
module collected_log
  use gradsync, only: gs_log_f
  implicit none
  integer :: lines = 0
  integer :: last_level = 0
  character(:), allocatable :: all_text
contains
  subroutine collect(level, line)
    integer, intent(in) :: level
    character(*), intent(in) :: line

    lines = lines + 1
    last_level = level
    all_text = all_text // line // new_line('a')
  end subroutine collect
end module collected_log

program settings
  use, intrinsic :: iso_fortran_env, only: real64
  use checks
  use collected_log
  use gradsync
  implicit none

  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat

  call check_names()
  call check_settings()
  call gs_comm_create(comm, name='settings', boot_timeout_ms=30000)
  call speak_as(gs_comm_rank(comm))
  call check_sink()
  call gs_comm_destroy(comm)
  call check_create_from_id()
  call finish()

contains

  subroutine check_names()
    character(20) :: compiled

    write (compiled, '(i0, 2(".", i0))') GS_VERSION_MAJOR, GS_VERSION_MINOR, GS_VERSION_PATCH
    call expect(gs_version() == compiled, 'version ' // gs_version())
    call expect(gs_status_string(GS_ERR_TIMEOUT) == 'GS_ERR_TIMEOUT', 'name of a status')
    call expect(gs_status_string(4711) == 'unknown status', 'name of no status')
    call expect(index(gs_build_info(), new_line('a')) > 0 .and. &
          index(gs_build_info(), 'pmix: ') > 0, 'build info')
    call expect(gs_dtype_size(GS_BF16) == 2 .and. gs_dtype_size(GS_C128) == 16 .and. &
          gs_dtype_size(99) == 0, 'sizes of types')
  end subroutine check_names

  subroutine check_settings()
    type(gs_setting) :: setting
    logical :: found
    integer :: i

    found = .false.
    i = 0
    do
      call gs_setting_get(i, setting, stat, errmsg)
      if (stat /= GS_OK) exit
      if (setting%name == 'GS_TIMEOUT_MS') then
        found = .true.
        call expect(len(setting%value) > 0 .and. len(setting%help) > 0 .and. &
              (setting%origin == 'default' .or. setting%origin == 'environment'), &
              'GS_TIMEOUT_MS: ' // setting%value // ', ' // setting%origin)
      end if
      i = i + 1
    end do
    call expect(found .and. i > 5, 'all settings')
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_setting_get', 'past the last setting')
    call gs_setting_get(-1, setting, stat)
    call expect(stat == GS_ERR_ARG .and. .not. allocated(setting%name), 'setting -1')
  end subroutine check_settings

  ! When all weights are 0, rank 0 of the communicator logs a warning.
  subroutine check_sink()
    integer :: before

    all_text = ''
    call gs_log_set_sink(collect)
    call provoke_warning()
    if (gs_comm_rank(comm) == 0) then
      call expect(lines > 0 .and. last_level == GS_LOG_WARN .and. &
            index(all_text, 'settings') > 0, 'a line in the sink: ' // all_text)
    end if
    call gs_log_set_sink()
    before = lines
    call provoke_warning()
    call expect(lines == before, 'no line twice, nor after the sink was taken away')
  end subroutine check_sink

  subroutine provoke_warning()
    use, intrinsic :: iso_c_binding, only: c_loc
    real(real64), target :: x(2)

    x = 5
    call gs_allreduce_wavg(comm, c_loc(x), 2, GS_F64, 0.0_real64)
    call expect(all(x == 0), 'all weights zero')
  end subroutine provoke_warning

  ! A meeting of one, which needs no MPI; more ranks meet in mpi.f90.
  subroutine check_create_from_id()
    type(gs_unique_id) :: id

    if (index(gs_build_info(), 'openssl: no') > 0) return
    call gs_unique_id_get(id)
    call gs_comm_create_from_id(comm, id, 0, 1, name='alone', device=GS_DEVICE_HOST, &
          transport=GS_TRANSPORT_SELF)
    call expect(gs_comm_size(comm) == 1 .and. gs_comm_name(comm) == 'alone', 'from an id')
    call gs_comm_destroy(comm)
    call gs_comm_create_from_id(comm, id, 1, 1, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'rank', 'a rank that is out of range')
    id%bytes = '?'
    call gs_comm_create_from_id(comm, id, 0, 1, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'id', 'a damaged id')
  end subroutine check_create_from_id

end program settings
