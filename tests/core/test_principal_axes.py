"""Second moments of complexes, and their principal axes."""

import pytest
import torch

import eulerscan as es
from eulerscan import rotations
from eulerscan.complexes.principal_axes import principal_frames, second_moments


def test_second_moments_of_known_shapes():
    segment = es.Complex(torch.tensor([[0.0, 0], [2, 0], [5, 5]]), [torch.tensor([[0], [1]])])  # the third vertex has no length
    square = es.Complex(torch.tensor([[0.0, 0], [2, 0], [2, 2], [0, 2]]), [torch.tensor([[0, 0], [1, 2], [2, 3]])])
    polygon = es.Complex(square.points, [torch.tensor([[0], [1], [2], [3]])], dims=(2,))
    corners = es.Complex(square.points)
    found = second_moments(es.collate([segment, square, corners]))
    # In the unit ball: the largest norms were 41 ** 0.5 and 2 ** 0.5.
    wanted = torch.tensor([[1 / 3 / 41, 0.0], [1 / 6, 1 / 6], [1 / 2, 1 / 2]], dtype=torch.float64)
    torch.testing.assert_close(found, torch.diag_embed(wanted), rtol=1e-6, atol=1e-12)
    torch.testing.assert_close(second_moments(polygon), found[1:2])


@pytest.mark.parametrize("size", [1e-170, 1.0, 1e160])
def test_principal_axes_of_any_size_are_those_of_the_shape(size, generator):
    shapes = es.as_complex(torch.randn(12, 40, 3, generator=generator).double() * torch.tensor([0.3, 0.6, 1.0]))
    axes = principal_frames(shapes)
    rotation = rotations.random(1, 3, generator)[0]
    found = principal_frames(shapes.with_points(size * shapes.points @ rotation.T))
    torch.testing.assert_close((rotation.T @ found).abs(), axes.abs(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(torch.linalg.det(found), torch.ones(len(found)).double())
