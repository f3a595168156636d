"""
Do two groups of skulls differ, and where?
==========================================

Are the skulls of female and male gorillas of different shape? How surely, and in which part of the skull?
:func:`~eulerscan.analysis.compare` tests the groups by permutation, and :func:`~eulerscan.analysis.evidence` shows the places.
On files, the commands ``eulerscan compare`` and ``eulerscan evidence`` do the same.
"""

import torch

import eulerscan as es
from eulerscan import plot
from eulerscan.analysis import compare, evidence

# %%
# The data are eight landmarks of each skull, joined around it. Without landmarks, use outlines or meshes in the same way. This
# data set is a file from R, see :doc:`/data`.

skulls = es.datasets.load("gorillas")
sexes = [skulls.classes[label] for label in skulls.labels]
print(skulls)

# %%
# Skulls are moved to the unit ball and rotated to their mean, so that the test is about shape alone.

found = compare(skulls.shapes, sexes, align="best", permutations=999)
print(f"p = {found.permanova.p_value:.3g}; sex explains {100 * found.permanova.r2:.1f} % of the variation in shape")
print(f"do they differ in size? p = {found.size.p_value:.3g}")
for uses, result in found.classifications.items():
    print(f"sex from {uses}: {100 * result.accuracy:.0f} % of the skulls are assigned correctly, in cross-validation")

plot.save(plot.draw_comparison(found), "groups.png", dpi=110)

# %%
# The mean shape of each sex over that of the other, and shapes along the first two axes:

plot.save(plot.draw_means(found), "means.png", dpi=110)

# %%
# Where do they differ? Scores of the vertices, divided by what permuted labels give. Beside it is the null: the same for one
# permutation of the labels. Size is taken away first, and seven points are put on every side between two landmarks.

corners = found.shapes.normalized("unit_ball").points.reshape(len(skulls), 8, 1, 2)
share = torch.linspace(0, 1, 9, dtype=corners.dtype)[:8, None]
outlines = (corners + share * (corners.roll(-1, dims=1) - corners)).flatten(1, 2)
places = evidence(es.convert.from_outline(outlines), sexes, permutations=199)
plot.save(plot.draw_evidence(places), "places.png", dpi=110)
