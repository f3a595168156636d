"""``eulerscan evidence``: where on the shapes groups differ."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from .._validation import positive
from ..analysis import quality
from ..analysis.evidence import CONFIG, MEANING, write_evidence
from ..analysis.evidence import evidence as find_evidence
from ..config import ECTConfig
from ..datasets.folder import read_labeled
from ..explorer import MAX_SIMPLICES, ColorMap, write_page
from ..io import READABLE
from ..plot.evidence import draw_evidence
from ..plot.figures import save
from ..plot.shapes import guess_up
from .options import (
    Input,
    Maybe,
    Output,
    Overwrite,
    Quiet,
    check_output_folder,
    print_failures,
    warn_light_background,
)

Folder = Annotated[Positional[Path], arg(metavar="FOLDER")]


def evidence(
    folder: Folder,
    /,
    *,
    output: Output,
    permutations: int = 200,
    strata: Maybe[str] = None,
    seed: int = 0,
    format: Literal["ply", "obj", "glb"] = "ply",
    ect: ECTConfig = CONFIG,
    input: Input = Input(),  # noqa: B008
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Show where on the shapes groups differ: a score and a p-value for every vertex.

    Groups are the subfolders, or the column --label of a table. The shapes need a common orientation, but no landmarks and no
    common mesh. The output folder gets a colored mesh of every shape and of its null, the same under permuted labels; tables
    of vertices and regions; a figure; and an interactive page of one shape of each group.
    Files that cannot be read are reported and left out, and the exit code is then 1.

    Example: `eulerscan evidence skulls/ -o evidence/`

    Args:
        folder: A folder with a subfolder for each group, or any folder with --table and --label.
        output: Folder for the results.
        permutations: Number of permutations of the labels. The smallest p-value is 1 / (1 + permutations).
        strata: Column of --table with blocks, such as the specimen of several scans. Labels are permuted within blocks, or
            whole blocks if each belongs to one group.
        seed: Seed of the permutations.
        format: Format of the meshes. Graphs and point clouds need ply.
        ect: How shapes are transformed. By default they are centered and keep their size.
        input: Which files are read, and how.
    """
    positive(permutations, "--permutations")
    if strata is not None and input.table is None:
        raise ValueError("--strata is a column of a table: give --table and --label.")
    check_output_folder(output, "vertices.csv", overwrite)
    reading = input.options()
    labeled = read_labeled(
        folder,
        table=input.table,
        label=input.label,
        strata=strata,
        only=input.only,
        exclude=[output],
        cache=input.cache,
        **reading,
    )
    warn_light_background(labeled.paths, reading)
    if len(set(labeled.classes)) < 2:
        print_failures(labeled.failures)
        raise ValueError(f"{folder} must have at least two groups, each in a subfolder, got {len(set(labeled.classes))}.")
    files = [path.relative_to(folder) for path in labeled.paths]
    found = find_evidence(
        labeled.shapes, labeled.classes, permutations=permutations, strata=labeled.strata, seed=seed, config=ect
    )
    short = [file.with_suffix("") if file.suffix.lower() in READABLE else file for file in files]
    names = [file.as_posix().replace("/", "-") for file in (short if len(set(short)) == len(short) else files)]
    if len(set(names)) < len(names):  # a-b/0 and a/b-0
        names = [f"{i}-{name}" for i, name in enumerate(names)]
    write_evidence(found, output, names, format=f".{format}")
    if found.shapes.dim in (2, 3):
        up = guess_up(labeled.paths[0])
        save(draw_evidence(found, names=names, up=up), output / "evidence.png")
        for group in dict.fromkeys(labeled.classes):
            i = labeled.classes.index(group)
            if sum(found.shapes[i].counts) <= MAX_SIMPLICES:
                page = output / f"{names[i]}.html"
                config = ECTConfig(180, 128, normalize=ect.normalize)
                write_page(found.shapes[i], page, name=names[i], config=config, up=up, colors=ColorMap.of_evidence(found, i))
    if not quiet:
        sure = {region.shape for region in found.regions if region.p_value <= 0.05}
        have, expected = "has" if len(sure) == 1 else "have", 0.05 * len(names)
        print(
            f"{output}: {len(names)} shapes; {len(sure)} {have} a region with p <= 0.05, where chance gives about "
            f"{round(expected, 1 if expected < 10 else None):g}. Scores: {MEANING[0].lower()}{MEANING[1:]}"
        )
        if len(sure) <= expected + 2 * math.sqrt(0.95 * expected):  # two standard deviations
            few = "No region is significant" if not sure else "These are no more regions than chance gives"
            print(
                f"{few}: shapes may be few, outlines coarse, or groups may differ everywhere. The highest scores are the best "
                "guess; eulerscan compare tests whether groups differ at all."
            )
        for remark in quality.remarks(labeled.shapes, names):
            print(f"Note: {remark}")
    return print_failures(labeled.failures)
