"""Bulk transforms: the same wherever they are made, whatever happens meanwhile."""

import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import trimesh
from deadly import die_at_two, wait_for_all

import eulerscan as es
from eulerscan import ECTConfig
from eulerscan._storage import replacing
from eulerscan._tables import unescaped
from eulerscan.bulk import (
    OtherRunError,
    Settings,
    load_failures,
    load_transforms,
    transform_all,
    transform_files,
    transform_folder,
    transform_shard,
    workers,
    write_transforms,
)
from eulerscan.bulk import transform as sharding
from eulerscan.bulk.output import parquet_metadata
from eulerscan.io import list_shapes


def made(dim, num_directions, num_thresholds, *, reading=(), **options):
    return Settings(dim, ECTConfig(num_directions, num_thresholds, **options), dict(reading))


SMALL = made(3, 8, 10)
SMOOTH = made(3, 8, 10, scale=20.0)


class Progress:
    """Calls a function with the number of files that are done."""

    def __init__(self, update):
        self.update = update


def write_meshes(folder, count, ending="ply", size=1):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        mesh = trimesh.creation.icosphere(subdivisions=size)
        mesh.vertices *= 1 + rng.random((len(mesh.vertices), 3))
        mesh.export(folder / f"{i:04}.{ending}")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("shapes")
    write_meshes(place / "b", 12)
    write_meshes(place / "a", 8, "off")
    np.save(place / "cloud.npy", np.random.default_rng(1).random((30, 3)))
    (place / "bad.obj").write_text("v 0 0\n")
    (place / "flat.csv").write_text("0,0\n1,1\n")
    (place / "notes.md").write_text("not a shape")
    return place


@pytest.fixture(scope="module")
def listing(folder):
    return list_shapes(folder, sort=True)


def content(output):
    return {file.relative_to(output).as_posix(): file.read_bytes() for file in sorted(output.rglob("*")) if file.is_file()}


def test_names_are_relative_to_the_folder_and_ascend(folder, listing):
    assert listing.names == sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.*") if p.suffix != ".md")
    assert "a/0003.off" in listing.names
    assert "bad.obj" in listing.names
    assert "notes.md" not in listing.names


def test_shards_hold_every_file_once_and_are_of_one_size(listing):
    for shards in (1, 3, 7, len(listing.names), 50):
        parts = [listing.shard(number, shards).names for number in range(shards)]
        assert [name for part in parts for name in part] == listing.names
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("settings", [SMALL, SMOOTH, made(3, 8, 10, variant="channels")], ids=["exact", "smooth", "channels"])
def test_features_depend_on_no_other_shape(folder, listing, settings):
    shard = transform_shard(folder, listing.names, settings)
    for name, transform in zip(shard.names, shard.transforms, strict=True):
        alone = transform_shard(folder, [name], settings)
        np.testing.assert_array_equal(alone.transforms[0], transform)
        expected = settings.ect.transform(es.read(folder / name, dtype=torch.float64))[0].float().numpy()
        np.testing.assert_array_equal(expected, transform)


def test_features_do_not_depend_on_how_many_are_read_at_once(listing, monkeypatch):
    whole, report = transform_all(listing, SMOOTH)
    monkeypatch.setattr(sharding, "FILES_AT_ONCE", 3)
    updates = []
    some, again = transform_all(listing, SMOOTH, progress=Progress(updates.append))
    assert len(updates) > 5
    assert sum(updates) == len(listing.names)
    assert some.names == whole.names
    assert torch.equal(some.transforms, whole.transforms)
    assert report == again
    assert report.num_shapes == len(whole.names) == len(listing.names) - len(report.failures)


def test_large_files_are_read_alone(monkeypatch):
    monkeypatch.setattr(sharding, "BYTES_AT_ONCE", 10)
    assert list(sharding._split([4, 4, 4, 20, 1, 1])) == [(0, 2), (2, 3), (3, 4), (4, 6)]
    assert list(sharding._split([])) == []


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(folder, listing):
    shard = transform_shard(folder, listing.names, SMALL)
    reasons = {str(failure.path): failure.reason for failure in shard.failures}
    assert reasons.keys() == {"bad.obj", "flat.csv"}
    assert reasons["bad.obj"] == "every vertex must have three coordinates."
    assert "points of dimension 2, expected 3" in reasons["flat.csv"]
    assert sorted([*shard.names, *reasons]) == listing.names


def test_one_shape_that_cannot_be_transformed_spares_the_others(folder, listing, monkeypatch):
    real = ECTConfig.transform

    def transform(self, complex):
        if bool((complex.points.abs() > 1.99).any()):
            raise RuntimeError("not enough memory")
        return real(self, complex)

    expected = transform_shard(folder, listing.names, SMALL)
    monkeypatch.setattr(ECTConfig, "transform", transform)
    shard = transform_shard(folder, listing.names, SMALL)
    missing = set(expected.names) - set(shard.names)
    assert 0 < len(missing) < len(expected.names)
    assert {str(f.path) for f in shard.failures if f.reason == "not enough memory"} == missing


def test_the_dimension_is_that_of_the_first_shape_that_can_be_read(folder, listing, tmp_path):
    unknown = replace(SMALL, dim=None)
    found, report = transform_all(listing, unknown)
    assert found.settings == report.settings == SMALL
    expected, known = transform_all(listing, SMALL)
    assert torch.equal(found.transforms, expected.transforms)
    assert report == known
    assert transform_shard(folder, ["flat.csv", "cloud.npy"], unknown).settings.dim == 2
    assert transform_shard(folder, ["bad.obj", "cloud.npy", "flat.csv"], unknown).names == ["cloud.npy"]
    assert transform_folder(listing, unknown, tmp_path / "out").settings == SMALL
    assert transform_folder(listing, unknown, tmp_path / "out").settings == SMALL  # from the manifest


@pytest.mark.parametrize("output", ["out.npz", "out.csv", "out.parquet", "out"])
def test_without_a_readable_shape_nothing_is_written_and_the_reasons_are_returned(output, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("words\n")
    transform = transform_files if "." in output else transform_folder
    report = transform(list_shapes(tmp_path / "in"), replace(SMALL, dim=None), tmp_path / output)
    assert report.num_shapes == 0
    assert [str(failure.path) for failure in report.failures] == ["a.csv"]
    assert not (tmp_path / output).exists()


def test_options_that_no_file_takes_are_an_error(folder, tmp_path):
    listing, wrong = list_shapes(folder / "b"), Settings(reading={"weighted": True})
    for transform, output in ((transform_files, "out.npz"), (transform_folder, "out")):
        with pytest.raises(TypeError, match="weighted"):
            transform(listing, wrong, tmp_path / output)
    assert not list(tmp_path.iterdir())


def test_every_file_is_opened_once(folder, tmp_path):
    """In a process of its own, since audit hooks stay."""
    code = """
        import collections, sys
        from eulerscan.bulk import Settings, transform_files
        from eulerscan.io import list_shapes
        folder, output = sys.argv[1:]
        opened = collections.Counter()
        sys.addaudithook(lambda event, about: event == "open" and opened.update([str(about[0])]))
        listing = list_shapes(folder)
        transform_files(listing, Settings(), output)
        print(*(opened[str(path)] for path in listing.paths if path.suffix in (".ply", ".off", ".npy")))
    """
    words = [sys.executable, "-c", textwrap.dedent(code), str(folder), str(tmp_path / "out.npz")]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert result.stdout.split() == ["1"] * 21


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
@pytest.mark.parametrize(
    "settings",
    [SMALL, SMOOTH, made(3, 2, 3, variant="channels"), made(3, 2, 3, divide_by="vertices")],
    ids=["exact", "smooth", "channels", "divided"],
)
def test_a_file_is_the_same_in_every_run_and_however_many_came_at_once(listing, ending, settings, tmp_path, monkeypatch):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    transform_files(listing, settings, first)
    monkeypatch.setattr(sharding, "FILES_AT_ONCE", 5)
    time.sleep(2.1 if ending == "npz" and settings is SMALL else 0)  # the clock of ZIP files goes in steps of two seconds
    transform_files(listing, settings, second)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_files_are_read_back(folder, listing, ending, tmp_path):
    settings = made(3, 4, 5, radius=2.0, variant="channels", scale=3.0, reading={"merge": True})
    transform_files(listing, settings, tmp_path / f"a.{ending}")
    loaded = load_transforms(tmp_path / f"a.{ending}")
    shard = transform_shard(folder, listing.names, settings)
    assert loaded.names == shard.names
    assert loaded.settings == settings
    np.testing.assert_array_equal(loaded.transforms.numpy(), shard.transforms)


def test_parts_are_the_same_in_one_process_and_in_two(listing, tmp_path):
    done = []
    report = transform_folder(listing, SMALL, tmp_path / "one", shards=5)
    two = transform_folder(listing, SMALL, tmp_path / "two", shards=5, processes=2, progress=Progress(done.append))
    assert two == report
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert sum(done) == len(listing.names)
    assert {str(failure.path) for failure in report.failures} == {"bad.obj", "flat.csv"}
    assert report.num_shapes == len(listing.names) - 2
    assert (tmp_path / "one" / "failures.csv").read_text().splitlines()[0] == "name,reason"
    loaded, shard = load_transforms(tmp_path / "one"), transform_shard(listing.folder, listing.names, SMALL)
    assert loaded.names == shard.names
    np.testing.assert_array_equal(loaded.transforms.numpy(), shard.transforms)


needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@needs_fork
def test_parts_are_the_same_in_processes_that_are_forked(folder, listing, tmp_path):
    """In a program of its own: here torch has worked on several threads, for which a fork would wait."""
    code = """
        import sys
        from eulerscan import ECTConfig
        from eulerscan.bulk import Settings, transform_folder
        from eulerscan.io import list_shapes
        listing, settings = list_shapes(sys.argv[1], sort=True), Settings(3, ECTConfig(8, 10, scale=20.0))
        report = transform_folder(listing, settings, sys.argv[2], shards=5, processes=2, fork=True)
        print(*(failure.path for failure in report.failures))
    """
    failures = transform_folder(listing, SMOOTH, tmp_path / "one", shards=5).failures
    words = [sys.executable, "-c", textwrap.dedent(code), str(folder), str(tmp_path / "two")]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(failure.path) for failure in failures]
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_a_second_run_does_nothing_and_a_lost_part_is_made_again(listing, tmp_path, monkeypatch):
    first = transform_folder(listing, SMALL, tmp_path, shards=4)
    whole, times = content(tmp_path), {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")}
    with monkeypatch.context() as patch:
        patch.setattr(sharding, "transform_shard", lambda *a: pytest.fail("nothing was to be done"))
        assert transform_folder(listing, SMALL, tmp_path) == first
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*")} == times
    (tmp_path / "parts" / "part-00002.parquet").unlink()
    transform_folder(listing, SMALL, tmp_path)
    assert content(tmp_path) == whole


def with_a_footer_that_begins_otherwise(file):
    begin = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    return file[:begin] + bytes([file[begin] ^ 255]) + file[begin + 1 :]


def test_a_damaged_part_is_made_again(listing, tmp_path):
    transform_folder(listing, SMALL, tmp_path, shards=4)
    whole = content(tmp_path)
    part = tmp_path / "parts" / "part-00001.parquet"
    for damaged in (
        lambda file: file[: len(file) // 2],
        lambda file: b"",
        lambda file: b"junk" * 100,
        with_a_footer_that_begins_otherwise,
    ):
        part.write_bytes(damaged(part.read_bytes()))
        with pytest.raises(ValueError, match=r"part-00001\.parquet is not an output of `eulerscan transform`"):
            parquet_metadata(part)
        transform_folder(listing, SMALL, tmp_path)
        assert content(tmp_path) == whole


def test_a_part_that_may_not_be_read_is_no_damaged_part(listing, tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    transform_folder(listing, SMALL, tmp_path, shards=2)
    monkeypatch.setattr("pyarrow.parquet.read_metadata", refuse)
    with pytest.raises(PermissionError):
        transform_folder(listing, SMALL, tmp_path)


@pytest.mark.parametrize("damage", ["{}", "[]", "", "{", '{"settings": {}, "fingerprint": "", "shards": 0, "files": 1}', "\0"])
def test_a_damaged_manifest_is_named(listing, tmp_path, damage):
    transform_folder(listing, SMALL, tmp_path, shards=2)
    (tmp_path / "manifest.json").write_text(damage)
    with pytest.raises(ValueError, match=r"manifest\.json is not a manifest of eulerscan"):
        transform_folder(listing, SMALL, tmp_path)
    with pytest.raises(ValueError, match=r"no manifest\.json of `eulerscan transform`"):
        load_transforms(tmp_path)


def test_a_folder_of_a_version_without_an_option_is_resumed(listing, tmp_path):
    transform_folder(listing, SMALL, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    del manifest["settings"]["max_dim"]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert load_transforms(tmp_path).settings == SMALL
    transform_folder(listing, SMALL, tmp_path)
    with pytest.raises(OtherRunError, match="max_dim was None and is 1"):
        transform_folder(listing, made(3, 8, 10, variant="channels", max_dim=1), tmp_path)


def test_other_settings_or_files_are_not_mixed(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 6)
    output = tmp_path / "out"
    transform_folder(list_shapes(folder, sort=True), SMALL, output, shards=2)
    with pytest.raises(ValueError, match="another run: scale was inf and is 20"):
        transform_folder(list_shapes(folder, sort=True), SMOOTH, output)
    with pytest.raises(ValueError, match="another run: shards was 2 and is 3"):
        transform_folder(list_shapes(folder, sort=True), SMALL, output, shards=3)
    later = time.time() + 5
    os.utime(folder / "0001.ply", (later, later))
    with pytest.raises(ValueError, match=r"another run: 0001\.ply has changed"):
        transform_folder(list_shapes(folder, sort=True), SMALL, output)
    (folder / "0001.ply").rename(folder / "0009.ply")
    with pytest.raises(ValueError, match="files have other names or sizes"):
        transform_folder(list_shapes(folder, sort=True), SMALL, output)
    (folder / "0002.ply").unlink()
    with pytest.raises(ValueError, match="files was 6 and is 5"):
        transform_folder(list_shapes(folder, sort=True), SMALL, output)


def test_files_dated_in_the_future_can_be_taken_up_again(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 3)
    later = time.time() + 1000
    os.utime(folder / "0001.ply", (later, later))
    assert transform_folder(list_shapes(folder, sort=True), SMALL, tmp_path / "out", shards=2).failures == []
    assert transform_folder(list_shapes(folder, sort=True), SMALL, tmp_path / "out").failures == []
    earlier = time.time() - 1000
    os.utime(folder / "0001.ply", (earlier, earlier))
    with pytest.raises(ValueError, match="a file has changed since"):
        transform_folder(list_shapes(folder, sort=True), SMALL, tmp_path / "out")


def test_files_that_others_are_writing_stay_and_those_of_killed_processes_do_not(listing, tmp_path):
    transform_folder(listing, SMALL, tmp_path, shards=3)
    parts = [tmp_path / "parts" / f"part-0000{i}.parquet" for i in range(3)]
    for part in parts:  # finished or not: a part may have been finished by another process
        part.with_name(f".{part.name}.0.partial").touch()
    parts[2].unlink()
    with replacing(parts[0]) as theirs:
        transform_folder(listing, SMALL, tmp_path)
        assert sorted((tmp_path / "parts").iterdir()) == sorted([theirs, *parts])
        theirs.write_bytes(parts[0].read_bytes())


@pytest.mark.parametrize("settings", [SMALL, SMOOTH], ids=["exact", "smooth"])
def test_no_flipped_bit_of_a_parquet_file_changes_numbers_silently(listing, settings, tmp_path):
    path = tmp_path / "a.parquet"
    transform_files(listing, settings, path)
    whole, (names, expected, _, groups) = path.read_bytes(), load_transforms(path)
    rng, errors = np.random.default_rng(0), []
    for position in rng.integers(8 * len(whole), size=300).tolist():
        flipped = bytearray(whole)
        flipped[position // 8] ^= 1 << position % 8
        path.write_bytes(flipped)
        try:
            again = load_transforms(path)
        except ValueError as error:
            errors.append(str(error))
            continue
        assert (again.names, again.groups) == (names, groups)
        assert torch.equal(again.transforms, expected)
    assert len(errors) > 100
    assert all(str(path) in error for error in errors)


def test_names_that_spreadsheets_would_run_come_back_as_they_were(tmp_path):
    names = ["=A1.ply", "-x.ply", "+1", "@b", "'=c", "'d'", "e,-f", "-5", "\tg"]
    transforms = np.arange(-4, 5, dtype=np.float32)[:, None, None].repeat(8, 1).repeat(10, 2)
    write_transforms(tmp_path / "a.csv", SMALL, [(names, transforms)])
    loaded = load_transforms(tmp_path / "a.csv")
    assert loaded.names == names
    assert torch.equal(loaded.transforms, torch.tensor(transforms))
    with (tmp_path / "a.csv").open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == ["'=A1.ply", "'-x.ply", "+1", "'@b", "''=c", "'d'", "e,-f", "-5", "'\tg"]
    folder = write_meshes(tmp_path / "shapes", 1)
    (folder / "=B2.ply").write_text("junk")
    transform_folder(list_shapes(folder), SMALL, tmp_path / "out")
    assert "\n'=B2.ply," in (tmp_path / "out" / "failures.csv").read_text()
    assert [str(failure.path) for failure in load_failures(tmp_path / "out")] == ["=B2.ply"]


def test_a_run_that_is_not_finished_is_not_taken_for_one_that_is(listing, tmp_path):
    transform_folder(listing, SMALL, tmp_path, shards=3)
    assert [str(failure.path) for failure in load_failures(tmp_path)] == ["bad.obj", "flat.csv"]
    (tmp_path / "parts" / "part-00001.parquet").unlink()
    with pytest.raises(ValueError, match="is not finished: it has 2 of 3 parts"):
        load_transforms(tmp_path)
    (tmp_path / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(ValueError, match=r"no manifest\.json of `eulerscan transform`"):
        load_transforms(tmp_path)
    with pytest.raises(ValueError, match=r"manifest\.json is not a manifest of eulerscan"):
        transform_folder(listing, SMALL, tmp_path)


@pytest.mark.parametrize("ending", ["npz", "csv", "parquet"])
def test_a_damaged_file_of_transforms_is_named(listing, ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    transform_files(listing, SMALL, path)
    whole = path.read_bytes()
    altered = (with_a_footer_that_begins_otherwise(whole), whole[:4] + b"\xff" + whole[5:]) if ending == "parquet" else ()
    for damaged in (whole[: len(whole) // 2], b"junk", b"", *altered):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"a\.{ending} is not an output of `eulerscan transform`") as error:
            load_transforms(path)
        assert "pickle" not in str(error.value)
    with pytest.raises(FileNotFoundError):
        load_transforms(tmp_path / f"gone.{ending}")


def test_a_csv_file_is_read_with_the_settings_beside_it(listing, tmp_path):
    transform_files(listing, SMALL, tmp_path / "a.csv")
    write_transforms(tmp_path / "b.csv", made(3, 4, 10), [])
    (tmp_path / "b.json").replace(tmp_path / "a.json")
    with pytest.raises(ValueError, match=r"are not those of a\.json"):
        load_transforms(tmp_path / "a.csv")
    transform_files(listing, SMALL, tmp_path / "a.csv")
    whole, loaded = (tmp_path / "a.csv").read_text(), load_transforms(tmp_path / "a.csv")
    saved_again = "\ufeff" + whole.replace("\n", "\r\n") + "\r\n"  # by a spreadsheet
    (tmp_path / "a.csv").write_text(saved_again, encoding="utf-8")
    again = load_transforms(tmp_path / "a.csv")
    assert again.names == loaded.names
    assert torch.equal(again.transforms, loaded.transforms)
    first, second, *_ = whole.splitlines()
    for cells in (second.rpartition(",")[0], second + ",1", second.rpartition(",")[0] + ",nan", "a,," + second):
        (tmp_path / "a.csv").write_text(f"{first}\n{second}\n{cells}\n")
        with pytest.raises(ValueError, match="line 3 must hold a name, a group and 80 numbers"):
            load_transforms(tmp_path / "a.csv")
    (tmp_path / "a.json").unlink()
    with pytest.raises(ValueError, match=r"a\.json with its settings is missing"):
        load_transforms(tmp_path / "a.csv")


def test_paths_may_be_strings(folder, listing, tmp_path):
    assert list_shapes([str(folder)], exclude=[str(folder / "a")]).names == [n for n in listing.names if not n.startswith("a/")]
    transform_files(listing, SMALL, str(tmp_path / "a.npz"))
    transform_folder(listing, SMALL, str(tmp_path / "out"))
    assert load_transforms(str(tmp_path / "a.npz")).names == load_transforms(str(tmp_path / "out")).names
    assert transform_shard(str(folder), ["cloud.npy"], SMALL).names == ["cloud.npy"]


def test_a_file_whose_name_is_no_text_spares_the_others(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 2)
    try:
        (folder / os.fsdecode(b"caf\xe9.ply")).write_bytes((folder / "0000.ply").read_bytes())
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    listing = list_shapes(folder, sort=True)
    for ending in ("npz", "csv", "parquet"):
        failures = transform_files(listing, SMALL, tmp_path / f"a.{ending}").failures
        assert [(str(failure.path), failure.reason) for failure in failures] == [
            ("caf\\udce9.ply", "file name is not valid UTF-8. Rename it.")
        ]
    assert transform_folder(listing, SMALL, tmp_path / "out").failures == failures == load_failures(tmp_path / "out")
    assert load_transforms(tmp_path / "out").names == ["0000.ply", "0001.ply"]


def test_names_with_line_breaks_and_formulas_are_read_back(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 1)
    mesh = (folder / "0000.ply").read_bytes()
    names = ["0000.ply", "=1+1.ply", "one\ntwo.ply", "one\r\ntwo.ply", "one\rtwo.ply", 'so "named", yes.ply']
    bad = ["=bad.obj", "bad\n.obj", "bad\r.obj"]
    try:
        for name in names:
            (folder / name).write_bytes(mesh)
        for name in bad:
            (folder / name).write_text("v 0 0\n")
    except OSError:
        pytest.skip("this file system takes no such names")
    listing = list_shapes(folder, sort=True)
    transform_files(listing, SMALL, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [unescaped(row[0]) for row in rows] == ["name", *sorted(names)]
    assert load_transforms(tmp_path / "a.csv").names == sorted(names)
    assert {len(row) for row in rows} == {82}
    transform_folder(listing, SMALL, tmp_path / "out")
    assert [str(failure.path) for failure in load_failures(tmp_path / "out")] == sorted(bad)
    assert load_transforms(tmp_path / "out").names == sorted(names)
    before = (tmp_path / "out" / "failures.csv").stat().st_mtime_ns
    transform_folder(listing, SMALL, tmp_path / "out")
    assert (tmp_path / "out" / "failures.csv").stat().st_mtime_ns == before


def test_links_that_lead_nowhere_are_reported(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 2)
    try:
        (folder / "gone.ply").symlink_to(tmp_path / "nothing.ply")
        (folder / "loop.ply").symlink_to(folder / "loop.ply")
        (folder / "sound.ply").symlink_to(folder / "0000.ply")
        (folder / "gone.txt.bak").symlink_to(tmp_path / "nothing")
    except OSError:
        pytest.skip("no links here")
    listing = list_shapes([folder], exclude=[tmp_path / "out"])
    assert listing.names == ["0000.ply", "0001.ply", "sound.ply"]
    why = "broken link."
    assert sorted(listing.failures) == [(Path("gone.ply"), why), (Path("loop.ply"), why)]
    failures = transform_folder(listing, SMALL, tmp_path / "out").failures
    assert failures == load_failures(tmp_path / "out") == listing.failures


def test_coordinates_too_large_for_the_unit_ball_are_reported(tmp_path):
    folder = write_meshes(tmp_path / "shapes", 2)
    np.save(folder / "far.npy", np.array([[1e308, 1e308, 0], [-1e308, -1e308, 0], [0, 0, 0.0]]))
    (folder / "mesh.off").write_text("OFF\n3 1 0\n0 0 1e308\n1e308 1e308 1e308\n-1e308 -1e308 -1e308\n3 0 1 2\n")
    listing = list_shapes(folder, sort=True)
    shard = transform_shard(folder, listing.names, SMALL)
    assert shard.names == ["0000.ply", "0001.ply"]
    assert [str(failure.path) for failure in shard.failures] == ["far.npy", "mesh.off"]
    assert {failure.reason.partition(":")[0] for failure in shard.failures} == {"coordinates are too large"}
    as_they_are = transform_shard(folder, listing.names, made(3, 8, 10, radius=10.0, normalize=None))
    assert as_they_are.names == listing.names  # they lie beyond every threshold
    assert np.isfinite(as_they_are.transforms).all()


def test_a_folder_that_cannot_be_opened_is_reported(folder, monkeypatch):
    real = os.scandir

    def scandir(path):
        if str(path).endswith("b"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    listing = list_shapes(folder, sort=True)
    assert listing.failures == [(Path("b"), "Permission denied")]
    assert "a/0003.off" in listing.names
    assert transform_all(listing, SMALL)[1].failures[0] == listing.failures[0]
    assert listing.path_failures == [(folder / "b", "Permission denied")]


def test_a_row_of_a_table_depends_on_no_other(tmp_path):
    settings = made(2, 1, 2)
    rows = np.array([[[0, 1]], [[0.5, 1]]], np.float32)
    write_transforms(tmp_path / "a.csv", settings, [(["a", "b"], rows)])
    assert (tmp_path / "a.csv").read_text().splitlines()[1:] == ["a,,0,1", "b,,0.5,1"]
    write_transforms(tmp_path / "b.csv", settings, [(["a"], rows[:1]), (["b"], rows[1:])])
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_an_interrupted_run_leaves_its_finished_parts(listing, tmp_path):
    def interrupt(count):
        if len(list((tmp_path / "parts").glob("part-*"))) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transform_folder(listing, SMALL, tmp_path, shards=4, progress=Progress(interrupt))
    names = sorted(file.name for file in (tmp_path / "parts").iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet"]
    transform_folder(listing, SMALL, tmp_path)
    assert len(load_transforms(tmp_path).names) == len(listing.names) - 2


def test_a_machine_without_the_files_says_so(listing, tmp_path):
    elsewhere = replace(listing, folder=tmp_path / "not-mounted")
    failures = transform_folder(elsewhere, SMALL, tmp_path / "out", shards=2).failures
    assert len(failures) == len(listing.names)
    assert "part-00000.parquet was not written" in failures[0].reason
    assert "all machines must see files and output at the same paths" in failures[0].reason
    assert not list((tmp_path / "out" / "parts").iterdir())


def test_a_part_says_what_it_was_made_of(listing, tmp_path):
    transform_folder(listing, SMALL, tmp_path, shards=1)
    metadata = parquet_metadata(tmp_path / "parts" / "part-00000.parquet")
    assert Settings.from_dict(metadata["settings"]) == SMALL
    assert metadata["thresholds"] == SMALL.ect.thresholds().tolist()
    assert metadata["failures"][0] == ["bad.obj", "every vertex must have three coordinates."]


@pytest.mark.parametrize("fork", [False, pytest.param(True, marks=needs_fork)], ids=["spawned", "forked"])
def test_a_job_that_kills_its_process_is_reported_and_the_others_go_on(fork):
    outcomes = dict(workers.in_processes(die_at_two, range(6), processes=2, fork=fork))
    assert outcomes.keys() == set(range(6))
    assert "its process died every time" in outcomes[2]
    assert outcomes[3] == "three is odd"
    assert [outcomes[i] for i in (0, 1, 4, 5)] == [None] * 4


@pytest.mark.parametrize("fork", [False, pytest.param(True, marks=needs_fork)], ids=["spawned", "forked"])
def test_all_processes_work_at_once(fork, tmp_path):
    jobs = [(tmp_path, number, 2) for number in range(2)]
    assert sorted(workers.in_processes(wait_for_all, jobs, processes=2, fork=fork)) == [(job, None) for job in jobs]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("fork", [False, pytest.param(True, marks=needs_fork)], ids=["spawned", "forked"])
def test_processes_end_with_a_parent_that_is_killed(fork, tmp_path):
    code = f"""
        import pathlib, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from deadly import sleep_as_long_as_the_parent
        from eulerscan.bulk import workers
        if __name__ == "__main__":
            jobs = [pathlib.Path(sys.argv[1]) / str(i) for i in range(2)]
            list(workers.in_processes(sleep_as_long_as_the_parent, jobs, processes=2, fork={fork}))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    (tmp_path / "pids").mkdir()
    with subprocess.Popen([sys.executable, str(script), str(tmp_path / "pids")]) as process:
        pids = wait_until(lambda: pids_in(tmp_path / "pids", 2))
        process.kill()
    assert wait_until(lambda: not any(is_alive(pid) for pid in pids))


def wait_until(done, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := done():
            return result
        time.sleep(0.05)
    pytest.fail("waited in vain")


def pids_in(folder, count):
    found = [int(file.read_text() or 0) for file in folder.iterdir()]
    return found if len(found) == count and all(found) else None


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.fixture(scope="module")
def cluster():
    """A dask scheduler with two workers, each a process of its own, and one death allowed."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1, "distributed.comm.timeouts.connect": "20s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
    ):
        yield cluster
        with distributed.Client(cluster) as client:  # dask cannot close a worker that it is starting anew
            client.wait_for_workers(2, timeout=60)


def test_a_dask_worker_is_killed_half_way_and_the_parts_are_the_same(tmp_path, cluster):
    listing = list_shapes([write_meshes(tmp_path / "shapes", 240, size=2)])
    transform_folder(listing, SMALL, tmp_path / "serial", shards=12)
    workers_before = {worker.pid for worker in cluster.workers.values()}
    killed, half_written = [], []

    def kill_one(count):
        parts = list((tmp_path / "dask" / "parts").glob("part-*"))
        if parts and not killed:
            killed.append(next(iter(workers_before)))
            os.kill(killed[0], signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
            half_written.extend((tmp_path / "dask" / "parts").glob(".part-*.partial"))

    report = transform_folder(
        listing, SMALL, tmp_path / "dask", shards=12, scheduler=cluster.scheduler_address, progress=Progress(kill_one)
    )
    assert half_written
    assert not report.failures
    assert content(tmp_path / "dask") == content(tmp_path / "serial")


def test_on_dask_too_a_deadly_job_is_reported_and_the_others_go_on(cluster):
    outcomes = dict(workers.on_dask(die_at_two, range(5), address=cluster.scheduler_address))
    assert outcomes.keys() == set(range(5))
    assert "its process died every time" in outcomes[2]
    assert outcomes[3] == "three is odd"
    assert [outcomes[i] for i in (0, 1, 4)] == [None] * 3


def test_settings_with_numbers_of_numpy_survive_json():
    settings = Settings(np.int64(2), ECTConfig(np.int64(4)), {"resize": np.int64(9), "spacing": (np.float32(2), 1)})
    expected = {"resize": 9, "spacing": [2.0, 1]}
    read = Settings.from_dict(json.loads(json.dumps(settings.as_dict())))
    assert (read.dim, read.ect, read.reading) == (2, settings.ect, expected)


def test_bad_settings_are_named():
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        Settings(0)
    with pytest.raises(ValueError, match="radius must be given"):
        Settings(2, ECTConfig(normalize=None))
    with pytest.raises(ValueError, match="reading must not have a dtype"):
        Settings(2, reading={"dtype": "float32"})
    with pytest.raises(ValueError, match="dim must be given"):
        _ = Settings().shape
    for values in ({}, {"scale": 1.0}, {"dim": 2, "scale": "inf", "colour": "red", "reading": {}}, []):
        with pytest.raises(ValueError, match="as_dict"):
            Settings.from_dict(values)
