"""
Mean shape and morphospace of wings
===================================

A morphospace of mosquito wings: outlines in the plane of their principal components, the mean wing of each genus, and
predicted wings where there is no specimen. It needs no landmarks and no Fourier coefficients: an outline is fitted to the
transform at each position.
"""

import torch

import eulerscan as es
from eulerscan import plot
from eulerscan.analysis import fit_shape, pca

wings = es.datasets.load("wings")
sizes = wings.labels.bincount()
wings = wings.select((sizes[wings.labels] >= 10).nonzero().squeeze(1))  # genera with at least ten wings
genera = [wings.classes[label] for label in wings.labels]
print(f"{len(wings)} wings of {', '.join(sorted(set(genera)))}")

# %%
# The transform of every wing, and principal components of the transforms.

config = es.ECTConfig(num_directions=64, num_thresholds=64)
transforms = config.transform(wings.shapes.to(torch.float64))
plane = pca(transforms, 4)
print(f"the first two axes explain {100 * float(plane.explained[:2].sum()):.0f} % of the variation")

picture = plot.figure(7, 5.4)
plot.plot_ordination(plane, genera, picture.add_subplot(), shapes=wings.shapes)
plot.save(picture, "morphospace.png", dpi=120)

# %%
# Mean wings of the genera, and wings at two standard deviations from the mean along both axes. The fit starts from the wing
# nearest to the mean.

start = wings.shapes[int((transforms - plane.mean).flatten(1).norm(dim=1).argmin())]
wanted = {genus: transforms[[g == genus for g in genera]].mean(dim=0) for genus in sorted(set(genera))}
for axis in range(2):
    for sign, name in ((-2, "−"), (2, "+")):
        place = torch.zeros(2, dtype=torch.float64)
        place[axis] = sign * plane.scores[:, axis].std()
        wanted[f"axis {axis + 1}, {name}2 SD"] = plane.transform_at(place)

picture = plot.figure(10, 3)
for number, (name, transform) in enumerate(wanted.items()):
    ax = picture.add_subplot(2, 4, number + 1)
    plot.plot_shape(fit_shape(transform, start, config, steps=120), ax, color="C0" if number < 4 else "0.3", size=0)
    ax.set_title(name, fontsize=9)
    ax.set(xlim=(-1.05, 1.05), ylim=(-0.45, 0.45))
    ax.set_axis_off()
plot.save(picture, "means.png", dpi=120)
