! SPDX-License-Identifier: BSD-3-Clause
!
! mlp - a multilayer perceptron with two hidden layers, its gradient, and the Adam optimiser.
!
!   a1 = tanh(W1 x + b1)     a2 = tanh(W2 a1 + b2)     y = w3 . a2 + b3
!
! All parameters lie in one array and all gradients in another; a layer is a view into them. So
! the optimiser sees one vector, and averaging the gradients over the ranks is one call.
module mlp
  use, intrinsic :: iso_fortran_env, only: real64
  use random, only: stream, stream_start, uniform
  implicit none
  private
  public :: network_create, network_output, network_gradient, adam_create, adam_step

  type, public :: network
    integer :: inputs = 0
    integer :: hidden = 0                   ! neurons in each of the two hidden layers
    real(real64), allocatable :: weights(:) ! W1, b1, W2, b2, w3, b3, in this order
  end type network

  ! The state of the optimiser: decaying means of the gradient and of its square.
  type, public :: adam
    integer :: steps = 0
    real(real64), allocatable :: mean(:), square(:)
  end type adam

  type :: layers
    real(real64), pointer, contiguous :: w1(:, :), b1(:), w2(:, :), b2(:), w3(:), b3(:)
  end type layers

contains

  ! A network with random weights, the same ones on every rank: they depend on seed alone.
  ! Uniform with the width of X. Glorot, Y. Bengio (2010), Proc. AISTATS, 249-256.
  type(network) function network_create(inputs, hidden, seed) result(net)
    integer, intent(in) :: inputs, hidden, seed
    type(stream) :: rng
    integer :: next

    net%inputs = inputs
    net%hidden = hidden
    allocate (net%weights(hidden * (inputs + hidden + 3) + 1), source=0.0_real64)
    rng = stream_start(seed)
    next = 1
    call fill(inputs, hidden)
    call fill(hidden, hidden)
    call fill(hidden, 1)

  contains

    ! Fills one layer of n_in * n_out weights and passes over its n_out biases, which are 0.
    subroutine fill(n_in, n_out)
      integer, intent(in) :: n_in, n_out
      real(real64) :: u
      integer :: i

      do i = next, next + n_in * n_out - 1
        call uniform(rng, u)
        net%weights(i) = (2 * u - 1) * sqrt(6.0_real64 / (n_in + n_out))
      end do
      next = next + (n_in + 1) * n_out
    end subroutine fill

  end function network_create

  ! y(i) for each column x(:, i).
  function network_output(net, x) result(y)
    type(network), intent(in), target :: net
    real(real64), intent(in) :: x(:, :)
    real(real64) :: y(size(x, 2))
    real(real64), dimension(net%hidden, size(x, 2)) :: a1, a2

    call forward(view(net, net%weights), x, a1, a2, y)
  end function network_output

  ! Mean squared error over the columns of x, and its gradient (backpropagation).
  subroutine network_gradient(net, x, target_y, gradient, loss)
    type(network), intent(in), target :: net
    real(real64), intent(in) :: x(:, :), target_y(:)
    real(real64), intent(out), target, contiguous :: gradient(:) ! as long as net%weights
    real(real64), intent(out) :: loss
    real(real64), dimension(net%hidden, size(x, 2)) :: a1, a2, d1, d2
    real(real64) :: y(size(x, 2)), d3(size(x, 2)) ! d: derivative by a layer's argument
    type(layers) :: l, g
    integer :: i

    l = view(net, net%weights)
    g = view(net, gradient)
    call forward(l, x, a1, a2, y)
    loss = sum((y - target_y)**2) / size(y)
    d3 = 2 * (y - target_y) / size(y)
    do i = 1, size(y)
      d2(:, i) = l%w3 * d3(i) * (1 - a2(:, i)**2)
    end do
    d1 = matmul(transpose(l%w2), d2) * (1 - a1**2)
    g%w1 = matmul(d1, transpose(x))
    g%b1 = sum(d1, dim=2)
    g%w2 = matmul(d2, transpose(a1))
    g%b2 = sum(d2, dim=2)
    g%w3 = matmul(a2, d3)
    g%b3 = sum(d3)
  end subroutine network_gradient

  subroutine forward(l, x, a1, a2, y)
    type(layers), intent(in) :: l
    real(real64), intent(in) :: x(:, :)
    real(real64), intent(out) :: a1(:, :), a2(:, :), y(:)

    a1 = tanh(matmul(l%w1, x) + spread(l%b1, 2, size(y)))
    a2 = tanh(matmul(l%w2, a1) + spread(l%b2, 2, size(y)))
    y = matmul(l%w3, a2) + l%b3(1)
  end subroutine forward

  ! The layers of net in an array of its parameters, or of anything that belongs to them.
  function view(net, array) result(l)
    type(network), intent(in) :: net
    real(real64), intent(in), target, contiguous :: array(:)
    type(layers) :: l
    integer :: n, h, i

    n = net%inputs
    h = net%hidden
    i = 0
    l%w1(1:h, 1:n) => array(i + 1:i + h * n)
    i = i + h * n
    l%b1 => array(i + 1:i + h)
    i = i + h
    l%w2(1:h, 1:h) => array(i + 1:i + h * h)
    i = i + h * h
    l%b2 => array(i + 1:i + h)
    i = i + h
    l%w3 => array(i + 1:i + h)
    l%b3 => array(i + h + 1:i + h + 1)
  end function view

  type(adam) function adam_create(net) result(optimiser)
    type(network), intent(in) :: net

    allocate (optimiser%mean(size(net%weights)), source=0.0_real64)
    allocate (optimiser%square(size(net%weights)), source=0.0_real64)
  end function adam_create

  ! One step of Adam: D. P. Kingma, J. Ba (2015), a method for stochastic optimization, ICLR.
  subroutine adam_step(optimiser, net, gradient, rate)
    type(adam), intent(inout) :: optimiser
    type(network), intent(inout) :: net
    real(real64), intent(in) :: gradient(:), rate
    real(real64), parameter :: beta1 = 0.9_real64, beta2 = 0.999_real64, tiny_step = 1e-8_real64
    real(real64) :: scale1, scale2

    optimiser%steps = optimiser%steps + 1
    optimiser%mean = beta1 * optimiser%mean + (1 - beta1) * gradient
    optimiser%square = beta2 * optimiser%square + (1 - beta2) * gradient**2
    scale1 = 1 / (1 - beta1**optimiser%steps)
    scale2 = 1 / (1 - beta2**optimiser%steps)
    net%weights = net%weights - rate * scale1 * optimiser%mean &
                  / (sqrt(scale2 * optimiser%square) + tiny_step)
  end subroutine adam_step

end module mlp
