"""A point-cloud autoencoder whose loss is the Euler characteristic transform.

    python examples/autoencoder.py

Circles, crosses and squares, turned and stretched at random, are squeezed into a few numbers and drawn again. The loss
matches no points to each other, as Chamfer and earth mover's distances do: the transform sums over points, so that
their order and number do not matter. Its scale goes from soft, which pulls shapes into place, to sharper, for details.
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
    turn = 2 * math.pi * torch.rand(count, generator=generator)
    rotation = torch.stack([turn.cos(), -turn.sin(), turn.sin(), turn.cos()], dim=-1).view(-1, 2, 2)
    return (shapes * stretch) @ rotation


class Autoencoder(nn.Module):
    """The transform is the encoder's eye as well: it reads clouds of any size."""

    def __init__(self, num_points: int = 64, code: int = 8) -> None:
        super().__init__()
        eye = es.ECTLayer(2, 16, 16, learn_directions=False, divide_by="vertices")
        self.encoder = nn.Sequential(eye, nn.Flatten(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, code))
        self.decoder = nn.Sequential(nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 2 * num_points), nn.Tanh())

    def forward(self, points: Tensor) -> Tensor:
        drawn: Tensor = self.decoder(self.encoder(points))
        return drawn.view(len(points), -1, 2)


def main(steps: int = 2000, batch: int = 32, num_points: int = 64, seed: int = 0) -> list[float]:
    """Train, and return the loss on new clouds before and after, at the sharper scale."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Autoencoder(num_points)
    stages = [es.losses.ECTLoss(2, 32, 32, scale=scale) for scale in (8.0, 16.0, 32.0)]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    test = clouds(64, 2 * num_points, generator)
    losses = [stages[-1](model(test), test).item()]
    for step in range(steps):
        points = clouds(batch, 2 * num_points, generator)
        loss = stages[3 * step // steps](model(points), points)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    losses.append(stages[-1](model(test), test).item())
    return losses


if __name__ == "__main__":
    before, after = main()
    print(f"loss on new clouds: {before:.5f} before, {after:.5f} after")
