import copy
import dataclasses
import pickle
import subprocess
import sys
from multiprocessing import get_all_start_methods

import pytest
import torch
from torch.utils.data import DataLoader, Subset

import eulerscan as es
from eulerscan import datasets
from eulerscan.datasets import Dataset

CLASSES = ("even", "odd")


def numbered(count: int = 20) -> Dataset:
    """Shape ``i`` has ``i % 5`` points at ``i``, joined to a path, and a weight of ``i``."""
    sizes = torch.arange(count) % 5
    batch = torch.arange(count).repeat_interleave(sizes)
    inner = (batch[1:] == batch[:-1]).nonzero().squeeze(1)
    edges = torch.stack([inner, inner + 1])
    points = batch[:, None].float().repeat(1, 2)
    shapes = es.Complex(points, [edges], weights=(batch.float(), None), batch=batch, num_complexes=count)
    splits = {"train": torch.arange(2, count), "test": torch.tensor([1, 0])}
    return Dataset("numbered", shapes, torch.arange(count) % 2, CLASSES, splits)


def same(one: es.Complex, other: es.Complex) -> bool:
    weights = (one.packed.weights, other.packed.weights)
    return (
        one.rows == other.rows
        and torch.equal(one.points, other.points)
        and torch.equal(one.offsets, other.offsets)
        and torch.equal(one.packed.simplices, other.packed.simplices)
        and (weights[0] is weights[1] or torch.equal(*weights))
    )


def order(loader) -> list[int]:
    """The shapes that a loader gave, by the number of points and the place of the first one."""
    found = []
    for shapes, labels in loader:
        assert len(shapes) == len(labels)
        found += list(zip(shapes.offsets.diff(dim=1)[0].tolist(), labels.tolist(), strict=True))
    return found


def test_an_item_is_a_shape_and_its_label():
    dataset = numbered()
    assert len(dataset) == 20
    shape, label = dataset[3]
    assert (shape.num_complexes, label) == (1, 1)
    assert shape.points.tolist() == [[3.0, 3.0]] * 3
    assert dataset[-1][1] == 1
    with pytest.raises(IndexError):
        dataset[20]


def test_several_items_are_one_complex():
    dataset = numbered()
    for indices in ([7, 3, 3], torch.tensor([7, 3, 3]), (7, 3, -17)):
        shapes, labels = dataset.__getitems__(indices)
        assert same(shapes, es.collate([dataset[i][0] for i in (7, 3, 3)]))
        assert labels.tolist() == [1, 1, 1]
    shapes, labels = dataset.__getitems__([])
    assert (len(shapes), labels.tolist()) == (0, [])


def test_a_selection_keeps_the_names_of_its_shapes():
    shapes, labels = es.Complex(torch.rand(3, 2), batch=torch.arange(3)), torch.tensor([0, 1, 0])
    dataset = Dataset("dots", shapes, labels, ("a", "b"), {"test": torch.tensor([2, 0])}, ("x.csv", "y.csv", "z.csv"))
    assert dataset.split("test").names == ("z.csv", "x.csv")
    assert dataset.select([1]).names == ("y.csv",)
    with pytest.raises(ValueError, match="names must have .*3.* got 1"):
        dataclasses.replace(dataset, names=("x.csv",))


def test_a_selection_keeps_its_splits():
    dataset = numbered()
    part = dataset.select([1, 19, 0, 2])
    assert part.labels.tolist() == [1, 1, 0, 0]
    assert {name: indices.tolist() for name, indices in part.splits.items()} == {"train": [1, 3], "test": [0, 2]}
    assert same(dataset.select(slice(4, 6)).shapes, dataset.shapes[4:6])
    assert dataset.select(dataset.labels == 1).labels.tolist() == [1] * 10
    test = dataset.split("test")
    assert same(test.shapes, dataset.shapes[[1, 0]])
    assert test.splits["test"].tolist() == [0, 1]
    assert len(test.loader("test")) == 1


def test_copies_and_pickles_are_equal():
    dataset = numbered()
    for again in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset)), dataset.to("cpu")):
        assert same(again.shapes, dataset.shapes)
        assert torch.equal(again.labels, dataset.labels)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "other"
    assert repr(dataset) == "Dataset('numbered', 20 shapes, 2 classes, train 18, test 2)"


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"name": torch.zeros(3, 2)}, TypeError, r"name must be a str, got Tensor.*Dataset\(name, shapes"),
        ({"shapes": "shapes/"}, TypeError, "shape must be a Complex.*got str"),
        ({"labels": torch.zeros(3, dtype=torch.int64)}, ValueError, r"labels must have .*\[20\], got \[3\]"),
        ({"labels": torch.zeros(20)}, TypeError, "labels must be .*int64.*, got torch.float32"),
        ({"labels": [0] * 20}, TypeError, "labels must be .*int64.*, got list.*torch.tensor"),
        ({"labels": torch.full((20,), 2)}, ValueError, "labels must be from 0 to 1 .* got 2"),
        ({"labels": torch.full((20,), -1)}, ValueError, "labels must be from 0 to 1 .* got -1"),
        ({"splits": {"train": torch.tensor([20])}}, IndexError, r"splits\['train'\] must hold indices from 0 to 19, got 20"),
        ({"splits": {"train": torch.tensor([-1])}}, IndexError, "got -1"),
        ({"splits": {"train": [1]}}, TypeError, "int64"),
        (
            {"splits": {"a": torch.tensor([1]), "b": torch.tensor([0, 1])}},
            ValueError,
            "splits must be disjoint, got shape 1 in 'a' and in 'b'",
        ),
        ({"splits": {"a": torch.tensor([1, 1])}}, ValueError, r"splits\['a'\] must not repeat"),
    ],
)
def test_inconsistent_arguments_are_named(changes, error, text):
    with pytest.raises(error, match=text):
        dataclasses.replace(numbered(), **changes)


def test_shapes_of_other_libraries_are_converted():
    clouds, labels = torch.rand(3, 5, 2), torch.tensor([0, 1, 0])
    assert same(Dataset("clouds", clouds, labels, CLASSES).shapes, es.as_complex(clouds))
    pyg = pytest.importorskip("torch_geometric.data", reason="torch_geometric is not installed")

    class Graphs(pyg.InMemoryDataset):
        def __init__(self, items):
            super().__init__()
            self.data, self.slices = self.collate(items)

    graphs = [pyg.Data(pos=torch.rand(4, 3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=i % 2) for i in range(3)]
    assert same(Dataset("graphs", Graphs(graphs), labels, CLASSES).shapes, es.as_complex(graphs))


def test_an_unknown_split_is_named():
    for call in (numbered().split, numbered().loader):
        with pytest.raises(ValueError, match="split must be .*train, test, got 'validation'"):
            call("validation")
    with pytest.raises(ValueError, match="got 'train', but 'numbered' has no splits.*stratified"):
        dataclasses.replace(numbered(), splits={}).split("train")


@pytest.mark.parametrize("batch_size", [1, 3, 18, 100])
def test_a_loader_gives_every_shape_once_in_order(batch_size):
    dataset = numbered()
    batches = list(dataset.loader("train", batch_size=batch_size))
    assert same(es.collate([shapes for shapes, _ in batches]), dataset.split("train").shapes)
    assert torch.cat([labels for _, labels in batches]).tolist() == dataset.split("train").labels.tolist()
    assert len(order(dataset.loader(batch_size=batch_size))) == 20
    assert len(list(dataset.loader("train", batch_size=4, drop_last=True))) == 4


def test_a_generator_decides_the_order():
    dataset = numbered()

    def shuffled(seed):
        generator = torch.Generator().manual_seed(seed)
        loader = dataset.loader("train", batch_size=4, shuffle=True, generator=generator)
        return [order(loader), order(loader)]

    first, second = shuffled(0)
    assert [first, second] == shuffled(0)
    assert first != second
    assert first != shuffled(1)[0]
    assert sorted(first) == sorted(order(dataset.loader("train")))


@pytest.mark.parametrize("method", [method for method in ("fork", "spawn") if method in get_all_start_methods()])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_give_the_same_batches(method):
    dataset = numbered()

    def batches(**options):
        generator = torch.Generator().manual_seed(3)
        return list(dataset.loader("train", batch_size=5, shuffle=True, generator=generator, **options))

    alone, helped = batches(), batches(num_workers=2, multiprocessing_context=method)
    assert len(alone) == len(helped) == 4
    for (shapes, labels), (other, other_labels) in zip(alone, helped, strict=True):
        assert same(shapes, other)
        assert torch.equal(labels, other_labels)


def test_batches_are_pinned_where_there_is_an_accelerator():
    """Without one, there is no warning."""
    shapes, _ = next(iter(numbered().loader(pin_memory=True)))
    assert shapes.points.is_pinned() == torch.accelerator.is_available()


def test_a_data_loader_of_torch_takes_a_data_set():
    dataset = numbered()
    loader = DataLoader(Subset(dataset, [4, 2]), batch_size=2, collate_fn=datasets.dataset.identity)
    ((shapes, labels),) = loader
    assert same(shapes, dataset.shapes[[4, 2]])
    assert labels.tolist() == [0, 0]


def test_a_loader_of_torch_geometric_works_with_the_layer():
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as PygLoader

    dataset = numbered(11)
    items = []
    for shape, label in dataset:
        edges = shape.simplices[0].long()
        items.append(Data(pos=shape.points, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.tensor([label])))
    layer = es.ECTLayer(2, 4, 5, radius=15.0)
    expected = layer(dataclasses.replace(dataset, shapes=unweighted(dataset.shapes)).shapes)
    found = [layer(batch) for batch in PygLoader(items, batch_size=4)]
    torch.testing.assert_close(torch.cat(found), expected)


def unweighted(shapes: es.Complex) -> es.Complex:
    return es.Complex(shapes.points, shapes.simplices, batch=shapes.batch, num_complexes=len(shapes))


def test_importing_is_cheap():
    code = "import torch, sys; before = set(sys.modules); import eulerscan.datasets; print(*set(sys.modules) - before)"
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch_geometric", "sklearn", "scipy", "tqdm", "numba", "PIL"} & set(added)
    ours = {name.removeprefix("eulerscan.datasets.") for name in added if name.startswith("eulerscan.datasets.")}
    assert ours == {"dataset", "prepared", "registry", "splits"}  # no maker of a data set


def test_small_integers_are_numbers_of_shapes_and_not_a_mask():
    dataset = datasets.load("manifolds", num_shapes=3, num_points=32)
    numbers = [0, 1, 1, 4, 0, 0]
    for dtype in (torch.uint8, torch.int16, torch.int64):
        shapes, labels = dataset.__getitems__(torch.tensor(numbers, dtype=dtype))
        assert len(shapes) == 6
        assert labels.tolist() == dataset.labels[numbers].tolist()
    assert len(dataset.select([])) == 0


def test_splits_must_not_divide_blocks():
    dataset = numbered(6)  # shapes 1 and 0 are for test
    blocks = dataclasses.replace(dataset, strata=torch.tensor([7, 7, 8, 8, 9, 9]))
    assert blocks.strata == ("7", "7", "8", "8", "9", "9")
    assert blocks.select([5, 0]).strata == ("9", "7")
    assert blocks.split("test").strata == ("7", "7")
    with pytest.raises(ValueError, match="splits must not divide the blocks of strata, got 'b' in 'train' and in 'test'"):
        dataclasses.replace(dataset, strata=tuple("abbccc"))
    with pytest.raises(ValueError, match="strata must hold a value for each of 6 shapes, got 2"):
        dataclasses.replace(dataset, strata=("a", "b"))
