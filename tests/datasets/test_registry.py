import pytest
import tyro

from eulerscan import datasets
from eulerscan.cli import data as command
from eulerscan.datasets import registry
from eulerscan.datasets.manifolds import manifolds

NAMES = "letter-low letter-med letter-high bzr cox2 dhfr mnist mnist-superpixels modelnet40 cells "
NAMES += "wings trilobites gorillas apes vertebrae macaques digits manifolds"


def test_the_names_are_those_of_the_design():
    assert " ".join(datasets.names()) == NAMES
    for name in datasets.names():
        about = datasets.describe(name)
        assert about.name == name
        assert about.content
        assert about.size
        assert about.origin


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("leter-low", "'leter-low'. Did you mean letter-low"),
        ("MNIST", "Did you mean mnist"),
        ("modelnet", "Did you mean modelnet40"),
        ("xyz", "'xyz'.* letter-low, letter-med"),
    ],
)
def test_an_unknown_name_suggests_similar_ones(name, text):
    with pytest.raises(ValueError, match=text):
        datasets.load(name)


@pytest.mark.parametrize(
    ("name", "options", "error", "text"),
    [
        ("mnist", {"shape": "points"}, TypeError, "no option 'shape'.* form='points'"),
        ("letter-low", {"cleaned": True}, TypeError, "no option 'cleaned'.* seed=0"),
        ("mnist", {"seed": 1}, TypeError, "mnist has no option 'seed'"),
        ("bzr", {"cleaned": 1}, TypeError, "cleaned must be bool, got 1"),
        ("modelnet40", {"num_points": True}, TypeError, "num_points must be int, got True"),
        ("modelnet40", {"num_points": 1025}, ValueError, "num_points must be .*1024, got 1025"),
        ("modelnet40", {"num_points": 0}, ValueError, "num_points must be .* got 0"),
        ("mnist", {"form": "graphs"}, ValueError, "form must be .*meshes.* got 'graphs'"),
        ("digits", {"form": "mesh"}, ValueError, "form must be .*meshes.* got 'mesh'"),
        ("digits", {"threshold": 16}, ValueError, "threshold must be .* got 16"),
        ("manifolds", {"form": "graphs"}, ValueError, "form must be .*meshes.* got 'graphs'"),
        ("manifolds", {"num_shapes": 0}, ValueError, "num_shapes must be at least 1, got 0"),
        ("manifolds", {"num_points": 5, "form": "meshes"}, ValueError, "num_points must be at least 32 for meshes, got 5"),
        ("manifolds", {"noise": -1}, ValueError, "noise must be .* got -1.0"),
        ("manifolds", {"noise": "much"}, TypeError, "noise must be float, got 'much'"),
    ],
)
def test_a_wrong_option_is_named(name, options, error, text, fresh):
    with pytest.raises(error, match=text):
        datasets.load(name, **options)
    assert not fresh.exists()


def test_the_list_tells_what_is_prepared(fresh, capsys, monkeypatch):
    command.list_datasets()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:-2]] == NAMES.split()
    assert all("no" in line for line in lines[2:-2])
    assert str(fresh) in lines[-1]
    monkeypatch.setitem(
        registry._DESCRIPTIONS, "mnist", registry.Description("mnist", "", "", "", lambda *, form="points": manifolds("mnist"))
    )
    datasets.load("mnist")
    command.list_datasets()
    assert "form=points (1 MB)" in capsys.readouterr().out


def test_preparing_tells_what_it_made(fresh, capsys):
    tyro.cli(command.prepare, args=["manifolds", "form=meshes", "num_shapes=5", "num_points=40", "noise=0.1"])
    text = capsys.readouterr().out
    assert "form=meshes, num_shapes=5, num_points=40, noise=0.1, seed=0" in text
    assert "20 in 3 dimensions" in text
    assert "vertices, " in text
    assert " triangles" in text
    assert "train 12, val 4, test 4" in text
    assert "4: sphere, torus, Möbius strip, Klein bottle" in text


def test_preparing_names_the_file(mirror, capsys):
    pytest.importorskip("torch_geometric")
    command.prepare("bzr", ("cleaned=True", "atoms=false"))
    text = capsys.readouterr().out
    assert "276 in 3 dimensions" in text
    assert "prepared/bzr/cleaned=True_atoms=False_unit_ball=False_planes=False-" in text


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (["form"], ValueError, "name=value, got 'form'"),
        (["cleaned=maybe"], TypeError, "cleaned must be bool, got 'maybe'"),
        (["seed=x"], TypeError, "seed must be int, got 'x'"),
        (["size=3"], TypeError, "bzr has no option 'size'"),
    ],
)
def test_a_wrong_option_of_the_command_is_named(options, error, text, fresh):
    with pytest.raises(error, match=text):
        command.prepare("bzr", tuple(options))
