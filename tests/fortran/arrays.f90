! SPDX-License-Identifier: BSD-3-Clause
! arrays - the collectives on arrays of every kind, rank and way of being declared.
!
! Rank r holds base + r with small whole numbers, so every expected value is exact in every kind.
program arrays
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use gradsync
  implicit none

  type :: cell
    real(real64) :: u = 0
    integer :: id = 0
  end type cell

  type(gs_comm) :: comm
  integer :: me, n
  real(real64) :: mean ! of the ranks' numbers

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  mean = (n - 1) / 2.0_real64
  call speak_as(me)
  call check_average_kinds()
  call check_average_shapes()
  call check_average_holders()
  call check_sections()
  call check_assumed_size()
  call check_as()
  call check_weighted()
  call check_reductions()
  call check_broadcast()
  call check_allgather()
  call gs_barrier(comm)
  call gs_comm_destroy(comm)
  call finish()

contains

  subroutine check_average_kinds()
    real(real32) :: r4(5)
    real(real64) :: r8(5)
    complex(real32) :: c4(5)
    complex(real64) :: c8(5)
    integer :: i

    r4 = [(real(i + me, real32), i=1, 5)]
    call gs_allreduce_avg(comm, r4)
    call expect(all(r4 == [(real(i + mean, real32), i=1, 5)]), 'average of real32')
    r8 = [(real(i + me, real64), i=1, 5)]
    call gs_allreduce_avg(comm, r8)
    call expect(all(r8 == [(i + mean, i=1, 5)]), 'average of real64')
    c4 = [(cmplx(i + me, -2 * me, real32), i=1, 5)]
    call gs_allreduce_avg(comm, c4)
    call expect(all(c4 == [(cmplx(i + mean, -2 * mean, real32), i=1, 5)]), &
          'average of complex(real32)')
    c8 = [(cmplx(i + me, -2 * me, real64), i=1, 5)]
    call gs_allreduce_avg(comm, c8)
    call expect(all(c8 == [(cmplx(i + mean, -2 * mean, real64), i=1, 5)]), &
          'average of complex(real64)')
  end subroutine check_average_kinds

  subroutine check_average_shapes()
    real(real64) :: scalar, matrix(-2:3, 5:7), cube(2, 3, 4), none(0), flat(3, 0)
    real(real32) :: fifteen(2, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2)

    scalar = 10 + me
    call gs_allreduce_avg(comm, scalar)
    call expect(scalar == 10 + mean, 'a scalar')
    matrix = me
    matrix(3, 7) = 100 + me
    call gs_allreduce_avg(comm, matrix)
    call expect(all(matrix(:, 5:6) == mean) .and. matrix(3, 7) == 100 + mean, &
          'a matrix with other lower bounds')
    cube = 7 + me
    call gs_allreduce_avg(comm, cube)
    call expect(all(cube == 7 + mean), 'three dimensions')
    fifteen = 3 + me
    call gs_allreduce_avg(comm, fifteen)
    call expect(all(fifteen == real(3 + mean, real32)), 'fifteen dimensions')
    call gs_allreduce_avg(comm, none)
    call gs_allreduce_avg(comm, flat)
    call expect(size(none) == 0 .and. size(flat) == 0, 'size zero')
    matrix = me
    call gs_allreduce_avg(comm, matrix(0, 6))
    call expect(matrix(0, 6) == mean .and. matrix(1, 6) == me .and. matrix(-1, 6) == me, &
          'one element of an array, and not its neighbours')
  end subroutine check_average_shapes

  subroutine check_average_holders()
    real(real64), allocatable :: a(:), b(:, :), s
    real(real64), pointer :: p(:), q
    real(real64), target :: t(6)
    type(cell) :: one, many(4)

    allocate (a(-1:4), b(2, 0:2), s)
    a = me
    b = me
    s = me
    call gs_allreduce_avg(comm, a)
    call gs_allreduce_avg(comm, b)
    call gs_allreduce_avg(comm, s)
    call expect(all(a == mean) .and. all(b == mean) .and. s == mean, 'allocatables')
    call expect(lbound(a, 1) == -1 .and. size(a) == 6, 'keep their bounds')
    deallocate (a)
    allocate (a(0))
    call gs_allreduce_avg(comm, a)
    call expect(allocated(a), 'an allocatable of size zero')
    t = me
    p(0:) => t(2:4)
    q => t(6)
    call gs_allreduce_avg(comm, p)
    call gs_allreduce_avg(comm, q)
    call expect(all(t(2:4) == mean) .and. t(6) == mean .and. t(1) == me .and. t(5) == me, &
          'pointers, and not what lies beside')
    one%u = me
    call gs_allreduce_avg(comm, one%u)
    call expect(one%u == mean, 'a component')
    many%u = me
    many%id = 5
    call average_or_refuse(many%u, many)
    call take_assumed_shape(t)
    call take_explicit_shape(6, t)
  end subroutine check_average_holders

  ! A component of an array of derived type has gaps. Some compilers pass it with them, which
  ! is refused, others pass a copy and copy back, which is right: never anything else.
  subroutine average_or_refuse(u, many)
    real(real64), intent(in) :: u(:) ! as it was before
    type(cell), intent(inout) :: many(:)
    integer :: stat

    call gs_allreduce_avg(comm, many%u, stat=stat)
    call expect((stat == GS_ERR_ARG .and. all(many%u == u)) .or. &
          (stat == GS_OK .and. all(many%u == mean)), 'a component of an array')
    call expect(all(many%id == 5), 'leaves the other components alone')
  end subroutine average_or_refuse

  subroutine take_assumed_shape(x)
    real(real64), intent(inout) :: x(-3:)

    x = me
    call gs_allreduce_avg(comm, x)
    call expect(all(x == mean), 'an assumed-shape argument')
  end subroutine take_assumed_shape

  subroutine take_explicit_shape(m, x)
    integer, intent(in) :: m
    real(real64), intent(inout) :: x(0:m - 1)

    x = me
    call gs_allreduce_avg(comm, x)
    call expect(all(x == mean), 'an explicit-shape argument')
  end subroutine take_explicit_shape

  subroutine check_sections()
    real(real64) :: x(4, 5)
    integer :: i

    x = me
    call gs_allreduce_avg(comm, x(:, 2:3))
    call expect(all(x(:, 2:3) == mean) .and. all(x(:, 1) == me) .and. all(x(:, 4:) == me), &
          'whole columns')
    x = me
    call gs_allreduce_avg(comm, x(2:3, 4))
    call expect(all(x(2:3, 4) == mean) .and. x(1, 4) == me .and. x(4, 4) == me, &
          'part of a column')
    x = me
    call gs_allreduce_avg(comm, x(3:3, 2:2))
    call expect(x(3, 2) == mean .and. count(x == me) >= 19, 'a section of one element')
    call gs_allreduce_avg(comm, x(1:0, :))
    i = 4
    call gs_allreduce_avg(comm, x(i:1, 1:5:2))
    call expect(count(x == me) >= 19, 'sections of size zero')
  end subroutine check_sections

  subroutine check_assumed_size()
    real(real64) :: x(8)

    x = me
    call average_first(x, x, x, 3)
    call expect(all(x(:3) == mean) .and. all(x(4:) == me), 'assumed size with count')
    x = me
    call gs_allreduce_avg(comm, x, count=5_int64)
    call expect(all(x(:5) == mean) .and. all(x(6:) == me), 'count less than the size')
    call gs_allreduce_avg(comm, x, count=0_int64)
    call expect(all(x(:5) == mean), 'count of zero')
  end subroutine check_assumed_size

  ! The same array three times, with lower bounds that compilers get wrong.
  subroutine average_first(x, y, z, m)
    real(real64), intent(inout) :: x(*), y(0:*), z(2, -3:*)
    integer, intent(in) :: m

    call gs_allreduce_avg(comm, x, count=1_int64)
    call gs_allreduce_avg(comm, y(1:1))
    call gs_allreduce_avg(comm, z(1:1, -2), count=int(m - 2, int64))
    x(1:m) = me
    call gs_allreduce_avg(comm, y, count=int(m, int64))
    x(1:m) = me
    call gs_allreduce_avg(comm, z, count=int(m, int64))
  end subroutine average_first

  ! bf16 is the upper half of a real32; f16 is made by hand.
  subroutine check_as()
    integer(int16) :: bf16(3), f16(3)
    integer(int8) :: bytes(2)

    bf16 = int(shiftr(transfer(real(2 * me, real32), 0_int32), 16), int16)
    call gs_allreduce_avg(comm, bf16, as=GS_BF16)
    call expect(all(bf16 == shiftr(transfer(real(2 * mean, real32), 0_int32), 16)), &
          'bf16 in integer(int16)')
    f16 = 0
    if (me == 0) f16 = half(n)
    call gs_allreduce_avg(comm, f16, as=GS_F16)
    call expect(all(f16 == half(1)), 'f16 in integer(int16)')
    bytes = -1_int8
    bytes(2) = 1_int8
    call gs_allreduce(comm, bytes, GS_MAX, as=GS_U8)
    call expect(all(bytes == [-1_int8, 1_int8]), 'u8 in integer(int8)')
    bytes = merge(-1_int8, 1_int8, me == 0)
    call gs_allreduce(comm, bytes, GS_MIN, as=GS_U8)
    call expect(all(bytes == merge(-1_int8, 1_int8, n == 1)), 'minimum of u8 is unsigned')
  end subroutine check_as

  ! A whole number from 1 to 2048 as IEEE binary16.
  pure function half(number) result(bits)
    integer, intent(in) :: number
    integer(int16) :: bits
    integer :: power

    power = bit_size(number) - 1 - leadz(number)
    bits = int(ishft(power + 15, 10) + (number - 2**power) * 2**(10 - power), int16)
  end function half

  subroutine check_weighted()
    real(real64) :: x(4), total
    real(real32) :: s
    integer :: r

    total = sum([(real(r, real64), r=0, n - 1)])
    x = 3
    if (me > 0) x = me
    call gs_allreduce_wavg(comm, x, real(me, real64))
    if (n == 1) then
      call expect(all(x == 0), 'all weights zero give zero')
    else
      call expect(all(abs(x - sum([(real(r, real64)**2, r=0, n - 1)]) / total) < 1e-14), &
            'weighted average')
    end if
    s = real(me, real32)
    call gs_allreduce_wavg(comm, s, weight=2.5_real64)
    call expect(s == real(mean, real32), 'equal weights')
  end subroutine check_weighted

  subroutine check_reductions()
    integer(int8) :: i1(3)
    integer(int16) :: i2(2, 2)
    integer(int32) :: i4
    integer(int64) :: i8(4)
    complex(real64) :: c8(2)
    real(real32) :: r4(3)

    i1 = merge(3_int8, 1_int8, me == 0)
    call gs_allreduce(comm, i1, GS_SUM)
    call expect(all(i1 == n + 2), 'sum of integer(int8)')
    i2 = int(me - 2, int16)
    call gs_allreduce(comm, i2, GS_MIN)
    call expect(all(i2 == -2), 'minimum of integer(int16)')
    i4 = me
    call gs_allreduce(comm, i4, GS_MAX)
    call expect(i4 == n - 1, 'maximum of integer(int32)')
    i8 = 3_int64 * 2_int64**32
    if (me > 0) i8 = 2
    call gs_allreduce(comm, i8, GS_PROD)
    call expect(all(i8 == 3_int64 * 2_int64**(31 + n)), 'product of integer(int64)')
    c8 = cmplx(1, me, real64)
    call gs_allreduce(comm, c8, GS_SUM)
    call expect(all(c8 == cmplx(n, n * mean, real64)), 'sum of complex(real64)')
    r4 = real(me, real32) / 2
    call gs_allreduce(comm, r4, op=GS_MAX, count=2_int64)
    call expect(all(r4(:2) == (n - 1) / 2.0_real32) .and. r4(3) == me / 2.0_real32, &
          'maximum of the first two real32')
  end subroutine check_reductions

  subroutine check_broadcast()
    real(real64), allocatable :: x(:, :)
    integer(int16) :: bits(3)
    integer :: root

    allocate (x(3, 2))
    do root = 0, n - 1
      x = 10 * me + 1
      call gs_broadcast(comm, x, root)
      call expect(all(x == 10 * root + 1), 'broadcast')
    end do
    bits = int(me + 5, int16)
    call gs_broadcast(comm, bits, root=n - 1, as=GS_F16)
    call expect(all(bits == n + 4), 'broadcast of f16')
  end subroutine check_broadcast

  subroutine check_allgather()
    real(real32) :: mine(2, 3), all_of_it(2, 3, n), part(n)
    integer(int64) :: number, numbers(0:n - 1)
    integer :: r

    mine = real(me, real32)
    mine(2, 3) = 100
    call gs_allgather(comm, mine, all_of_it)
    do r = 0, n - 1
      call expect(all(all_of_it(1, :, r + 1) == r) .and. all_of_it(2, 3, r + 1) == 100, &
            'gathered matrices')
    end do
    number = 7 * me
    call gs_allgather(comm, number, numbers)
    call expect(all(numbers == [(7_int64 * r, r=0, n - 1)]), 'gathered scalars')
    part = -1
    call gs_allgather(comm, mine(:, 1), part, count=1_int64)
    call expect(all(part == [(real(r, real32), r=0, n - 1)]), 'gathered first elements')
    call gs_allgather(comm, [7.0_real32 + me], part)
    call expect(all(part == [(7.0_real32 + r, r=0, n - 1)]), 'a gathered expression')
    call gs_allgather(comm, [real(real32) ::], part(1:0), count=0_int64)
    call expect(all(part == [(7.0_real32 + r, r=0, n - 1)]), 'nothing gathered')
  end subroutine check_allgather

end program arrays
