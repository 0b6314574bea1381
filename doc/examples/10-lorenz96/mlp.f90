! SPDX-License-Identifier: BSD-3-Clause
!
! mlp - a multilayer perceptron, its gradient layer by layer, and the Adam optimiser.
!
!   a1 = x     a2 = tanh(W1 a1 + b1)     a3 = tanh(W2 a2 + b2)     y = W3 a3 + b3
!
! A layer is one matrix, [W b], and so is its gradient. The backward pass is a loop over the
! layers that the caller writes, so that each gradient can travel while the next one is computed.
module mlp
  use, intrinsic :: iso_fortran_env, only: real64
  use random, only: stream, stream_start, uniform
  implicit none
  private
  public :: network_create, network_output, network_forward, network_backward
  public :: adam_create, adam_step

  type, public :: matrix
    real(real64), allocatable :: m(:, :)
  end type matrix

  type, public :: network
    type(matrix), allocatable :: layer(:) ! W and, in the last column, b; the last one is linear
  end type network

  ! What the backward pass needs of the forward pass, with a column for each sample.
  type, public :: pass
    type(matrix), allocatable :: a(:)    ! what goes into each layer
    real(real64), allocatable :: d(:, :) ! derivative of the loss by W a + b of the next in turn
  end type pass

  ! The state of the optimiser for one layer: decaying means of the gradient and of its square.
  type, public :: adam
    integer :: steps = 0
    real(real64), allocatable :: mean(:, :), square(:, :)
  end type adam

contains

  ! A network with random weights, which depend on seed alone; biases are 0. width has the inputs,
  ! the neurons of each layer, and the outputs.
  ! Uniform with the width of X. Glorot, Y. Bengio (2010), Proc. AISTATS, 249-256.
  type(network) function network_create(width, seed) result(net)
    integer, intent(in) :: width(:), seed
    type(stream) :: rng
    real(real64) :: u
    integer :: i, j, k

    rng = stream_start(seed)
    allocate (net%layer(size(width) - 1))
    do i = 1, size(net%layer)
      allocate (net%layer(i)%m(width(i + 1), width(i) + 1), source=0.0_real64)
      do k = 1, width(i)
        do j = 1, width(i + 1)
          call uniform(rng, u)
          net%layer(i)%m(j, k) = (2 * u - 1) * sqrt(6.0_real64 / (width(i) + width(i + 1)))
        end do
      end do
    end do
  end function network_create

  ! y(i) for each column x(:, i), by a network with one output.
  function network_output(net, x) result(y)
    type(network), intent(in) :: net
    real(real64), intent(in) :: x(:, :)
    real(real64) :: y(size(x, 2))
    type(pass) :: p

    call forward(net, x, p)
    y = p%d(1, :)
  end function network_output

  ! Mean squared error over the columns of x, and the beginning of a backward pass; 0 if there are
  ! none.
  subroutine network_forward(net, x, target_y, p, loss)
    type(network), intent(in) :: net
    real(real64), intent(in) :: x(:, :), target_y(:)
    type(pass), intent(out) :: p
    real(real64), intent(out) :: loss
    integer :: n

    call forward(net, x, p)
    n = max(1, size(target_y))
    p%d(1, :) = p%d(1, :) - target_y
    loss = sum(p%d**2) / n
    p%d = 2 * p%d / n
  end subroutine network_forward

  ! The gradient of layer i (backpropagation): of the last layer first, then of the one before it.
  subroutine network_backward(net, p, i, gradient)
    type(network), intent(in) :: net
    type(pass), intent(inout) :: p
    integer, intent(in) :: i
    real(real64), intent(out) :: gradient(:, :)
    integer :: b

    b = size(gradient, 2)
    gradient(:, :b - 1) = matmul(p%d, transpose(p%a(i)%m))
    gradient(:, b) = sum(p%d, dim=2)
    if (i > 1) p%d = matmul(transpose(net%layer(i)%m(:, :b - 1)), p%d) * (1 - p%a(i)%m**2)
  end subroutine network_backward

  ! p%d becomes the output.
  subroutine forward(net, x, p)
    type(network), intent(in) :: net
    real(real64), intent(in) :: x(:, :)
    type(pass), intent(out) :: p
    integer :: i, b

    allocate (p%a(size(net%layer)))
    p%a(1)%m = x
    do i = 1, size(net%layer)
      b = size(net%layer(i)%m, 2)
      p%d = matmul(net%layer(i)%m(:, :b - 1), p%a(i)%m) &
            + spread(net%layer(i)%m(:, b), 2, size(x, 2))
      if (i < size(net%layer)) p%a(i + 1)%m = tanh(p%d)
    end do
  end subroutine forward

  elemental type(adam) function adam_create(layer) result(optimiser)
    type(matrix), intent(in) :: layer

    allocate (optimiser%mean, optimiser%square, mold=layer%m)
    optimiser%mean = 0
    optimiser%square = 0
  end function adam_create

  ! One step of Adam: D. P. Kingma, J. Ba (2015), a method for stochastic optimization, ICLR.
  subroutine adam_step(optimiser, layer, gradient, rate)
    type(adam), intent(inout) :: optimiser
    type(matrix), intent(inout) :: layer
    real(real64), intent(in) :: gradient(:, :), rate
    real(real64), parameter :: beta1 = 0.9_real64, beta2 = 0.999_real64, tiny_step = 1e-8_real64
    real(real64) :: scale1, scale2

    optimiser%steps = optimiser%steps + 1
    optimiser%mean = beta1 * optimiser%mean + (1 - beta1) * gradient
    optimiser%square = beta2 * optimiser%square + (1 - beta2) * gradient**2
    scale1 = 1 / (1 - beta1**optimiser%steps)
    scale2 = 1 / (1 - beta2**optimiser%steps)
    layer%m = layer%m - rate * scale1 * optimiser%mean &
              / (sqrt(scale2 * optimiser%square) + tiny_step)
  end subroutine adam_step

end module mlp
