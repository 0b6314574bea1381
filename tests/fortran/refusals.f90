! SPDX-License-Identifier: BSD-3-Clause
! refusals - arrays and arguments that are refused: by name, with a cure, and nothing changed.
program refusals
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_funptr, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: compiler_version, int16, int64, real32, real64
  use checks
  use failing_calls
  use gradsync
  implicit none

  ! The larger kinds this compiler has, else a kind that is taken.
  integer, parameter :: extended = selected_real_kind(18)
  integer, parameter :: quad = selected_real_kind(30)
  integer, parameter :: huge_int = selected_int_kind(30)
  integer, parameter :: r10 = merge(extended, real64, extended > 0)
  integer, parameter :: r16 = merge(quad, real64, quad > 0)
  integer, parameter :: i16 = merge(huge_int, int64, huge_int > 0)

  type :: cell
    real(real64) :: u = 1
    real(real64) :: v = 2
  end type cell

  type(gs_comm) :: comm
  integer :: n

  call gs_comm_create(comm, name='refusals', boot_timeout_ms=30000)
  call speak_as(gs_comm_rank(comm))
  n = gs_comm_size(comm)
  call check_strided()
  call check_absent()
  call check_absent_of_size_0()
  call check_types()
  call check_kinds()
  call check_count()
  call check_as()
  call check_other_arguments()
  call check_allgather()
  call check_every_collective()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  subroutine check_strided()
    real(real64), target :: x(6, 4)
    real(real64) :: before(6, 4)
    real(real64), pointer :: p(:)
    integer :: i

    x = reshape([(real(i, real64), i=1, size(x))], shape(x))
    before = x
    call gs_allreduce_avg(comm, x(2, :), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_avg: buf|strided|dimension 1|48 bytes', 'a row')
    call gs_allreduce_avg(comm, x(1:5, :), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided|dimension 2|contiguous', 'a block of rows')
    call gs_allreduce_avg(comm, x(::2, 1), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided', 'every other element')
    call gs_allreduce_avg(comm, x(6:1:-1, 1), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided|-8 bytes', 'elements backwards')
    call gs_allreduce_avg(comm, x(2:2, ::3), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided|dimension 2', 'one row of some columns')
    p => x(3, :)
    call gs_allreduce_avg(comm, p, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided', 'a pointer to a row')
    call take_assumed_shape(x(::3, :))
    call gs_allreduce_avg(comm, x(2, :), count=2_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided', 'a row with count')
    call expect(all(x == before), 'strided arrays are unchanged')
  end subroutine check_strided

  subroutine take_assumed_shape(x)
    real(real64), intent(inout) :: x(:, :)

    call gs_allreduce_avg(comm, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'strided', 'an assumed-shape argument with gaps')
  end subroutine take_assumed_shape

  subroutine check_absent()
    real(real64), allocatable, save :: never(:, :)
    real(real64), allocatable :: gone(:), scalar
    real(real64), pointer, save :: p(:) => null(), q => null()

    call gs_allreduce_avg(comm, never, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is not allocated', 'an array that was never allocated')
    allocate (gone(3))
    deallocate (gone)
    call gs_allreduce_avg(comm, gone, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is not allocated', 'an array that was deallocated')
    call gs_allreduce_avg(comm, scalar, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is not allocated', 'a scalar that was never allocated')
    call gs_allreduce_avg(comm, p, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'not associated', 'a pointer to nothing')
    call gs_allreduce_avg(comm, q, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'not associated', 'a scalar pointer to nothing')
    call gs_allreduce_avg(comm, never, count=0_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is not allocated', 'the same with a count of zero')
  end subroutine check_absent

  ! What was of size 0 and is gone is not an array of size 0.
  subroutine check_absent_of_size_0()
    type :: part
      real(real64), pointer :: values(:)
    end type part
    real(real64), allocatable :: gone(:), flat(:, :), here(:)
    real(real64), target :: nothing(0)
    real(real64), pointer :: p(:)
    logical, allocatable :: mask(:)
    type(part) :: parts(2)
    type(gs_reducer) :: reducer
    type(gs_moments) :: moments(1)

    allocate (gone(0), flat(3, 0), here(0), mask(0))
    deallocate (gone, flat, mask)
    p => nothing
    nullify (p)
    parts(2)%values => nothing
    nullify (parts(2)%values)
    call gs_allreduce_avg(comm, gone, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_avg: buf is not allocated', 'deallocated from size 0')
    call gs_broadcast(comm, flat, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_broadcast: buf is not allocated', 'of shape [3, 0]')
    call gs_allreduce(comm, p, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce: buf|not associated', 'nullified from size 0')
    call gs_allreduce_avg(comm, parts(2)%values, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf|not associated', 'a null component of size 0')
    call gs_allgather(comm, here, gone, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather: recv is not allocated', 'no array to gather to')
    call gs_alltoall(comm, here, p, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_alltoall: recv|not associated', 'no pointer to receive to')
    call gs_recv(comm, gone, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_recv: buf is not allocated', 'no array to receive')
    call gs_reducer_create(comm, reducer)
    call gs_reducer_add(reducer, 'gone', gone, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_reducer_add: array is not allocated', 'no gradient')
    call gs_reducer_destroy(reducer)
    call gs_moments_compute(comm, here, moments, mask, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'a mask that is not allocated is not present')
    call gs_allgather(comm, (nothing), here, stat=stat, errmsg=errmsg)
    call expect(is_taken(), 'an expression of size 0 is sent')
    call gs_allgatherv(comm, [real(real64) ::], here, stat=stat, errmsg=errmsg)
    call expect(is_taken(), 'so is a constructor of no elements')
    call send_dummy([real(real64) ::])
  end subroutine check_absent_of_size_0

  ! Whether the last call took an empty expression. N.B. gfortran 14 describes it as it does an
  ! assumed-size array, which is refused.
  logical function is_taken()
    logical :: gfortran_14

    gfortran_14 = index(compiler_version(), 'GCC') > 0 .and. &
          index(compiler_version(), 'GCC version 12') == 0
    is_taken = stat == GS_OK .or. (gfortran_14 .and. index(errmsg, 'assumed-size') > 0)
  end function is_taken

  ! It may be associated with an expression.
  subroutine send_dummy(x)
    real(real64), intent(in) :: x(:)
    real(real64) :: here(0)

    call gs_allgather(comm, x, here, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'and an argument of size 0')
  end subroutine send_dummy

  subroutine check_types()
    logical :: flags(3)
    character(4) :: text
    character(1) :: letters(3)
    type(cell) :: cells(2)
    type(c_ptr) :: address
    type(c_funptr) :: functions(2)
    real(real64), target :: x(4)

    flags = .true.
    call gs_allreduce_avg(comm, flags, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is logical|merge', 'logical')
    text = 'abcd'
    letters = 'x'
    call refuse_character(text, letters)
    call gs_allreduce_avg(comm, cells, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is of a derived type|components', 'a derived type')
    call take_class(cells)
    address = c_loc(x)
    call gs_allreduce_avg(comm, address, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'c_ptr|count and dtype', 'an address alone')
    address = c_null_ptr
    call gs_allreduce_avg(comm, address, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'c_ptr|count and dtype', 'a null address alone')
    call gs_allreduce_avg(comm, functions, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is', 'procedure addresses')
    call expect(all(flags) .and. text == 'abcd' .and. all(letters == 'x') .and. &
          all(cells%u == 1) .and. all(cells%v == 2), 'other types are unchanged')
  end subroutine check_types

  ! With errmsg between other memory: some compilers mix up its length and that of [text].
  subroutine refuse_character(text, letters)
    character(*), intent(inout) :: text, letters(:)
    type :: guarded
      character(8) :: before = 'before', errmsg = 'errmsg', after = 'after'
    end type guarded
    type(guarded) :: g
    type(gs_comm) :: never
    character(300) :: long
    real(real64) :: x(2)
    integer :: i

    long = repeat('x', len(long))
    call gs_broadcast(comm, text, 0, stat=stat, errmsg=g%errmsg)
    errmsg = gs_last_error()
    call refused(GS_ERR_ARG, 'gs_broadcast: buf is character|int8', 'character')
    call gs_broadcast(comm, long, 0, stat=stat, errmsg=g%errmsg)
    errmsg = gs_last_error()
    call refused(GS_ERR_ARG, 'gs_broadcast: buf is character|int8', 'long character')
    call gs_broadcast(comm, letters, 0, stat=stat)
    errmsg = gs_last_error()
    call refused(GS_ERR_ARG, 'buf is character', 'an array of characters')
    call gs_broadcast(never, long, 0, stat=stat, errmsg=g%errmsg)
    call expect(stat == GS_ERR_STATE, 'character without a communicator')
    call gs_allgather(comm, x(::2), long, stat=stat, errmsg=g%errmsg)
    call expect(stat == GS_ERR_ARG, 'a strided send with a character recv')
    call gs_allgather(comm, x, long, stat=stat, errmsg=g%errmsg)
    errmsg = gs_last_error()
    call refused(GS_ERR_ARG, 'recv is character', 'a character recv')
    call expect(g%before == 'before' .and. g%after == 'after', 'what lies beside errmsg')
    call expect(all([(long(i:i) == 'x', i=1, len(long))]), 'characters are unchanged')
  end subroutine refuse_character

  subroutine take_class(any_type)
    class(*), intent(inout) :: any_type(:)

    call gs_allreduce_avg(comm, any_type, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is', 'class(*)')
  end subroutine take_class

  subroutine check_kinds()
    real(r10) :: x10(2)
    real(r16) :: x16
    complex(r16) :: c16(2)
    integer(i16) :: k16(2)
    integer(int64) :: k8(2)

    if (r10 /= real64) then
      x10 = 1
      call gs_allreduce_avg(comm, x10, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_UNSUPPORTED, 'real kind|real64', 'an extended real')
    end if
    if (r16 /= real64) then
      x16 = 1
      c16 = 1
      call gs_allreduce_avg(comm, x16, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_UNSUPPORTED, 'real kind of 16 bytes|real64', 'real128')
      call gs_allreduce_avg(comm, c16, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_UNSUPPORTED, 'complex kind of 32 bytes', 'complex of real128')
    end if
    if (i16 /= int64) then
      k16 = 1
      call gs_allreduce(comm, k16, GS_SUM, stat=stat, errmsg=errmsg)
      call refused(GS_ERR_UNSUPPORTED, 'integer kind of 16 bytes', 'a 128-bit integer')
    end if
    k8 = 1
    call gs_allreduce_avg(comm, k8, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_UNSUPPORTED, 'gs_allreduce_avg', 'the average of integers')
    call expect(all(k8 == 1), 'integers are unchanged')
  end subroutine check_kinds

  subroutine check_count()
    real(real32), target :: x(6)
    real(real32), pointer :: absurd(:, :)

    x = 3
    call c_f_pointer(c_loc(x), absurd, [2_int64**40, 2_int64**40])
    call gs_allreduce_avg(comm, absurd, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf has more elements than memory', 'absurd extents')
    call take_assumed_size(x, x, x)
    call gs_allreduce_avg(comm, x, count=7_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'needs 7|has 6', 'a count above the size')
    call gs_allreduce_avg(comm, x(2), count=2_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'needs 2|has 1', 'a count above that of one element')
    call gs_allreduce_avg(comm, x, count=-1_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'count is -1', 'a negative count')
    call expect(all(x == 3), 'after a wrong count all is unchanged')
  end subroutine check_count

  subroutine take_assumed_size(x, y, z)
    real(real32), intent(inout) :: x(*), y(0:*), z(2, -3:*)

    call gs_allreduce_avg(comm, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'buf is an assumed-size array|count=|x(1:n)', 'assumed size')
    call gs_allreduce_avg(comm, y, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'assumed-size', 'assumed size from 0')
    call gs_allreduce_avg(comm, z, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'assumed-size', 'assumed size from -3')
    call gs_allreduce_avg(comm, x, count=-1_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'count is -1', 'assumed size with a negative count')
    call gs_allreduce_avg(comm, x, count=huge(0_int64), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_avg', 'assumed size with an absurd count')
  end subroutine take_assumed_size

  subroutine check_as()
    real(real32) :: x(2)
    integer(int16) :: bits(2)

    x = 1
    bits = 1
    call gs_allreduce_avg(comm, bits, as=GS_F32, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'as=|4 bytes|integer(int16)', 'as= of another size')
    call gs_allreduce_avg(comm, x, as=GS_U32, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'as=|real32|leave it out', 'as= for a real array')
    call gs_allreduce_avg(comm, bits, as=77, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'as=77', 'as= with an unknown type')
    call gs_allreduce_avg(comm, x, as=GS_F32, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'as= with the type it is')
    call expect(all(x == 1) .and. all(bits == 1), 'after a wrong as= all is unchanged')
  end subroutine check_as

  ! What the C library refuses arrives too.
  subroutine check_other_arguments()
    real(real64) :: x(2)

    x = 1
    call gs_broadcast(comm, x, n, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_broadcast|root', 'a root that is no rank')
    call gs_allreduce(comm, x, 99, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce|99', 'an unknown op')
    call gs_allreduce_wavg(comm, x, -1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_wavg|weight', 'a negative weight')
    call expect(all(x == 1), 'after wrong arguments all is unchanged')
  end subroutine check_other_arguments

  subroutine check_allgather()
    real(real32) :: mine(3), theirs(3, n), wide(6, n)
    real(real64) :: doubles(3, n)

    mine = 1
    theirs = 2
    wide = 2
    doubles = 2
    call gs_allgather(comm, mine, wide, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather: recv has|send', 'recv too large')
    call gs_allgather(comm, mine, theirs(:, 1:0), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather: recv has 0', 'recv too small')
    call gs_allgather(comm, mine, theirs, count=4_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'send needs 4', 'count above the size of send')
    call gs_allgather(comm, mine(1:2), theirs(1, 1), count=2_int64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'recv needs', 'count above the room in recv')
    call gs_allgather(comm, mine, doubles, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'send and recv differ', 'recv of another kind')
    call gs_allgather(comm, mine, wide(::2, :), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'recv is a strided section', 'a strided recv')
    call gs_allgather(comm, wide(1:3:2, 1), theirs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'send is a strided section', 'a strided send')
    call take_assumed_size_pair(mine, theirs)
    call expect(all(mine == 1) .and. all(theirs == 2) .and. all(wide == 2) .and. &
          all(doubles == 2), 'after a refused gather all is unchanged')
  end subroutine check_allgather

  subroutine take_assumed_size_pair(mine, theirs)
    real(real32), intent(inout) :: mine(*), theirs(0:*)

    call gs_allgather(comm, mine(1:3), theirs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'recv is an assumed-size array', 'an assumed-size recv')
    call gs_allgather(comm, mine, theirs, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'send is an assumed-size array', 'an assumed-size send')
    call gs_allgather(comm, mine, theirs, count=huge(0_int64), stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allgather: |more than memory', 'an absurd count to gather')
  end subroutine take_assumed_size_pair

  ! The name in the text is that of the call, and the handle is looked at in each.
  subroutine check_every_collective()
    type(gs_comm) :: never
    real(real64), target :: x(6, 4)
    real(real64), pointer :: row(:)

    row => x(1, :)
    call gs_allreduce_wavg(comm, row, 1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce_wavg: buf is a strided', 'wavg of a row')
    call gs_allreduce(comm, row, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_allreduce: buf is a strided', 'sum of a row')
    call gs_broadcast(comm, row, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_ARG, 'gs_broadcast: buf is a strided', 'broadcast of a row')
    call gs_allreduce_avg(never, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allreduce_avg: |never created', 'avg without a comm')
    call gs_allreduce_wavg(never, x, 1.0_real64, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allreduce_wavg: |never created', 'wavg without a comm')
    call gs_allreduce(never, x, GS_SUM, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allreduce: |never created', 'allreduce without a comm')
    call gs_broadcast(never, x, 0, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_broadcast: |never created', 'broadcast without a comm')
    call gs_allgather(never, x, x, stat=stat, errmsg=errmsg)
    call refused(GS_ERR_STATE, 'gs_allgather: |never created', 'allgather without a comm')
  end subroutine check_every_collective

end program refusals
