"""The report of a comparison: one HTML page without scripts and network, tables, figures and results as JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .._storage import write_json, write_text
from .._tables import comma_separated
from .._version import __version__
from ..analysis.comparison import SIZE, Comparison
from ..analysis.groups import PermutationTest, blocks_are_whole
from ..io import Failure
from .figures import figure, save
from .groups import FEWEST, draw_comparison, draw_means
from .training import plot_confusion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Table = tuple[list[str], list[list[Any]]]  # header and rows

MAX_LISTED = 40  # failures
LEVEL = 0.05
_STATISTICS = ("pseudo-F", "p-value", "smallest p-value", "R²", "ω²", "z")
_POOR = " Poor fit: farther from the wanted transform than the nearest of the shapes."
_FOLDED = " Triangles fold where their normal turned by more than 90° in the fit: the surface is not to be trusted there."
_CAVEAT = " Where the shapes of a group differ much, no shape has the mean of their transforms, and what is fitted may fold."

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.7rem;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2rem 0 .4rem;border-bottom:1px solid #ccc}
.answer{font-size:1.1rem;background:#eef4fa;border-left:4px solid #0072b2;padding:.6rem 1rem;margin:1rem 0}
.warning{background:#fdf3e1;border-left:4px solid #e69f00;padding:.4rem 1rem;margin:.5rem 0}
table{border-collapse:collapse;margin:.6rem 0;font-size:.92rem}
th,td{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:right}
th:first-child,td:first-child{text-align:left}th{border-bottom:2px solid #888;font-weight:600}
td.text,th.text{text-align:left}img{max-width:100%;height:auto}figure{margin:1rem 0}
figcaption,.note{color:#555;font-size:.9rem}code{background:#f2f2f2;padding:.1rem .3rem;overflow-wrap:anywhere}
@media print{body{margin:0;max-width:none;font-size:11pt}h2{break-after:avoid}figure,table,.answer{break-inside:avoid}
.answer,.warning{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
"""


def write_report(
    found: Comparison,
    folder: Path | str,
    *,
    title: str = "Comparison of groups",
    failures: Sequence[Failure] = (),
    command: str | None = None,
    extra: Mapping[str, tuple[str, Figure]] | None = None,
    label: str = "Group",
) -> Path:
    """Write a comparison to a folder: ``report.html``, ``results.json``, tables (CSV) and figures (PNG and PDF).

    Args:
        found: From :func:`~eulerscan.analysis.compare`.
        folder: Is created.
        title: Title of the page.
        failures: Files that are not among the shapes, and why.
        command: The command that made the report.
        extra: More figures with captions, by the name of their file.
        label: What distinguishes the groups, such as the column of a table with them.

    Returns:
        The path of the page, which holds all figures. It is written last.
    """
    folder = Path(folder)
    pictures = {"groups": draw_comparison(found)}
    if found.means:
        pictures["means"] = draw_means(found)
    if (classification := found.classification) is not None:
        side = min(9.0, 2.4 + 0.32 * len(classification.groups))
        pictures["confusion"] = figure(side, side)
        plot_confusion(
            torch.as_tensor(classification.confusion), classification.groups, pictures["confusion"].add_subplot()
        ).set_title(f"confusion matrix, sum of {classification.repeats} repeats", fontsize=10)
    captions = {name: caption for name, (caption, _) in (extra or {}).items()}
    pictures |= {name: picture for name, (_, picture) in (extra or {}).items()}
    for name, picture in pictures.items():
        for extension in (".png", ".pdf"):
            save(picture, folder / "figures" / f"{name}{extension}")
    tables = _tables(found)
    for name, (header, rows) in tables.items():
        write_text(folder / f"{name}.csv", comma_separated(header, rows))
    listed = [{"path": str(failure.path), "reason": failure.reason} for failure in failures]
    results = found.as_dict() | {"left_out": listed, "command": command}
    write_json(folder / "results.json", _finite(results))
    images = {name: _embedded(folder / "figures" / f"{name}.png", picture) for name, picture in pictures.items()}
    page = folder / "report.html"
    write_text(page, _page(found, tables, title, images, captions, failures, command, label))
    return page


def summary(found: Comparison, *, label: str = "Group") -> list[str]:
    """The answer in a few sentences: whether the groups differ, how much, and how well they are told apart.

    Args:
        found: From :func:`~eulerscan.analysis.compare`.
        label: What distinguishes the groups, such as the column of a table with them.
    """
    test = found.permanova
    different = test.p_value <= LEVEL
    form = "shape" if found.config.in_unit_ball else "form"
    if test.smallest_p_value > LEVEL:
        few = "permutations" if 1 / (1 + test.permutations) > LEVEL else "shapes"
        answer = f"There are too few {few} to tell whether the groups differ in {form}"
    else:
        answer = f"The groups {'differ' if different else 'do not differ significantly'} in {form}"
    lines = [
        f"{answer}: PERMANOVA "
        f"p = {test.p_value:.3g} ({test.permutations} permutations; the smallest possible is {test.smallest_p_value:.2g}). "
        f"{label} explains {100 * test.r2:.1f} % of the variation (R²; {100 * max(0.0, test.omega2):.1f} % without the part "
        f"expected by chance), and the effect is {abs(test.z):.1f} standard deviations {'above' if test.z >= 0 else 'below'} "
        "that of permuted labels."
    ]
    if found.size is not None and found.size.p_value <= LEVEL:
        lines.append(f"Their sizes differ (p = {found.size.p_value:.3g}, R² {100 * found.size.r2:.1f} %).")
    if len(found.pairs) > 1:
        number = sum(pair.q_value <= LEVEL for pair in found.pairs)
        lines.append(f"{number} of {len(found.pairs)} pairs of groups differ at a false discovery rate of 5 %.")
    if found.dispersion is not None and found.dispersion.test.p_value <= LEVEL:
        spread = f"(PERMDISP p = {found.dispersion.test.p_value:.3g})"
        part = f"Their spread differs too {spread}, so part of the difference may be one of spread, not of means."
        lines.append(part if different else f"But the groups differ in their spread {spread}.")
    if found.regressions.keys() - {SIZE}:
        tests = [f"{name} p = {one.p_value:.3g} (R² {100 * one.r2:.1f} %)" for name, one in found.regressions.items()]
        lines.append(f"Covariates, each tested over all groups without adjustment for the group: {'; '.join(tests)}.")
    if (best := found.classification) is not None:
        shares = "; ".join(
            f"from {uses} {100 * one.accuracy:.1f} % ({100 * one.interval[0]:.1f} to {100 * one.interval[1]:.1f})"
            for uses, one in found.classifications.items()
        )
        lines.append(
            f"Shapes assigned to their group in nested cross-validation (95 % interval): {shares}. Always guessing the "
            f"largest group gives {100 * best.majority:.1f} %."
        )
        shape = found.classifications["shape"]
        if not different and test.smallest_p_value <= LEVEL and shape.interval[0] > shape.majority:
            lines.append(
                "So groups can be told apart, though their means do not differ significantly: the distances of the test weigh "
                "all directions and heights alike, the classification chooses its features."
            )
    return lines


def _page(
    found: Comparison,
    tables: Mapping[str, _Table],
    title: str,
    images: Mapping[str, str],
    captions: Mapping[str, str],
    failures: Sequence[Failure],
    command: str | None,
    label: str,
) -> str:
    parts = [f"<h1>{escape(title)}</h1>"]
    counts = ", ".join(f"{escape(group)} {number}" for group, number in found.counts.items())
    parts.append(f'<p class="note">{len(found.groups)} shapes in {len(found.counts)} groups: {counts}</p>')
    parts += ['<div class="answer">', *(f"<p>{escape(line)}</p>" for line in summary(found, label=label)), "</div>"]
    parts += [f'<p class="warning">{escape(remark)}</p>' for remark in found.remarks]
    if failures:
        more = f"<li>and {len(failures) - MAX_LISTED} more</li>" if len(failures) > MAX_LISTED else ""
        items = "".join(f"<li>{escape(f'{failure.path}: {failure.reason}')}</li>" for failure in failures[:MAX_LISTED])
        parts.append(f'<div class="warning"><p>Left out:</p><ul>{items}{more}</ul></div>')
    shapes_drawn = found.shapes.dim == 2
    plane = 100 * float(found.ordination.explained[:2].sum())
    parts.append(
        _figure(
            images["groups"],
            f"Principal components of the transforms{', with shapes at their places' if shapes_drawn else ''}; crosses are "
            f"group means, ellipses hold 95 % of a normal distribution (of groups of at least {FEWEST} shapes). Right: the "
            "statistic of the test under permuted labels, and the distance of the shapes to the center of their group. "
            f"Axes and distances have the same unit, that of L2 distances of transforms; both axes show {plane:.0f} % of the "
            "variation, so distances over all axes are larger than those in the plane.",
        )
    )
    parts += ["<h2>Tests</h2>", _tests(found)]
    parts.append(
        '<p class="note">PERMANOVA tests whether group means differ, the energy test whether distributions differ in any way, '
        "PERMDISP whether groups differ in spread. Size tests the centroid sizes alone. z is the effect size in standard "
        "deviations of the statistic (on a log scale) under permutation. The p-value is (1 + number of permutations with a "
        f"statistic at least as large) / (1 + {found.permutations}).</p>"
    )
    if len(found.pairs) > 1:
        parts += ["<h2>Pairs of groups</h2>", _html_table(*tables["pairwise"], text_column=1)]
        parts.append(
            '<p class="note">The q-value is the p-value adjusted for the number of pairs (Benjamini and Hochberg): '
            "the false discovery rate. d is the distance of the means in standard deviations within the groups.</p>"
        )
    if found.regressions:
        parts += ["<h2>Covariates</h2>", _html_table(*tables["covariates"])]
        whole = found.strata is not None and blocks_are_whole(found.groups, found.strata)
        means = " Numbers are means of the blocks." if whole else ""
        parts.append(
            '<p class="note">Does the shape change with the number? Regression of the transforms on each, over all '
            "groups. It is not adjusted for the group: if groups differ in shape and in the number, it finds that "
            f"difference.{means}</p>"
        )
    if "means" in images:
        what = (
            "Mean shapes, fitted to the mean transform of each group"
            if found.means_fitted
            else "The shape nearest to the mean of each group"
        )
        others = ", over the others in gray" if shapes_drawn else ""
        poor = bool(found.poor_means) or any(extreme.poor for extreme in found.extremes)
        folded = bool(found.folded_means) or any(extreme.folded for extreme in found.extremes)
        caveat = _CAVEAT * found.means_fitted + _POOR * poor + _FOLDED * folded
        along = ", and shapes along the principal components" if found.extremes else ""
        parts += ["<h2>Mean shapes</h2>", _figure(images["means"], f"{what}{others}{along}.{caveat}")]
    if found.classifications:
        header, rows = tables["classification"]
        shown = [[name, *(f"{100 * float(share):.1f} %" for share in shares), used] for name, *shares, used in rows]
        parts += ["<h2>Classification</h2>", _html_table(header, shown, text_column=len(header) - 1)]
        first = next(iter(found.classifications.values()))
        drawn = "once" if first.repeats == 1 else f"{first.repeats} times"
        independent = f"{len(found.groups)} shapes" if found.strata is None else f"{len(set(found.strata))} blocks"
        parts.append(
            f'<p class="note">Support vector machines in nested cross-validation: {first.folds} folds, drawn {drawn}; what a '
            "classifier uses was chosen within the training shapes of each fold. "
            f"Bounds are those of the 95 % interval (Wilson) for {independent}. Majority: guessing the largest group.</p>"
        )
        parts.append(_figure(images["confusion"], f"Predictions from {list(found.classifications)[-1]}, in all repeats."))
    for name, caption in captions.items():
        parts += [f"<h2>{escape(caption.partition('.')[0])}</h2>", _figure(images[name], caption)]
    parts += ["<h2>Method</h2>", f"<p>{_method(found)}</p>"]
    if command:
        parts.append(f"<p><code>{escape(command)}</code></p>")
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n'


def _method(found: Comparison) -> str:
    config = found.config
    aligned = {
        None: "Shapes were compared in the orientation they have",
        "pca": "Shapes were rotated to their principal axes",
        "best": "Shapes were rotated to their mean",
        "invariant": "Features were compared that do not change under rotation",
    }[found.align]
    blocks = ""
    if found.strata is not None:
        whole = blocks_are_whole(found.groups, found.strata)
        permuted = "Whole blocks were permuted" if whole else "Labels were permuted within blocks"
        blocks = f" {permuted}, of which there are {len(set(found.strata))}."
    normalized = {
        "unit_ball": "centered and scaled to the unit ball",
        "vertices": "centered at the mean of the vertices and scaled to the unit ball",
        "center": "centered, with their size",
        None: "not normalized",
    }[config.normalize]
    return (
        f"Euler characteristic transform ({config.variant}{', derivative' if config.derivative else ''}) in "
        f"{config.num_directions} directions at {config.num_thresholds} thresholds; shapes {normalized}. {aligned}. "
        f"Distances are L2 distances of transforms. {found.permutations} permutations, seed {found.seed}.{blocks} "
        f"eulerscan {__version__}."
    )


def _tests(found: Comparison) -> str:
    rows = {"PERMANOVA": found.permanova, "energy": found.energy}
    if found.dispersion is not None:
        rows["PERMDISP"] = found.dispersion.test
    if found.size is not None:
        rows["size"] = found.size
    return _html_table(["test", *_STATISTICS], [[name, *_cells(test)] for name, test in rows.items()])


def _cells(test: PermutationTest) -> list[str]:
    numbers = (test.statistic, test.p_value, test.smallest_p_value, test.r2, test.omega2, test.z)
    return [f"{number:.3g}" for number in numbers]


def _tables(found: Comparison) -> dict[str, _Table]:
    """The tables of the report, by name of their file: header and rows."""
    predicted = _predictions(found)
    axes = min(5, found.ordination.scores.shape[1])
    shapes = [
        [name, group, predicted[i], f"{float(found.sizes[i]):.6g}", _center(found, i)]
        + [f"{float(score):.6g}" for score in found.ordination.scores[i, :axes]]
        for i, (name, group) in enumerate(zip(found.names, found.groups, strict=True))
    ]
    tables: dict[str, _Table] = {
        "shapes": (
            ["name", "group", "predicted", "size", "distance to center", *(f"axis {i + 1}" for i in range(axes))],
            shapes,
        ),
        "distances": (
            ["name", *found.names],
            [[name, *(f"{d:.6g}" for d in row)] for name, row in zip(found.names, found.distances.tolist(), strict=True)],
        ),
        "pairwise": (
            ["group", "other", "shapes", "other shapes", "pseudo-F", "p-value", "q-value", "R²", "z", "distance", "d"],
            [
                [*pair.groups, *pair.sizes]
                + [f"{x:.3g}" for x in (test.statistic, test.p_value, pair.q_value, test.r2, test.z, pair.distance, pair.d)]
                for pair in found.pairs
                for test in [pair.test]
            ],
        ),
    }
    if found.regressions:
        tests = [[name, *_cells(test)] for name, test in found.regressions.items()]
        tables["covariates"] = (["covariate", *_STATISTICS], tests)
    if found.classifications:
        tables["classification"] = (
            ["from", "accuracy", "lower bound", "upper bound", "balanced", "majority", "most often chosen"],
            [
                [
                    name,
                    *(f"{x:.6g}" for x in (c.accuracy, *c.interval, c.balanced, c.majority)),
                    next(iter(c.chosen)),
                ]
                for name, c in found.classifications.items()
            ],
        )
        last = list(found.classifications.values())[-1]
        rows = [[group, *counts] for group, counts in zip(last.groups, last.confusion.tolist(), strict=True)]
        tables["confusion"] = (["true \\ predicted", *last.groups], rows)
    return tables


def _predictions(found: Comparison) -> list[str]:
    last = found.classification
    if last is None:
        return [""] * len(found.groups)
    following = iter(last.predictions)
    return [next(following) if group in last.groups else "" for group in found.groups]


def _center(found: Comparison, number: int) -> str:
    value = math.nan if found.dispersion is None else float(found.dispersion.distances[number])
    return f"{value:.6g}" if math.isfinite(value) else ""


def _html_table(header: Sequence[str], rows: Sequence[Sequence[Any]], text_column: int | None = None) -> str:
    """A table of numbers, with names in the first column and perhaps text in another one."""
    kind = [' class="text"' if i == text_column else "" for i in range(len(header))]
    head = "".join(f"<th{k}>{escape(str(cell))}</th>" for cell, k in zip(header, kind, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{k}>{escape(str(cell))}</td>" for cell, k in zip(row, kind, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _figure(image: str, caption: str) -> str:
    return f'<figure><img {image} alt="{escape(caption)}"><figcaption>{escape(caption)}</figcaption></figure>'


def _embedded(path: Path, picture: Figure) -> str:
    """Attributes of an image of the same size as in print."""
    content = base64.b64encode(path.read_bytes()).decode()
    return f'width="{round(96 * picture.get_size_inches()[0])}" src="data:image/png;base64,{content}"'


def _finite(value: Any) -> Any:
    """JSON has no infinity and no NaN: they become null."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
