"""Convolution, max pooling and ReLU in one kernel, against the operators of torch."""

import pytest
import torch
from torch.nn.functional import conv2d, max_pool2d

from eulerscan.kernels import convolution, dispatch
from eulerscan.kernels.convolution import PooledConvolution, pooled_convolution
from eulerscan.nn.models.cnn import PooledConvolution as Layer

SIZES = [  # images, channels, height, width, channels of the result
    (1, 1, 4, 4, 1),
    (8, 1, 32, 32, 8),
    (9, 3, 7, 10, 5),
    (17, 2, 5, 12, 3),
    (5, 32, 6, 5, 4),
]


def drawn(size, dtype, *, integers=False):
    """Images, weight, bias and a gradient of the result. Sums of small integers are exact, and often equal."""
    count, channels, height, width, outputs = size
    shapes = (count, channels, height, width), (outputs, channels, 3, 3), (outputs,)
    gradient_shape = (count, outputs, height // 2 - 1, width // 2 - 1)
    if integers:
        return [torch.randint(-1, 2, shape).to(dtype) for shape in (*shapes, gradient_shape)]
    return [torch.randn(shape, dtype=dtype) for shape in (*shapes, gradient_shape)]


def with_gradients(call, inputs, relu, gradient):
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    result = call(*leaves, relu)
    return [result.detach(), *torch.autograd.grad(result, leaves, gradient)]


def fused(*inputs):
    assert convolution._is_supported(*inputs[:3])
    return pooled_convolution(*inputs[:3], relu=inputs[3])


def torch_itself(images, weight, bias, relu):
    pooled = max_pool2d(conv2d(images, weight, bias), 2)
    return pooled.relu() if relu else pooled


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_values_and_all_gradients_are_those_of_torch(size, relu, dtype, poisoned_memory):
    *inputs, gradient = drawn(size, torch.float64)  # float64 decides which entry of a square is the largest
    inputs = [tensor.to(dtype) for tensor in inputs]
    for found, wanted in zip(
        with_gradients(fused, inputs, relu, gradient.to(dtype)),
        with_gradients(torch_itself, [tensor.double() for tensor in inputs], relu, gradient),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted.to(dtype), rtol=1e-4 if dtype is torch.float32 else 1e-10, atol=1e-4)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_among_equal_sums_the_gradient_goes_to_the_first_and_to_none_at_zero(size, relu, dtype):
    *inputs, gradient = drawn(size, dtype, integers=True)
    found, wanted = (with_gradients(call, inputs, relu, gradient) for call in (fused, torch_itself))
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("relu", [False, True])
def test_nan_shows_in_its_squares_and_in_no_other(relu):
    images, weight, bias, _ = drawn((3, 2, 12, 12, 4), torch.float32)
    images[1, 0, 5, 5] = torch.nan
    found, wanted = pooled_convolution(images, weight, bias, relu=relu), torch_itself(images, weight, bias, relu)
    assert 0 < int(wanted.isnan().sum()) < wanted[1].numel()
    assert torch.equal(found.isnan(), wanted.isnan())


def test_gradcheck():
    *inputs, _ = drawn((3, 2, 6, 7, 3), torch.float64)
    leaves = [tensor.requires_grad_() for tensor in inputs]
    assert torch.autograd.gradcheck(lambda *tensors: fused(*tensors, True), leaves, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda *tensors: fused(*tensors, True), leaves)


def test_images_that_were_computed_from_the_weights_are_differentiated_once():
    images, weight, bias, _ = drawn((3, 2, 18, 18, 2), torch.float64)
    found = []
    for call in (fused, torch_itself):
        leaf = weight.clone().requires_grad_()
        result = call(call(images, leaf, bias, False), leaf, bias, True)
        (first,) = torch.autograd.grad(result.square().sum(), leaf, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), leaf, retain_graph=True)
        many = torch.stack([torch.ones_like(result), result.detach()])
        (batched,) = torch.autograd.grad(result, leaf, many, is_grads_batched=True)
        found.append((first, second, batched))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("needs", [(True, False, False), (False, True, False), (False, False, True)])
def test_only_the_gradients_that_are_needed(needs):
    *inputs, gradient = drawn((9, 2, 8, 8, 3), torch.float64)
    leaves = [tensor.requires_grad_(need) for tensor, need in zip(inputs, needs, strict=True)]
    chosen = [leaf for leaf in leaves if leaf.requires_grad]
    found = torch.autograd.grad(fused(*leaves, True), chosen, gradient)
    wanted = torch.autograd.grad(torch_itself(*leaves, True), chosen, gradient)
    torch.testing.assert_close(found, wanted)


def test_any_memory_layout():
    images, weight, bias, gradient = drawn((9, 3, 8, 9, 4), torch.float64)
    wanted = with_gradients(fused, (images, weight, bias), True, gradient)

    def scattered(images, weight, bias, relu):
        images, weight = (tensor.contiguous(memory_format=torch.channels_last) for tensor in (images, weight))
        return fused(images, weight, bias.repeat(2, 1).T[:, 0], relu)

    found = with_gradients(scattered, (images, weight, bias), True, gradient.contiguous(memory_format=torch.channels_last))
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    ones = torch.ones((), dtype=torch.float64).expand(gradient.shape)
    found, wanted = (with_gradients(call, (images, weight, bias), True, ones) for call in (fused, torch_itself))
    torch.testing.assert_close(found, wanted)


def test_any_number_of_threads_gives_the_same_bits():
    *inputs, gradient = drawn((100, 3, 12, 12, 6), torch.float32)
    results = []
    for num_threads in (1, 2, 3, 7):
        torch.set_num_threads(num_threads)
        results.append(with_gradients(fused, inputs, True, gradient))
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_an_image_does_not_depend_on_the_others_of_its_batch():
    images, weight, bias, _ = drawn((21, 2, 9, 9, 3), torch.float32)
    together = pooled_convolution(images, weight, bias, relu=True)
    for start, end in ((0, 1), (3, 12), (20, 21)):
        assert torch.equal(pooled_convolution(images[start:end], weight, bias, relu=True), together[start:end])


@pytest.mark.parametrize(
    "change",
    [
        {"images": torch.zeros(2, 3, 8, 8)},  # three channels
        {"images": torch.zeros(2, 2, 8, 8, dtype=torch.float64)},
        {"images": torch.zeros(2, 2, 3, 8)},  # too low for a square
        {"bias": torch.zeros(5)},
        {"weight": torch.zeros(4, 2, 5, 5), "images": torch.zeros(2, 2, 4, 4)},
    ],
)
def test_what_does_not_fit_never_reaches_the_kernel(change):
    inputs = {"images": torch.zeros(2, 2, 8, 8), "weight": torch.zeros(4, 2, 3, 3), "bias": torch.zeros(4)} | change
    with pytest.raises(RuntimeError):
        pooled_convolution(**inputs, relu=True)


def test_no_images_many_channels_half_precision_and_other_kernels_are_left_to_torch():
    images, weight, bias, _ = drawn((2, 2, 8, 8, 4), torch.float32)
    assert convolution._is_supported(images, weight, bias)
    assert not convolution._is_supported(images[:0], weight, bias)
    assert not convolution._is_supported(images.repeat(1, 17, 1, 1), weight.repeat(1, 17, 1, 1), bias)
    assert not convolution._is_supported(*(tensor.bfloat16() for tensor in (images, weight, bias)))
    with dispatch.use("reference"):
        assert not convolution._is_supported(images, weight, bias)
    with torch.autocast("cpu"):
        assert pooled_convolution(images, weight, bias, relu=True).dtype is torch.bfloat16
    assert pooled_convolution(images[:0], weight, bias, relu=True).shape == (0, 4, 3, 3)


def test_torch_func_and_forward_mode():
    *inputs, _ = drawn((3, 2, 6, 6, 2), torch.float64)
    leaves = [tensor.clone().requires_grad_() for tensor in inputs]
    wanted = torch.autograd.grad(fused(*leaves, True).square().sum(), leaves)
    found = torch.func.grad(lambda *given: pooled_convolution(*given, relu=True).square().sum(), argnums=(0, 1, 2))(*inputs)
    torch.testing.assert_close(found, wanted)
    apart = torch.func.vmap(lambda image: pooled_convolution(image[None], *inputs[1:], relu=True)[0])(inputs[0])
    torch.testing.assert_close(apart, fused(*inputs, True))
    value, tangent = torch.func.jvp(
        lambda images: pooled_convolution(images, *inputs[1:], relu=True), (inputs[0],), (inputs[0],)
    )
    torch.testing.assert_close(value, fused(*inputs, True))
    assert tangent.shape == value.shape


def test_compiled_and_traced_programs_have_operators_of_torch():
    layer = Layer(1, 4)
    images = torch.randn(9, 1, 8, 8)
    exported = torch.export.export(layer, (images,), dynamic_shapes={"images": {0: torch.export.Dim("B", min=2)}})
    names = {str(node.target) for node in exported.graph.nodes}
    assert any("conv2d" in name for name in names)
    torch.testing.assert_close(exported.module()(images[:5]), layer(images[:5]))


def test_saved_tensors_must_not_change():
    *inputs, gradient = drawn((2, 1, 6, 6, 2), torch.float64)
    images = inputs[0].requires_grad_() + 0
    result = PooledConvolution.apply(images, *inputs[1:], True)
    images += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward(gradient)


def test_the_layer_is_a_convolution_in_its_state_dict():
    assert {name: list(tensor.shape) for name, tensor in Layer(2, 3).state_dict().items()} == {
        "weight": [3, 2, 3, 3],
        "bias": [3],
    }
    assert repr(Layer(2, 3, relu=False)) == "PooledConvolution(2, 3, relu=False)"
