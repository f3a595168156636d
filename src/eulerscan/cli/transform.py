"""``eulerscan transform``: files in, a table of transforms out; or a folder of parts, made on one machine or many."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from .._loading import hidden
from .._progress import progress_bar
from ..bulk import (
    NothingReadError,
    OtherRunError,
    Settings,
    first_dimension,
    transform_folder,
    transformed,
    write_transforms,
)
from ..bulk.files import ENDINGS, Piece, companion, load_manifest
from ..bulk.parts import prepare
from ..bulk.workers import one_thread
from ..config import ECTConfig
from ..io import Failure, Listing
from .options import (
    Files,
    check_output,
    check_radius,
    find_files,
    parse_pairs,
    report_beyond,
    report_failures,
    report_others,
    report_white,
)

LISTED = 20  # failures on the screen, where a file lists them all


def transform(
    files: Files,
    /,
    *,
    output: Annotated[Path, arg(aliases=["-o"])],
    ect: ECTConfig = ECTConfig(),  # noqa: B008
    dim: int | None = None,
    data: tuple[str, ...] = (),
    shards: int | None = None,
    processes: int | None = None,
    scheduler: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Transform shapes: a row of numbers for each, which depends on that shape alone.

    What cannot be read is reported and left out, and the exit code is then 1.

    Examples: `eulerscan transform skulls/ -o skulls.csv`, `eulerscan transform million/ -o out/ --shards 1000`

    Args:
        files: Files of meshes, points, graphs or images, or folders of them.
        output: File for the transforms: .npz, .csv or .parquet. Without such an ending, a folder for Parquet parts, in which a
            second call goes on where the first was stopped.
        ect: How shapes are transformed.
        dim: Dimension of the ambient space. Default: that of the first shape.
        data: Options for reading files, such as `invert=true` for dark images on white, `weighted=true` or `threshold=0.3`.
        shards: Number of parts, for an output folder. Default: one for every thousand files.
        processes: Of this machine that work on parts. Default: one for each core.
        scheduler: Address of a dask scheduler whose workers make the parts, such as tcp://node7:8786.
        overwrite: Replace the output if it is there already.
        quiet: Show no progress, and print nothing but errors.
    """
    single = output.suffix.lower() in ENDINGS
    check_radius(ect)
    reading = parse_pairs(data)
    _check_parts(files, output, single, shards, processes, scheduler)
    beside = companion(output)
    for path in (output, beside) if single else ():
        check_output(path, overwrite)
    source = find_files(files, besides=(output,) if beside is None else (output, beside), sort=True)
    try:
        with one_thread():
            settings = Settings(dim or first_dimension(source, reading), ect, reading)
    except NothingReadError as error:
        if all(changed is None for changed in source.changed):  # there are no such files
            raise
        return _report(error.failures, len(error.failures))
    report_white((source.folder / name for name in source.names), settings.reading)
    beyond: list[int] = []
    bar = progress_bar(len(source.names), "transforming", hidden=quiet)
    try:
        if single:
            failures: list[Failure] = []
            pieces = transformed(source, settings, failures, ended=bar.update, beyond=beyond.append)
            write_transforms(output, settings, _some(pieces, failures))
        else:
            if overwrite:
                _remove(output)
            failures = transform_folder(
                source,
                settings,
                output,
                shards=shards,
                processes=processes or os.cpu_count() or 1,
                fork=_is_fresh(),
                prepare=_prepare,
                scheduler=scheduler,
                ended=bar.update,
                beyond=beyond.append,
            )
    except NothingReadError as error:
        return _report(error.failures, len(error.failures))
    except OtherRunError as error:
        raise ValueError(f"{str(error).removesuffix('.')}, or --overwrite to begin anew.") from error
    finally:
        bar.close()
    if not quiet:
        print(_summary(source, settings, failures, output if single else output / "parts"))
        report_others(source.skipped)
    report_beyond(sum(beyond), settings.ect.largest_height)
    return _report(failures, len(source.names) + len(source.failures), None if single else output / "failures.csv")


def _some(pieces: Iterable[Piece], failures: Sequence[Failure]) -> Iterator[Piece]:
    """The same pieces. If they hold no shape, it is an error, so that no empty table is left in the way of the next try."""
    count = 0
    for piece in pieces:
        count += len(piece[0])
        yield piece
    if not count:
        raise NothingReadError(failures)


def _is_fresh() -> bool:
    """Whether this process may fork: it has only just begun, so that torch has not yet worked on several threads.

    Elsewhere than on Linux, libraries of the system may have threads of their own. Who calls the command from a program
    that has made transforms already is on the safe side with processes that start anew.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and "numba" not in sys.modules


def _prepare(settings: Settings) -> None:
    """Without scipy, where numba would look for BLAS, which no kernel calls. This process ends with the command."""
    with hidden("scipy"):
        prepare(settings)


def _report(failures: Sequence[Failure], found: int, listed: Path | None = None) -> int:
    """Say what could not be transformed, a few where a file lists all; the exit code for it."""
    shown = failures if listed is None else failures[:LISTED]
    status = report_failures(shown)
    if len(shown) < len(failures):
        print(f"and {len(failures) - len(shown)} more: {listed} lists all", file=sys.stderr)
    if len(failures) == found:
        print(f"error: none of {found} files could be transformed", file=sys.stderr)
        return 2
    return status


def _check_parts(
    files: tuple[Path, ...], output: Path, single: bool, shards: int | None, processes: int | None, scheduler: str | None
) -> None:
    for name, value in (("--shards", shards), ("--processes", processes), ("--scheduler", scheduler)):
        if value is not None and single:
            raise ValueError(f"{name} needs a folder for --output, where the parts are written, got {output.name!r}.")
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if scheduler is not None and processes is not None:
        raise ValueError("--processes are those of this machine, and --scheduler has workers of its own: choose one.")
    if not single and (output.is_file() or (output.suffix and not output.exists())):
        raise ValueError(f"--output must end with one of {', '.join(ENDINGS)}, or be a folder for parts, got {output.name!r}.")
    if output.resolve() in {path.resolve() for path in files}:
        raise ValueError(f"--output must be apart from the files, got {output}, which is one of them.")


def _summary(source: Listing, settings: Settings, failures: list[Failure], place: Path) -> str:
    grid = f"{settings.ect.num_directions} directions x {settings.ect.num_thresholds} thresholds"
    found = len(source.names) + len(source.failures)
    return f"{place}: {found - len(failures)} of {found} shapes, {grid} each"


def _remove(output: Path) -> None:
    """What an earlier run wrote, and nothing else."""
    if load_manifest(output) is not None:
        parts = output / "parts"
        written = [*parts.glob("part-*.parquet"), *parts.glob(".part-*.partial")]
        for path in (*written, output / "failures.csv", output / "manifest.json"):
            path.unlink(missing_ok=True)
