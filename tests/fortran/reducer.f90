! SPDX-License-Identifier: BSD-3-Clause
! reducer - a small model's gradients in a reducer: results, bounds, callbacks, scalars, weights.
!
! Every rank knows what the others have: element i of gradient k is value(rank, k, i, step).
module callbacks
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_f_pointer, c_int, c_ptr
  use gradsync
  implicit none
  integer, parameter :: most = 16

  ! What the callbacks saw, behind their context.
  type :: journal
    integer :: calls = 0
    integer :: seen(0:most) = 0 ! calls by gradient
    logical :: fine = .true.
    integer :: fail_with = GS_OK
    real(c_double) :: elements = 0
  end type journal

contains

  subroutine note(bucket, context, book)
    type(gs_bucket), intent(in) :: bucket
    type(c_ptr), intent(in) :: context
    type(journal), pointer, intent(out) :: book

    call c_f_pointer(context, book)
    book%fine = book%fine .and. bucket%index >= 0 .and. bucket%index < bucket%buckets &
          .and. bucket%gradients == size(bucket%gradient) .and. bucket%gradients > 0 &
          .and. size(bucket%grad) == bucket%gradients .and. bucket%step > 0 &
          .and. size(bucket%count) == bucket%gradients .and. bucket%weight >= 0 &
          .and. gs_dtype_size(bucket%dtype) > 0 .and. gs_comm_size(bucket%comm) > 0
    book%calls = book%calls + 1
    book%seen(bucket%gradient) = book%seen(bucket%gradient) + 1
    book%elements = book%elements + sum(bucket%count)
  end subroutine note

  ! Sums in the place of the average.
  function summing(bucket, context) result(status)
    type(gs_bucket), intent(in) :: bucket
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status
    type(journal), pointer :: book
    integer :: i

    call note(bucket, context, book)
    status = GS_OK
    do i = 1, bucket%gradients
      if (bucket%count(i) == 0) cycle
      book%fine = book%fine .and. c_associated(bucket%grad(i))
      call gs_allreduce(bucket%comm, bucket%grad(i), bucket%count(i), bucket%dtype, GS_SUM, &
               bucket%stream, status)
      if (status /= GS_OK) return
    end do
  end function summing

  ! Notes that averages have come.
  function noting(bucket, context) result(status)
    type(gs_bucket), intent(in) :: bucket
    type(c_ptr), intent(in) :: context
    integer(c_int) :: status
    type(journal), pointer :: book

    call note(bucket, context, book)
    status = book%fail_with
  end function noting
end module callbacks

program reducer
  use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_double_complex, c_f_pointer, &
    c_float, c_float_complex, c_int, c_int16_t, c_int64_t, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int16, int32, int64, real32, real64
  use callbacks
  use checks
  use gradsync
  implicit none

  ! The model: gradients 0 to 7, in memory of the reducer's but for 4 to 6.
  integer, parameter :: gradients = 8
  type :: model
    type(gs_reducer) :: reducer
    real(c_float), pointer :: scale => null()
    real(c_double), pointer :: bias(:) => null()
    real(c_float), pointer :: weights(:, :) => null()
    complex(c_float_complex), pointer :: kernel(:, :, :) => null()
    real(c_double), pointer :: own(:, :) => null()
    integer(c_int16_t), pointer :: bits(:) => null()
    complex(c_double_complex), pointer :: distant(:) => null()
    real(c_float), pointer :: nothing(:, :) => null()
  end type model

  type(gs_comm) :: comm
  character(300) :: errmsg
  integer :: stat, me, n

  call gs_comm_create(comm, name='fortran', transport=host_transport(), device=GS_DEVICE_HOST, &
            boot_timeout_ms=30000)
  me = gs_comm_rank(comm)
  n = gs_comm_size(comm)
  call speak_as(me)
  call check_model(.false.)
  call check_model(.true.)
  call check_callbacks()
  call check_failing_callback()
  call check_micro_steps()
  call check_weights()
  call check_norm()
  call check_wire()
  call check_broadcast()
  call check_report()
  call check_destroy()
  call gs_comm_destroy(comm)
  call finish()

contains

  pure function value(rank, gradient, i, step) result(x)
    integer, intent(in) :: rank, gradient, i, step
    real(real64) :: x

    x = rank * (gradient + 1) + i - 2 * step
  end function value

  ! The average over the ranks, of which those below [from] have 0.
  pure function average(gradient, i, step, from) result(x)
    integer, intent(in) :: gradient, i, step, from
    real(real64) :: x
    integer :: r

    x = sum([(value(r, gradient, i, step), r=from, n - 1)]) / n
  end function average

  ! Within the roundings of a sum over the ranks in 24 bits.
  elemental function near(x, y) result(holds)
    real(real64), intent(in) :: x, y
    logical :: holds

    holds = abs(x - y) <= (n + 2) * epsilon(1.0_real32) * max(abs(y), 1.0_real64)
  end function near

  ! A model whose [own] is allocated here, and 6 by address.
  subroutine make(m, overlap)
    type(model), intent(out) :: m
    integer, intent(in) :: overlap
    integer(c_int) :: index

    allocate (m%own(0:3, -1:0), m%bits(5), m%distant(6))
    call gs_reducer_create(comm, m%reducer, name='model', bucket_bytes=64_int64, &
                first_bytes=32_int64, last_bytes=32_int64, overlap=overlap)
    call gs_reducer_add(m%reducer, 'scale', [integer ::], GS_F32, index=index)
    call expect(index == 0, 'the first gradient is number 0')
    call gs_reducer_add(m%reducer, 'bias', [5], GS_F64, lower=[0])
    call gs_reducer_add(m%reducer, 'weights', [4_int64, 3_int64], GS_F32, [-1_int64, 3_int64])
    call gs_reducer_add(m%reducer, 'kernel', [2, 3, 2], GS_C64)
    call gs_reducer_add(m%reducer, 'own', m%own, lower=lbound(m%own), index=index)
    call expect(index == 4, 'an array is number 4')
    call gs_reducer_add(m%reducer, 'bits', m%bits, as=GS_BF16)
    call gs_reducer_add(m%reducer, 'distant', [6], GS_C128, c_loc(m%distant), index=index)
    call gs_reducer_add(m%reducer, 'nothing', [0, 3], GS_F32, index=index)
    call expect(index == gradients - 1, 'what lies at an address, and what has no elements')
  end subroutine make

  subroutine point(m)
    type(model), intent(inout) :: m

    call gs_reducer_get_grad(m%reducer, 0, m%scale)
    call gs_reducer_get_grad(m%reducer, 1, m%bias)
    call gs_reducer_get_grad(m%reducer, 2, m%weights)
    call gs_reducer_get_grad(m%reducer, 3, m%kernel)
    call gs_reducer_get_grad(m%reducer, 7, m%nothing)
  end subroutine point

  subroutine drop(m)
    type(model), intent(inout) :: m

    call gs_reducer_destroy(m%reducer)
    deallocate (m%own, m%bits, m%distant)
  end subroutine drop

  ! All elements of all gradients, as rank [rank] computes them.
  subroutine fill(m, rank, step)
    type(model), intent(inout) :: m
    integer, intent(in) :: rank, step
    integer :: i

    m%scale = real(value(rank, 0, 1, step), real32)
    m%bias = [(value(rank, 1, i, step), i=1, 5)]
    m%weights = reshape([(real(value(rank, 2, i, step), real32), i=1, 12)], [4, 3])
    m%kernel = reshape([(cmplx(value(rank, 3, i, step), i, real32), i=1, 12)], [2, 3, 2])
    m%own = reshape([(value(rank, 4, i, step), i=1, 8)], [4, 2])
    m%bits = [(bfloat(value(rank, 5, i, step)), i=1, 5)]
    m%distant = [(cmplx(-i, value(rank, 6, i, step), real64), i=1, 6)]
  end subroutine fill

  ! The upper half of a real32, which whole numbers up to 256 fit into; and back.
  elemental function bfloat(x) result(bits)
    real(real64), intent(in) :: x
    integer(int16) :: bits

    bits = int(shifta(transfer(real(x, real32), 0_int32), 16), int16)
  end function bfloat

  elemental function unbfloat(bits) result(x)
    integer(int16), intent(in) :: bits
    real(real64) :: x

    x = transfer(shiftl(int(bits, int32), 16), 0.0_real32)
  end function unbfloat

  ! All gradients are averages, but that of 2 is of the ranks from [from] on; [times] their size.
  subroutine expect_averages(m, step, from, times, what)
    type(model), intent(in) :: m
    integer, intent(in) :: step, from, times
    character(*), intent(in) :: what
    integer :: i

    call expect(near(real(m%scale, real64), times * average(0, 1, step, 0)), what // ', scale')
    call expect(all(near(m%bias, [(times * average(1, i, step, 0), i=1, 5)])), what // ', bias')
    call expect(all(near(real([m%weights], real64), &
               [(times * average(2, i, step, from), i=1, 12)])), what // ', weights')
    call expect(all(near(real([m%kernel], real64), &
               [(times * average(3, i, step, 0), i=1, 12)])) .and. &
          all(near(real(aimag([m%kernel]), real64), [(real(times * i, real64), i=1, 12)])), &
          what // ', kernel')
    call expect(all(near([m%own], [(times * average(4, i, step, 0), i=1, 8)])), what // ', own')
    call expect(all(abs(unbfloat(m%bits) - [(times * average(5, i, step, 0), i=1, 5)]) <= &
            times * 2.0_real64**(-3)), what // ', bits')
    call expect(all(near(real(m%distant, real64), [(-real(times * i, real64), i=1, 6)])) .and. &
          all(near(aimag(m%distant), [(times * average(6, i, step, 0), i=1, 6)])), &
          what // ', distant')
  end subroutine expect_averages

  ! Makes all ready, each rank in an order of its own; rank 0 leaves 2 out.
  subroutine ready_all(m, step, skips)
    type(model), intent(in) :: m
    integer, intent(in) :: step
    logical, intent(in) :: skips
    integer(c_int) :: i, index

    do i = 0, gradients - 1
      index = modulo(5 * i + 3 * me + step, gradients)
      if (skips .and. index == 2 .and. me == 0) then
        call gs_reducer_skip(m%reducer, index)
      else
        call gs_reducer_ready(m%reducer, index)
      end if
    end do
  end subroutine ready_all

  subroutine check_model(inline)
    logical, intent(in) :: inline
    type(model) :: m
    type(gs_reducer_stats) :: stats
    type(gs_bucket_stats) :: bucket
    integer :: step, total

    call make(m, merge(GS_OVERLAP_INLINE, GS_OVERLAP_AUTO, inline))
    call gs_reducer_commit(m%reducer)
    call point(m)
    call check_bounds(m)
    do step = 1, 5
      call fill(m, me, step)
      if (step == 3 .and. me == 0) m%weights = 0
      call ready_all(m, step, step == 3)
      call gs_reducer_finish(m%reducer)
      call expect_averages(m, step, merge(1, 0, step == 3), 1, 'averages')
    end do
    call gs_reducer_relayout(m%reducer)
    call point(m)
    call check_bounds(m)
    call expect_averages(m, 5, 0, 1, 'averages after a relayout')
    call gs_reducer_get_stats(m%reducer, stats)
    call expect(stats%steps == 5 .and. stats%buckets > 1 .and. stats%bytes >= 358 .and. &
          stats%step_us > 0 .and. stats%busy_us >= 0 .and. stats%exposed_us >= 0 .and. &
          stats%overlap >= 0 .and. stats%overlap <= 1 .and. stats%late_rank < n, 'statistics')
    total = 0
    do step = 0, stats%buckets - 1
      call gs_reducer_get_bucket(m%reducer, step, bucket)
      total = total + bucket%gradients
      call expect(bucket%first >= 0 .and. bucket%first < gradients, 'statistics of a bucket')
    end do
    call expect(total == gradients, 'buckets have all gradients')
    call gs_reducer_get_bucket(m%reducer, stats%buckets, bucket, stat)
    call expect(stat == GS_ERR_ARG, 'there are no more buckets')
    call drop(m)
  end subroutine check_model

  subroutine check_bounds(m)
    type(model), intent(in) :: m
    real(c_double), pointer :: own(:, :)
    integer(c_int16_t), pointer :: bits(:)
    complex(c_double_complex), pointer :: distant(:)
    type(c_ptr) :: address

    nullify (own, bits, distant)
    call expect(associated(m%scale), 'a pointer to a scalar')
    call expect(lbound(m%bias, 1) == 0 .and. ubound(m%bias, 1) == 4, 'bounds of a vector')
    call expect(all(lbound(m%weights) == [-1, 3]) .and. all(ubound(m%weights) == [2, 5]) .and. &
          is_contiguous(m%weights), 'bounds of a matrix')
    call expect(all(lbound(m%kernel) == 1) .and. all(shape(m%kernel) == [2, 3, 2]), &
          'bounds of three dimensions')
    call expect(associated(m%nothing) .and. all(shape(m%nothing) == [0, 3]), 'an empty matrix')
    call gs_reducer_get_grad(m%reducer, 4, own)
    call expect(associated(own, m%own) .and. all(lbound(own) == [0, -1]), 'an array as it was')
    call gs_reducer_get_grad(m%reducer, 5, bits)
    call expect(associated(bits, m%bits) .and. lbound(bits, 1) == 1, 'bits')
    call gs_reducer_get_grad(m%reducer, 6, distant)
    call expect(associated(distant, m%distant), 'what was added by address')
    call gs_reducer_get_grad(m%reducer, 6, address)
    call expect(c_associated(address, c_loc(m%distant)), 'its address')
    call gs_reducer_get_grad(m%reducer, 7, address)
    call expect(.not. c_associated(address), 'the address of nothing')
  end subroutine check_bounds

  subroutine check_callbacks()
    type(model) :: m
    type(journal), target :: hooked, averaged
    type(gs_reducer_stats) :: stats

    call make(m, GS_OVERLAP_AUTO)
    call gs_reducer_commit(m%reducer)
    call point(m)
    call gs_reducer_set_hook(m%reducer, summing, c_loc(hooked))
    call gs_reducer_set_averaged(m%reducer, noting, c_loc(averaged))
    call fill(m, me, 1)
    call ready_all(m, 1, .false.)
    call gs_reducer_finish(m%reducer)
    call expect_averages(m, 1, 0, n, 'sums by a hook')
    call gs_reducer_get_stats(m%reducer, stats)
    call expect(hooked%fine .and. averaged%fine .and. all(hooked%seen(:6) == 1) .and. &
          all(averaged%seen(:6) == 1), 'callbacks see each gradient once')
    call expect(nint(hooked%elements) == 49 .and. nint(averaged%elements) == 49, &
          'and all of its elements')
    call gs_reducer_set_hook(m%reducer)
    call gs_reducer_set_averaged(m%reducer, averaged=noting, context=c_loc(hooked))
    call gs_reducer_set_averaged(m%reducer)
    call fill(m, me, 2)
    call ready_all(m, 2, .false.)
    call gs_reducer_finish(m%reducer)
    call expect_averages(m, 2, 0, 1, 'averages again')
    call expect(all(hooked%seen(:6) == 1) .and. all(averaged%seen(:6) == 1), &
          'no callback after it was taken away')
    call gs_reducer_set_hook(m%reducer, summing, c_loc(hooked))
    call drop(m)
  end subroutine check_callbacks

  ! What a callback returns, finish returns; on all ranks alike here.
  subroutine check_failing_callback()
    type(model) :: m
    type(journal), target :: book

    call make(m, GS_OVERLAP_INLINE)
    call gs_reducer_commit(m%reducer)
    call point(m)
    book%fail_with = GS_ERR_IO
    call gs_reducer_set_averaged(m%reducer, noting, c_loc(book))
    call fill(m, me, 1)
    call ready_quietly(m)
    call gs_reducer_finish(m%reducer, stat=stat, errmsg=errmsg)
    call expect(stat == GS_ERR_IO .and. book%calls > 0, 'a callback that fails: ' // trim(errmsg))
    call drop(m)
  end subroutine check_failing_callback

  subroutine ready_quietly(m)
    type(model), intent(in) :: m
    integer(c_int) :: i

    do i = 0, gradients - 1
      call gs_reducer_ready(m%reducer, i, stat=stat)
    end do
  end subroutine ready_quietly

  ! Two micro-steps that are added up, then averaged, and divided by two with average_micro.
  subroutine check_micro_steps()
    type(gs_reducer) :: r
    real(c_double), pointer :: x(:)
    integer :: average_micro, i

    nullify (x)
    do average_micro = 0, 1
      call gs_reducer_create(comm, r, name='micro', average_micro=average_micro == 1, &
                  forward=.true.)
      call gs_reducer_add(r, 'x', [7], GS_F64)
      call gs_reducer_commit(r)
      call gs_reducer_get_grad(r, 0, x)
      call gs_reducer_set_sync(r, .false.)
      x = x + me + 1
      call gs_reducer_ready(r, 0)
      call gs_reducer_finish(r)
      call expect(all(x == me + 1), 'a micro-step leaves its sum')
      call gs_reducer_set_sync(r, .true.)
      x = x + [(real(i, real64), i=1, 7)]
      call gs_reducer_ready(r, 0)
      call gs_reducer_finish(r)
      call expect(all(near(x, [((((n + 1) / 2.0_real64) + i) / (1 + average_micro), i=1, 7)])), &
            'the average of two micro-steps')
      call gs_reducer_destroy(r)
    end do
  end subroutine check_micro_steps

  ! Rank r has r + 1 steps, of r + 1 samples each; then it joins.
  subroutine check_weights()
    type(gs_reducer) :: r
    integer(c_int) :: total, largest, smallest, mean
    integer :: step, i
    real(c_double), pointer :: x(:, :)
    real(c_double) :: sum_of, highest, lowest, middle, weights
    logical :: done

    nullify (x)
    call gs_reducer_create(comm, r, weighted=.true., check_finite=.true.)
    call gs_reducer_add(r, 'x', [2, 2], GS_F64, lower=[5, 6])
    call gs_reducer_add_scalar(r, 'count', GS_SUM, total)
    call gs_reducer_add_scalar(r, 'highest', GS_MAX, index=largest)
    call gs_reducer_add_scalar(r, 'lowest', GS_MIN, index=smallest)
    call gs_reducer_add_scalar(r, 'loss', GS_AVG, index=mean)
    call expect(all([total, largest, smallest, mean] == [0, 1, 2, 3]), 'numbers of scalars')
    call gs_reducer_commit(r)
    call gs_reducer_get_grad(r, 0, x)
    do step = 1, me + 1
      call gs_reducer_set_scalar(r, total, me + 1.0_c_double)
      call gs_reducer_set_scalar(r, largest, real(me, c_double))
      call gs_reducer_set_scalar(r, smallest, real(me, c_double))
      call gs_reducer_set_scalar(r, mean, 10.0_c_double * me)
      call gs_reducer_set_weight(r, me + 1.0_c_double)
      x = me
      call gs_reducer_ready(r, 0)
      call gs_reducer_finish(r)
      ! Ranks from step - 1 on have this step.
      weights = sum([(real(i + 1, real64), i=step - 1, n - 1)])
      call expect(all(near(x, sum([(i * (i + 1.0_real64), i=step - 1, n - 1)]) / weights)), &
            'a weighted average')
      call gs_reducer_get_scalar(r, mean, middle)
      call expect(near(middle, sum([(10 * i * (i + 1.0_real64), i=step - 1, n - 1)]) / weights), &
            'a weighted mean')
      call gs_reducer_get_scalar(r, largest, highest)
      call gs_reducer_get_scalar(r, smallest, lowest)
      call gs_reducer_get_scalar(r, total, sum_of)
      call expect(highest == n - 1, 'a maximum')
      if (step == 1) call expect(lowest == 0 .and. sum_of == n * (n + 1) / 2, 'minimum and sum')
    end do
    step = me + 1
    do
      call gs_reducer_join(r, done)
      if (done) exit
      step = step + 1
    end do
    call expect(step == n, 'joined steps until all ranks have ended')
    call gs_reducer_destroy(r)
  end subroutine check_weights

  subroutine check_norm()
    type(gs_reducer) :: r
    real(c_float), pointer :: x(:), y
    real(c_double) :: norm

    nullify (x, y)
    call gs_reducer_create(comm, r, max_norm=1.0_c_double, want_norm=.true.)
    call gs_reducer_add(r, 'x', [4], GS_F32)
    call gs_reducer_add(r, 'y', [integer(int64) ::], GS_F32)
    call gs_reducer_commit(r)
    call gs_reducer_get_grad(r, 0, x)
    call gs_reducer_get_grad(r, 1, y)
    x = real(2 * (me + 1), c_float)
    y = 0
    call gs_reducer_ready(r, 1)
    call gs_reducer_ready(r, 0)
    call gs_reducer_finish(r)
    call gs_reducer_get_norm(r, norm)
    call expect(near(norm, 2 * (n + 1.0_real64)), 'the norm of the average')
    call expect(all(near(real(x, real64), 0.5_real64)) .and. y == 0, 'scaled down to max_norm')
    call gs_reducer_destroy(r)
  end subroutine check_norm

  ! As bf16 on the wire: whole numbers arrive as they are.
  subroutine check_wire()
    type(gs_reducer) :: r
    real(c_double), pointer :: x(:)

    nullify (x)
    call gs_reducer_create(comm, r, wire=GS_BF16, error_feedback=.true., overlap=GS_OVERLAP_OFF)
    call gs_reducer_add(r, 'x', [100], GS_F64, [-50])
    call gs_reducer_commit(r)
    call gs_reducer_get_grad(r, 0, x)
    x = 2 * me
    call gs_reducer_ready(r, 0)
    call gs_reducer_finish(r)
    call expect(all(x == n - 1) .and. lbound(x, 1) == -50, 'averages that travel as bf16')
    call gs_reducer_destroy(r)
  end subroutine check_wire

  subroutine check_broadcast()
    type(gs_reducer) :: r
    real(c_float), target :: a(3, 2), b

    call gs_reducer_create(comm, r)
    call gs_reducer_add(r, 'a', shape(a), GS_F32)
    call gs_reducer_add(r, 'left out', [1], GS_F64)
    call gs_reducer_add(r, 'b', shape(b), GS_F32)
    call gs_reducer_commit(r)
    a = real(me, c_float)
    b = real(-me, c_float)
    call gs_reducer_broadcast(r, [c_loc(a), c_null_ptr, c_loc(b)], n - 1)
    call expect(all(a == n - 1) .and. b == 1 - n, 'parameters of the last rank')
    call gs_reducer_destroy(r)
  end subroutine check_broadcast

  subroutine check_report()
    type(gs_reducer) :: r
    character(200) :: folder, line
    character(:), allocatable :: path
    integer :: unit

    call gs_reducer_create(comm, r, name='reported')
    call gs_reducer_add(r, 'x', [3], GS_F32)
    call gs_reducer_commit(r)
    call gs_reducer_ready(r, 0)
    call gs_reducer_finish(r)
    call gs_reducer_report(r)
    call get_environment_variable('TMPDIR', folder)
    if (folder == '') folder = '/tmp'
    path = trim(folder) // '/gs-report.json'
    call gs_reducer_report(r, path)
    call gs_barrier(comm)
    if (me == 0) then
      open (newunit=unit, file=path, action='read', status='old', iostat=stat)
      call expect(stat == 0, 'a report in a file')
      read (unit, '(a)', iostat=stat) line
      call expect(stat == 0 .and. line(1:1) == '{', 'which is JSON: ' // trim(line))
      close (unit, status='delete')
      call gs_reducer_report(r, trim(folder) // '/no/such/folder', stat, errmsg)
      call expect_failure(stat, errmsg, GS_ERR_IO, 'gs_reducer_report|no/such/folder', &
                'a report nowhere')
    end if
    call gs_reducer_destroy(r)
  end subroutine check_report

  ! Copies end together, as those of a communicator; and in a step nothing ends.
  subroutine check_destroy()
    type(gs_reducer) :: r, copy, fresh(20)
    integer :: i

    call gs_reducer_create(comm, r, name='short')
    copy = r
    call gs_reducer_add(copy, 'x', [3], GS_F32)
    call gs_reducer_commit(r)
    call gs_reducer_ready(r, 0)
    call gs_reducer_destroy(r, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_reducer_destroy', 'destroy in a step')
    call gs_reducer_finish(copy)
    call expect(c_associated(gs_reducer_c_ptr(r)), 'the C pointer')
    call gs_reducer_destroy(copy)
    call expect(.not. c_associated(gs_reducer_c_ptr(r)), 'which is gone')
    call gs_reducer_finish(r, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_reducer_finish|''short'' was destroyed', &
              'use after destroy, through a copy')
    call gs_reducer_destroy(r, stat, errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'gs_reducer_destroy|was destroyed', &
              'destroying twice')
    do i = 1, size(fresh)
      call gs_reducer_create(comm, fresh(i), name='fresh')
    end do
    call gs_reducer_finish(r, stat=stat, errmsg=errmsg)
    call expect_failure(stat, errmsg, GS_ERR_STATE, 'was destroyed', &
              'a stale copy when its place is taken')
    call expect(index(errmsg, 'fresh') == 0, 'which does not name the wrong one')
    do i = 1, size(fresh)
      call gs_reducer_destroy(fresh(i))
    end do
    call gs_reducer_destroy(gs_reducer())
  end subroutine check_destroy

end program reducer
