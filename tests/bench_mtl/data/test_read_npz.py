"""The .npz reader: every layout of the format, and every way a file can be wrong."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading import csr_parts, dense, refused

from bench_mtl.core.errors import InputError
from bench_mtl.data import read_npz

X = np.arange(24, dtype=np.float64).reshape(6, 4)
Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=np.uint8)
SIGNS = np.where(Y == 1, 1.0, -1.0)
SPLIT = {"train_idx": np.array([0, 2, 4], dtype=np.int32), "test_idx": np.array([5, 1], dtype=np.int32)}
TASK = np.array([0, 0, 1, 1, 2, 2])


CSR = csr_parts(X.astype(np.float32))


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez_compressed(path, **arrays)
    return path


CONVERTED = ("Labels 0/1 were read as -1/+1.",)
REAL = np.linspace(0.0, 1.0, 12).reshape(6, 2)
CLASSES = np.array([7, 2, 2, 9, 7, 2], dtype=np.int16)
AGAINST_ALL = np.where(CLASSES[:, None] == [2, 7, 9], 1.0, -1.0)
GREY = np.array([[0, 255], [51, 102]], dtype=np.uint8)
THREE = "The 3 classes of y became one-against-all tasks."
TEST_ROWS = "Only the 2 rows of the split 'test' were used, of 6."
#: Arrays, options, features, targets, notes.
READ: list[tuple[dict[str, Any], dict[str, Any], Any, Any, tuple[str, ...]]] = [
    ({"X": X, "Y": Y, "label_names": np.array(["a", "b", "c"])}, {}, X, SIGNS, CONVERTED),
    ({**CSR, "Y": Y, **SPLIT}, {"split": "test"}, X[[5, 1]], SIGNS[[5, 1]], (*CONVERTED, TEST_ROWS)),
    ({"X": X, "Y": Y, **SPLIT}, {"split": "test"}, X[[5, 1]], SIGNS[[5, 1]], (*CONVERTED, TEST_ROWS)),
    ({"X": GREY, "y": GREY[:, 0] > 9}, {}, GREY / 255, [[-1], [1]], ("Grey levels were divided by 255.", *CONVERTED)),
    ({"X": X, "Y": REAL}, {}, X, REAL, ()),
    ({"X": X, "y": REAL[:, 0]}, {}, X, REAL[:, :1], ()),
    ({"X": X, "y": CLASSES}, {}, X, AGAINST_ALL, (THREE,)),
    ({"X": X, "y": CLASSES, **SPLIT}, {"split": "test"}, X[[5, 1]], AGAINST_ALL[[5, 1]], (THREE, TEST_ROWS)),
    ({"X": X, "y": Y[:, 0]}, {}, X, SIGNS[:, :1], CONVERTED),
    ({"X": X, "y": np.zeros(6, dtype=int)}, {}, X, -np.ones((6, 1)), CONVERTED),
    ({"X": X, "y": np.full(6, -1)}, {}, X, -np.ones((6, 1)), ()),
    ({"X": X, "Y": Y[:, [2, 0, 1]]}, {"labels": 2}, X, SIGNS[:, [0, 1]], (*CONVERTED, "The 2 most frequent of 3 labels were retained.")),
]


@pytest.mark.parametrize(("arrays", "options", "features", "targets", "notes"), READ)
def test_what_arrays_may_be(
    tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], features: Any, targets: Any, notes: tuple[str, ...]
) -> None:
    data = read_npz(save(tmp_path, **arrays), **options)
    assert data.design.is_sparse == ("X_data" in arrays)
    np.testing.assert_array_equal(dense(data), features)
    np.testing.assert_array_equal(data.targets, targets)
    assert (data.name, data.notes) == ("set", notes)


@pytest.mark.parametrize("parts", [{"X": X}, CSR])
def test_tasks_have_their_own_rows(tmp_path: Path, parts: dict[str, Any]) -> None:
    task = np.array([1, 0, 1, 0, 1, 1], dtype=np.int32)
    data = read_npz(save(tmp_path, **parts, y=np.array([1, 0, 0, 1, 1, 0], dtype=np.uint8), task=task))
    assert data.design.sizes == (2, 4)
    np.testing.assert_array_equal(dense(data, 0), X[[1, 3]])
    np.testing.assert_array_equal(dense(data, 1), X[[0, 2, 4, 5]])
    np.testing.assert_array_equal(data.targets, [-1, 1, 1, -1, 1, -1])
    columns = read_npz(save(tmp_path, **parts, Y=np.arange(12.0).reshape(6, 2), task=TASK), target=1)
    np.testing.assert_array_equal(columns.targets, [1, 3, 5, 7, 9, 11])
    assert "Column 1 of 2 in Y is the target." in columns.notes


def with_(array: Any, place: Any, value: Any) -> Any:
    changed = np.array(array)
    changed[place] = value
    return changed


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"Y": Y}, {}, "has no features"),
    ({"X": X}, {}, "has no targets: neither Y nor y"),
    ({"X": X, "Y": Y, "y": Y[:, 0]}, {}, "has both Y and y"),
    ({"X": X, "Y": Y, **CSR}, {}, "has both X and X_data"),
    ({"X_data": X[0], "Y": Y}, {}, "has X_data but no X_indices, X_indptr, X_shape"),
    ({"X": X[0], "Y": Y}, {}, r"X must have shape n x d, but has \(4,\)"),
    ({"X": X, "Y": Y[:5]}, {}, "Y has 5 rows, but X has 6"),
    ({"X": X, "Y": Y[:, 0]}, {}, "Y must be n x m"),
    ({"X": X, "y": Y}, {}, "y must be a vector"),
    ({"X": X, "Y": Y[:, :0]}, {}, "at least one task"),
    ({"X": X[:0], "Y": Y[:0]}, {}, "X is empty"),
    ({**csr_parts(X[:0]), "Y": Y[:0]}, {}, "X is empty"),
    ({"X": X[:, :0], "Y": Y}, {}, "X has no features"),
    ({"X": with_(X, (2, 3), np.nan), "Y": Y}, {}, r"X has NaN at index \(2, 3\)"),
    ({"X": with_(X, (2, 3), -np.inf), "Y": Y}, {}, r"X has inf at index \(2, 3\)"),
    ({"X": X, "y": with_(X[:, 0], 4, np.inf)}, {}, "y has inf at index 4"),
    ({"X": X, "Y": with_(Y, (3, 1), 2)}, {}, r"labels must be -1/\+1 \(or 0/1\), but entry \(3, 1\) is 2"),
    ({"X": X, "Y": with_(SIGNS.astype(int), (0, 0), 0)}, {}, "labels mix 0 with -1"),
    ({"X": X.astype(str), "Y": Y}, {}, "array X has type <U"),
    ({"X": X.astype(object), "Y": Y}, {}, "never pickled objects"),
    ({"X": X, "Y": Y}, {"split": "train"}, "has no split 'train': the array train_idx is missing"),
    ({"X": X, "Y": Y, "train_idx": np.array([0])}, {"split": "train", "held_out": True}, "has no split 'test'"),
    (
        {"X": X, "Y": Y, "train_idx": np.array([0, 2, 4]), "test_idx": np.array([5, 4])},
        {"split": "train", "held_out": True},
        "held_out = true needs splits without common rows, but row 4 is in both",
    ),
    ({"X": X, "Y": Y, "test_idx": np.array([0, -1])}, {"split": "test"}, "test_idx has -1 at position 1, but there are 6 rows"),
    ({"X": X, "Y": Y, "test_idx": np.array([], dtype=int)}, {"split": "test"}, "test_idx is empty"),
    ({"X": X, "Y": Y, "test_idx": np.array([0.0])}, {"split": "test"}, "test_idx must be a vector of row numbers"),
    ({"X": X, "Y": Y}, {"target": 1}, "target = 1 is only for files with 'task'"),
    ({"X": X, "y": Y[:, 0], "task": TASK}, {"labels": 1}, "labels cannot be chosen in a file with 'task'"),
    ({"X": X, "y": Y[:, 0], "task": TASK}, {"examples": 2}, "only for files without 'task'"),
    ({"X": X, "Y": X, "task": TASK}, {"target": 4}, "target = 4 is out of range: there are 4"),
    ({"X": X, "y": Y[:, 0], "task": TASK[:5]}, {}, "task must be 6 task numbers"),
    ({"X": X, "y": Y[:, 0], "task": TASK - 1}, {}, "task has -1: numbers start at 0"),
    ({"X": X, "y": Y[:, 0], "task": 2 * TASK}, {}, "task 1 has no row"),
    ({"X": X, "y": TASK, "task": TASK}, {}, "labels must be"),
    ({"X": X, "y": Y[:, 0], "task": TASK, "train_idx": np.array([0, 5])}, {"split": "train"}, "task 1 has no row in split 'train'"),
    (
        {"X": X, "y": Y[:, 0], "task": np.array([0, 1, 0, 1, 1, 0]), "train_idx": np.array([0, 1]), "test_idx": np.array([4])},
        {"split": "train", "held_out": True},
        "task 0 has no row among the held-out rows",
    ),
    ({**CSR, "Y": Y, "X_indices": with_(CSR["X_indices"], 5, -1)}, {}, "X_indices has -1 at position 5"),
    ({**CSR, "Y": Y, "X_indices": with_(CSR["X_indices"], 5, 4)}, {}, "has 4 at position 5, but there are 4 features"),
    ({**CSR, "Y": Y, "X_indices": CSR["X_indices"][:-1]}, {}, "X_indices has length 22, but X_data has 23"),
    ({**CSR, "Y": Y, "X_indices": X.ravel()[:23]}, {}, "X_indices must be integers"),
    ({**CSR, "Y": Y, "X_data": X}, {}, "X_data must have 1 dimension"),
    ({**CSR, "Y": Y, "X_data": with_(CSR["X_data"], 4, np.nan)}, {}, r"X has NaN at index \(1, 1\)"),
    ({**CSR, "Y": Y, "X_indptr": with_(CSR["X_indptr"], 2, 1)}, {}, "X_indptr must be 7 numbers that rise from 0 to 23"),
    ({**CSR, "Y": Y, "X_indptr": np.zeros(0, dtype=int)}, {}, "X_indptr must be 7 numbers"),
    ({**CSR, "Y": Y, "X_shape": np.array([6, 4, 1])}, {}, "X_shape must be two numbers"),
    ({**CSR, "Y": Y, "X_shape": np.array([2**50, 4])}, {}, "X_indptr must be"),
]
OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"held_out": True}, "held_out = true takes the rows of the split 'test', so split must be 'train', not 'all'"),
    ({"held_out": 6}, "held_out must be at most 5, so that 1 of 6 rows are left, not 6"),
    ({"examples": 7}, "examples must be a whole number of at least 1 and at most 6, the number of rows, not 7"),
    ({"examples": 4, "held_out": 3}, "examples = 4 and held_out = 3 are more than the 6 rows there are"),
    ({"examples": 4, "split": "train"}, "examples must be a whole number of at least 1 and at most 3"),
]


@pytest.mark.parametrize(
    ("arrays", "options", "message"), [*REFUSED, *(({"X": X, "Y": Y, **SPLIT}, options, message) for options, message in OPTIONS)]
)
def test_what_is_refused(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with refused(message):
        read_npz(save(tmp_path, **arrays), **options)


def npy_bytes(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_files_that_are_no_zip_or_a_part_of_one(tmp_path: Path) -> None:
    whole = save(tmp_path, X=X, Y=Y).read_bytes()
    parts = [whole[: int(share * len(whole))] for share in (0.1, 0.5, 0.9, 0.99)]
    path = tmp_path / "bad.npz"
    for content in (b"", b"not a zip\n", bytes(range(256)) * 40, b"PK\x03\x04" + b"\0" * 50, npy_bytes(X), *parts):
        path.write_bytes(content)
        with pytest.raises(InputError, match="no zip archive, or a truncated one"):
            read_npz(path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"X.npy": b"some text that is long enough", "Y.npy": npy_bytes(Y)}, "magic string"),
        ({}, "has no features"),
        # Refused before memory is taken.
        (
            {"X.npy": npy_bytes(X).replace(b"(6, 4), }" + b" " * 14, b"(600000000000, 4), }   ")},
            r"array X\.npy is not as long",
        ),
        ({"X.npy": npy_bytes(X), "Y.npy": npy_bytes(Y)[:-3]}, r"array Y\.npy is not as long"),
        ({"X.npy": npy_bytes(X)[:6] + b"\x09" + npy_bytes(X)[7:]}, "unknown format version"),
    ],
)
def test_zips_of_something_else(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_npz(zip_of(tmp_path / "a.npz", members))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), archived=st.booleans())
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, data: st.DataObject, archived: bool) -> None:
    """Damage to the archive (which checksums find) or to an array before it is archived (which they do not)."""
    members = {f"{name}.npy": npy_bytes(array) for name, array in {**CSR, "Y": Y, **SPLIT}.items()}
    path = tmp_path / "set.npz"
    if archived:
        path.write_bytes(damaged(data, zip_of(path, members).read_bytes()))
    else:
        name = data.draw(st.sampled_from(sorted(members)))
        zip_of(path, {**members, name: damaged(data, members[name])})
    message = ""
    try:
        read_npz(path, split="train")
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def damaged(data: st.DataObject, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    return bytes(changed)


def test_the_rows_of_the_test_split_are_held_out(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, Y=Y, **SPLIT)
    data = read_npz(path, split="train", labels=2, held_out=True)
    np.testing.assert_array_equal(dense(data), X[[0, 2, 4]])
    np.testing.assert_array_equal(dense(data.held_out), X[[5, 1]])
    np.testing.assert_array_equal(data.held_out.targets, SIGNS[[5, 1]][:, :2])
    assert data.notes[-2:] == ("The 2 rows of the split 'test' are held out.", "The 2 most frequent of 3 labels were retained.")
    some = read_npz(path, split="train", examples=2, held_out=True)
    assert (len(dense(some)), len(dense(some.held_out))) == (2, 2)
    assert read_npz(path, split="train").held_out is None
    tasks = save(tmp_path, X=X, y=X[:, 0], task=np.array([0, 1, 0, 1, 1, 0]), train_idx=np.arange(4), test_idx=np.array([4, 5]))
    own = read_npz(tasks, split="train", held_out=True).held_out
    np.testing.assert_array_equal(dense(own, 0), X[[5]])
    np.testing.assert_array_equal(own.targets, X[[5, 4], 0])


def test_rows_are_drawn_in_the_proportions_of_the_classes(tmp_path: Path) -> None:
    n = 300
    values = np.arange(2.0 * n).reshape(n, 2) + 1.0
    classes = np.repeat([3, 5, 9], [150, 100, 50])
    path = save(tmp_path, X=values, y=classes)
    data = read_npz(path, examples=60, held_out=30, seed=2)
    np.testing.assert_array_equal(np.count_nonzero(data.targets == 1.0, axis=0), [30, 20, 10])
    np.testing.assert_array_equal(np.count_nonzero(data.held_out.targets == 1.0, axis=0), [15, 10, 5])
    assert not {row[0] for row in dense(data)} & {row[0] for row in dense(data.held_out)}
    assert data.notes[-1] == "60 and 30 held-out of 300 rows were drawn in the classes' proportions, with seed 2."
    np.testing.assert_array_equal(dense(read_npz(path, examples=60, seed=2)), dense(data))
    assert not np.array_equal(dense(read_npz(path, examples=60, seed=3)), dense(data))
    assert len(dense(read_npz(path, held_out=30))) == 270
