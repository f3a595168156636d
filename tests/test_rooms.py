"""The rooms of the package: imports go inward only, lazy ones included, and without cycles."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import eulerscan

SOURCE = Path(eulerscan.__file__).parent
ROOMS = (
    *(
        "_version",
        "_torch_internals",
        "_devices",
        "_validation",
        "_imports",
        "_labels",
        "_limits",
        "_progress",
        "_storage",
        "_tables",
    ),  # private helpers
    *("kernels", "complexes", "directions", "rotations", "harmonics"),
    *("grid", "functional", "variants", "config", "local"),  # core
    *("convert", "io"),  # shapes in and out
    *("nn", "fitting", "datasets", "training"),  # learn
    *("analysis", "bulk", "sklearn", "plot", "explorer", "testing", "paper", "cli"),  # use
)
"""From the inside out: a room may import those before it."""

SHARED_NAMES = {
    "__init__": "of every room",
    "config": "frozen dataclasses of settings: of a transform, and of a run",
    "directions": "unit vectors, and fitting them",
    "distances": "computing, drawing and printing them",
    "harmonics": "of a direction, and the model on them",
    "groups": "testing and drawing them",
    "evidence": "computing it, drawing it, and the command",
    "images": "objects of Pillow, and files",
    "training": "its loop, and drawing its curves",
    "local": "the transform at every vertex, as a function, a layer and a command",
    "plot": "drawing, and the command",
    "svm": "support vector machines on the transform, and that of the paper's molecules",
    "transform": "of folders of files, and the command",
}
"""Modules with one basename in different rooms, which mean the same thing."""


def modules() -> dict[str, Path]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a module imports, wherever in the file, unless for type checkers alone."""
    package = name.split(".") if path.name == "__init__.py" and name else name.split(".")[:-1]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "eulerscan"):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, *((node.module or "").split(".") if node.module else [])]
            base = base[1:] if not node.level else base
            for alias in node.names:
                module = ".".join([*base, alias.name])
                found.add(module if module in known else ".".join(base))
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "eulerscan"}
    return found - {name, ""}


KNOWN = modules()
GRAPH = {name: imports(name, path, KNOWN) for name, path in KNOWN.items() if name not in ("", "__main__")}


def test_every_module_is_in_a_room():
    assert {name.split(".")[0] for name in GRAPH} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_further_inside(room):
    inside = ROOMS[: ROOMS.index(room) + 1]
    for name, targets in GRAPH.items():
        if name.split(".")[0] == room:
            outward = {target for target in targets if target.split(".")[0] not in inside}
            assert not outward, f"{name} imports {', '.join(sorted(outward))}"


def test_no_module_imports_itself_in_a_cycle():
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for target in GRAPH.get(name, ()):
                visit(target, (*path, name))
            done.add(name)

    for name in GRAPH:
        visit(name, ())


def test_the_package_has_few_entries():
    public = [path for path in SOURCE.iterdir() if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")]
    assert len(public) <= 24


def test_modules_of_one_basename_mean_the_same_thing():
    rooms = defaultdict(set)
    for name in KNOWN:
        rooms[KNOWN[name].stem].add(name.split(".")[0])
    assert {stem for stem, owners in rooms.items() if len(owners) > 1} <= set(SHARED_NAMES)


def test_importing_loads_no_reader_no_data_set_and_no_model():
    code = "import sys, eulerscan; print(*[name for name in sys.modules if name.split('.')[0] == 'eulerscan'])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split(".")[1] for name in loaded if "." in name}
    assert not rooms & {"io", "convert", "datasets", "training", "fitting", "plot", "cli"}
    assert "eulerscan.nn.models" not in loaded
    assert len(loaded) <= 40
