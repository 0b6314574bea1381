! SPDX-License-Identifier: BSD-3-Clause
!
! before - images of a coarray program that share weights, and average gradients.
program before
  implicit none
  real :: w(3), g(3)

  w = this_image()
  call co_broadcast(w, source_image=1)

  g = w + this_image() - 1
  call co_sum(g)
  g = g / num_images()

  if (this_image() == 1) print '(a, i0, a, 3f5.2)', 'average over ', num_images(), ' images:', g
end program before
