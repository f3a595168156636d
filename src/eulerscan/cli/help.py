"""Rules for tyro: how optional arguments are parsed, and shown by ``--help``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from inspect import cleandoc, unwrap
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from tyro.conf import arg
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    StructConstructorSpec,
    StructTypeInfo,
    UnsupportedTypeAnnotationError,
)

RULES = ConstructorRegistry()
OPTIONAL = arg(help_behavior_hint="(optional)")  # instead of "(default: None)": the text says what happens without it
_DELEGATED = object()  # marks a type whose default rule is asked for


@RULES.primitive_rule
def _or_none(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | UnsupportedTypeAnnotationError | None:
    """Parse ``X | None`` like ``X``. Of a ``Literal``, "none" is another choice."""
    types = [option for option in get_args(info.type) if option is not NoneType]
    if info.type_origin not in (Union, UnionType) or len(types) != 1:
        return None
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(types[0], info.markers))
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec
    choices = (*(spec.choices or ()), "none") if get_origin(types[0]) is Literal else None
    return replace(
        spec,
        metavar=spec.metavar if choices is None else "{" + ",".join(choices) + "}",
        choices=choices,
        instance_from_str=lambda words: None if choices and words == ["none"] else spec.instance_from_str(words),
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["none"] if value is None else spec.str_from_instance(value),
    )


@RULES.struct_rule
def _optional_fields(info: StructTypeInfo) -> StructConstructorSpec | None:
    """Mark the fields of a dataclass whose default is ``None`` as optional."""
    if not is_dataclass(info.type) or _DELEGATED in info.markers:
        return None
    spec = ConstructorRegistry.get_struct_spec(replace(info, markers=(*info.markers, _DELEGATED)))
    if not isinstance(spec, StructConstructorSpec):
        return None
    fields = [
        replace(field, type=_optional(field.type)) if field.default is None and not _is_choice(field.type) else field
        for field in spec.fields
    ]
    return replace(spec, fields=tuple(fields))


def _is_choice(annotation: Any) -> bool:
    return any(get_origin(option) is Literal for option in get_args(annotation))


def _optional(annotation: Any) -> Any:
    return Annotated[annotation, OPTIONAL]


def join_lines(command: Callable[..., Any]) -> Callable[..., Any]:
    """Join the lines of each argument in the docstring of a command, which tyro would break where the source does."""
    unwrap(command).__doc__ = re.sub(r"\n {8,}", " ", cleandoc(command.__doc__ or ""))
    return command
