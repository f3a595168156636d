"""A point-cloud autoencoder whose loss is the Euler characteristic transform.

    python examples/autoencoder.py

Circles, crosses and squares, randomly rotated and scaled, are encoded as a few numbers and decoded again. Unlike the Chamfer
and earth mover's distances, the loss does not match points: the transform is a sum over points, so their order and
number do not matter. Its scale goes from soft, which pulls shapes into place, to sharp, for details.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

import eulerscan as es


def clouds(count: int, num_points: int, generator: torch.Generator) -> Tensor:
    """Random circles, crosses and squares ``[count, num_points, 2]`` in the unit ball."""
    position = torch.rand(count, num_points, generator=generator)
    angle = 2 * math.pi * position
    circle = torch.stack([angle.cos(), angle.sin()], dim=-1)
    square = circle / circle.abs().amax(dim=-1, keepdim=True) / math.sqrt(2)
    along, arm = 4 * position % 2 - 1, (position < 0.5).unsqueeze(-1)
    cross = torch.where(arm, along.unsqueeze(-1) * torch.tensor([1.0, 0.0]), along.unsqueeze(-1) * torch.tensor([0.0, 1.0]))
    kind = torch.randint(3, (count,), generator=generator)
    shapes = torch.stack([circle, square, cross])[kind, torch.arange(count)]
    stretch = 0.5 + 0.5 * torch.rand(count, 1, 2, generator=generator)
    angle = 2 * math.pi * torch.rand(count, generator=generator)
    rotation = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
    return (shapes * stretch) @ rotation


class Autoencoder(nn.Module):
    """The transform is also the first layer of the encoder, which reads clouds of any size."""

    def __init__(self, num_points: int = 64, code: int = 8) -> None:
        super().__init__()
        layer = es.ECTLayer(2, 16, 16, learn_directions=False, divide_by="vertices")
        self.encoder = nn.Sequential(layer, nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, code))
        self.decoder = nn.Sequential(nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 2 * num_points), nn.Tanh())

    def forward(self, points: Tensor) -> Tensor:
        decoded: Tensor = self.decoder(self.encoder(points))
        return decoded.view(len(points), -1, 2)


def main(steps: int = 2000, batch: int = 32, num_points: int = 64, seed: int = 0) -> list[float]:
    """Train, and return the loss on new clouds before and after, at the sharpest scale."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Autoencoder(num_points)
    stages = [es.losses.ECTLoss(2, 32, 32, scale=scale) for scale in (8.0, 16.0, 32.0)]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    test = clouds(64, 2 * num_points, generator)
    losses = [stages[-1](model(test), test).item()]
    for step in range(steps):
        points = clouds(batch, 2 * num_points, generator)
        loss = stages[3 * step // steps](model(points), points)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(stages[-1](model(test), test).item())
    return losses


if __name__ == "__main__":
    before, after = main()
    print(f"loss on new clouds: {before:.5f} before, {after:.5f} after")
