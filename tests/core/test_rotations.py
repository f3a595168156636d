import pytest
import torch

from eulerscan import rotations


def test_rotations_of_other_spaces_are_refused():
    with pytest.raises(ValueError, match="dim must be 2 or 3, got 4"):
        rotations.uniform(5, 4)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        rotations.uniform(0, 3)


def test_random_rotations_are_rotations():
    matrices = rotations.random(500, 3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(matrices @ matrices.mT, torch.eye(3, dtype=torch.float64).expand(500, 3, 3))
    torch.testing.assert_close(torch.linalg.det(matrices), torch.ones(500, dtype=torch.float64))
    assert matrices.mean(dim=0).abs().max() < 0.1  # no direction is preferred
