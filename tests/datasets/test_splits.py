import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eulerscan.datasets.splits import fold, stratified


@given(st.lists(st.integers(0, 5), min_size=1, max_size=200), st.integers(0, 2**32))
def test_every_shape_is_in_one_split_and_every_class_has_its_share(labels, seed):
    labels = torch.tensor(labels)
    splits = stratified(labels, seed=seed)
    assert list(splits) == ["train", "val", "test"]
    assert torch.equal(torch.cat(list(splits.values())).sort().values, torch.arange(len(labels)))
    for count, label in zip(torch.bincount(labels).tolist(), range(6), strict=False):
        test, val = (int((labels[splits[name]] == label).sum()) for name in ("test", "val"))
        assert abs(test - 0.2 * count) <= 0.5
        assert abs(val - 0.2 * (count - test)) <= 0.5


def test_a_split_depends_on_its_seed_alone():
    labels = torch.arange(300) % 3
    first = stratified(labels, seed=1)
    state = torch.get_rng_state()
    torch.rand(5)
    again = stratified(labels, seed=1)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["test"], stratified(labels, seed=2)["test"])
    torch.set_rng_state(state)
    stratified(labels)
    assert torch.equal(torch.get_rng_state(), state)


def test_given_splits_stay():
    labels = torch.arange(100) % 2
    given = {"train": torch.arange(80), "test": torch.arange(80, 100)}
    splits = stratified(labels, given=given)
    assert torch.equal(splits["test"], given["test"])
    assert len(splits["val"]) == 16
    assert torch.equal(torch.cat([splits["train"], splits["val"]]).sort().values, given["train"])


def split_of(splits, count):
    """The split of each shape. Every shape is in one."""
    assert torch.equal(torch.cat([*splits.values()]).sort().values, torch.arange(count))
    return {int(index): name for name, indices in splits.items() for index in indices}


def undivided(splits, strata):
    owner = split_of(splits, len(strata))
    return len({(block, owner[i]) for i, block in enumerate(strata)}) == len(set(strata))


def blocks_of(splits, strata):
    return {name: len({strata[i] for i in indices.tolist()}) for name, indices in splits.items()}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5)), min_size=1, max_size=60), st.integers(0, 2**32))
def test_blocks_of_one_class_are_split_as_shapes_are(blocks, seed):
    labels = torch.tensor([label for label, size in blocks for _ in range(size)])
    strata = [f"s{number}" for number, (_, size) in enumerate(blocks) for _ in range(size)]
    splits = stratified(labels, strata=strata, seed=seed)
    assert undivided(splits, strata)
    for kind, count in enumerate(torch.bincount(torch.tensor([label for label, _ in blocks])).tolist()):
        own = {name: indices[labels[indices] == kind] for name, indices in splits.items()}
        found = blocks_of(own, strata)
        assert abs(found["test"] - 0.2 * count) <= 0.5
        assert abs(found["val"] - 0.2 * (count - found["test"])) <= 0.5
        assert all(found.values()) or count < 4


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 11)), min_size=1, max_size=80), st.integers(0, 99))
def test_blocks_are_never_divided_whatever_their_classes(shapes, seed):
    labels, strata = torch.tensor([label for label, _ in shapes]), [block for _, block in shapes]
    num_folds = min(3, len(set(strata)))
    try:
        splits = stratified(labels, strata=strata, seed=seed)
        folds = [fold(labels, number, num_folds, strata=strata, seed=seed) for number in range(num_folds)]
    except ValueError as error:
        if "blocks of every class for training" not in str(error):
            raise
        return
    assert all(undivided(found, strata) for found in (splits, *folds))
    assert sorted(index for found in folds for index in found["test"].tolist()) == list(range(len(labels)))


def test_two_sides_of_each_specimen_stay_together():
    labels, strata = torch.arange(40) % 2, torch.arange(40) // 2  # left and right of 20 specimens
    splits = stratified(labels, strata=strata, seed=3)
    assert blocks_of(splits, strata.tolist()) == {"train": 13, "val": 3, "test": 4}
    assert undivided(splits, strata.tolist())
    assert all(torch.bincount(labels[indices]).unique().numel() == 1 for indices in splits.values())


def test_shapes_that_are_blocks_of_their_own_are_split_as_without_blocks():
    labels = torch.arange(50) % 3
    for one, two in (
        (stratified(labels, strata=range(50), seed=1), stratified(labels, seed=1)),
        (fold(labels, 2, 5, strata=range(50), seed=1), fold(labels, 2, 5, seed=1)),
    ):
        assert all(torch.equal(one[name], two[name]) for name in two)


def test_validation_takes_whole_blocks_of_given_training_shapes():
    labels, strata = torch.arange(40) // 20, torch.arange(40) // 2
    given = {"train": torch.cat([torch.arange(10, 30), torch.arange(4)]), "test": torch.arange(30, 40)}
    splits = stratified(labels, strata=strata, given=given)
    assert torch.equal(splits["test"], given["test"])
    assert blocks_of(splits, strata.tolist()) == {"train": 10, "val": 2, "test": 5}
    assert not {*strata[splits["val"]].tolist()} & {*strata[splits["train"]].tolist()}


def test_folds_of_blocks_have_the_same_share_of_every_class():
    labels, strata = torch.arange(60) // 30, torch.arange(60) // 3  # 10 specimens a class, three scans each
    found = [fold(labels, number, 5, strata=strata, seed=1) for number in range(5)]
    assert torch.equal(torch.cat([splits["test"] for splits in found]).sort().values, torch.arange(60))
    for splits in found:
        assert undivided(splits, strata.tolist())
        assert torch.bincount(labels[splits["test"]]).tolist() == [6, 6]
        assert blocks_of(splits, strata.tolist()) == {"train": 12, "val": 4, "test": 4}


def test_blocks_that_cannot_be_split_are_named():
    labels = torch.tensor([0, 0, 1, 1])
    with pytest.raises(ValueError, match="num_folds must be at most 2, the number of blocks, got 3"):
        fold(labels, 0, 3, strata=["a", "a", "b", "b"])
    with pytest.raises(ValueError, match=r"strata must leave blocks of every class for training, got none of class [01] with"):
        fold(labels, 0, 2, strata=["a", "a", "b", "b"])
    with pytest.raises(ValueError, match="strata must hold a value for each of 4 shapes, got 3"):
        stratified(labels, strata=["a", "a", "b"])
    with pytest.raises(ValueError, match="strata must have no missing values, got one for shape 2"):
        stratified(labels, strata=["a", "a", None, "b"])
