! SPDX-License-Identifier: BSD-3-Clause
!
! surrogate - the learned closure: U_k from X_{k-2} .. X_{k+2} by a network.
!
! The fast variables remember where X_k has been, and the neighbours tell where it is going: with
! them the network knows more than any function of X_k alone can.
module surrogate
  use, intrinsic :: iso_fortran_env, only: real64
  use lorenz96, only: closure, n_slow
  use mlp, only: network, network_output
  use statistics, only: scaling
  implicit none
  private

  integer, parameter :: reach = 2 ! neighbours on each side
  integer, parameter, public :: stencil_size = 2 * reach + 1

  type, extends(closure), public :: learned_closure
    type(network) :: net
    type(scaling) :: x, u ! the network sees normalised values only
  contains
    procedure :: inputs
    procedure :: targets
    procedure :: tendency
  end type learned_closure

contains

  ! The network's input for each site.
  pure function inputs(self, x)
    class(learned_closure), intent(in) :: self
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: inputs(stencil_size, n_slow)
    real(real64) :: z(1 - reach:n_slow + reach) ! the ring with its neighbours beyond both ends
    integer :: k

    z(1:n_slow) = (x - self%x%mean) / self%x%deviation
    z(:0) = z(n_slow - reach + 1:n_slow)
    z(n_slow + 1:) = z(1:reach)
    do k = 1, n_slow
      inputs(:, k) = z(k - reach:k + reach)
    end do
  end function inputs

  ! What the network is to answer for the tendencies u.
  pure function targets(self, u)
    class(learned_closure), intent(in) :: self
    real(real64), intent(in) :: u(n_slow)
    real(real64) :: targets(n_slow)

    targets = (u - self%u%mean) / self%u%deviation
  end function targets

  function tendency(self, x) result(u)
    class(learned_closure), intent(in) :: self
    real(real64), intent(in) :: x(n_slow)
    real(real64) :: u(n_slow)

    u = self%u%mean + self%u%deviation * network_output(self%net, self%inputs(x))
  end function tendency

end module surrogate
