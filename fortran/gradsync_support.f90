! SPDX-License-Identifier: BSD-3-Clause
! gradsync_support - text, status and optional arguments between Fortran and C, in one place.
! Private to the binding: module gradsync does not pass these names on.
module gradsync_support
  use, intrinsic :: iso_c_binding
  use gradsync_c
  use gradsync_types, only: gs_comm, gs_moments, GS_OK
  implicit none
  private
  public :: check_list, conclude, find, found, get_integer, given, put_integer, set_bytes
  public :: set_flag, settle, size_of, text_from_c, text_to_c, turned

  interface
    function c_result(st) bind(c, name="gsi_result") result(same)
      import :: c_int
      integer(c_int), value, intent(in) :: st
      integer(c_int) :: same
    end function c_result

    pure function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

  ! An argument that may be left out, or what it is without.
  interface given
    module procedure given_int, given_int64, given_double, given_ptr
  end interface given

  ! Refuses a list that is not of size [wanted], or has an element below 0; not one left out.
  interface check_list
    module procedure check_integers, check_moments
  end interface check_list

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

    call f_end(rank, ranks)
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
    integer(c_int), intent(out) :: st
    type(c_ptr) :: address

    st = f_handle_find(transfer(comm, 0_c_int64_t), KIND_COMM, text_to_c(call), address)
  end function find

  ! The same for a function, which nothing follows.
  function found(comm, call) result(address)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: call
    type(c_ptr) :: address
    integer(c_int) :: st, rank, ranks

    address = find(comm, call, st)
    call f_end(rank, ranks)
  end function found

  ! Keeps what a create made under its handle, or gives the handle back if there is nothing.
  subroutine settle(comm, handle, st, address)
    type(gs_comm), intent(out), optional :: comm
    integer(c_int64_t), intent(inout) :: handle
    integer(c_int), intent(in) :: st
    type(c_ptr), intent(in), optional :: address

    call f_comm_keep(handle, st, given(address, c_null_ptr))
    if (present(comm)) comm = transfer(handle, comm)
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
      fits = f_integer_fits(text_to_c(call), text_to_c(what), 1, value)
      if (fits == GS_OK) argument = int(value, c_int32_t)
    class default
      fits = f_integer_fits(text_to_c(call), text_to_c(what), 0, value)
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
      st = f_integer_fits(text_to_c(call), text_to_c(what), 0, value)
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
  subroutine set_bytes(option, call, what, bytes, st)
    integer(c_size_t), intent(inout) :: option
    character(*), intent(in) :: call, what
    class(*), intent(in), optional :: bytes
    integer(c_int), intent(inout) :: st
    integer(c_int64_t) :: size

    size = option
    call get_integer(size, bytes, call, what, st)
    if (.not. present(bytes) .or. st /= GS_OK) return
    st = f_check_amount(text_to_c(call), text_to_c(what), size)
    if (st == GS_OK) option = size
  end subroutine set_bytes

  pure function given_int(argument, default) result(value)
    integer(c_int), intent(in), optional :: argument
    integer(c_int), intent(in) :: default
    integer(c_int) :: value

    value = default
    if (present(argument)) value = argument
  end function given_int

  pure function given_int64(argument, default) result(value)
    integer(c_int64_t), intent(in), optional :: argument
    integer(c_int64_t), intent(in) :: default
    integer(c_int64_t) :: value

    value = default
    if (present(argument)) value = argument
  end function given_int64

  pure function given_double(argument, default) result(value)
    real(c_double), intent(in), optional :: argument
    real(c_double), intent(in) :: default
    real(c_double) :: value

    value = default
    if (present(argument)) value = argument
  end function given_double

  pure function given_ptr(argument, default) result(value)
    type(c_ptr), intent(in), optional :: argument
    type(c_ptr), intent(in) :: default
    type(c_ptr) :: value

    value = default
    if (present(argument)) value = argument
  end function given_ptr

  function check_integers(call, what, wanted, list) result(st)
    character(*), intent(in) :: call, what
    integer(c_int64_t), intent(in) :: wanted
    integer(c_size_t), intent(in), optional :: list(:)
    integer(c_int) :: st

    st = GS_OK
    if (present(list)) st = f_check_list(text_to_c(call), text_to_c(what), &
      size(list, kind=c_int64_t), wanted, int(min(minval(list), 0_c_size_t), c_int64_t))
  end function check_integers

  function check_moments(call, what, wanted, list) result(st)
    character(*), intent(in) :: call, what
    integer(c_int64_t), intent(in) :: wanted
    type(gs_moments), intent(in) :: list(:)
    integer(c_int) :: st

    st = f_check_list(text_to_c(call), text_to_c(what), size(list, kind=c_int64_t), wanted, &
      0_c_int64_t)
  end function check_moments

  ! Of a list that may be left out.
  pure function size_of(list)
    integer(c_int64_t), intent(in), optional :: list(:)
    integer(c_int) :: size_of

    size_of = 0
    if (present(list)) size_of = size(list)
  end function size_of

  ! In the order of C's dimensions.
  pure function turned(list)
    integer(c_size_t), intent(in) :: list(:)
    integer(c_size_t) :: turned(size(list))

    turned = list(size(list):1:-1)
  end function turned

end module gradsync_support
