"""
On a GPU
========

Shapes, layers and losses move to a device as everything else in PyTorch. On an NVIDIA or AMD GPU, Triton kernels compute the
transform, and PyTorch operations on other devices. Run ``eulerscan doctor`` first: the kernels were not yet run on GPU hardware
by their authors (:doc:`/gpu`). Without a GPU this example runs on the CPU.
"""

import time

import torch
import trimesh

import eulerscan as es
from eulerscan import plot

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"running on {device}")

# %%
# A batch of 64 meshes of 642 vertices, and a layer, on the device.

ball = es.as_complex(trimesh.creation.icosphere(subdivisions=3)).to(torch.float32)
generator = torch.Generator().manual_seed(0)
batch = es.collate([ball.with_points(ball.points * torch.rand(3, generator=generator)) for _ in range(64)])
batch = batch.to(device)
layer = es.ECTLayer(dim=3, num_directions=64, num_thresholds=64, normalize="unit_ball").to(device)

# %%
# Forward and backward pass. The first call compiles kernels, so it is not timed.


def step() -> None:
    """One forward and backward pass."""
    layer.zero_grad()
    layer(batch).square().mean().backward()
    if device.type == "cuda":
        torch.cuda.synchronize()


step()
start = time.perf_counter()
for _ in range(5):
    step()
print(f"{(time.perf_counter() - start) / 5 * 1e3:.1f} ms for forward and backward of {batch}")

# %%
# The result is the same on every device, up to rounding.

on_cpu = es.ECTLayer(dim=3, num_directions=64, num_thresholds=64, normalize="unit_ball")(batch.to("cpu"))
difference = float((layer(batch).cpu() - on_cpu).detach().abs().max())
print(f"largest difference to the CPU: {difference:.1e}")

picture = plot.figure(7, 3)
ax = picture.add_subplot(1, 2, 1, projection="3d")
plot.plot_shape(batch[0].to("cpu"), ax, size=0).set_axis_off()
plot.plot_transform(on_cpu[0].detach(), picture.add_subplot(1, 2, 2), thresholds=layer.thresholds.detach().cpu())
plot.save(picture, "gpu.png", dpi=110)
