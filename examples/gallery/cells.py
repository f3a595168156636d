"""
Cells under three treatments
============================

Outlines of bone cancer cells: without a drug, and under two drugs that disturb their skeleton, cytochalasin D and
jasplakinolide. Which treatments change the shape? Cells have no orientation, so only what does not change under rotation is
compared.
"""

import eulerscan as es
from eulerscan import plot
from eulerscan.analysis import compare

cells = es.datasets.load("cells", label="treatment")
treatments = [cells.classes[label] for label in cells.labels]
print(cells)

# %%
# The smooth Euler characteristic transform (``sect``) sees a corner in proportion to its extent, which suits noisy outlines.

config = es.ECTConfig(num_directions=32, num_thresholds=32, variant="sect")
found = compare(cells.shapes, treatments, config=config, align="invariant", permutations=199, classification=False, means=False)
print(f"all three: p = {found.permanova.p_value:.3g}, R² = {found.permanova.r2:.3f}")
for pair in found.pairs:
    values = f"p = {pair.test.p_value:.3g}, q = {pair.q_value:.3g}"
    print(f"{' and '.join(pair.groups)}: {values}, distance of the means {pair.d:.2f} SD")

# %%
# Every cell is drawn at its place in the plane of the first two principal components.

plot.save(plot.draw_comparison(found), "cells.png", dpi=110)

# %%
# For a folder of outlines with a subfolder for each treatment, the command line writes a report with classification, mean
# shapes and the method as text:
#
# .. code-block:: sh
#
#    eulerscan compare cells/ --data outline=true --align invariant --variant sect -o report/
