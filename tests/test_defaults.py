"""The table of defaults in the documentation says what the code does."""

import ast
import inspect
import math
import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import eulerscan as es
from eulerscan.cli.compare import compare
from eulerscan.cli.distances import distances
from eulerscan.cli.evidence import evidence
from eulerscan.cli.explore import explore
from eulerscan.cli.fit import fit
from eulerscan.cli.local import local
from eulerscan.cli.plot import plot
from eulerscan.cli.transform import transform
from eulerscan.convert import AddLocalECT
from eulerscan.explorer import page
from eulerscan.fitting import fit_points
from eulerscan.grid import scale_of_step, soft_scale
from eulerscan.nn import ECTLoss, LocalECT
from eulerscan.nn.models import MODELS
from eulerscan.plot.overview import draw_overview
from eulerscan.training.config import ModelConfig

PAGE = Path(__file__).parents[1] / "docs" / "defaults.md"
OPTIONS = [field.name for field in fields(es.ECTConfig)]


def arguments(function) -> dict[str, object]:
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def columns() -> dict[str, dict[str, object]]:
    """The defaults of each column of the table, by the name in its header."""
    found = {
        "ECTConfig": arguments(es.ECTConfig),
        "ECTLayer": arguments(es.ECTLayer),
        "models": arguments(ModelConfig),
        "ECTLoss": arguments(ECTLoss),
        "rotation_distance": arguments(es.analysis.rotation_distance),
        "fit_points": arguments(fit_points),
        "plot": vars(arguments(draw_overview)["config"]),
        "explore": vars(arguments(page)["config"]),
        "compare": vars(arguments(es.analysis.compare)["config"]),
        "evidence": vars(arguments(es.analysis.evidence)["config"]),
    }
    sklearn = pytest.importorskip("eulerscan.sklearn", reason="scikit-learn is not installed", exc_type=ImportError)
    return found | {"ECTTransformer": arguments(sklearn.ECTTransformer)}


def local_columns() -> dict[str, dict[str, object]]:
    """The same for the table of transforms at every vertex."""
    names = {"local_ect": es.local_ect, "LocalECT": LocalECT, "AddLocalECT": AddLocalECT, "eulerscan_local": local}
    return {name: arguments(function) for name, function in names.items()}


def table(number: int = 0) -> tuple[list[str], dict[str, list[str]]]:
    """The header and the rows of a table of the page."""
    tables = re.findall(r"(?:^\|.*\n)+", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    lines = tables[number].splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return header[1:], {row[0].strip("`"): row[1:] for row in rows}


def literal(text: str) -> object:
    return math.inf if text == "inf" else ast.literal_eval(text)


def test_the_table_has_a_row_for_every_option():
    assert list(table()[1]) == OPTIONS


def test_the_table_of_neighborhoods_has_a_row_for_every_option():
    grid = ["num_directions", "num_thresholds", "scale", "normalize"]
    given = {"shape", "directions", "thresholds", "nodes"}
    assert sorted(table(1)[1]) == sorted({*grid, *(set(arguments(es.local_ect)) - given)})


@pytest.mark.parametrize(("number", "code_columns"), [(0, columns), (1, local_columns)])
def test_every_cell_is_the_default_of_the_code(number, code_columns):
    header, rows = table(number)
    known = code_columns()
    names = [title.strip("`").replace(" ", "_") for title in header]
    assert sorted(names) == sorted(known)
    wrong = []
    for option, cells in rows.items():
        for name, cell in zip(names, cells, strict=True):
            code = re.match(r"`([^`]+)`(: |$)", cell)
            if code is None:
                absent = cell in ("–", "as `local_ect`") or cell.startswith("fixed: ")
                right = absent and option not in known[name] and (cell[:2] != "as" or "options" in known[name])
            else:
                right = option in known[name] and literal(code[1]) == known[name][option]
            if not right:
                wrong.append(f"{name}, {option}: {cell!r}, the code has {known[name].get(option, 'no such argument')!r}")
    assert not wrong


def test_commands_have_the_defaults_of_their_column():
    assert arguments(transform)["ect"] == arguments(distances)["ect"] == es.ECTConfig()
    assert arguments(plot)["ect"] == arguments(draw_overview)["config"]
    assert arguments(explore)["ect"] == arguments(page)["config"]
    assert arguments(compare)["ect"] == arguments(es.analysis.compare)["config"]
    assert arguments(evidence)["ect"] == arguments(es.analysis.evidence)["config"]
    for name in ("num_directions", "num_thresholds"):
        assert arguments(fit)[name] == arguments(fit_points)[name]


def test_a_radius_is_that_of_the_unit_ball_or_required():
    assert es.ECTConfig().largest_height == 1.1
    for normalize in ("center", None):
        with pytest.raises(ValueError, match="radius"):
            _ = es.ECTConfig(normalize=normalize).largest_height


def test_the_radius_of_a_figure_is_that_of_the_shapes():
    shapes = [es.Complex(torch.tensor([[3.0, 4.0]])), es.Complex(torch.tensor([[0.0, 1.0]]))]
    assert es.ECTConfig(normalize=None).with_radius_of(*shapes).radius == pytest.approx(5.5)


def test_the_scale_of_a_layer_is_one_step_and_that_of_a_loss_is_softer():
    assert es.ECTLayer(2).config.scale == scale_of_step(16, 1.1)
    assert ECTLoss(2, radius=2.0).layer.config.scale == soft_scale(2.0) == pytest.approx(8.8 / 2.0)


def test_models_of_a_preset_and_of_the_command_line_have_the_same_layer():
    for name, model in MODELS.items():
        for preset, size in model.presets.items():
            made = model.from_preset(preset, dim=2, num_classes=3).layer
            assert made.config == ModelConfig(name, preset).build(2, 3).layer.config
            assert (made.config.num_directions, made.config.num_thresholds) == (size.num_directions, size.num_thresholds)
            assert made.config.scale == scale_of_step(size.num_thresholds, 1.1)
        grids = {"svm": [(32, 64), (64, 32)], "curves": [(32, 32), (64, 32)], "harmonics": [(34, 16), (578, 16)]}  # by degree
        for dim, grid in zip((2, 3), grids.get(name, [(16, 16)] * 2), strict=True):
            config = ModelConfig(name).build(dim, 3).layer.config
            assert (config.num_directions, config.num_thresholds, config.variant) == (*grid, "ect")
        assert ModelConfig(name, max_dim=1).build(2, 3).layer.config.variant == "channels"


def test_channels_follow_the_space():
    config = es.ECTConfig(variant="channels")
    assert config.num_channels(3) == es.ECTLayer.from_config(3, config).num_channels == 4
    assert es.ECTLayer(2, variant="channels")(torch.rand(1, 9, 2)).shape == (1, 3, 16, 16)


@pytest.mark.parametrize(("dim", "count"), [(2, 64), (3, 128)])
def test_a_fit_has_more_directions_in_space(dim, count, monkeypatch):
    spread, asked = es.directions.half_sphere, []

    def recorded(n, *args, **options):
        asked.append(n)
        return spread(n, *args, **options)

    monkeypatch.setattr(es.directions, "half_sphere", recorded)
    fit_points(torch.rand(5, dim), steps=1, num_thresholds=4, progress=False)
    assert asked == [count]


def test_neighborhoods_have_one_or_two_hops():
    path = es.Complex(torch.rand(5, 2), [torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])])
    grid = es.directions.circle(3), es.thresholds(4)
    assert torch.equal(es.local_ect(path, *grid), es.local_ect(path, *grid, hops=(1, 2)))
    one, other = (LocalECT(2, hops=hops) for hops in (None, 1))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one(path), other(path))
