"""The manifest of a folder of parts: what they are made of, so that a run resumes only with the same files and settings."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from .._storage import write_text
from .._tables import unescaped
from .._version import __version__
from ..io.walk import Failure, Listing
from .settings import Settings


class OtherRunError(ValueError):
    """A folder holds the parts of another run: of other or changed files, or with other settings."""


def load_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder; ``None`` if there is none, or one of another program."""
    try:
        found = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    ours = isinstance(found, dict) and found.keys() >= {"fingerprint", "settings", "shards", "files"}
    if not ours or not isinstance(found["settings"], dict) or type(found["files"]) is not int:
        return None
    return found if type(found["shards"]) is int and found["shards"] >= 1 else None


def write_manifest(output: Path, listing: Listing, settings: Settings, shards: int) -> None:
    """Write the manifest of a run, or check that the run that began here is the same."""
    path = output / "manifest.json"
    before = load_manifest(output)
    if before is None and path.exists():
        raise ValueError(f"{path} is not a manifest of eulerscan, or it is damaged. Choose another output.")
    now = {
        "version": __version__,
        "shards": shards,
        "files": len(listing.names),
        "fingerprint": listing.fingerprint(),
        "changed": listing.state(),
        "settings": json.loads(json.dumps(settings.as_dict())),
    }
    if before is not None:  # an option that an older version did not have had the default value
        before["settings"] = Settings(settings.dim).as_dict() | before["settings"]
        if before != now:
            changes = _changes(before, now, listing, path.stat().st_mtime_ns)
            raise OtherRunError(f"{output} holds another run: {changes}. Choose another output, or overwrite this one.")
    (output / "parts").mkdir(parents=True, exist_ok=True)
    write_if_new(path, json.dumps(now, indent=1) + "\n")


def _changes(before: dict[str, Any], now: dict[str, Any], listing: Listing, begun: int) -> str:
    old, new = ({**entry, **entry["settings"]} for entry in (before, now))
    named = [name for name in new if name not in ("settings", "fingerprint", "changed") and old.get(name) != new[name]]
    if named:
        return "; ".join(f"{name} was {old.get(name)} and is {new[name]}" for name in named)
    later = [name for name, changed in zip(listing.names, listing.changed, strict=True) if (changed or 0) > begun]
    if before["fingerprint"] != now["fingerprint"]:
        return f"files have other names or sizes{f', such as {later[0]}' if later else ''}"
    return f"{later[0] if later else 'a file'} has changed since"


def part_paths(folder: Path, shards: int) -> list[Path]:
    """The paths of the parts."""
    return [folder / "parts" / f"part-{number:05}.parquet" for number in range(shards)]


def finished_parts(folder: Path) -> list[Path]:
    """The parts of a finished run."""
    manifest = load_manifest(folder)
    if manifest is None:
        raise ValueError(f"{folder} holds no transforms: it has no manifest.json of `eulerscan transform`.")
    parts = part_paths(folder, manifest["shards"])
    there = sum(part.exists() for part in parts)
    if there < len(parts) or not (folder / "failures.csv").exists():
        raise ValueError(f"{folder} is not finished: it has {there} of {len(parts)} parts. Run the command again.")
    return parts


def load_failures(folder: str | os.PathLike[str]) -> list[Failure]:
    """The files that are in none of the parts, and why."""
    with (Path(folder) / "failures.csv").open(newline="", encoding="utf-8") as file:
        return [Failure(Path(unescaped(name)), unescaped(reason)) for name, reason in list(csv.reader(file))[1:]]


def remove_parts(folder: Path) -> None:
    """Remove what an earlier run wrote, and nothing else."""
    if load_manifest(folder) is not None:
        parts = folder / "parts"
        written = [*parts.glob("part-*.parquet"), *parts.glob(".part-*.partial")]
        for path in (*written, folder / "failures.csv", folder / "manifest.json"):
            path.unlink(missing_ok=True)


def write_if_new(path: Path, content: str) -> None:
    """Write a text file, unless it has this content already."""
    if not path.exists() or path.read_bytes() != content.encode():
        write_text(path, content)
