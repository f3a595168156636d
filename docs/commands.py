"""Writes the help of every command to a file, when the documentation is built."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from eulerscan.cli.commands import COMMANDS
from eulerscan.cli.main import main

SUBCOMMANDS = {"data": ("list", "prepare")}


def write(folder: Path) -> None:
    """Write one file per command: ``train.txt``, ``data-list.txt``, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        for words in [(name, subcommand) for subcommand in SUBCOMMANDS.get(name, ())] or [(name,)]:
            (folder / f"{'-'.join(words)}.txt").write_text(help_of(*words), encoding="utf-8")


def help_of(*words: str) -> str:
    """The output of ``eulerscan WORDS --help`` on a terminal with 88 columns."""
    text = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "88"
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n"
