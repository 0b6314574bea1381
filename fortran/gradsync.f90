! SPDX-License-Identifier: BSD-3-Clause
! gradsync - the one module that programs use: the whole interface. Names and constants are those
! of gradsync.h and its parts, whose contracts hold.
module gradsync
  ! Constants, handles, results
  use gradsync_types

  ! All procedures in calls.def: collectives and their gradients, messages, communicators and
  ! groups, most of reducers and checkpoints
  use gradsync_calls

  ! Results, settings, the log, how communicators are made
  use gradsync_comm

  ! How reducers and checkpoints are made, and what has callbacks or lists
  use gradsync_features

  ! A test of gradients
  use gradsync_adjoint_check

  ! Rows of many ranks, evaluated by few
  use gradsync_pool

  implicit none
  public
end module gradsync
