"""The commands of ``eulerscan``, by name: the only part of the library that prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from tyro.conf import subcommand

from . import data as data_sets
from .advise import advise
from .distances import distances
from .explore import explore
from .fit import fit
from .help import in_one_line, without_none
from .plot import plot
from .predict import evaluate, predict
from .reproduce import reproduce
from .train import train
from .transform import transform

DataCommand = (
    Annotated[None, subcommand("list", constructor=data_sets.list_datasets)]
    | Annotated[None, subcommand("prepare", constructor=data_sets.prepare)]
)


def _data(command: DataCommand) -> None:
    """Data sets: what there is, and preparing them."""


COMMANDS: dict[str, Callable[..., Any]] = {
    "data": _data,
    "train": train,
    "evaluate": evaluate,
    "predict": predict,
    "fit": fit,
    "plot": plot,
    "explore": explore,
    "advise": advise,
    "transform": transform,
    "distances": distances,
    "reproduce": reproduce,
}
for _command in COMMANDS.values():
    without_none(_command)
    in_one_line(_command)
