"""Speed and memory of the transform, against the dense formulation and other packages.

Run ``make bench``, or with the dependency group ``bench`` installed

    python benchmarks/transform.py
    python benchmarks/transform.py --only smooth --only start --output smooth.md

It prints its tables and writes them to ``benchmarks/transform.md``, and a plot to ``benchmarks/transform.png``.
Nothing else should run on the machine meanwhile: ratios change with it. The exit code is 1 if a floor was missed.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import filtrations
import fresh
import peers
import psutil
import scaling
import smooth
import torch
from works import Report

SECTIONS: dict[str, Callable[[], Report]] = {
    "smooth": smooth.run,
    "exact": peers.run,
    "filtrations": filtrations.run,
    "linear": scaling.run,
    "memory": fresh.run_memory,
    "start": fresh.run_start,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=SECTIONS, help="measure this alone; can be given several times")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".md"), help="Markdown file of the results")
    arguments = parser.parse_args()

    parts = [f"# Benchmarks\n\n{_machine()}"]
    print(parts[0], flush=True)
    missed = []
    for name in arguments.only or SECTIONS:
        report = SECTIONS[name]()
        parts.append(report.markdown())
        print(f"\n{parts[-1]}", flush=True)
        missed += report.missed
    parts.append("Every floor was reached." if not missed else "Missed:\n" + "\n".join(f"- {miss}" for miss in missed))
    print(f"\n{parts[-1]}")
    arguments.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return 1 if missed else 0


def _machine() -> str:
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in ("torch", "numba"))
    return "\n".join(
        [
            f"- processor: {_processor()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads",
            f"- busy with other programs just before: {psutil.cpu_percent(interval=2):.0f} %",
            f"- versions: Python {platform.python_version()}, {versions}",
            f"- command: `{shlex.join(['python', 'benchmarks/transform.py', *sys.argv[1:]])}`",
            f"- date: {datetime.date.today().isoformat()}",
        ]
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
