"""What ``--help`` says of types, in words for people who do not know Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

WORDS = ConstructorRegistry()


@WORDS.primitive_rule
def _several(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[tuple[Any, ...]] | None:
    """``tuple[int, ...]`` reads "INT ...", and an empty one "none"."""
    of = get_args(info.type)
    if info.type_origin is not tuple or len(of) != 2 or of[1] is not Ellipsis or of[0] not in (int, str, Path):
        return None
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"{of[0].__name__.upper()} ...",
        instance_from_str=lambda words: tuple(map(of[0], words)),
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(entry, of[0]) for entry in value),
        str_from_instance=lambda value: [str(entry) for entry in value] or ["none"],
    )
