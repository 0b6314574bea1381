! SPDX-License-Identifier: BSD-3-Clause
! stats - statistics, logical reductions and comparisons on arrays and on addresses; traffic.
program stats
  use, intrinsic :: ieee_arithmetic, only: ieee_quiet_nan, ieee_value
  use, intrinsic :: iso_c_binding, only: c_bool, c_loc, c_null_ptr
  use, intrinsic :: iso_fortran_env, only: int16, int64, real32, real64
  use checks
  use gradsync
  implicit none

  type(gs_comm) :: comm, never
  character(400) :: errmsg
  integer :: stat, me, n

  call gs_comm_create(comm, boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  call speak_as(me)
  call check_arrays()
  call check_masks()
  call check_addresses()
  call check_logical()
  call check_comparison()
  call check_traffic()
  call check_refusals()
  call gs_comm_destroy(comm)
  call finish()

contains

  ! What rank [rank] has as sample [s] of feature [f].
  pure function number_of(rank, f, s) result(x)
    integer, intent(in) :: rank, f, s
    real(real64) :: x

    x = 100 * f + mod(37 * rank + 11 * s + 5 * f * s, 23) - 0.25_real64 * s
  end function number_of

  ! Rank r has r + 2 samples. The reference is in one pass over all of them.
  subroutine expect_moments(m, f, masked, what)
    type(gs_moments), intent(in) :: m
    integer, intent(in) :: f
    logical, intent(in) :: masked
    character(*), intent(in) :: what
    real(real64), allocatable :: all_x(:)
    real(real64) :: mean
    integer :: rank, s

    allocate (all_x(0))
    do rank = 0, n - 1
      do s = 1, rank + 2
        if (masked .and. mod(s + f, 2) == 0) cycle
        all_x = [all_x, number_of(rank, f, s)]
      end do
    end do
    mean = sum(all_x) / size(all_x)
    call expect(m%count == size(all_x) .and. m%bad == 0 .and. m%min == minval(all_x) .and. &
      m%max == maxval(all_x) .and. abs(m%mean - mean) < 1e-10_real64 .and. &
      abs(m%m2 - sum((all_x - mean)**2)) < 1e-7_real64 .and. &
      abs(m%variance - sum((all_x - mean)**2) / size(all_x)) < 1e-8_real64, what)
  end subroutine expect_moments

  subroutine check_arrays()
    real(real64) :: x(2, 3, me + 2), nothing(6, 0), scalar
    real(real32) :: single(me + 2)
    integer(int16) :: half(3)
    type(gs_moments) :: m(6), one(1), sum_of(6)
    integer :: f, s

    do s = 1, me + 2
      x(:, :, s) = reshape([(number_of(me, f, s), f=1, 6)], [2, 3])
    end do
    call gs_moments_compute(comm, x, m)
    do f = 1, 6
      call expect_moments(m(f), f, .false., 'moments of an array of rank 3')
    end do
    call gs_moments_merge(sum_of, m)
    call gs_moments_merge(sum_of, m)
    call expect(all(sum_of%count == 2 * m%count) .and. all(abs(sum_of%mean - m%mean) < 1e-9) &
      .and. all(abs(sum_of%variance - m%variance) < 1e-7), 'merged with themselves')
    single = [(real(number_of(me, 1, s), real32), s=1, me + 2)]
    call gs_moments_compute(comm, single, one)
    call expect_moments(one(1), 1, .false., 'moments of an array of rank 1')
    half = [int(z'3c00', int16), int(z'4000', int16), int(z'7e00', int16)] ! 1, 2, NaN
    call gs_moments_compute(comm, half, one, as=GS_F16)
    call expect(one(1)%count == 2 * n .and. one(1)%bad == n .and. one(1)%mean == 1.5_real64 &
      .and. one(1)%variance == 0.25_real64, 'moments of f16, with a NaN')
    scalar = me
    call gs_moments_compute(comm, scalar, one)
    call expect(one(1)%count == n .and. one(1)%max == n - 1, 'moments of a scalar')
    call gs_moments_compute(comm, nothing, m)
    call expect(all(m%count == 0), 'moments of nothing')
  end subroutine check_arrays

  subroutine check_masks()
    real(real64) :: x(3, me + 2)
    logical :: of_values(3, me + 2), of_samples(me + 2)
    logical(c_bool) :: small(3, me + 2)
    type(gs_moments) :: m(3)
    integer :: f, s

    do s = 1, me + 2
      do f = 1, 3
        x(f, s) = number_of(me, f, s)
        of_values(f, s) = mod(s + f, 2) /= 0
      end do
      of_samples(s) = mod(s + 2, 2) /= 0
    end do
    small = of_values
    call gs_moments_compute(comm, x, m, of_values)
    call expect_moments(m(2), 2, .true., 'a mask of values')
    call gs_moments_compute(comm, x, m, small)
    call expect_moments(m(3), 3, .true., 'a mask of another kind')
    x(:, 2) = ieee_value(x(1, 1), ieee_quiet_nan) ! which is masked
    call gs_moments_compute(comm, x, m, of_samples)
    call expect_moments(m(2), 2, .true., 'a mask of samples')
  end subroutine check_masks

  subroutine check_addresses()
    real(real64), target :: x(3, me + 2)
    integer(kind=1), target :: mask(me + 2)
    type(gs_moments) :: m(3)
    integer :: f, s

    do s = 1, me + 2
      x(:, s) = [(number_of(me, f, s), f=1, 3)]
      mask(s) = int(mod(s + 2, 2), 1)
    end do
    call gs_moments_compute(comm, c_loc(x), size(x, 2, int64), 3_int64, GS_F64, m)
    call expect_moments(m(1), 1, .false., 'moments by address')
    call gs_moments_compute(comm, c_loc(x), size(x, 2, int64), 3_int64, GS_F64, m, &
              c_loc(mask), 1_int64)
    call expect_moments(m(2), 2, .true., 'moments by address, with a mask')
    call gs_moments_compute(comm, c_loc(x), -1_int64, 3_int64, GS_F64, m, stat=stat, &
              errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_moments_compute: samples is -1', &
              'a negative number')
    call gs_moments_compute(comm, c_loc(x), 1_int64, 2_int64, GS_F64, m, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'moments has 3 elements, but needs 2', 'room')
  end subroutine check_addresses

  subroutine check_logical()
    logical :: res
    integer :: r

    do r = 0, n
      call gs_flag_all(comm, r /= me, res)
      call expect(res .eqv. (r == n), 'all')
      call gs_flag_any(comm, r == me, res)
      call expect(res .eqv. (r /= n), 'any')
    end do
  end subroutine check_logical

  subroutine check_comparison()
    real(real64), target :: x(4, 5)
    integer, target :: whole(3)
    type(gs_array) :: list(2)

    x = 3
    whole = 7
    call gs_arrays_compare(comm, 'x', x, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'equal arrays')
    list(1) = gs_array('x', c_loc(x), size(x, kind=int64), GS_F64)
    list(2) = gs_array('a whole one', c_loc(whole), size(whole, kind=int64), GS_I32)
    call gs_arrays_compare(comm, list, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'equal lists')
    call gs_arrays_compare(comm, list(1:0))
    if (me == n - 1) then
      x(2, 3) = 3.0625_real64
      whole(3) = -1
    end if
    call gs_arrays_compare(comm, 'x', x, 0.1_real64, stat=stat, errmsg=errmsg)
    call expect(stat == GS_OK, 'within the tolerance')
    if (n == 1) return
    call gs_arrays_compare(comm, 'x', x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_MISMATCH, &
      '''x'' (GS_F64, 20 elements)|has 3.0625 in element 9', 'another value')
    call gs_arrays_compare(comm, list, 0.1_real64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_MISMATCH, &
      'array 2 of 2, ''a whole one''|has -1 in', 'a list with another value')
  end subroutine check_comparison

  subroutine check_traffic()
    real(real64) :: x(7)
    type(gs_traffic) :: t, all_ops

    x = 1
    call gs_comm_reset_traffic(comm)
    call gs_allreduce(comm, x, GS_SUM)
    call gs_allreduce(comm, x, GS_MAX)
    call gs_barrier(comm)
    call gs_comm_get_traffic(comm, t, 'allreduce')
    call gs_comm_get_traffic(comm, all_ops)
    call expect(t%calls == 2 .and. t%bytes == 112 .and. all_ops%calls == 3 .and. &
      all_ops%bytes == 112, 'calls and their bytes')
    call expect(n > 1 .or. (t%within == 0 .and. t%between == 0 .and. t%within_known .and. &
      t%between_known), 'nothing is sent alone')
    call gs_comm_get_traffic(comm, t, 'allreduced', stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'no operation has the name ''allreduced''', &
      'no such operation')
    call gs_comm_get_traffic(never, t, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_comm_get_traffic: |never created', 'get')
    call gs_comm_reset_traffic(never, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_comm_reset_traffic: ', 'reset')
  end subroutine check_traffic

  subroutine check_refusals()
    real(real64) :: x(2, 4)
    complex(real64) :: z(2)
    logical :: mask(2, 4), few(3), res
    type(gs_moments) :: m(2), more(3)
    type(gs_array) :: nameless(1)

    x = 1
    z = 1
    mask = .true.
    few = .true.
    res = .true.
    call gs_moments_compute(comm, x, more, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'moments has 3 elements, but x has 2', 'room')
    call gs_moments_compute(comm, x(:, ::2), m, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, &
              'gs_moments_compute: x is a strided section', 'strided')
    call gs_moments_compute(comm, z, m(:1), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_UNSUPPORTED, 'GS_C128', 'complex')
    call gs_moments_compute(comm, x, m, few, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'mask has neither|4 elements', 'a short mask')
    call gs_moments_compute(comm, x, m, mask(1, :), stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'mask is a strided section', 'a strided mask')
    call gs_moments_compute(comm, x, m, x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'mask is not logical', 'a mask of reals')
    call take_assumed_size(x)
    call gs_moments_merge(m, more, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_moments_merge: into has 2', 'a merge')
    nameless(1)%data = c_null_ptr
    call gs_arrays_compare(comm, nameless, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'array 1 has no name', 'no name')
    nameless(1)%count = -1
    call gs_arrays_compare(comm, nameless, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_arrays_compare: count is -1', &
              'a negative count')
    call gs_arrays_compare(comm, 'x', x, 2._real64, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'tolerance is 2', 'an absurd tolerance')
    call gs_moments_compute(never, x, m, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_moments_compute: |never created', 'stats')
    call gs_arrays_compare(never, 'x', x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_arrays_compare: |never created', &
              'compare')
    call gs_arrays_compare(never, nameless, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_arrays_compare: |never created', 'a list')
    call gs_flag_all(never, .true., res, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_flag_all: |never created', 'all')
    call gs_flag_any(never, .false., res, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_flag_any: |never created', 'any')
    call expect(res .and. all(m%count == 0), 'nothing has changed')
  end subroutine check_refusals

  subroutine take_assumed_size(x)
    real(real64), intent(inout) :: x(2, *)
    type(gs_moments) :: m(2)

    call gs_moments_compute(comm, x, m, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_moments_compute: x is an assumed-size', &
              'no end')
    call gs_arrays_compare(comm, 'x', x, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_ARG, 'gs_arrays_compare: x is an assumed-size', &
              'no end')
  end subroutine take_assumed_size

end program stats
