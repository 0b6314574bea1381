! SPDX-License-Identifier: BSD-3-Clause
! gradsync_adjoint_check - a test of gradients: whether a backward pass is the gradient of a
! forward pass, of all ranks together.
!
! The contract is that of gs_adjoint_check in gradsync_adjoint.h.
module gradsync_adjoint_check
  use, intrinsic :: iso_c_binding
  use gradsync_c
  use gradsync_support
  use gradsync_types, only: gs_adjoint_result, gs_comm, GS_OK
  implicit none
  private

  public :: gs_forward_f, gs_backward_f, gs_adjoint_check

  abstract interface
    ! y = f (x) on all ranks together, as a procedure that may call collectives. [context] is what
    ! gs_adjoint_check was given, or not present. [stat] comes as GS_OK; another value ends the
    ! test.
    subroutine gs_forward_f(x, y, context, stat)
      import :: c_double, c_int
      real(c_double), intent(in) :: x(:)
      real(c_double), intent(out) :: y(:)
      class(*), intent(inout), optional :: context
      integer(c_int), intent(inout) :: stat
    end subroutine gs_forward_f

    ! grad_x = what the backward pass makes of grad_y where the forward pass was at x.
    subroutine gs_backward_f(x, grad_y, grad_x, context, stat)
      import :: c_double, c_int
      real(c_double), intent(in) :: x(:), grad_y(:)
      real(c_double), intent(out) :: grad_x(:)
      class(*), intent(inout), optional :: context
      integer(c_int), intent(inout) :: stat
    end subroutine gs_backward_f
  end interface

  ! Tests whether [backward] is the gradient of [forward]: module or external procedures, or
  ! internal ones, which gfortran may hand on only where the stack can be executed.
  !
  !   comm      in       every rank calls; of hosts or GPUs
  !   nx, ny    in       sizes of x and y on this rank, integer(int32) or integer(int64)
  !   x         in       optional: where the derivative is taken; else random numbers
  !   context   in,out   optional: handed to forward and backward; any variable
  !   tolerance, step, seed   in   optional: as gs_adjoint_opts_t
  !   linear    in       optional: .true.: forward is linear, no differences are taken
  !   same_loss in       optional: .true.: grad_y is the same on all ranks, where
  !                      GS_GRAD_OWN_SLOT is right
  !   found     out      optional: a gs_adjoint_result
  !   stat, errmsg       optional: see gradsync_comm; GS_ERR_MISMATCH for a wrong gradient
  interface gs_adjoint_check
    module procedure check_int64, check_int32
  end interface gs_adjoint_check

  ! What C hands back to call_forward and call_backward as its context.
  type :: passes_box
    procedure(gs_forward_f), pointer, nopass :: forward => null()
    procedure(gs_backward_f), pointer, nopass :: backward => null()
    class(*), pointer :: context => null()
    integer(c_int64_t) :: nx = 0, ny = 0
  end type passes_box

contains

  subroutine check_int64(comm, forward, backward, nx, ny, x, context, tolerance, step, seed, &
    linear, same_loss, found, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    procedure(gs_forward_f) :: forward
    procedure(gs_backward_f) :: backward
    integer(c_int64_t), intent(in) :: nx, ny
    real(c_double), intent(in), optional :: x(:)
    class(*), intent(inout), target, optional :: context
    real(c_double), intent(in), optional :: tolerance, step
    integer(c_int64_t), intent(in), optional :: seed
    logical, intent(in), optional :: linear, same_loss
    type(gs_adjoint_result), intent(out), optional :: found
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(passes_box), target :: box
    type(gs_adjoint_result) :: result
    type(c_ptr) :: address
    integer(c_int) :: st

    box%forward => forward
    box%backward => backward
    if (present(context)) box%context => context
    box%nx = nx
    box%ny = ny
    address = find(comm, 'gs_adjoint_check', st)
    if (st == GS_OK) st = f_check_amount(text_to_c('gs_adjoint_check'), text_to_c('nx'), nx)
    if (st == GS_OK) st = f_check_amount(text_to_c('gs_adjoint_check'), text_to_c('ny'), ny)
    if (st == GS_OK .and. present(x)) st = f_check_list(text_to_c('gs_adjoint_check'), &
      text_to_c('x'), size(x, kind=c_int64_t), nx, 0_c_int64_t)
    if (st == GS_OK) &
      st = c_adjoint_check(address, c_funloc(call_forward), c_funloc(call_backward), c_loc(box), &
        x, nx, ny, pack_opts(tolerance, step, seed, linear, same_loss), result)
    if (present(found)) found = result
    call conclude(st, stat, errmsg)
  end subroutine check_int64

  subroutine check_int32(comm, forward, backward, nx, ny, x, context, tolerance, step, seed, &
    linear, same_loss, found, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    procedure(gs_forward_f) :: forward
    procedure(gs_backward_f) :: backward
    integer(c_int32_t), intent(in) :: nx, ny
    real(c_double), intent(in), optional :: x(:)
    class(*), intent(inout), target, optional :: context
    real(c_double), intent(in), optional :: tolerance, step
    integer(c_int64_t), intent(in), optional :: seed
    logical, intent(in), optional :: linear, same_loss
    type(gs_adjoint_result), intent(out), optional :: found
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call check_int64(comm, forward, backward, int(nx, c_int64_t), int(ny, c_int64_t), x, &
      context, tolerance, step, seed, linear, same_loss, found, stat, errmsg)
  end subroutine check_int32

  function pack_opts(tolerance, step, seed, linear, same_loss) result(opts)
    real(c_double), intent(in), optional :: tolerance, step
    integer(c_int64_t), intent(in), optional :: seed
    logical, intent(in), optional :: linear, same_loss
    type(c_adjoint_opts) :: opts

    opts%size = c_sizeof(opts)
    if (present(tolerance)) opts%tolerance = tolerance
    if (present(step)) opts%step = step
    if (present(seed)) opts%seed = seed
    if (present(linear)) opts%linear = merge(1_c_int, 0_c_int, linear)
    if (present(same_loss)) opts%same_loss = merge(1_c_int, 0_c_int, same_loss)
  end function pack_opts

  ! The callbacks that C sees.
  function call_forward(x, y, context) bind(c, name="gsi_fortran_call_forward") result(st)
    type(c_ptr), value :: x, y, context
    integer(c_int) :: st
    type(passes_box), pointer :: box
    real(c_double), pointer :: from(:), to(:)

    call c_f_pointer(context, box)
    call c_f_pointer(x, from, [box%nx])
    call c_f_pointer(y, to, [box%ny])
    st = GS_OK
    if (associated(box%context)) then
      call box%forward(from, to, box%context, st)
    else
      call box%forward(from, to, stat=st)
    end if
  end function call_forward

  function call_backward(x, grad_y, grad_x, context) &
    bind(c, name="gsi_fortran_call_backward") result(st)
    type(c_ptr), value :: x, grad_y, grad_x, context
    integer(c_int) :: st
    type(passes_box), pointer :: box
    real(c_double), pointer :: at(:), from(:), to(:)

    call c_f_pointer(context, box)
    call c_f_pointer(x, at, [box%nx])
    call c_f_pointer(grad_y, from, [box%ny])
    call c_f_pointer(grad_x, to, [box%nx])
    st = GS_OK
    if (associated(box%context)) then
      call box%backward(at, from, to, box%context, st)
    else
      call box%backward(at, from, to, stat=st)
    end if
  end function call_backward

end module gradsync_adjoint_check
