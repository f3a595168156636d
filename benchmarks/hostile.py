"""Hostile and damaged files: time, memory and answer of every reader.

    python benchmarks/hostile.py [--only TEXT]

Every file is read in a process of its own. The table has the seconds of CPU time, so that other processes do not count, the
MB beyond the process before, and the answer: the shape, or the error, which must name the file. The exit code is 1 if a file
takes more than 2 s (text of 10 MB: 5 s) or 500 MB, or if its answer is not of the expected kind.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import resource
import struct
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process with threads cannot fork
    os.environ.setdefault("EULERSCAN_MAX_BYTES", "4e9")  # the default on a machine with 16 GB

import networkx
import numpy as np

import eulerscan as es
from eulerscan.bulk import load_transforms, write_transforms
from eulerscan.io import list_shapes
from eulerscan.training import runs
from eulerscan.training.checkpoints import save_model
from eulerscan.training.config import ModelConfig, RunConfig

SECONDS, TEXT_SECONDS, MEGABYTES = 2.0, 5.0, 500
TEXT = 10 * 2**20  # bytes of a large text file
TIMEOUT = 60.0

Make = Callable[[Path], Path]  # writes a file in a folder, and returns what to read
CASES: dict[str, tuple[str, Make, Callable[[Path], Any]]] = {}  # expected answer, how to make it, how to read it


def case(name: str, expected: str, *, read: Callable[[Path], Any] = es.read) -> Callable[[Make], Make]:
    """Register a file by its name. ``expected`` is error or result."""

    def add(make: Make) -> Make:
        CASES[name] = (expected, make, read)
        return make

    return add


def content(name: str, expected: str, build: Callable[[], bytes | str], *, read: Callable[[Path], Any] = es.read) -> None:
    """Register a file that is made of its content alone."""

    def make(folder: Path) -> Path:
        data = build()
        path = folder / name.partition(" ")[0]
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    CASES[name] = (expected, make, read)


def repeated(unit: str, size: int = TEXT) -> str:
    return unit * (size // len(unit))


PLY = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n"
LIST = "property list uchar int vertex_indices\n"
TRIANGLE = "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"

# Text whose parser took quadratic time.
for size, label in ((20_000, ""), (TEXT, " 10 MB")):
    content(f"list.ply{label}", "error", lambda size=size: PLY + "property list" + " " * size + "x\nend_header\n" + TRIANGLE)
    content(
        f"lines.ply{label}",
        "error" if label else "result",
        lambda size=size: PLY + repeated(LIST, size) + "end_header\n" + TRIANGLE,
    )
    content(
        f"comments.ply{label}",
        "result",
        lambda size=size: PLY + LIST + repeated("comment x\n", size) + f"end_header\n{TRIANGLE}",
    )
    content(f"spaces.tps{label}", "result", lambda size=size: f"LM=2\n0 0\n1 0\nIMAGE=a{' ' * size}b\n")
    content(f"spaces.off{label}", "error", lambda size=size: "OFF" + " " * size + "3\n")
    content(f"digits.tps{label}", "error", lambda size=size: "LM=" + "9" * size + "\n0 0\n")
    for extension in ("txt", "xyz", "csv"):
        content(f"tabs.{extension}{label}", "result", lambda size=size: "1" + "\t" * size + "2\n3\t4\n")
        content(f"quotes.{extension}{label}", "error", lambda size=size: '"' * size + "\n")
        content(f"commas.{extension}{label}", "result", lambda size=size: "1" + ", \t" * (size // 3) + "\n")
    content(f"words.obj{label}", "error", lambda size=size: "v 0 0 0\n" * (size // 16) + f"v 0 0 {'1' * (size // 2)}\n")
    content(
        f"faces.obj{label}",
        "error",
        lambda size=size: "v 0 0 0\n" + repeated("f 1 1 1\n", size // 2) + f"f 1 1 {'1' * (size // 2)}",
    )
    content(f"solids.stl{label}", "result", lambda size=size: repeated(SOLID, size))
    content(f"empty.stl{label}", "error", lambda size=size: repeated("solid facet\nendsolid\n", size))
    content(f"strings.gml{label}", "error", lambda size=size: 'graph [ node [ id 0 label "' + "a" * size)
    content(f"nested.gml{label}", "error", lambda size=size: repeated("graph [ ", size))
    content(f"nested.graphml{label}", "error", lambda size=size: "<graphml>" + repeated("<graph>", size))
    content(f"nested.gltf{label}", "error", lambda size=size: '{"nodes": ' + "[" * size)
    content(f"chain.gltf{label}", "error", lambda size=size: gltf_chain(size // 60))
SOLID = "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n"


def wide(columns: int, rows: int = 2) -> str:
    titles = ",".join(f"{axis}{i}" for i in range(columns // 2) for axis in "xy")
    return "\n".join([f"name,{titles}", *(f"s{row}," + ",".join(["1.5"] * columns) for row in range(rows))]) + "\n"


content("wide.csv", "result", lambda: wide(20_000))
content("wide.csv 10 MB", "result", lambda: wide(600_000))
content("wide.tsv 10 MB, one line", "result", lambda: wide(1_000_000, 1).replace(",", "\t"))


# Small files that claim or unpack to much.
def png(width: int, height: int, *, color: int = 0, row: bytes = b"\xff", bits: int = 8) -> bytes:
    """A PNG file whose rows are all ``row``, repeated."""
    channels = {0: 1, 2: 3, 6: 4}[color]
    length = -(-width * channels * bits // 8)
    line = b"\0" + (row * (length // len(row) + 1))[:length]
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def tiff(width: int, height: int, pages: int) -> bytes:
    """A TIFF file whose pages share one compressed white strip."""
    strip = zlib.compress(b"\xff" * (width * height), 9)
    tags = {256: width, 257: height, 258: 8, 259: 8, 262: 1, 273: 8, 277: 1, 278: height, 279: len(strip)}
    size = 2 + 12 * len(tags) + 4
    first = 8 + len(strip) + len(strip) % 2
    data = b"II*\0" + struct.pack("<I", first) + strip.ljust(first - 8, b"\0")
    for page in range(pages):
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        after = first + (page + 1) * size if page + 1 < pages else 0
        data += struct.pack("<H", len(tags)) + entries + struct.pack("<I", after)
    return data


def glb(tree: dict[str, Any], buffer: bytes = b"\0" * 36) -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(buffer), b"BIN\0") + buffer
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def scene(**changes: Any) -> dict[str, Any]:
    """The header of a glTF file with one triangle."""
    return {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "buffers": [{"byteLength": 36}],
    } | changes


def gltf_chain(length: int) -> str:
    """Nodes that are each the child of the one before."""
    nodes = [{"children": [i + 1], "translation": [1, 0, 0]} for i in range(length)]
    return json.dumps(scene(nodes=[*nodes, {"mesh": 0}], buffers=[{"uri": "data:;base64," + "A" * 48, "byteLength": 36}]))


def npz(**sizes: int) -> bytes:
    """An NPZ file of zeros, so many bytes each."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, size in sizes.items():
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (size // 2, 2)})
            packer = zlib.compressobj(9, wbits=-15)
            packed = packer.compress(header.getvalue()) + packer.flush(zlib.Z_FULL_FLUSH)
            zeros = packer.compress(bytes(2**24)) + packer.flush(zlib.Z_FULL_FLUSH)  # valid again and again
            archive.writestr(f"{name}.npy", packed + zeros * (size >> 24) + packer.flush())
            info = archive.getinfo(f"{name}.npy")
            info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, header.tell() + (size >> 24 << 24)
    return buffer.getvalue()


def npy(descr: str = "<f8", shape: str = "(3, 2)", data: bytes = b"\0" * 48) -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def flipped(data: bytes, position: float) -> bytes:
    place = int(position * len(data))
    return data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]


def compressed_npz() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, points=np.random.default_rng(0).normal(size=(2000, 3)))
    return buffer.getvalue()


BOMB = "<!DOCTYPE g [<!ENTITY a0 'aaaaaaaaaa'>" + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 10)) + "]>"
content("white.png 3000", "result", lambda: png(3000, 3000, bits=1))
content("white.png 13000", "result", lambda: png(13_000, 13_000, bits=1))
content("gray.png 13000", "result", lambda: png(13_000, 13_000))
content("black.png 13000", "error", lambda: png(13_000, 13_000, row=b"\0"))
content("mask.png 13000", "result", lambda: png(13_000, 13_000, bits=1, row=b"\0" * 500 + b"\xff" * 600 + b"\0" * 525))
content("claims.png 60000", "error", lambda: png(60_000, 1)[:16] + struct.pack(">II", 60_000, 60_000) + png(60_000, 1)[24:])
content("color.png 13000", "error", lambda: png(13_000, 13_000, color=6, row=b"\xff\xff\xff\x80"))
content("stripes.png 13000", "error", lambda: png(13_000, 13_000, bits=1, row=b"\xaa"))
content("pages.tif", "error", lambda: tiff(3000, 3000, 200))
content("pages.tif small", "result", lambda: tiff(30, 30, 200))
content("accessor.glb", "error", lambda: glb(scene(accessors=[{"componentType": 5126, "count": 600_000_000, "type": "VEC3"}])))
content(
    "count.glb",
    "error",
    lambda: glb(scene(accessors=[{"bufferView": 0, "componentType": 5126, "count": 600_000_000, "type": "VEC3"}])),
)
content("cycle.glb", "error", lambda: glb(scene(nodes=[{"children": [0]}])))
content("nodes.glb 10 MB", "error", lambda: glb(scene(scenes=[{"nodes": list(range(400_000))}], nodes=[{"mesh": 0}] * 400_000)))
content("names.npz 6 GB", "error", lambda: npz(points=2**20, faces=6 * 2**30))
content("points.npz 16 GB", "error", lambda: npz(points=16 * 2**30))
content("claims.npy", "error", lambda: npy(shape="(100000000000, 3)"))
content("claims.npy negative", "error", lambda: npy(shape="(-1, 2)"))
content("header.npy", "error", lambda: npy(shape="((((((((3, 2)"))
content("nested.npy", "error", lambda: npy(shape="(" * 100))
content("flipped.npz", "error", lambda: flipped(compressed_npz(), 0.5))
content("entities.graphml", "error", lambda: f"<?xml version='1.0'?>{BOMB}<graphml>&a9;</graphml>")
content("latin.ply", "result", lambda: (PLY + "comment M\xfcller\n" + LIST + "end_header\n" + TRIANGLE).encode("latin-1"))
content("face.off", "error", lambda: "OFF\n4 2 0\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n2000000000 0 1 2\n3 0 1 2\n")
content(
    "face.ply",
    "error",
    lambda: PLY.replace("face 1", "face 2") + LIST + "end_header\n0 0 0\n1 0 0\n0 1 0\n2000000000 0 1 2\n3 0 1 2\n",
)
content("claims.off", "error", lambda: "OFF\n2000000000 2000000000 0\n0 0 0\n")
content("claims.ply", "error", lambda: PLY.replace("vertex 3", "vertex 2000000000") + LIST + "end_header\n" + TRIANGLE)
content("claims.stl", "error", lambda: b"\0" * 80 + struct.pack("<I", 2**32 - 1) + b"\0" * 50)
content("claims.xyz", "error", lambda: "2000000000\n\nC 0 0 0\n")
content(
    "claims.bmp",
    "error",
    lambda: b"BM" + struct.pack("<IIIIiiHHIIiiII", 70, 0, 54, 40, 50_000, 50_000, 1, 24, 0, 0, 0, 0, 0, 0) + b"\0" * 16,
)
content(
    "claims.gif",
    "error",
    lambda: b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b",\0\0\0\0\xff\xff\xff\xff\0\x08\0;",
)


# Files that refer to others.
def beside(name: str, data: bytes | str, pipe: str | None = None) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
        if pipe is not None:
            os.mkfifo(folder / pipe)
        return folder / name

    return make


TEXTURED = scene(
    images=[{"uri": "texture.png"}],
    textures=[{"source": 0}],
    materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
    meshes=[{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
)
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4").tobytes()
case("buffer.gltf a pipe", "error")(
    beside("buffer.gltf", json.dumps(scene(buffers=[{"uri": "b.bin", "byteLength": 36}])), "b.bin")
)
case("buffer.gltf a device", "error")(
    beside("buffer.gltf", json.dumps(scene(buffers=[{"uri": "/dev/zero", "byteLength": 36}])))
)
case("texture.glb a pipe", "result")(beside("texture.glb", glb(TEXTURED, CORNERS), "texture.png"))
case("texture.glb missing", "result")(beside("texture.glb", glb(TEXTURED, CORNERS)))
case("texture.ply a pipe", "result")(
    beside("texture.ply", PLY + "comment TextureFile texture.png\n" + LIST + "end_header\n" + TRIANGLE, "texture.png")
)
case("texture.ply missing", "result")(
    beside("texture.ply", PLY + "comment TextureFile texture.png\n" + LIST + "end_header\n" + TRIANGLE)
)


@case("folder with spaces.tps 10 MB", "result", read=lambda folder: list_shapes(folder).names)
def _(folder: Path) -> Path:
    (folder / "spaces.tps").write_text(f"LM=2\n0 0\n1 0\nIMAGE=a{' ' * TEXT}b\n")
    return folder


# Transforms and runs.
SETTINGS = es.bulk.Settings(2, es.ECTConfig(num_directions=4, num_thresholds=4)).as_dict()


def transforms(change: Callable[[Path], None]) -> Make:
    def make(folder: Path) -> Path:
        change(folder)
        return next(path for path in folder.iterdir() if path.suffix in (".csv", ".npz"))

    return make


def wide_settings(folder: Path) -> None:
    (folder / "claims.csv").write_text("name,group,d0_t0\na,,1\n")
    (folder / "claims.json").write_text(
        json.dumps({"settings": SETTINGS | {"num_directions": 100_000, "num_thresholds": 1000}})
    )


def saved(folder: Path, **changes: Any) -> Path:
    """A compressed file of transforms, with some of its arrays changed."""
    path = folder / "saved.npz"
    write_transforms(path, es.bulk.Settings.from_dict(SETTINGS), [(["a"], np.zeros((1, 4, 4), np.float32))])
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(path, **arrays | changes)
    return path


case("claims.csv of transforms", "error", read=load_transforms)(transforms(wide_settings))
case("saved.npz of transforms", "result", read=load_transforms)(transforms(lambda folder: saved(folder) and None))
case("saved.npz flipped", "error", read=load_transforms)(
    transforms(lambda folder: (path := saved(folder)).write_bytes(flipped(path.read_bytes(), 0.4)) and None)
)
case("saved.npz other shape", "error", read=load_transforms)(
    transforms(lambda folder: saved(folder, transforms=np.zeros((1, 5, 4), np.float32)) and None)
)
case("saved.npz nested settings", "error", read=load_transforms)(
    transforms(lambda folder: saved(folder, settings=np.array("[" * 100_000)) and None)
)
case("saved.npz unpacks 6 GB", "error", read=load_transforms)(
    transforms(lambda folder: (folder / "saved.npz").write_bytes(npz(other=6 * 2**30)) and None)
)


def run(change: Callable[[dict[str, Any]], Any]) -> Make:
    """The folder of a run whose configuration was changed."""

    def make(folder: Path) -> Path:
        model = ModelConfig("mlp", num_directions=4, num_thresholds=4, hidden=(8,))
        save_model(model.build(2, 3), folder / "model.safetensors")
        config = RunConfig({"name": "letter-low", "options": {}}, 2, ("a", "b", "c"), "0", (1,), model)
        config.write(folder / "config.json")
        values = json.loads((folder / "config.json").read_text())
        changed = change(values)
        (folder / "config.json").write_text(changed if isinstance(changed, str) else json.dumps(values))
        return folder

    return make


for label, change in {
    "config.json unchanged": lambda values: None,
    "config.json dim 3e8": lambda values: values.update(dim=300_000_000),
    "config.json hidden 1e9": lambda values: values["model"].update(hidden=[10**9, 10**9]),
    "config.json directions 1e15": lambda values: values["model"].update(num_directions=10**15),
    "config.json model []": lambda values: values.update(model=[]),
    "config.json nested": lambda values: "[" * 10_000,
    "config.json nested object": lambda values: '{"data":' * 10_000,
    "config.json radius NaN": lambda values: values["model"].update(radius=float("nan")),
    "config.json rate inf": lambda values: values["training"].update(learning_rate=float("inf")),
    "config.json no dim": lambda values: values.pop("dim") and None,
    "config.json classes": lambda values: values.update(classes=3),
    "config.json data": lambda values: values.update(data={"folder": 1}),
    "config.json unknown": lambda values: values["model"].update(depth=3),
}.items():
    case(label, "result" if label.endswith("unchanged") else "error", read=runs.load_run)(run(change))


def memory(field: str) -> float:
    """VmRSS or VmHWM of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def measure(path: Path, read: Callable[[Path], Any], results: Any) -> None:
    """In a process of its own: read, and report seconds, MB, the kind of answer and the answer."""
    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before, start = memory("VmRSS"), time.process_time()
    try:
        answer = read(path)
        kind, text = "result", str(answer[1] if isinstance(answer, tuple) else answer)
    except Exception as error:
        kind, text = type(error).__name__, f"{error}"
    seconds = time.process_time() - start
    results.send((seconds, memory("VmHWM") - before, kind, text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="files whose name contains this")
    only = parser.parse_args().only
    processes = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as place:
        warm = Path(place) / "warm.png"
        warm.write_bytes(png(64, 64))
        es.read(warm)  # compiles, and loads libraries
        networkx.parse_gml("graph [ ]")
        failed = []
        print(f"{'file':<32} {'bytes':>10} {'s':>6} {'MB':>6}  answer")
        for number, (name, (expected, make, read)) in enumerate(CASES.items()):
            if only not in name:
                continue
            folder = Path(place) / str(number)
            folder.mkdir()
            path = make(folder)
            receiver, sender = processes.Pipe(duplex=False)
            process = processes.Process(target=measure, args=(path, read, sender))
            process.start()
            sender.close()
            try:
                seconds, used, kind, text = receiver.recv() if receiver.poll(TIMEOUT) else (TIMEOUT, 0.0, "hangs", "")
            except EOFError:
                seconds, used, kind, text = 0.0, 0.0, "killed", ""
            process.kill()
            process.join()
            size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
            limit = TEXT_SECONDS if "10 MB" in name else SECONDS
            named = kind == "result" or (kind in ("ReadError", "ValueError") and path.name in text)
            fine = named and (kind == "result") == (expected == "result") and seconds <= limit and used <= MEGABYTES
            failed += [] if fine else [name]
            shown = text.replace(str(folder), "").replace("\n", " ")[:150]
            print(f"{name:<32} {size:>10} {seconds:>6.2f} {used:>6.0f}  {'' if fine else 'FAIL '}{kind}: {shown}", flush=True)
            for file in folder.iterdir():
                file.unlink()
    print(f"\n{len(failed)} failed: {', '.join(failed)}" if failed else "\nall within bounds")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
