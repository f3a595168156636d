"""``eulerscan compare``: do groups of shapes differ? A report with tests, figures and tables."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import arg

from .._validation import positive
from ..analysis.comparison import CONFIG, MAX_MEANS, Comparison
from ..analysis.comparison import compare as compare_groups
from ..analysis.evidence import MEANING, evidence
from ..complexes import Complex
from ..complexes.extent import centroid_sizes
from ..config import ECTConfig
from ..datasets.folder import read_named
from ..explorer import write_page
from ..io import Failure, read_metadata
from ..io.metadata import join_groups
from ..io.tables import parse_number
from ..io.walk import name_of
from ..plot.evidence import draw_evidence
from ..plot.report import summary, write_report
from .options import (
    Files,
    Input,
    Maybe,
    Output,
    Overwrite,
    Quiet,
    check_output_folder,
    find_files,
    light_background,
    print_failures,
    warn_beyond_radius,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Columns = Annotated[tuple[str, ...], arg(metavar="COLUMN ...", help_behavior_hint="(optional)")]
STAGES, WARPS = ".stages", "means.html"
MAX_NAMED = 4  # groups in a title


def compare(
    files: Files,
    /,
    *,
    output: Output,
    align: Literal["none", "pca", "best", "invariant"] = "none",
    permutations: int = 999,
    strata: Maybe[str] = None,
    covariates: Columns = (),
    traits: Columns = (),
    size: bool = True,
    classify: bool = True,
    means: bool = True,
    where: bool = False,
    folds: int = 5,
    seed: int = 0,
    ect: ECTConfig = CONFIG,
    input: Input = Input(),  # noqa: B008
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Compare groups of shapes: do they differ, and how much?

    Groups are the subfolders, or the column --label of a table. The output folder gets report.html, results.json, tables and
    figures: tests by permutation (PERMANOVA, energy, PERMDISP, every pair of groups), principal components, mean shapes, and
    nested cross-validated classification. means.html is an interactive page in which a slider warps a shape from the mean of
    one group to that of another. An interrupted command resumes where it was.
    Files that cannot be read are reported and left out, and the exit code is then 1.

    Examples: `eulerscan compare skulls/ -o report/`,
    `eulerscan compare wings.tps --table wings.csv --label species --covariates age --data outline=true -o report/`

    Args:
        files: A folder with a subfolder for each group, several folders, or files of specimens with a table.
        output: Folder for the report.
        align: How orientation is treated. none compares shapes as they are, pca rotates them to their principal axes, best to
            their mean (in space about a second per shape), invariant compares features that do not change under rotation.
        permutations: Number of permutations of the labels. The smallest p-value is 1 / (1 + permutations).
        strata: Column of --table with blocks, such as the specimen of several scans. Labels are permuted within blocks, or
            whole blocks if each belongs to one group.
        covariates: Columns of --table with numbers: does the shape change with them? Each is tested alone, over the shapes of
            all groups, without adjustment for the group.
        traits: Columns of --table with numbers that classification may use beside the shape.
        size: Let classification use the size of the shapes too. Tests are of the shape without size, unless --normalize says
            otherwise; sizes have a test of their own.
        classify: Classify, in nested cross-validation.
        means: Draw mean shapes, in the plane and in space.
        where: Show where on the shapes the groups differ, in the plane and in space.
        folds: Number of folds of the cross-validation.
        seed: Seed of permutations and folds.
        ect: How shapes are transformed.
        input: Which files are read, and how.
    """
    positive(permutations, "--permutations")
    reading = input.options()
    if (strata or covariates or traits) and input.table is None:
        raise ValueError("--strata, --covariates and --traits are columns of a table: give --table and --label.")
    if where and align == "invariant":
        raise ValueError("--where needs shapes in a common orientation: use --align pca or best instead of invariant.")
    if folds < 2:
        raise ValueError(f"--folds must be at least 2, got {folds}.")
    check_output_folder(output, "report.html", overwrite)
    _check_outside(output, files)
    listing = find_files(files, input=input, exclude=[output], sort=True, join=False, quiet=quiet)
    for path, changed in zip(listing.paths, listing.changed, strict=True):
        if changed is None:
            raise FileNotFoundError(f"{path} does not exist.")
    groups, without = join_groups(listing, input.table, input.label)
    if input.table is None:
        paths = (path for path, group in zip(listing.paths, listing.groups, strict=True) if not group)
        without = [Failure(path, "in no subfolder, so it has no group.") for path in paths]
    if not groups:
        raise ValueError(
            "No shape has a group. Put the shapes of each group in a subfolder, or give --table and --label: a table of the "
            "shapes, and its column with the groups."
        )
    shapes, names, unread = read_named(listing.folder, groups, cache=input.cache, quiet=quiet, **reading)
    failures = [*listing.path_failures, *without, *unread]
    if not names:
        return print_failures(failures, done=0)
    kept, constant = _with_extent(shapes)
    failures += [Failure(listing.folder / names[i], "all points coincide.") for i in constant]
    shapes, own = shapes.select(kept), [names[i] for i in kept]
    labels = [groups[name] for name in own]
    if len(set(labels)) < 2:
        print_failures(failures)
        raise ValueError(f"There must be at least two groups, got {labels[0] if labels else 'none'} only.")
    if where and sum(number > 1 for number in Counter(labels).values()) < 2:
        raise ValueError("--where needs at least two groups of at least two shapes.")
    if where and shapes.dim not in (2, 3):
        raise ValueError(f"--where needs shapes in the plane or in space, got points of dimension {shapes.dim}.")
    _warn_numeric(labels, input.label)
    table = None if input.table is None else read_metadata(input.table)
    numbers = {} if table is None else {column: table.numbers(column, own) for column in (*covariates, *traits)}
    factor = "Group" if input.label is None else input.label
    with _resumable(output):
        found = compare_groups(
            shapes,
            labels,
            names=own,
            config=ect,
            align=None if align == "none" else align,
            permutations=permutations,
            strata=None if strata is None or table is None else table.blocks(strata, own),
            covariates={column: numbers[column] for column in covariates},
            traits={column: numbers[column] for column in traits},
            use_size=size,
            classification=classify,
            means=means,
            folds=folds,
            seed=seed,
            folder=output / STAGES,
            progress=not quiet,
        )
    warn_beyond_radius(found.config.num_beyond(found.shapes), found.config.largest_height)
    extra = _evidence(found) if where else {}
    title = f"{', '.join(name_of(path) for path in files)}: comparison of {_listed(list(found.counts))}"
    remarks = found.remarks
    if (light := light_background(listing.paths, reading)) is not None:  # which find_files has printed
        found = replace(found, remarks=[light, *remarks])
    page = write_report(found, output, title=title, failures=failures, command=_command(), extra=extra, label=factor)
    _write_warps(found, output / WARPS, title)
    shutil.rmtree(output / STAGES, ignore_errors=True)
    if not quiet:
        for line in (*summary(found, label=factor), *(f"Note: {remark}" for remark in remarks)):
            print(line)
        print(f"{page}: report of {len(labels)} shapes in {len(found.counts)} groups")
        if found.warps:
            print(f"{output / WARPS}: interactive page of a shape that is warped between the means")
    return print_failures(failures)


def _check_outside(output: Path, files: Sequence[Path]) -> None:
    """Raise if the report would be in a folder of shapes: the next command would take its tables and figures for shapes."""
    for path in files:
        if path.is_dir() and output.resolve().is_relative_to(path.resolve()):
            raise ValueError(f"--output must be outside of the folder of the shapes, got {str(output)!r} in {str(path)!r}.")


@contextmanager
def _resumable(output: Path) -> Iterator[None]:
    """Keep finished stages after an interruption, and remove them with an error of the input, which would come again."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"finished stages are in {output}: the same command resumes", file=sys.stderr)
        raise
    except ValueError:
        shutil.rmtree(output / STAGES, ignore_errors=True)
        if output.is_dir() and not any(output.iterdir()):
            output.rmdir()
        raise


def _warn_numeric(labels: Sequence[str], label: str | None) -> None:
    """Warn of a column of measurements as label: many groups, each a number."""
    kinds = set(labels)
    if 2 * len(kinds) > len(labels) and all(parse_number(kind, decimal_comma=True) is not None for kind in kinds):
        print(
            f"warning: {label or 'the names of the groups'} has {len(kinds)} different numbers in {len(labels)} shapes. Does "
            "the shape change with a number? Use --covariates",
            file=sys.stderr,
        )


def _with_extent(shapes: Complex) -> tuple[list[int], list[int]]:
    """Indices of the shapes with different points, and of those in which all coincide."""
    extent = shapes.normalized("center").largest_norms()
    return extent.nonzero().squeeze(1).tolist(), (extent == 0).nonzero().squeeze(1).tolist()


def _evidence(found: Comparison) -> dict[str, tuple[str, Figure]]:
    """Where on the shapes the groups differ, shown on the shape nearest to all others of its group."""
    shapes = found.shapes.normalized(found.config.normalize)
    if found.config.in_unit_ball:  # whose scale depends on the vertex that is farthest out
        shapes = shapes.with_points(shapes.points / centroid_sizes(shapes)[shapes.batch, None])
    counts = found.counts
    kept = [i for i, group in enumerate(found.groups) if counts[group] > 1]
    groups, names = [found.groups[i] for i in kept], [found.names[i] for i in kept]
    strata = None if found.strata is None else [found.strata[i] for i in kept]
    where = evidence(shapes.select(kept), groups, strata=strata, permutations=found.permanova.permutations, seed=found.seed)
    squares, middle = found.distances[kept][:, kept].square(), []
    for group in sorted(set(groups))[:MAX_MEANS]:
        members = [i for i, own in enumerate(groups) if own == group]
        middle.append(members[int(squares[members][:, members].sum(dim=1).argmin())])
    picture = draw_evidence(where, middle, names=names)
    caption = f"Where the groups differ. {MEANING} Right: the same for permuted labels, to compare with."
    if found.config.in_unit_ball:
        caption += " Here shapes have the same centroid size; eulerscan evidence keeps their sizes."
    return {"evidence": (caption, picture)}


def _write_warps(found: Comparison, path: Path, title: str) -> None:
    """An interactive page of one shape that is warped to the means of the groups and the extremes, if they are fitted."""
    warps = found.warps
    shape = next(iter(warps.values()), None)
    if shape is None or not shape.is_simplicial:
        path.unlink(missing_ok=True)  # of an earlier report
        return
    config = ECTConfig(num_directions=180, num_thresholds=128, normalize=found.config.normalize)
    write_page(shape, path, name=f"{title}, mean shapes", config=config, warps=warps)


def _listed(groups: Sequence[str]) -> str:
    if len(groups) > MAX_NAMED:
        return f"{len(groups)} groups"
    return f"{', '.join(groups[:-1])} and {groups[-1]}"


def _command() -> str:
    return shlex.join(["eulerscan", *sys.argv[1:]])
