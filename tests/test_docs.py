"""The documentation lists every public name, and its code and commands run. `tests/test_site.py` looks at its pages."""

import doctest
import functools
import importlib
import inspect
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from test_rooms import ROOMS

import eulerscan as es
from eulerscan.cli import commands
from eulerscan.cli.main import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_made" not in path.parts)
TEXTS = [*PAGES, *ROOT.glob("*.md"), *(ROOT / "results").glob("*.md")]
# Pages whose commands are quick enough to run in order, together with their Python. Commands of other pages are only parsed.
RUN = {"guides/files.md"}
# Pages whose Python needs a cluster, so it is only compiled.
NOT_RUN = {"many-machines.md"}
SHELLS = ("sh", "bash")
# Modules that people import; what they define without an underscore, or list in __all__, is public.
PUBLIC = [
    "",
    "analysis",
    "analysis.distances",
    "bulk",
    "convert",
    "datasets",
    "directions",
    "fitting",
    "io",
    "nn.losses",
    "nn.models",
    "plot",
]
PUBLIC += ["sklearn", "testing", "training", "training.augmentation", "training.loop", "training.metrics", "training.models"]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """Language and text of the code of a page."""
    return [(language, text) for language, text in FENCE.findall(page.read_text("utf-8")) if language in languages]


def command_lines(text: str) -> list[list[str]]:
    """The words of every call of eulerscan in a shell block."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("eulerscan ")]


def named(pages: list[Path]) -> list:
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages]


@pytest.mark.parametrize("page", named([page for page in PAGES if blocks(page, "python", "pycon")]))
def test_the_code_of_a_page_runs_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace: dict[str, object] = {}
    name = page.relative_to(DOCS).as_posix()
    for language, text in blocks(page, "python", "pycon", *SHELLS):
        if language == "python":
            code = compile(text, str(page), "exec")
            if name not in NOT_RUN:
                exec(code, namespace)
        elif language == "pycon":
            check_outputs(text, namespace, page.name)
        elif name in RUN:
            for words in command_lines(text):
                with pytest.raises(SystemExit) as exit:
                    main(words)
                assert exit.value.code == 0, words


def check_outputs(text: str, namespace: dict[str, object], name: str) -> None:
    """The output must be what the page shows."""
    example = doctest.DocTestParser().get_doctest(text, namespace, name, name, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed, _ = runner.run(example, out=report.append, clear_globs=False)
    assert not failed, "".join(report)
    namespace.update(example.globs)


@pytest.mark.parametrize("page", named([page for page in TEXTS if blocks(page, *SHELLS)]))
def test_every_command_on_a_page_is_understood(page, monkeypatch):
    check_commands([words for _, text in blocks(page, *SHELLS) for words in command_lines(text)], monkeypatch)


def test_the_commands_of_the_demo_are_understood(monkeypatch):
    lines = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ").splitlines()
    found = [line.partition("$(BIN)/eulerscan ")[2] for line in lines if "$(BIN)/eulerscan " in line]
    assert len(found) >= 2
    check_commands([shlex.split(line) for line in found], monkeypatch)


class DataAreReadError(Exception):
    pass


def check_commands(expected: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse command lines, without running them. Training is run up to the point where data are read."""
    calls = []

    def read(*_):
        raise DataAreReadError

    monkeypatch.setattr("eulerscan.cli.train._source", read)
    monkeypatch.setattr("eulerscan.cli.train.check_folder", lambda *_, **__: None)

    def recorded(name):
        command = load(name)

        @functools.wraps(command)
        def call(*arguments, **options):
            calls.append(name)
            if name == "train":
                with pytest.raises(DataAreReadError):
                    command(*arguments, **options)

        return command if name == "data" else call  # subcommands of data are harmless

    load = commands.load
    monkeypatch.setattr(commands, "load", recorded)
    for words in expected:
        with pytest.raises(SystemExit) as exit:
            main(words)
        assert exit.value.code == 0, words
    assert len(calls) == sum(words[0] not in ("data", "--version", "--help") for words in expected)


def test_the_page_of_data_sets_has_all_of_them_with_a_picture():
    text = (DOCS / "data.md").read_text("utf-8")
    for name in es.datasets.names():
        about = es.datasets.describe(name)
        assert f"| ![](_static/data-{name}.png) | `{name}` | {about.content} | {about.size} | {about.origin} |" in text


def test_every_link_between_files_leads_somewhere():
    dead = []
    for page in TEXTS:
        if not page.exists():
            continue
        text = FENCE.sub("", page.read_text("utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path) if path else page
            made = "_made" in Path(path).parts  # drawn when the documentation is built
            if not (made or file.exists()) or (anchor and anchor not in anchors(file)):
                dead.append(f"{page.relative_to(ROOT)}: {target}")
    assert not dead


def anchors(file: Path) -> set[str]:
    """The anchors that the headings of a Markdown file have."""
    headings = re.findall(r"^#+ (.+)$", file.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def documented() -> list[str]:
    """The full names that the reference lists."""
    names, module = [], ""
    for page in sorted((DOCS / "api").glob("*.rst")):
        for kind, name in re.findall(r"^\.\. (\S+):: (\S+)$", page.read_text("utf-8"), flags=re.MULTILINE):
            if kind in ("py:module", "currentmodule"):
                module = name
            elif kind.startswith("auto"):
                names.append(name if name.startswith("eulerscan.") else f"{module}.{name}")
    return names


def test_every_documented_name_exists():
    names = documented()
    assert len(names) > 50
    assert len(names) == len(set(names))
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_every_public_name_is_documented_and_has_a_docstring():
    known = {id(getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2])) for name in documented()}
    missing, silent = [], []
    for part in PUBLIC:
        module = importlib.import_module(f"eulerscan.{part}" if part else "eulerscan")
        for name, thing in public(module).items():
            full = f"{module.__name__}.{name}"
            if id(thing) not in known:
                missing.append(full)
            if callable(thing) and not inspect.getdoc(thing):
                silent.append(full)
    assert not missing
    assert not silent


def public(module: ModuleType) -> dict[str, object]:
    """The public names of a module: its ``__all__``, else the functions and classes that it defines without an underscore."""
    if hasattr(module, "__all__"):
        found = {name: getattr(module, name) for name in module.__all__ if not name.startswith("_")}
        return {name: thing for name, thing in found.items() if not isinstance(thing, ModuleType)}
    return {
        name: thing
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    }


def test_every_command_has_its_help_on_the_page_of_commands():
    text = (DOCS / "api" / "commands.md").read_text("utf-8")
    for name in commands.COMMANDS:
        assert f"## eulerscan {name}" in text, name


def test_every_module_that_the_package_offers_is_public_here():
    offered = {getattr(es, name).__name__ for name in es.__all__ if isinstance(getattr(es, name), ModuleType)}
    assert offered <= {f"eulerscan.{name}" for name in PUBLIC}


def test_the_places_to_extend_exist():
    """Each row of the table names a folder for the new file, and the file where it is registered."""
    text = (DOCS / "extending.md").read_text("utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| a ") or line.startswith("| objects")]
    assert len(rows) == 6
    for thing, new, register, tests in rows:
        assert (ROOT / re.search(r"`(.*)<", new)[1]).is_dir(), thing
        assert (ROOT / tests.strip(" `")).exists(), thing
        for name, file in re.findall(r"(?:`(\w+)` in )?`([\w/]+\.py)`", register):
            source = (ROOT / "src" / "eulerscan" / file).read_text("utf-8")
            assert re.search(rf"^(def )?{name}\b", source, flags=re.MULTILINE), thing


def test_the_table_of_rooms_has_them_in_the_order_of_imports():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| core", "| input", "| learn", "| use"))]
    named = re.findall(r"`(\w+)/?`", " ".join(re.sub(r"\(.*?\)", "", row) for row in rows))
    assert named == [room for room in ROOMS if not room.startswith("_")]


@pytest.mark.parametrize("page", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_has_a_text(page):
    """Sphinx would put in the title of the page, but GitHub shows nothing."""
    assert not re.findall(r"(?<!!)\[\]\([^)]*\)", page.read_text("utf-8"))
