"""The data sets by name. Their modules are imported on use."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from . import prepared
from .dataset import Dataset
from .splits import stratified


@dataclass(frozen=True)
class Description:
    """Description of a data set.

    Attributes:
        name: Name, for :func:`load`.
        content: What the shapes are.
        size: Number of shapes and classes.
        origin: Where the data come from.
        maker: The function that prepares it: ``"module.function"`` in this package, called with the name, or a function. Its
            keyword arguments are the options of the data set.
        needs_files: Whether it is prepared from raw files and cached. Other data sets are generated each time.
        official: Whether all its splits are fixed. Others have an option ``seed``.
    """

    name: str
    content: str
    size: str
    origin: str
    maker: str | Callable[..., Dataset]
    needs_files: bool = True
    official: bool = False

    @property
    def make(self) -> Callable[..., Dataset]:
        """The function that prepares it."""
        if not isinstance(self.maker, str):
            return self.maker
        module, function = self.maker.split(".")
        return partial(getattr(import_module(f".{module}", __package__), function), self.name)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the data set and their defaults."""
        return self._own_options | ({} if self.official else {"seed": 0})

    @property
    def _own_options(self) -> dict[str, Any]:
        parameters = inspect.signature(self.make).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, validated, and the defaults of the others."""
        defaults = self.options
        for option, value in given.items():
            if option not in defaults:
                known = ", ".join(f"{name}={default!r}" for name, default in defaults.items())
                raise TypeError(f"{self.name} has no option {option!r}. Its options are {known or 'none'}.")
            expected = type(defaults[option])
            fits = isinstance(value, (int, float) if expected is float else expected)
            if not fits or (isinstance(value, bool) and expected is not bool):
                raise TypeError(f"{option} must be {expected.__name__}, got {value!r}.")
        return {name: type(default)(given.get(name, default)) for name, default in defaults.items()}

    def file(self, options: Mapping[str, Any]) -> Path:
        """The cache file of the data set with these options."""
        return prepared.path_of(self.name, self._own(self.complete(options)))

    def _own(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Of complete options, those of the function that prepares it."""
        return {name: chosen[name] for name in self._own_options}

    def load(self, **options: Any) -> Dataset:
        """Load the data set, from the cache if possible. Unless its splits are official, they depend on ``seed``."""
        chosen = self.complete(options)
        own = self._own(chosen)
        dataset = prepared.load(self.name, own) if self.needs_files else None
        if dataset is None:
            dataset = self.make(**own)
            if self.needs_files:
                prepared.save(dataset, own)
        if self.official:
            return dataset
        # Not cached: it is fast, and there may be many seeds.
        return replace(dataset, splits=stratified(dataset.labels, seed=chosen["seed"], given=dataset.splits))


def load(name: str, **options: Any) -> Dataset:
    """Load a data set: shapes, labels, names of the classes, and splits.

    The first time, raw files are downloaded, or copied from the folder ``EULERSCAN_MIRROR``, and prepared. Afterwards the data
    set is read from the cache folder ``EULERSCAN_DATA``. Without an official split, 20 % of every class are for test, and 20 %
    of the rest for validation, drawn with the option ``seed``.

    Args:
        name: One of :func:`names`.
        options: Options of the data set: ``describe(name).options``.

    Example:
        >>> load("digits", form="points")
        Dataset('digits', 1797 shapes, 10 classes, train 1151, val 287, test 359)
    """
    return describe(name).load(**options)


def names() -> tuple[str, ...]:
    """The names of all data sets.

    >>> names()[:3]
    ('letter-low', 'letter-med', 'letter-high')
    """
    return tuple(_DESCRIPTIONS)


def describe(name: str) -> Description:
    """The description of a data set, without loading it.

    >>> describe("mnist").options
    {'form': 'points'}
    """
    if name not in _DESCRIPTIONS:
        near = difflib.get_close_matches(str(name).lower(), _DESCRIPTIONS, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"Choose one of {', '.join(_DESCRIPTIONS)}."
        raise ValueError(f"There is no data set {name!r}. {hint}")
    return _DESCRIPTIONS[name]


_TU = "TUDataset (chrsmrrs.com)"
_DESCRIPTIONS = {
    description.name: description
    for description in (
        *(
            Description(
                f"letter-{level}",
                f"line drawings of letters, {distortion} distortion: plane graphs",
                "2,250 graphs, 15 classes",
                _TU,
                "tu.letters",
            )
            for level, distortion in (("low", "low"), ("med", "medium"), ("high", "high"))
        ),
        *(
            Description(
                name, f"{content}: graphs in space", f"{size} graphs ({cleaned} cleaned), 2 classes", _TU, "tu.molecules"
            )
            for name, content, size, cleaned in (
                ("bzr", "benzodiazepine receptor ligands", 405, 276),
                ("cox2", "cyclooxygenase-2 inhibitors", 467, 237),
                ("dhfr", "dihydrofolate reductase inhibitors", 756, 578),
            )
        ),
        Description(
            "mnist",
            "handwritten digits: pixels as points or meshes",
            "70,000 digits, 10 classes",
            "MNIST",
            "mnist.mnist",
            official=True,
        ),
        Description(
            "mnist-superpixels",
            "handwritten digits: graphs of superpixels",
            "70,000 graphs, 10 classes",
            "a mirror",
            "superpixels.superpixels",
            official=True,
        ),
        Description(
            "modelnet40", "everyday objects: point clouds", "12,311 clouds, 40 classes", "a mirror", "modelnet.modelnet40"
        ),
        Description(
            "cells",
            "outlines of bone cancer cells, by line or treatment: closed curves, or filled",
            "650 outlines, 2 or 3 classes",
            "geomstats",
            "cells.cells",
        ),
        Description(
            "wings",
            "outlines of mosquito wings, by genus: closed curves, or filled",
            "126 outlines, 11 classes",
            "ktch",
            "morphometrics.wings",
        ),
        Description(
            "trilobites",
            "head shields of trilobites, by period: landmarks and curves",
            "296 graphs, 5 classes",
            "ktch",
            "morphometrics.trilobites",
        ),
        Description(
            "gorillas",
            "skulls of gorillas, by sex: landmarks as closed curves, or filled",
            "59 outlines, 2 classes",
            "a mirror",
            "morphometrics.gorillas",
        ),
        Description(
            "apes",
            "skulls of apes, by species and sex: landmarks as closed curves, or filled",
            "167 outlines, 6 classes",
            "a mirror",
            "morphometrics.apes",
        ),
        Description(
            "vertebrae",
            "outlines of vertebrae of mice, by weight: closed curves",
            "76 outlines, 3 classes",
            "a mirror",
            "morphometrics.vertebrae",
        ),
        Description(
            "macaques",
            "skulls of macaques, by sex: landmarks in space",
            "18 clouds, 2 classes",
            "a mirror",
            "morphometrics.macaques",
        ),
        Description(
            "digits",
            "small handwritten digits: points, graphs, meshes, weighted pixels",
            "1,797 digits, 10 classes",
            "scikit-learn",
            "digits.digits",
            needs_files=False,
        ),
        Description(
            "manifolds",
            "sphere, torus, Möbius strip, Klein bottle: points or meshes",
            "any number, 4 classes",
            "generated",
            "manifolds.manifolds",
            needs_files=False,
        ),
    )
}
