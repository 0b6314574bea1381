! SPDX-License-Identifier: BSD-3-Clause
! gradsync_ckpt_filled - which arrays a read of a checkpoint has filled.
module gradsync_ckpt_filled
  use, intrinsic :: iso_c_binding, only: c_int, c_ptr
  use gradsync_c_ckpt, only: c_ckpt_was_read
  use gradsync_ckpt, only: find_plan
  use gradsync_support, only: conclude, text_to_c
  use gradsync_types, only: gs_ckpt, GS_OK
  implicit none
  private

  public :: gs_ckpt_was_read

contains

  ! Tells whether the last read has filled an array: with allow_missing those stay as they are
  ! that the file does not have.
  subroutine gs_ckpt_was_read(ckpt, name, filled, stat, errmsg)
    type(gs_ckpt), intent(in) :: ckpt
    character(*), intent(in) :: name
    logical, intent(out) :: filled
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: plan
    integer(c_int) :: st, is

    is = 0
    plan = find_plan(ckpt, 'gs_ckpt_was_read', st)
    if (st == GS_OK) st = c_ckpt_was_read(plan, text_to_c(name), is)
    filled = is /= 0
    call conclude(st, stat, errmsg)
  end subroutine gs_ckpt_was_read

end module gradsync_ckpt_filled
