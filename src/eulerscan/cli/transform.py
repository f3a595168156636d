"""``eulerscan transform``: files in, one table of transforms out, or a folder of parts for many files."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import closing
from pathlib import Path

from .._progress import progress_bar
from ..bulk import FORMATS, Settings, transform_files, transform_folder
from ..config import ECTConfig
from .options import (
    Dim,
    Files,
    Input,
    Maybe,
    Output,
    Overwrite,
    Quiet,
    check_output,
    find_files,
    print_failures,
    warn_beyond_radius,
    warn_unusual_topology,
)


def transform(
    files: Files,
    /,
    *,
    output: Output,
    ect: ECTConfig = ECTConfig(),  # noqa: B008
    dim: Dim = None,
    input: Input = Input(),  # noqa: B008
    shards: Maybe[int] = None,
    processes: Maybe[int] = None,
    scheduler: Maybe[str] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> int:
    """Transform shapes: one row of numbers per shape, which depends on that shape alone.

    Files that cannot be read are reported and left out, and the exit code is then 1.

    Examples: `eulerscan transform skulls/ -o skulls.csv`, `eulerscan transform million/ -o out/ --shards 1000`

    Args:
        files: Files of meshes, points, graphs or images, or folders of them.
        output: File for the transforms: .npz, .csv or .parquet. Without such an extension: a folder for Parquet parts, which a
            second call completes after an interruption.
        ect: How shapes are transformed.
        input: Which files are read, and how.
        shards: Number of parts, for an output folder. Default: one per thousand files.
        processes: Number of processes that write parts. Default: one per core.
        scheduler: Address of a dask scheduler whose workers write the parts, such as tcp://node7:8786.
    """
    single = output.suffix.lower() in FORMATS
    _check_options(files, output, single, shards, processes, scheduler)
    written = (output, output.with_suffix(".json")) if output.suffix.lower() == ".csv" else (output,)
    for path in written if single else ():
        check_output(path, overwrite)
    reading = input.options()
    listing = find_files(files, input=input, exclude=written, sort=True, quiet=quiet)
    settings = Settings(dim, ect, reading)
    try:
        with closing(progress_bar(len(listing.names), "transforming", hidden=quiet)) as bar:
            if single:
                report = transform_files(listing, settings, output, progress=bar)
            else:
                report = transform_folder(
                    listing,
                    settings,
                    output,
                    shards=shards,
                    processes=processes or os.cpu_count() or 1,
                    fork=_can_fork(),
                    scheduler=scheduler,
                    overwrite=overwrite,
                    progress=bar,
                )
    except KeyboardInterrupt:
        kept = f"nothing was written to {output}; a folder as --output would keep parts"
        again = f"finished parts are in {output}: the same command{' without --overwrite' * overwrite} completes them"
        print(kept if single else again, file=sys.stderr)
        raise
    if report.num_shapes and not quiet:
        place = output if single else output / "parts"
        grid = f"{ect.num_directions} directions x {ect.num_thresholds} thresholds each"
        print(f"{place}: {report.num_shapes} of {report.num_shapes + len(report.failures)} shapes, {grid}")
    warn_beyond_radius(report.num_beyond, report.settings.ect.largest_height)
    warn_unusual_topology(report.euler)
    return print_failures(report.failures, done=report.num_shapes, listed_in=None if single else output / "failures.csv")


def _check_options(
    files: tuple[Path, ...], output: Path, single: bool, shards: int | None, processes: int | None, scheduler: str | None
) -> None:
    for name, value in (("--shards", shards), ("--processes", processes), ("--scheduler", scheduler)):
        if value is not None and single:
            raise ValueError(f"{name} needs a folder as --output, for the parts, got {output.name!r}.")
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if scheduler is not None and processes is not None:
        raise ValueError("--processes and --scheduler exclude each other: the workers of a scheduler do all the work.")
    if not single and (output.is_file() or (output.suffix and not output.exists())):
        raise ValueError(f"--output must end with one of {', '.join(FORMATS)}, or be a folder for parts, got {output.name!r}.")
    if output.resolve() in {path.resolve() for path in files}:
        raise ValueError(f"--output must not be one of the inputs, got {output}.")


def _can_fork() -> bool:
    """Whether this process may fork: only a fresh one, in which torch has not used several threads.

    Outside Linux, system libraries may have threads of their own. If a program calls the command after it made transforms,
    processes are spawned.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and "numba" not in sys.modules
