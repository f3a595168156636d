"""PLY files, with a parser of our own.

trimesh drops strips of triangles, edges beside faces and faces of two vertices, and refuses binary files with polygons of
several sizes.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

import numpy as np

from ..convert.geometry import Geometry
from .polygons import check_sizes, geometry_of, numbers

_Array = np.ndarray[Any, Any]
_TYPES = {
    "char": "i1",
    "int8": "i1",
    "uchar": "u1",
    "uint8": "u1",
    "short": "i2",
    "int16": "i2",
    "ushort": "u2",
    "uint16": "u2",
    "int": "i4",
    "int32": "i4",
    "uint": "u4",
    "uint32": "u4",
    "int64": "i8",
    "uint64": "u8",
    "float16": "f2",
    "float": "f4",
    "float32": "f4",
    "double": "f8",
    "float64": "f8",
}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
_BYTE_ORDERS: dict[str, Literal["little", "big"]] = {"<": "little", ">": "big"}
_INTEGERS = tuple(name for name, type in _TYPES.items() if type[0] != "f")
_COORDINATES = ("x", "y", "z")
_SCALARS = (*_COORDINATES, "vertex1", "vertex2")
_USED = (*_SCALARS, "vertex_indices", "vertex_index")


class Property(NamedTuple):
    """A number or, if it has the type of a size, a list of numbers."""

    name: str
    type: str
    size_type: str | None = None


class Element(NamedTuple):
    """Vertices, faces or something else."""

    num_rows: int
    properties: list[Property]


class Column(NamedTuple):
    """The values of a property, row after row, and how many each row has."""

    values: _Array
    sizes: _Array


Table = dict[str, Column]
_NO_POLYGONS = Column(np.empty(0, np.int64), np.empty(0, np.int64))


def parse_ply(content: bytes) -> Geometry:
    """The vertices, edges and triangles of a PLY file."""
    order, elements, begin = _parse_header(content)
    tables = _read_text(content[begin:], elements) if order == "" else _read_binary(content, begin, elements, order)
    vertices = tables.get("vertex", {})
    if not set(_COORDINATES) <= vertices.keys() or not elements["vertex"].num_rows:
        raise ValueError("file holds no vertices: every vertex must have properties x, y and z.")
    coordinates = np.stack([vertices[axis].values for axis in _COORDINATES], axis=1).astype(np.float64)
    readers = {"face": _faces, "edge": _edges, "tristrips": _strips}
    polygons = [
        _NO_POLYGONS,
        *(readers[name](tables[name]) for name, element in elements.items() if name in readers and element.num_rows),
    ]
    return geometry_of(coordinates, np.concatenate([p.sizes for p in polygons]), np.concatenate([p.values for p in polygons]))


def _parse_header(content: bytes) -> tuple[str, dict[str, Element], int]:
    """The byte order, or nothing for text; the elements; and where their rows begin."""
    newline = rb"\r\n" if content.startswith(b"ply\r\n") else rb"\r" if content.startswith(b"ply\r") else rb"\n"
    end = re.search(newline + rb"end_header[ \t]*" + newline, content)
    if end is None:
        raise ValueError("not a PLY file, or truncated: the header has no end.")
    order, elements = None, dict[str, Element]()
    properties: list[Property] = []  # of the last element
    for line in re.split(newline, content[: end.start()]):
        match line.decode("ascii", "replace").split():
            case ["format", name, *_]:
                order = _ORDERS.get(name)
            case ["element", name, count] if count.isdecimal() and name not in elements:
                properties = []
                elements[name] = Element(int(count), properties)
            case ["element", *_]:
                raise ValueError("not a valid PLY file: the header must declare every element once, with its number.")
            case ["property", *words]:
                properties.append(_property(words))
                if len({property.name for property in properties}) < len(properties):
                    raise ValueError(f"not a valid PLY file: the header declares a property {properties[-1].name} twice.")
    if order is None:
        raise ValueError(f"not a valid PLY file: its format must be one of {', '.join(_ORDERS)}.")
    return order, elements, end.end()


def _property(words: list[str]) -> Property:
    match words:
        case ["list", size, type, name] if name not in _SCALARS and size in _INTEGERS and type in _TYPES:
            return Property(name, _TYPES[type], _TYPES[size])
        case [type, name] if type in _TYPES:
            return Property(name, _TYPES[type])
    raise ValueError(f"not a valid PLY file: the header declares a property of unknown type, {' '.join(words)!r}.")


def _read_text(body: bytes, elements: dict[str, Element]) -> dict[str, Table]:
    """One line a row. Only what a mesh needs is parsed."""
    rows = [words for line in body.splitlines() if (words := line.split())]
    declared = sum(element.num_rows for element in elements.values())
    if len(rows) < declared:
        raise ValueError(f"file is truncated: the header declares {declared} lines, got {len(rows)}.")
    tables, begin = {}, 0
    for name, element in elements.items():
        try:
            tables[name] = _read_lines(rows[begin : begin + element.num_rows], element.properties, name)
        except (OverflowError, ValueError) as error:
            raise ValueError(f"not a valid PLY file: {error}") from None
        begin += element.num_rows
    return tables


def _read_lines(rows: list[list[bytes]], properties: list[Property], name: str) -> Table:
    table, places = {}, [0] * len(rows)  # of the next word in each row
    one = [1] * len(rows)
    for property in properties:
        check_sizes(one, [len(row) - at for row, at in zip(rows, places, strict=True)], name, f"value of {property.name}")
        counts = one
        if property.size_type is not None:
            counts = numbers(int, (row[at] for row, at in zip(rows, places, strict=True))).tolist()
            places = [at + 1 for at in places]
            values = "vertices" if name == "face" else property.name
            check_sizes(counts, [len(row) - at for row, at in zip(rows, places, strict=True)], name, values)
        ends = [at + count for at, count in zip(places, counts, strict=True)]
        if property.name in _USED:
            words = [word for row, at, end in zip(rows, places, ends, strict=True) for word in row[at:end]]
            found = numbers(float if property.name in _COORDINATES else int, words)
            table[property.name] = Column(found, np.array(counts, np.int64))
        places = ends
    return table


def _read_binary(content: bytes, begin: int, elements: dict[str, Element], order: str) -> dict[str, Table]:
    tables = {name: Table() for name in elements}
    for name, element in elements.items():
        if element.num_rows and element.properties:
            known = _read_equal_rows(content, begin, element, order)
            tables[name], begin = known or _read_rows(content, begin, element, order)
    return tables


def _read_equal_rows(content: bytes, begin: int, element: Element, order: str) -> tuple[Table, int] | None:
    """The rows, and where they end, if the lists of all rows are as long as those of the first; else ``None``."""
    first, _ = _read_rows(content, begin, element._replace(num_rows=1), order)
    sizes = {property.name: int(first[property.name].sizes[0]) for property in element.properties if property.size_type}
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    for property in element.properties:
        if property.size_type is None:
            fields.append((property.name, order + property.type))
        else:
            size = ("size of " + property.name, order + property.size_type)
            fields += [size, (property.name, order + property.type, (sizes[property.name],))]
    layout = np.dtype(fields)
    if len(content) - begin < element.num_rows * layout.itemsize:
        return None
    rows = np.frombuffer(content, layout, element.num_rows, begin)
    if not all((rows["size of " + name] == size).all() for name, size in sizes.items()):
        return None
    table = {p.name: Column(rows[p.name].reshape(-1), np.full(len(rows), sizes.get(p.name, 1))) for p in element.properties}
    return table, begin + rows.nbytes


def _read_rows(content: bytes, begin: int, element: Element, order: str) -> tuple[Table, int]:
    """The rows one by one, and where they end."""
    pieces: dict[str, list[bytes]] = {property.name: [] for property in element.properties}
    sizes: dict[str, list[int]] = {property.name: [] for property in element.properties}
    for _ in range(element.num_rows):
        for property in element.properties:
            size = 1
            if property.size_type is not None:
                width = int(property.size_type[1])
                size = int.from_bytes(content[begin : begin + width], _BYTE_ORDERS[order], signed=property.size_type[0] == "i")
                begin += width
            end = begin + size * int(property.type[1])
            if size < 0 or end > len(content):
                raise ValueError("file is truncated, or not a valid PLY file: rows are shorter than the header declares.")
            pieces[property.name].append(content[begin:end])
            sizes[property.name].append(size)
            begin = end
    table = {
        p.name: Column(np.frombuffer(b"".join(pieces[p.name]), order + p.type), np.array(sizes[p.name], np.int64))
        for p in element.properties
    }
    return table, begin


def _faces(table: Table) -> Column:
    found = table.get("vertex_indices") or table.get("vertex_index")
    if found is None:
        raise ValueError("not a valid PLY file: every face must have a list vertex_indices.")
    return _indices(found)


def _edges(table: Table) -> Column:
    """Edges as polygons of two vertices."""
    if not {"vertex1", "vertex2"} <= table.keys():
        raise ValueError("not a valid PLY file: every edge must have properties vertex1 and vertex2.")
    ends = np.stack([_indices(table[name]).values for name in ("vertex1", "vertex2")], axis=1)
    return Column(ends.reshape(-1), np.full(len(ends), 2))


def _strips(table: Table) -> Column:
    """The triangles of strips: any three vertices in a row. An index of -1 begins a new strip."""
    found = _faces(table)
    corners = np.insert(found.values, np.cumsum(found.sizes), -1)
    triangles = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
    triangles = triangles[(triangles != -1).all(axis=1)]
    return Column(triangles.reshape(-1), np.full(len(triangles), 3))


def _indices(column: Column) -> Column:
    if column.values.dtype.kind == "f":
        raise ValueError("not a valid PLY file: the vertices of faces and edges must be integers.")
    return column._replace(values=column.values.astype(np.int64))
