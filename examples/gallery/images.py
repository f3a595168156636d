"""
Compare images by their outlines
================================

Images of letters in four typefaces: which show the same letter? Foreground is turned into a smooth region
(:func:`~eulerscan.convert.from_image`), so the size of the pixels does not matter. Masks, silhouettes and photographs on plain
background work in the same way; folders of images go to ``eulerscan distances``.
"""

from pathlib import Path

import matplotlib
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

import eulerscan as es
from eulerscan import plot
from eulerscan.analysis import distance_matrix
from eulerscan.plot.distances import draw_distances

# %%
# Draw the images, of a different number of pixels in each typeface. The fonts come with matplotlib.

fonts = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
images = {}
for face, size in (("DejaVuSans", 60), ("DejaVuSans-Bold", 90), ("DejaVuSerif", 120), ("DejaVuSansMono", 180)):
    for letter in "ABCEHS":
        image = Image.new("L", (size, size))
        font = ImageFont.truetype(str(fonts / f"{face}.ttf"), int(0.8 * size))
        ImageDraw.Draw(image).text((size / 2, size / 2), letter, fill=255, font=font, anchor="mm")
        images[f"{letter} {face.removeprefix('DejaVu')}"] = np.asarray(image)

# %%
# Transform, and compare all pairs.

shapes = es.collate([es.convert.from_image(image) for image in images.values()])
thresholds = es.thresholds(64)
transforms = es.ect(shapes.normalized("unit_ball"), es.directions.circle(64), thresholds)
distances = distance_matrix(transforms, thresholds=thresholds)

names = list(images)
nearest = (distances + 1e9 * torch.eye(len(names))).argmin(dim=1).tolist()
same = np.mean([names[i][0] == names[j][0] for i, j in enumerate(nearest)])
print(f"{100 * same:.0f} % of the images are nearest to the same letter in another typeface")

# %%
# The images, and their distances with a dendrogram:

picture = plot.figure(8, 3)
for number, image in enumerate(images.values()):
    ax = picture.add_subplot(4, 6, number + 1)
    ax.imshow(image, cmap="gray_r")
    ax.set_axis_off()
plot.save(picture, "images.png", dpi=110)

plot.save(draw_distances(distances, names, groups=[name[0] for name in names]), "tree.png", dpi=110)
