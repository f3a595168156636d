"""The help texts of the command line, as they are when the documentation is built."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from eulerscan.cli.commands import COMMANDS
from eulerscan.cli.main import main

PARTS = {"data": ("list", "prepare")}


def write(folder: Path) -> None:
    """One text file for each command: ``train.txt``, ``data-list.txt``, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        for words in [(name, part) for part in PARTS.get(name, ())] or [(name,)]:
            (folder / f"{'-'.join(words)}.txt").write_text(help_of(*words), encoding="utf-8")


def help_of(*words: str) -> str:
    """What ``eulerscan WORDS --help`` prints on a terminal of 88 columns."""
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
