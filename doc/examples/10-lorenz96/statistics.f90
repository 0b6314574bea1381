! SPDX-License-Identifier: BSD-3-Clause
!
! statistics - moments, histograms and errors, kept as plain sums.
!
! Every accumulator is an array of real64 to which samples only add. Such arrays of several
! ranks are combined by adding them, with one gs_allreduce; this module knows nothing of that.
module statistics
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none
  private
  public :: moments_add, moments_scaling
  public :: errors_add, errors_r2, errors_rmse
  public :: climate_add, climate_mean, climate_variance, climate_density, bin_centre
  public :: hellinger

  integer, parameter, public :: n_moments = 3 ! samples, sum of v, sum of v**2
  integer, parameter, public :: n_errors = 4  ! samples, sum of t, of t**2, of (t - p)**2

  ! A histogram, after the moments of the same samples. Values beyond an end count in its bin.
  integer, parameter, public :: n_bins = 80
  real(real64), parameter, public :: bin_start = -15, bin_width = 0.5_real64
  integer, parameter, public :: n_climate = n_moments + n_bins

  ! Maps samples to mean 0 and deviation 1.
  type, public :: scaling
    real(real64) :: mean = 0
    real(real64) :: deviation = 1
  end type scaling

contains

  pure subroutine moments_add(m, v)
    real(real64), intent(inout) :: m(n_moments)
    real(real64), intent(in) :: v(:)

    m = m + [real(size(v), real64), sum(v), sum(v**2)]
  end subroutine moments_add

  pure type(scaling) function moments_scaling(m) result(s)
    real(real64), intent(in) :: m(n_moments)

    s%mean = m(2) / m(1)
    s%deviation = sqrt(m(3) / m(1) - s%mean**2)
  end function moments_scaling

  pure subroutine errors_add(e, truth, prediction)
    real(real64), intent(inout) :: e(n_errors)
    real(real64), intent(in) :: truth(:), prediction(:)

    e(1:3) = e(1:3) + [real(size(truth), real64), sum(truth), sum(truth**2)]
    e(4) = e(4) + sum((truth - prediction)**2)
  end subroutine errors_add

  ! Share of the variance of the truth that is explained: 1 is perfect, 0 is the mean.
  pure real(real64) function errors_r2(e) result(r2)
    real(real64), intent(in) :: e(n_errors)

    r2 = 1 - e(4) / (e(3) - e(2)**2 / e(1))
  end function errors_r2

  pure real(real64) function errors_rmse(e) result(rmse)
    real(real64), intent(in) :: e(n_errors)

    rmse = sqrt(e(4) / e(1))
  end function errors_rmse

  pure subroutine climate_add(c, v)
    real(real64), intent(inout) :: c(n_climate)
    real(real64), intent(in) :: v(:)
    integer :: i, bin

    call moments_add(c(1:n_moments), v)
    do i = 1, size(v)
      bin = max(1, min(n_bins, 1 + floor((v(i) - bin_start) / bin_width)))
      c(n_moments + bin) = c(n_moments + bin) + 1
    end do
  end subroutine climate_add

  pure real(real64) function climate_mean(c) result(mean)
    real(real64), intent(in) :: c(n_climate)

    mean = c(2) / c(1)
  end function climate_mean

  pure real(real64) function climate_variance(c) result(variance)
    real(real64), intent(in) :: c(n_climate)

    variance = c(3) / c(1) - climate_mean(c)**2
  end function climate_variance

  ! Probability density in each bin, per unit of v.
  pure function climate_density(c) result(density)
    real(real64), intent(in) :: c(n_climate)
    real(real64) :: density(n_bins)

    density = c(n_moments + 1:) / (c(1) * bin_width)
  end function climate_density

  elemental real(real64) function bin_centre(bin) result(v)
    integer, intent(in) :: bin

    v = bin_start + (bin - 0.5_real64) * bin_width
  end function bin_centre

  ! Distance of two densities: 0 if equal, 1 if they do not overlap.
  pure real(real64) function hellinger(p, q) result(distance)
    real(real64), intent(in) :: p(n_bins), q(n_bins)

    distance = sqrt(max(0.0_real64, 1 - sum(sqrt(p * q)) * bin_width))
  end function hellinger

end module statistics
