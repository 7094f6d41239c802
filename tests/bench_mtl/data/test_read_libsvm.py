"""The LIBSVM reader: multi-label lines, and every way a file can be wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.data import load, read_libsvm, shard_file
from bench_mtl.data.catalogue import spec_of

TEXT = """\
# a comment line
0,2 1:0.5 3:-2
2 2:1e-3

 1:4 2:5
0,1,2 3:7 # another
"""


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "set.svm"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_multi_label_file(tmp_path: Path) -> None:
    data = read_libsvm(write(tmp_path, TEXT))
    assert data.design.is_sparse
    assert data.design.is_shared
    np.testing.assert_array_equal(data.task(0)[0].toarray(), [[0.5, 0, -2], [0, 1e-3, 0], [4, 5, 0], [0, 0, 7]])
    np.testing.assert_array_equal(data.targets, [[1, -1, 1], [-1, -1, 1], [-1, -1, -1], [1, 1, 1]])
    assert data.name == "set"
    assert data.notes == ("The 3 label numbers of the file became one-against-all tasks.",)


def test_features_counted_from_0_where_0_occurs(tmp_path: Path) -> None:
    assert read_libsvm(write(tmp_path, "1 0:1 2:1\n2 1:1\n")).n_features == 3


def test_number_of_features_can_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert read_libsvm(path, features=7).n_features == 7
    with pytest.raises(InputError, match="n_features was set to 2, but input file contains 3"):
        read_libsvm(path, features=2)


def test_most_frequent_labels(tmp_path: Path) -> None:
    data = read_libsvm(write(tmp_path, TEXT), labels=2)
    np.testing.assert_array_equal(data.targets, [[1, 1], [-1, 1], [-1, -1], [1, 1]])
    with pytest.raises(InputError, match="labels = 4 asks for more than the 3"):
        read_libsvm(write(tmp_path, TEXT), labels=4)


def test_signs_are_one_task(tmp_path: Path) -> None:
    data = read_libsvm(write(tmp_path, "+1 1:1\n-1 1:2\n-1 1:3\n"))
    np.testing.assert_array_equal(data.targets, [[1], [-1], [-1]])
    assert data.notes == ("The labels -1 and 1 of the file became one task with the labels -1 and 1.",)


def test_zero_and_one_are_one_task(tmp_path: Path) -> None:
    data = read_libsvm(write(tmp_path, "1 1:1\n0 1:2\n0 1:3\n"))
    np.testing.assert_array_equal(data.targets, [[1], [-1], [-1]])
    assert data.notes == ("The labels 0 and 1 of the file became one task with the labels -1 and 1.",)
    assert read_libsvm(write(tmp_path, "0,1 1:1\n0 1:2\n")).targets.shape == (2, 2)  # two labels on a line are two tasks


@pytest.mark.parametrize(("low", "high"), [("1", "2"), ("2", "4"), ("-3", "7")])
def test_any_two_labels_are_one_task(tmp_path: Path, low: str, high: str) -> None:
    data = read_libsvm(write(tmp_path, f"{high} 1:1\n{low} 1:2\n{low} 1:3\n"))
    np.testing.assert_array_equal(data.targets, [[1], [-1], [-1]])
    assert data.notes == (f"The labels {low} and {high} of the file became one task with the labels -1 and 1.",)
    assert read_libsvm(write(tmp_path, f"{high} 1:1\n{low} 1:2\n"), labels=1).targets.shape == (2, 1)


def test_real_targets(tmp_path: Path) -> None:
    data = read_libsvm(write(tmp_path, "1.5 1:1\n-2 1:2\n3e-1 1:3\n"))
    np.testing.assert_array_equal(data.targets, [[1.5], [-2.0], [0.3]])
    assert data.notes == ("The numbers before the features are real targets.",)
    whole = write(tmp_path, "9 1:1\n12 1:2\n7 1:3\n")
    assert read_libsvm(whole).n_tasks == 3
    np.testing.assert_array_equal(read_libsvm(whole, real=True).targets, [[9.0], [12.0], [7.0]])
    for content, options, message in (
        ("1.5 1:1\n2 1:1\n", {"real": False}, r"example 0 has the label 1\.5: label numbers must be whole"),
        ("1,2 1:1\n2 1:1\n", {"real": True}, "real targets are one a line"),
        ("1 1:1\n", {"real": 1}, "real must be true or false"),
        ("1.5 1:1\n2 1:1\n", {"labels": 1}, "labels cannot be chosen: the targets are real numbers"),
    ):
        with pytest.raises(InputError, match=message):
            read_libsvm(write(tmp_path, content), **options)


def test_features_counted_from_0_where_0_does_not_occur(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1 2:1\n2 1:1\n")
    assert (read_libsvm(path).n_features, read_libsvm(path, zero_based=True).n_features) == (2, 3)
    with pytest.raises(InputError, match="Invalid index 0"):
        read_libsvm(write(tmp_path, "1 0:1\n"), zero_based=False)


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
    ("content", "message"),
    [
        ("", "has no example"),
        ("# nothing\n\n", "has no example"),
        ("this is some text\n", "not readable as a LIBSVM file"),
        ("1,2 a:b\n", "not readable as a LIBSVM file"),
        ("1, 1:2\n", "not readable as a LIBSVM file"),
        ("1 5\n", "not readable as a LIBSVM file"),
        ("1 -1:2\n", "Invalid index -1"),
        ("1 2:1 1:1\n", "sorted and unique"),
        ("1 1:1 1:1\n", "sorted and unique"),
        ("1 99999999999999999999:1\n", "not readable as a LIBSVM file"),
        ("1 1:nan\n", "NaN"),
        ("1 1:inf\n", "inf"),
        ("1 1:?\n", "not readable as a LIBSVM file"),
        ("1,1.5 1:1\n", r"example 0 has the label 1\.5: label numbers must be whole"),
        ("1 1:1\nnan 1:1\n", "has a label that is not finite"),
        ("inf 1:1\n", "has a label that is not finite"),
        ("1:2 2:3\n2:1\n", "has no label on any line"),
        ("1\n2\n", "has no feature on any line"),
        (bytes(range(256)) * 10, "not readable as a LIBSVM file"),
        (b"PK\x03\x04\0\0\0", "not readable as a LIBSVM file"),
    ],
)
def test_unusable_files(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=message) as error:
        read_libsvm(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("options", "message"), [({"features": 0}, "features must be"), ({"labels": -1}, "labels must be")])
def test_unusable_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_libsvm(write(tmp_path, TEXT), **options)


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_libsvm(tmp_path / "nothing.svm")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=60), st.text(alphabet="01 ,:-+.e#\nnaqid", max_size=60).map(str.encode)))
def test_any_file_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    message, values = "", np.ones(1)
    try:
        data = read_libsvm(write(tmp_path, content))
        values = np.ones(1) if "real targets" in data.notes[0] else data.targets
    except InputError as error:
        message = str(error)
    assert "\n" not in message
    assert set(np.unique(values)) <= {-1.0, 1.0}
