"""What ``--help`` says of types and defaults, and errors of values, in words for people who do not know Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from inspect import cleandoc, signature, unwrap
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_type_hints

from tyro.conf import arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
    UnsupportedTypeAnnotationError,
)

WORDS = ConstructorRegistry()
_OPTIONAL = arg(help_behavior_hint="(optional)")  # instead of "(default: None)": what happens without it, the text says
_SEEN = object()  # a mark of ours on what tyro is asked for: it answers with our rules, too
_NUMBERS: dict[Any, str] = {int: "a whole number", float: "a number, its decimals after a point"}


@WORDS.primitive_rule
def _number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """What is no number is refused in words."""
    if info.type not in _NUMBERS:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=info.type.__name__.upper(),
        instance_from_str=lambda words: _parsed(info.type, words[0]),
        is_instance=lambda value: isinstance(value, int | info.type),
        str_from_instance=lambda value: [str(value)],
    )


@WORDS.primitive_rule
def _or_none(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | UnsupportedTypeAnnotationError | None:
    """``int | None`` is an ``int``: for ``None`` the option is left out."""
    of = [option for option in get_args(info.type) if option is not NoneType]
    if info.type_origin not in (Union, UnionType) or len(of) != 1:
        return None
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(of[0], info.markers))
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec
    return replace(spec, str_from_instance=lambda value: ["none"] if value is None else spec.str_from_instance(value))


@WORDS.primitive_rule
def _several(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[tuple[Any, ...]] | None:
    """``tuple[int, ...]`` reads "INT ...", and an empty one "none"."""
    of = get_args(info.type)
    if info.type_origin is not tuple or len(of) != 2 or of[1] is not Ellipsis or of[0] not in (int, str, Path):
        return None
    return PrimitiveConstructorSpec(
        nargs="*",
        metavar=f"{of[0].__name__.upper()} ...",
        instance_from_str=lambda words: tuple(_parsed(of[0], word) for word in words),
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(entry, of[0]) for entry in value),
        str_from_instance=lambda value: [str(entry) for entry in value] or ["none"],
    )


@WORDS.struct_rule
def _without_none(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a dataclass as tyro makes them, where a default ``None`` reads "optional"."""
    if not is_dataclass(info.type) or _SEEN in info.markers:
        return None
    spec = ConstructorRegistry.get_struct_spec(replace(info, markers=(*info.markers, _SEEN)))
    if not isinstance(spec, StructConstructorSpec):
        return None
    fields = (replace(field, type=_optional(field.type)) if field.default is None else field for field in spec.fields)
    return replace(spec, fields=tuple(fields))


def without_none(command: Callable[..., Any]) -> None:
    """The same for the arguments of a function, whose annotations are changed."""
    types = get_type_hints(command, include_extras=True)
    names = [name for name, argument in signature(command).parameters.items() if argument.default is None]
    unwrap(command).__annotations__ = types | {name: _optional(types[name]) for name in names}


def in_one_line(command: Callable[..., Any]) -> None:
    """What a function says of each argument: the ends of its lines are those of our source, and tyro would keep them."""
    unwrap(command).__doc__ = re.sub(r"\n {8,}", " ", cleandoc(command.__doc__ or ""))


def in_short(command: Callable[..., Any]) -> Callable[[], None]:
    """Something without arguments that says of itself what a command says of itself first, for the list of all."""

    def short() -> None:
        pass

    short.__doc__ = cleandoc(command.__doc__ or "").partition("\n\n")[0]
    return short


def _optional(of: Any) -> Any:
    return Annotated[of, _OPTIONAL]


def _parsed(of: Any, word: str) -> Any:
    """A word of the command line as an entry of this type."""
    try:
        return of(word)
    except ValueError:
        raise ValueError(f"it takes {_NUMBERS[of]}, got {word!r}.") from None
