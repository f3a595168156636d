"""The entry point of the command line, ``eulerscan COMMAND``. The commands are in :mod:`eulerscan.cli.commands`."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections.abc import Callable, Sequence

from .._imports import require, without_gc
from .._tables import printable
from .._version import __version__

DESCRIPTION = """The Euler characteristic transform: classify, fit and compare shapes.

Set EULERSCAN_DEBUG=1 to see the traceback of an error."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit.

    The exit code is 0 for success, 1 if some of the work could not be done, 2 if nothing could, and 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"eulerscan {__version__}")
        sys.exit(0)
    own_process = arguments is None  # which ends with the command
    if own_process:
        gc.freeze()  # what is imported by now, torch above all, stays: garbage collection would scan it again and again
    # Errors about the input name it, and need no traceback.
    shown = (
        () if os.environ.get("EULERSCAN_DEBUG") else (ValueError, TypeError, IndexError, OSError, ImportError, ArithmeticError)
    )
    try:
        status = _run(words)
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python flushes when it ends
        sys.exit(1)
    except shown as error:
        print("error: " + "\n".join(map(printable, _message(error).split("\n"))), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if own_process:
        gc.freeze()  # Python collects garbage once more when it ends
    sys.exit(status or 0)


def _run(words: Sequence[str]) -> int | None:
    with without_gc():
        tyro = require("tyro", extra="cli")
        from .commands import COMMANDS, load
        from .help import RULES

        named = words[0] if words else "--help"
        command = load(named) if named in COMMANDS else None
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.DisallowNone)
    options = {"registry": RULES, "config": markers}
    status: int | None
    if command is not None:
        # Not as a subcommand, so that errors name its options as its own help does, and refer to that help.
        status = tyro.cli(command, prog=f"eulerscan {named}", args=words[1:], **options)
        return status
    if not named.startswith("-"):
        near = difflib.get_close_matches(named, COMMANDS, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Commands are {', '.join(COMMANDS)}."
        raise ValueError(f"unknown command {named!r}. {hint} See `eulerscan --help`.")
    if named in ("-h", "--help"):
        listed = {name: _summarized(summary) for name, (_, summary) in COMMANDS.items()}
    else:  # completions of shells, which need all options
        listed = {name: load(name) for name in COMMANDS}
    status = tyro.extras.subcommand_cli_from_dict(
        listed, prog="eulerscan", description=DESCRIPTION, args=words or ["--help"], **options
    )
    return status


def _summarized(summary: str) -> Callable[[], None]:
    """A command without arguments that has only a summary."""

    def command() -> None:
        pass

    command.__doc__ = summary
    return command


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"  # without the error number
    return str(error)
