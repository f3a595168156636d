"""The command line: ``eulerscan COMMAND``. Each command is a function in :mod:`eulerscan.cli.commands`."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections.abc import Sequence

from .._imports import require
from .._loading import uncollected
from .._version import __version__

DESCRIPTION = """The Euler characteristic transform: classify, fit and compare shapes.

Set EULERSCAN_DEBUG=1 to see where an error comes from."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    The code is 0 if all went well, 1 if some of the work could not be done, 2 if nothing could, 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"eulerscan {__version__}")
        sys.exit(0)
    alone = arguments is None  # the process ends with the command
    if alone:
        # What is imported by now, torch above all, stays for good: to look through it for garbage again and again takes long.
        gc.freeze()
    try:
        with uncollected():
            tyro = require("tyro", extra="cli")
            from .commands import COMMANDS
            from .help import WORDS, in_short
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error}")
    # What a command raises on bad input names the input: people need the text, not the way it took.
    shown = (
        () if os.environ.get("EULERSCAN_DEBUG") else (ValueError, TypeError, IndexError, OSError, ImportError, ArithmeticError)
    )
    try:
        options = {
            "registry": WORDS,
            "config": (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.DisallowNone),
        }
        if words and words[0] in COMMANDS:
            # By itself, so that errors name its options as its help does, and refer to that help.
            status = tyro.cli(COMMANDS[words[0]], prog=f"eulerscan {words[0]}", args=words[1:], **options)
        elif words and not words[0].startswith("-"):
            near = difflib.get_close_matches(words[0], COMMANDS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(COMMANDS)}."
            raise ValueError(f"There is no command {words[0]!r}. {hint} `eulerscan --help` says what they do.")
        else:
            asked = words and words[0] not in ("-h", "--help")  # for completions of shells, say, which need all options
            listed = COMMANDS if asked else {name: in_short(command) for name, command in COMMANDS.items()}
            status = tyro.extras.subcommand_cli_from_dict(
                listed, prog="eulerscan", description=DESCRIPTION, args=words, **options
            )
    except BrokenPipeError:  # who reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes when it ends
        sys.exit(1)
    except shown as error:
        print(f"error: {_text(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if alone:
        gc.freeze()  # what the command has loaded and made, too: Python looks for garbage once more at its end
    sys.exit(status or 0)


def _text(error: Exception) -> str:
    """What went wrong, without the number that the system has for it."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
