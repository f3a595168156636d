import torch
from hypothesis import given
from hypothesis import strategies as st

from eulerscan.datasets.splits import stratified


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
