"""Compile all kernels of the CPU, once, before the processes of `make test` would each do it. numba keeps what it compiled."""

import torch

import eulerscan as es
from eulerscan import testing
from eulerscan.kernels.convolution import pooled_convolution


def compile_kernels() -> None:
    """Every dtype of points and of indices is compiled by itself."""
    for dtype in (torch.float32, torch.float64):
        graph = testing.random_graph(5, 6, 2, dtype=dtype).complex
        grid = es.directions.circle(3, dtype=dtype), es.thresholds(4, dtype=dtype)
        for simplices in (graph.packed.simplices.int(), graph.packed.simplices.long()):
            inputs = graph.points, *grid, torch.tensor(8.0, dtype=dtype), None, simplices, graph.offsets, list(graph.rows)
            gradient = torch.ones_like(torch.ops.eulerscan.ect(*inputs))
            torch.ops.eulerscan.ect_backward(gradient, *inputs, [True] * 5)
        image, weight, bias = (torch.ones(size, dtype=dtype, requires_grad=True) for size in ((1, 1, 4, 4), (1, 1, 3, 3), (1,)))
        pooled_convolution(image, weight, bias, relu=True).sum().backward()
        es.ecc(graph, [torch.zeros(5, dtype=dtype), torch.ones(graph.simplices[0].shape[1], dtype=dtype)], grid[1])


if __name__ == "__main__":
    compile_kernels()
