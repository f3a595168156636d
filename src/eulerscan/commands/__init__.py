"""The commands of ``eulerscan``, by name: the only part of the library that prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from tyro.conf import subcommand

from . import data as data_sets
from .fit import fit
from .predict import evaluate, predict
from .reproduce import reproduce
from .train import train

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
    "reproduce": reproduce,
}
