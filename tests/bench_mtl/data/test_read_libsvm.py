"""The LIBSVM reader: what lines may hold, and every way a file can be wrong."""

import bz2
import gzip
import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import dense, refused, written

from bench_mtl.core.errors import InputError
from bench_mtl.data import load, read_libsvm, shard_file
from bench_mtl.data.catalogue import spec_of
from bench_mtl.data.readers import libsvm

TEXT = """\
# a comment line
0,2 1:0.5 3:-2
2 2:1e-3

 1:4 2:5
0,1,2 3:7 # another
"""
X = np.array([[0.5, 0, -2], [0, 1e-3, 0], [4, 5, 0], [0, 0, 7]])
Y = np.array([[1, -1, 1], [-1, -1, 1], [-1, -1, -1], [1, 1, 1]])
THREE = "The 3 label numbers of the file became one-against-all tasks."
REAL = "The numbers before the features are real targets."


def pair(low: str, high: str) -> str:
    return f"The labels {low} and {high} of the file became one task with the labels -1 and 1."


#: Content, options, features, targets, the first note.
READ: list[tuple[str, dict[str, Any], Any, Any, str]] = [
    (TEXT, {}, X, Y, THREE),
    (TEXT, {"features": 5}, np.hstack([X, np.zeros((4, 2))]), Y, THREE),
    (TEXT, {"labels": 2}, X, Y[:, [0, 2]], THREE),
    ("0,1 1:1\n0 1:2\n", {}, [[1], [2]], [[1, 1], [1, -1]], "The 2 label numbers of the file became one-against-all tasks."),
    *(
        (f"{high} 1:1\n{low} 1:2\n{low} 1:3\n", options, [[1], [2], [3]], [[1], [-1], [-1]], pair(low.lstrip("+"), high.lstrip("+")))
        for low, high in (("-1", "+1"), ("0", "1"), ("1", "2"), ("2", "4"), ("-3", "7"))
        for options in ({}, {"labels": 1})
    ),
    ("1.5 1:1\n-2 1:2\n3e-1 1:3\n", {}, [[1], [2], [3]], [[1.5], [-2.0], [0.3]], REAL),
    ("9 1:1\n12 1:2\n7 1:3\n", {}, [[1], [2], [3]], [[-1, 1, -1], [-1, -1, 1], [1, -1, -1]], THREE),
    ("9 1:1\n12 1:2\n7 1:3\n", {"real": True}, [[1], [2], [3]], [[9.0], [12.0], [7.0]], REAL),
    ("1 0:1 2:1\n2 1:1\n", {}, [[1, 0, 1], [0, 1, 0]], [[-1], [1]], pair("1", "2")),
    ("1 1:1 2:1\n2 1:1\n", {}, [[1, 1], [1, 0]], [[-1], [1]], pair("1", "2")),
    ("1 1:1 2:1\n2 1:1\n", {"zero_based": True}, [[0, 1, 1], [0, 1, 0]], [[-1], [1]], pair("1", "2")),
    ("1 1:1 2:1\n2 1:1\n", {"zero_based": False}, [[1, 1], [1, 0]], [[-1], [1]], pair("1", "2")),
    ("1\n2\n", {"features": 2}, [[0, 0], [0, 0]], [[-1], [1]], pair("1", "2")),
]


@pytest.mark.parametrize(("content", "options", "features", "targets", "note"), READ)
def test_what_lines_may_hold(tmp_path: Path, content: str, options: dict[str, Any], features: Any, targets: Any, note: str) -> None:
    data = read_libsvm(written(tmp_path / "set.svm", content), **options)
    assert data.design.is_sparse
    assert data.design.is_shared
    np.testing.assert_array_equal(dense(data), features)
    np.testing.assert_array_equal(data.targets, targets)
    assert (data.name, data.notes[0]) == ("set", note)


@pytest.mark.parametrize(("end", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("name", ["a9a", "mnist.scale", "set.svm", "w8a.t"])
def test_packed_files_and_names_that_tell_nothing(tmp_path: Path, name: str, end: str, pack: Any) -> None:
    """As they are offered on LIBSVM's pages."""
    (tmp_path / name).write_text(TEXT)
    packed = tmp_path / f"{name}{end}"
    packed.write_bytes(pack(TEXT.encode()))
    plain = load({"file": str(tmp_path / name)})
    data = load({"file": packed.name}, data_dir=tmp_path)
    np.testing.assert_array_equal(data.targets, plain.targets)
    assert data.name == plain.name == Path(name).stem
    assert spec_of(f"{name}{end}", tmp_path) == {"file": f"{name}{end}"}
    sharded = shard_file({"file": str(packed)}, tmp_path / "shards")
    assert (sharded.rows, sharded.features, sharded.name) == (4, 3, data.name)
    packed.write_bytes(pack(TEXT.encode())[:-12])
    with pytest.raises(InputError, match="not readable as a LIBSVM file"):
        load({"file": str(packed)})
    (tmp_path / name).write_text("a story of some words\n")
    with pytest.raises(InputError, match=r"its name must end in one of|not readable as a LIBSVM file"):
        load({"file": str(tmp_path / name)})


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "has no example"),
        ("this is some text\n", {}, "not readable as a LIBSVM file"),
        ("1 -1:2\n", {}, "Invalid index -1"),
        ("1 0:1\n", {"zero_based": False}, "Invalid index 0"),
        ("1 2:1 1:1\n", {}, "sorted and unique"),
        ("1 99999999999999999999:1\n", {}, "not readable as a LIBSVM file"),
        ("1 1:nan\n", {}, "NaN"),
        ("1,1.5 1:1\n", {}, r"example 0 has the label 1\.5: label numbers must be whole"),
        ("1.5 1:1\n2 1:1\n", {"real": False}, r"example 0 has the label 1\.5: label numbers must be whole"),
        ("1,2 1:1\n2 1:1\n", {"real": True}, "real targets are one a line"),
        ("1.5 1:1\n2 1:1\n", {"labels": 1}, "labels cannot be chosen: the targets are real numbers"),
        ("1 1:1\nnan 1:1\n", {}, "has a label that is not finite"),
        ("1:2 2:3\n2:1\n", {}, "has no label on any line"),
        ("1\n2\n", {}, "has no feature on any line"),
        (bytes(range(256)) * 10, {}, "not readable as a LIBSVM file"),
        (TEXT, {"features": 2}, "features = 2, but there are 3"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str | bytes, options: dict[str, Any], message: str) -> None:
    with refused(message):
        read_libsvm(written(tmp_path / "set.svm", content), **options)


def test_a_file_that_is_read_at_once_is_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpacked may be many times what is left of it."""

    class Lines(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("all of it at once")

    monkeypatch.setattr(libsvm, "opened", lambda _: Lines(TEXT.encode()))
    np.testing.assert_array_equal(dense(read_libsvm(written(tmp_path / "set.svm", TEXT))), X)


@pytest.mark.parametrize("content", [b"\n" * 20_000, b" " * libsvm._SEARCHED, b"1" * libsvm._SEARCHED])
def test_what_is_no_such_file_is_known_soon(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "blank").write_bytes(content)
    assert not libsvm.looks_like_libsvm(tmp_path / "blank")


def test_a_damaged_packed_file_is_no_libsvm_file(tmp_path: Path) -> None:
    (tmp_path / "a9a.gz").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + b"\xff" * 64)
    with pytest.raises(InputError, match="not readable as a LIBSVM file"):
        load({"file": str(tmp_path / "a9a.gz")})
