"""The data sets by name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from . import cache
from .dataset import Dataset
from .digits import digits
from .manifolds import manifolds
from .mnist import mnist
from .modelnet import modelnet40
from .splits import stratified
from .superpixels import superpixels
from .tu import letters, molecules


@dataclass(frozen=True)
class Description:
    """What is known about a data set before it is loaded.

    Attributes:
        name: What :func:`load` takes.
        what: What the shapes are.
        size: How many, in how many classes.
        origin: Where they come from.
        make: The function that prepares it. Its options are those of :func:`load`.
        needs_files: It is made from raw files, and cached. The others are made anew each time.
        official: All its splits are fixed. Otherwise there is an option ``seed``.
    """

    name: str
    what: str
    size: str
    origin: str
    make: Callable[..., Dataset]
    needs_files: bool = True
    official: bool = False

    @property
    def options(self) -> dict[str, Any]:
        """The options of the data set and their default values."""
        return self._own_options | ({} if self.official else {"seed": 0})

    @property
    def _own_options(self) -> dict[str, Any]:
        parameters = inspect.signature(self.make).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given options, checked, and the others at their defaults."""
        defaults = self.options
        for option, value in given.items():
            if option not in defaults:
                known = ", ".join(f"{name}={default!r}" for name, default in defaults.items())
                raise TypeError(f"{self.name} has no option {option!r}. Its options are {known or 'none'}.")
            wanted = type(defaults[option])
            fits = isinstance(value, (int, float) if wanted is float else wanted)
            if not fits or (isinstance(value, bool) and wanted is not bool):
                raise TypeError(f"{option} must be {wanted.__name__}, got {value!r}.")
        return {name: type(default)(given.get(name, default)) for name, default in defaults.items()}

    def file(self, options: Mapping[str, Any]) -> Path:
        """Where the data set with these options is cached."""
        return cache.path_of(self.name, self._own(options))

    def _own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What the function that prepares it takes of the options."""
        chosen = self.complete(options)
        return {name: chosen[name] for name in self._own_options}

    def load(self, **options: Any) -> Dataset:
        """The data set, from the cache if it is there; its splits follow from the option ``seed`` unless they are official."""
        chosen, own = self.complete(options), self._own(options)
        dataset = cache.load(self.name, own) if self.needs_files else None
        if dataset is None:
            dataset = self.make(**own)
            if self.needs_files:
                cache.save(dataset, own)
        if self.official:
            return dataset
        # Not cached with the rest: there may be many seeds, and it takes no time.
        return replace(dataset, splits=stratified(dataset.labels, seed=chosen["seed"], given=dataset.splits))


def load(name: str, **options: Any) -> Dataset:
    """Load a data set: shapes, labels, names of the classes, and splits.

    The first time its raw files are downloaded, or copied from the folder ``EULERSCAN_MIRROR``, and prepared; then it is read
    from the cache folder ``EULERSCAN_DATA``. Where there is no official split, a fifth of every class is for testing and a
    fifth of the rest for validation, drawn with the option ``seed``.

    Args:
        name: One of :func:`names`.
        options: Those of the data set: ``describe(name).options``.

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
    """What a data set is, before it is loaded.

    >>> describe("mnist").options
    {'form': 'points'}
    """
    if name not in _DESCRIPTIONS:
        near = difflib.get_close_matches(str(name).lower(), _DESCRIPTIONS, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(_DESCRIPTIONS)}."
        raise ValueError(f"There is no data set {name!r}. {hint}")
    return _DESCRIPTIONS[name]


_TU = "TUDataset (chrsmrrs.com)"
_DESCRIPTIONS = {
    description.name: description
    for description in (
        *(
            Description(
                f"letter-{distortion}",
                f"line drawings of letters, {word} distortion: plane graphs",
                "2,250 graphs, 15 classes",
                _TU,
                partial(letters, f"letter-{distortion}"),
            )
            for distortion, word in (("low", "low"), ("med", "medium"), ("high", "high"))
        ),
        *(
            Description(
                name, f"{what}: graphs in space", f"{size} graphs ({cleaned} cleaned), 2 classes", _TU, partial(molecules, name)
            )
            for name, what, size, cleaned in (
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
            mnist,
            official=True,
        ),
        Description(
            "mnist-superpixels",
            "handwritten digits: graphs of superpixels",
            "70,000 graphs, 10 classes",
            "a mirror",
            superpixels,
            official=True,
        ),
        Description("modelnet40", "everyday objects: point clouds", "12,311 clouds, 40 classes", "a mirror", modelnet40),
        Description(
            "digits",
            "small handwritten digits: points, graphs, meshes, weighted pixels",
            "1,797 digits, 10 classes",
            "scikit-learn",
            digits,
            needs_files=False,
        ),
        Description(
            "manifolds",
            "sphere, torus, Möbius strip, Klein bottle: points or meshes",
            "any number, 4 classes",
            "made here",
            manifolds,
            needs_files=False,
        ),
    )
}
