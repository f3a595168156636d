"""
Fit a mesh to a target
======================

A sphere is deformed until its transform is that of a target with other vertices and triangles: no correspondence is needed. The
transform goes from soft to sharp, and a Laplacian term keeps the mesh from folding.
"""

import torch
import trimesh

import eulerscan as es
from eulerscan import plot
from eulerscan.fitting import fit_points

# %%
# The start is an icosphere. The target is bent and on another mesh: its vertices lie on circles of latitude.

start = es.as_complex(trimesh.creation.icosphere(subdivisions=2)).to(torch.float32)
target = es.as_complex(trimesh.creation.uv_sphere(count=(24, 24))).to(torch.float32)
x, y, z = target.points.unbind(dim=1)
target = target.with_points(torch.stack([0.5 * x + 0.4 * z**2, 0.5 * y, z], dim=1))
print(f"{len(start.points)} vertices are fitted to a mesh of {len(target.points)}")

# %%
# Fit, and measure the distance of the vertices to points on the surface of the target.

states = [start]
fit = fit_points(
    target,
    start=start,
    steps=600,
    progress=False,
    callback=lambda step, loss, shape: states.append(shape) if step in (10, 40) else None,
)
states.append(fit.shape)
surface = trimesh.Trimesh(target.points.numpy(), target.simplices[1].T.numpy(), process=False)
dense = torch.from_numpy(trimesh.sample.sample_surface(surface, 20_000, seed=0)[0]).float()
away = torch.cdist(fit.shape.points, dense).amin(dim=1)
print(f"loss {fit.start_loss:.3g} before, {fit.loss:.3g} after; mean distance to the surface of the target {away.mean():.3f}")

# %%
# From left to right: the start, two steps on the way, the result, and the target.

picture = plot.figure(10, 2.6)
for column, shape in enumerate([*states, target]):
    ax = picture.add_subplot(1, len(states) + 1, column + 1, projection="3d")
    plot.plot_shape(shape, ax, color="0.6" if shape is target else "C0", size=0)
    ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.view_init(10, -80)
    ax.set_axis_off()
plot.save(picture, "mesh.png", dpi=120)
