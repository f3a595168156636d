"""What is published installs into an empty environment and works there."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import eulerscan as es

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks")
MADE = {"__pycache__", "_made"}


def call(*command: object, **options: object) -> str:
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def release():
    """Source distribution and wheel, which is made from it."""
    return _pair(Path(os.environ["RELEASE"]))


def _pair(folder: Path) -> tuple[Path, Path]:
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.skipif("RELEASE" not in os.environ, reason="`make release` builds wheel and sdist and tries them")
def test_the_release_installs_into_an_empty_environment_and_works(release, tmp_path):
    """torch and the other dependencies are lent by this environment; the workflow of the repository installs them too."""
    sdist, wheel = release
    check_sources(sdist, wheel)
    python = empty_environment(tmp_path / "environment")
    call(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    options = {"cwd": tmp_path, "env": environment | {"PYTHONUTF8": "1"}}
    code = """
import pathlib, torch, eulerscan as es
print(pathlib.Path(es.__file__).parent)
print((pathlib.Path(es.__file__).parent / "py.typed").exists())
print(es.__version__)
print(es.ect(torch.zeros(3, 2), es.directions.circle(2), es.thresholds(3)).tolist())
from eulerscan.explorer import page  # made of files that are no Python
print(page(torch.rand(5, 2), name="five points").startswith("<!DOCTYPE html>"))
"""
    place, typed, version, transform, explorer = call(python, "-c", code, **options).splitlines()
    assert Path(place).is_relative_to(tmp_path), "another installation was used"
    assert typed == "True"
    assert version == es.__version__
    assert explorer == "True"
    assert transform == "[[[0.0, 3.0, 3.0], [0.0, 3.0, 3.0]]]"
    eulerscan = python.with_name("eulerscan" + python.suffix)
    assert call(eulerscan, "--version", **options).strip() == f"eulerscan {es.__version__}"
    assert "train" in call(eulerscan, "--help", **options)
    options["env"]["EULERSCAN_KERNEL"] = "portable"  # nothing to compile
    assert "accuracy" in call(eulerscan, "train", "digits", "--model", "mlp", "--epochs", 1, "--output", "run", **options)
    assert (tmp_path / "run" / "seed-0" / "result.json").exists()


def check_sources(sdist: Path, wheel: Path) -> None:
    """The source distribution holds all that the tests need; the wheel holds the package, its script, and nothing else."""
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    wanted = {path.relative_to(ROOT).as_posix() for path in files if not MADE & set(path.parts) and path.suffix != ".pyc"}
    wanted |= {"Makefile", "constraints.txt", "LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff"}
    wanted |= {"results/README.md", "pyproject.toml", "paper/paper.md", "paper/paper.bib", "recipe/meta.yaml"}
    assert not sorted(wanted - packed)
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"eulerscan", "eulerscan_command.py", f"eulerscan-{es.__version__}.dist-info"}


def empty_environment(folder: Path) -> Path:
    """A new environment that finds the libraries of this one, but not what is installed here from the checkout."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = Path(call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # A path that is added in this way is searched, but what its own .pth files add, the checkout for one, is not.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python


def test_the_version_is_in_one_place_and_the_others_follow():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in project
    assert 'path = "src/eulerscan/_version.py"' in project
    assert re.search(rf"^version: {re.escape(es.__version__)}$", (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.MULTILINE)


def test_the_paper_cites_every_reference_and_lists_what_it_cites():
    paper, entries = ((ROOT / "paper" / name).read_text("utf-8") for name in ("paper.md", "paper.bib"))
    listed = re.findall(r"^@\w+\{(\w+),$", entries, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(re.findall(r"@([a-z]+\d{4})", paper)) == set(listed)
    for entry in re.split(r"^@", entries, flags=re.MULTILINE)[1:]:
        assert {"title", "author", "year"} <= set(re.findall(r"^  (\w+) +=", entry, flags=re.MULTILINE)), entry


def test_the_recipe_for_conda_asks_for_what_the_package_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    recipe = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    assert f'version = "{es.__version__}"' in recipe
    other = {"torch": "pytorch", "torch-geometric": "pytorch_geometric", "matplotlib": "matplotlib-base"}
    extras = [need for name, needs in project["optional-dependencies"].items() if name != "all" for need in needs]
    needs = [re.match(r"([\w-]+)(.*)", need).groups() for need in (*project["dependencies"], *extras)]
    wanted = {f"{other.get(name, name)} {bound}" for name, bound in needs}
    assert set(re.findall(r"^    - ([\w-]+ >=[\d.]+)$", recipe, flags=re.MULTILINE)) == wanted


def test_only_versions_of_python_that_were_tested_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)]
    assert "3.11" in declared
    assert f"Tested with Python {', '.join(declared)}" in (ROOT / "docs" / "install.md").read_text("utf-8")


def test_the_command_line_tells_its_version(run):
    out, _ = run("--version")
    assert out == f"eulerscan {es.__version__}\n"
