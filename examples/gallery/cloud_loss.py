"""
A loss that compares point clouds
=================================

:class:`~eulerscan.nn.losses.ECTLoss` compares clouds without matching their points: the order of the points does not matter,
and their numbers may differ. It is smooth, and costs time in proportion to the number of points, where matching or all pairs
of points cost its square. Here 120 points flow to a spiral of 400.
"""

import torch

import eulerscan as es
from eulerscan import plot

angle = torch.linspace(0.5, 3.0, 400) * 2 * torch.pi
target = torch.stack([angle * angle.cos(), angle * angle.sin()], dim=1) / 20
points = 0.3 * torch.randn(120, 2, generator=torch.Generator().manual_seed(0))
points.requires_grad_()

# %%
# Any optimizer of PyTorch works. The scale goes from soft, which pulls points from far away, to sharp, for details. The
# transform of the target is computed once for each scale.

optimizer = torch.optim.Adam([points], lr=0.02)
states = {0: points.detach().clone()}
for scale in (8.0, 16.0, 32.0):
    loss = es.losses.ECTLoss(dim=2, scale=scale)
    wanted = loss.transform(target)
    for _ in range(100):
        optimizer.zero_grad()
        value = loss(points, transform=wanted)
        value.backward()
        optimizer.step()
    states[len(states) * 100] = points.detach().clone()
    print(f"scale {scale:g}: loss {value.item():.2e}")

# %%
# Gray: the target.

picture = plot.figure(10, 2.8)
for column, (step, state) in enumerate(states.items()):
    ax = picture.add_subplot(1, 4, column + 1)
    plot.plot_shape(target, ax, color="0.8", size=6)
    plot.plot_shape(state, ax, color="C3", size=9)
    ax.set(xticks=[], yticks=[], xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), title=f"step {step}")
plot.save(picture, "flow.png", dpi=120)
