import torch

from eulerscan import rotations


def test_random_rotations_are_rotations():
    matrices = rotations.random(500, 3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(matrices @ matrices.mT, torch.eye(3, dtype=torch.float64).expand(500, 3, 3))
    torch.testing.assert_close(torch.linalg.det(matrices), torch.ones(500, dtype=torch.float64))
    assert matrices.mean(dim=0).abs().max() < 0.1  # no direction is preferred
