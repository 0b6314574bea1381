! SPDX-License-Identifier: BSD-3-Clause
! gradsync_support - text, status and optional arguments between Fortran and C, in one place.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_support
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int, c_int32_t, &
    c_int64_t, c_intptr_t, c_null_char, c_null_ptr, c_ptr, c_size_t
  use gradsync_c, only: c_call_end, c_comm_name, c_handle_begin, c_handle_bind, c_handle_find, &
    c_integer_fits, c_last_error, c_result, c_status_string, c_strlen, KIND_COMM
  use gradsync_types, only: comm_of_handle, gs_comm, handle_of_comm, GS_OK
  implicit none
  private
  public :: begin, conclude, find, get_integer, put_integer, set_bytes, set_flag, settle
  public :: stream_or_default
  public :: text_from_c, text_to_c

contains

  ! A C string, borrowed; '' for NULL.
  function text_from_c(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: bytes(:)
    integer :: i

    text = ''
    if (.not. c_associated(address)) return
    call c_f_pointer(address, bytes, [c_strlen(address)])
    deallocate (text)
    allocate (character(size(bytes)) :: text)
    do i = 1, size(bytes)
      text(i:i) = bytes(i)
    end do
  end function text_from_c

  ! Trailing blanks cut, NUL at the end.
  pure function text_to_c(text) result(bytes)
    character(*), intent(in) :: text
    character(kind=c_char) :: bytes(len_trim(text) + 1)
    integer :: i

    do i = 1, len_trim(text)
      bytes(i) = text(i:i)
    end do
    bytes(len_trim(text) + 1) = c_null_char
  end function text_to_c

  ! The end of every procedure: as allocate does with stat= and errmsg=. Without [stat] a
  ! failure ends the program, with the text and the rank in the communicator.
  subroutine conclude(st, stat, errmsg)
    integer(c_int), intent(in) :: st
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(40) :: who
    integer(c_int) :: rank, ranks

    call c_call_end(rank, ranks)
    if (present(stat)) stat = st
    if (c_result(st) == GS_OK) return
    if (present(errmsg)) errmsg = text_from_c(c_last_error())
    if (present(stat)) return
    who = ''
    if (rank >= 0) write (who, '(a, i0, a, i0, a)') 'rank ', rank, ' of ', ranks, ':'
    error stop adjustl(trim(who) // ' ' // text_from_c(c_status_string(st)) // ': ' // &
      text_from_c(c_last_error()))
  end subroutine conclude

  ! The communicator behind a handle for procedure [call]; NULL with GS_ERR_STATE if it is gone.
  function find(comm, call, st) result(address)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: call
    integer(c_int), intent(out), optional :: st
    type(c_ptr) :: address
    integer(c_int) :: found, rank, ranks

    found = c_handle_find(handle_of_comm(comm), KIND_COMM, text_to_c(call), address)
    if (present(st)) then
      st = found
    else ! nothing follows
      call c_call_end(rank, ranks)
    end if
  end function find

  ! As find, and refuses an amount below 0, which [what] names: the start of a call with an
  ! address.
  function begin(comm, call, what, amount, address) result(st)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: call, what
    integer(c_int64_t), intent(in) :: amount
    type(c_ptr), intent(out) :: address
    integer(c_int) :: st

    st = c_handle_begin(handle_of_comm(comm), text_to_c(call), text_to_c(what), amount, address)
  end function begin

  ! Keeps what a create made under its handle, or gives the handle back if there is nothing.
  subroutine settle(comm, handle, st, address)
    type(gs_comm), intent(out) :: comm
    integer(c_int64_t), intent(in) :: handle
    integer(c_int), intent(in) :: st
    type(c_ptr), intent(in) :: address

    if (st == GS_OK .and. c_associated(address)) then
      call c_handle_bind(handle, address, address, c_comm_name(address))
      comm = comm_of_handle(handle)
    else
      call c_handle_bind(handle, c_null_ptr, c_null_ptr, c_null_ptr)
    end if
  end subroutine settle

  ! Gives an argument [what] of [call] that may be left out a [value], if it is an integer of 32
  ! or 64 bits that can hold it. Nothing if [st] tells of a failure that comes first.
  subroutine put_integer(argument, value, call, what, st)
    class(*), intent(inout), optional :: argument
    integer(c_int64_t), intent(in) :: value
    character(*), intent(in) :: call, what
    integer(c_int), intent(inout) :: st
    integer(c_int) :: fits

    if (.not. present(argument)) return
    select type (argument)
    type is (integer(c_int64_t))
      argument = value
      return
    type is (integer(c_int32_t))
      fits = c_integer_fits(text_to_c(call), text_to_c(what), 1, value)
      if (fits == GS_OK) argument = int(value, c_int32_t)
    class default
      fits = c_integer_fits(text_to_c(call), text_to_c(what), 0, value)
    end select
    if (st == GS_OK) st = fits
  end subroutine put_integer

  ! The value of such an argument; [value] stays as it is if it was left out.
  subroutine get_integer(value, argument, call, what, st)
    integer(c_int64_t), intent(inout) :: value
    class(*), intent(in), optional :: argument
    character(*), intent(in) :: call, what
    integer(c_int), intent(inout) :: st

    if (.not. present(argument) .or. st /= GS_OK) return
    select type (argument)
    type is (integer(c_int64_t))
      value = argument
    type is (integer(c_int32_t))
      value = argument
    class default
      st = c_integer_fits(text_to_c(call), text_to_c(what), 0, value)
    end select
  end subroutine get_integer

  ! Sets an option that C has as 1 or 0; one that was not given stays as it is.
  subroutine set_flag(option, flag)
    integer(c_int), intent(inout) :: option
    logical, intent(in), optional :: flag

    if (present(flag)) option = merge(1, 0, flag)
  end subroutine set_flag

  ! Sets an option [what] of [call] that is a size, an integer of 32 or 64 bits. Refuses those
  ! below 0, which C has no numbers for.
  subroutine set_bytes(option, comm, call, what, bytes, st)
    integer(c_size_t), intent(inout) :: option
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: call, what
    class(*), intent(in), optional :: bytes
    integer(c_int), intent(inout) :: st
    type(c_ptr) :: address
    integer(c_int64_t) :: size

    size = option
    call get_integer(size, bytes, call, what, st)
    if (.not. present(bytes) .or. st /= GS_OK) return
    st = begin(comm, call, what, size, address)
    if (st == GS_OK) option = size
  end subroutine set_bytes

  ! A stream that was not given is the NULL stream.
  pure function stream_or_default(stream) result(given)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_intptr_t) :: given

    given = 0
    if (present(stream)) given = stream
  end function stream_or_default

end module gradsync_support
