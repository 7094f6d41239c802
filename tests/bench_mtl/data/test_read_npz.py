"""The .npz reader: every layout of the format, and every way a file can be wrong."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, read_npz
from bench_mtl.data.readers.npz import read_table
from bench_mtl.data.selection import Selection

X = np.arange(24, dtype=np.float64).reshape(6, 4)
Y = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=np.uint8)
SIGNS = np.where(Y == 1, 1.0, -1.0)
SPLIT = {"train_idx": np.array([0, 2, 4], dtype=np.int32), "test_idx": np.array([5, 1], dtype=np.int32)}


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez_compressed(path, **arrays)
    return path


def csr_parts(matrix: Any = X) -> dict[str, Any]:
    csr = sp.csr_array(matrix)
    return {
        "X_data": csr.data.astype(np.float32),
        "X_indices": csr.indices.astype(np.int32),
        "X_indptr": csr.indptr.astype(np.int32),
        "X_shape": np.array(csr.shape, dtype=np.int64),
    }


def dense(data: TaskData, k: int = 0) -> Any:
    block = data.task(k)[0]
    return block.toarray() if data.design.is_sparse else block


def test_multi_label_file(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, Y=Y, label_names=np.array(["a", "b", "c"])))
    np.testing.assert_array_equal(dense(data), X)
    np.testing.assert_array_equal(data.targets, SIGNS)
    assert data.name == "set"
    assert data.notes == ("Labels 0/1 were read as -1/+1.",)


def test_signed_labels_need_no_note(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, Y=SIGNS.astype(np.int8)))
    np.testing.assert_array_equal(data.targets, SIGNS)
    assert data.notes == ()


def test_sparse_file(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, **csr_parts(), Y=Y, **SPLIT), split="test")
    assert data.design.is_sparse
    np.testing.assert_array_equal(dense(data), X[[5, 1]])
    np.testing.assert_array_equal(data.targets, SIGNS[[5, 1]])


@pytest.mark.parametrize("split", ["train", "test"])
def test_splits(tmp_path: Path, split: str) -> None:
    data = read_npz(save(tmp_path, X=X, Y=Y, **SPLIT), split=split)
    rows = SPLIT[f"{split}_idx"]
    np.testing.assert_array_equal(dense(data), X[rows])
    np.testing.assert_array_equal(data.targets, SIGNS[rows])
    assert f"Only the {len(rows)} rows of the split '{split}' were used, of 6." in data.notes


def test_grey_levels(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=np.array([[0, 255], [51, 102]], dtype=np.uint8), y=np.array([0, 1], dtype=np.uint8)))
    np.testing.assert_allclose(dense(data), [[0.0, 1.0], [0.2, 0.4]])
    assert "Grey levels were divided by 255." in data.notes


def test_real_targets_stay(tmp_path: Path) -> None:
    real = np.linspace(0.0, 1.0, 12).reshape(6, 2)
    np.testing.assert_array_equal(read_npz(save(tmp_path, X=X, Y=real)).targets, real)
    np.testing.assert_array_equal(read_npz(save(tmp_path, X=X, y=real[:, 0])).targets, real[:, :1])


def test_zeros_and_ones_in_a_floating_type_are_real_targets(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read_npz(save(tmp_path, X=X, Y=Y.astype(np.float64))).targets, Y)


def test_classes_become_one_against_all(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, y=np.array([7, 2, 2, 9, 7, 2], dtype=np.int16)))
    expected = np.array([[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(data.targets, 2.0 * expected - 1.0)
    assert "The 3 classes of y became one-against-all tasks." in data.notes


def test_classes_are_those_of_the_whole_file_in_every_split(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, y=np.array([7, 2, 2, 9, 7, 2], dtype=np.int16), **SPLIT), split="test")
    assert data.n_tasks == 3


def test_two_classes_0_and_1_are_one_task(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, y=np.array([0, 1, 1, 0, 0, 1], dtype=np.uint8)))
    np.testing.assert_array_equal(data.targets, [[-1], [1], [1], [-1], [-1], [1]])


def test_most_frequent_labels(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, Y=Y[:, [2, 0, 1]], **SPLIT)  # columns with 1, 3 and 3 positives
    np.testing.assert_array_equal(read_npz(path, labels=2).targets, SIGNS[:, [0, 1]])
    np.testing.assert_array_equal(read_npz(path, labels=1).targets, SIGNS[:, [0]])
    np.testing.assert_array_equal(read_npz(path, labels=2, split="train").targets, SIGNS[SPLIT["train_idx"], :2])
    with pytest.raises(InputError, match="labels = 4 asks for more than the 3"):
        read_npz(path, labels=4)


@pytest.mark.parametrize("parts", [{"X": X}, csr_parts()])
def test_tasks_have_their_own_rows(tmp_path: Path, parts: dict[str, Any]) -> None:
    task = np.array([1, 0, 1, 0, 1, 1], dtype=np.int32)
    data = read_npz(save(tmp_path, **parts, y=np.array([1, 0, 0, 1, 1, 0], dtype=np.uint8), task=task))
    assert data.design.sizes == (2, 4)
    np.testing.assert_array_equal(dense(data, 0), X[[1, 3]])
    np.testing.assert_array_equal(dense(data, 1), X[[0, 2, 4, 5]])
    np.testing.assert_array_equal(data.targets, [-1, 1, 1, -1, 1, -1])


def test_tasks_take_one_column_of_targets(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, Y=np.arange(12.0).reshape(6, 2), task=np.array([0, 0, 0, 1, 1, 1]))
    np.testing.assert_array_equal(read_npz(path).targets, [0, 2, 4, 6, 8, 10])
    data = read_npz(path, target=1)
    np.testing.assert_array_equal(data.targets, [1, 3, 5, 7, 9, 11])
    assert "Column 1 of 2 in Y is the target." in data.notes
    with pytest.raises(InputError, match=r"target = 2 is out of range: there are 2"):
        read_npz(path, target=2)


def with_(array: Any, place: Any, value: Any) -> Any:
    changed = np.array(array)
    changed[place] = value
    return changed


TASK = np.array([0, 0, 1, 1, 2, 2])
BAD_ARRAYS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"Y": Y}, {}, "has no features"),
    ({"X": X}, {}, "has no targets: neither Y nor y"),
    ({"X": X, "Y": Y, "y": Y[:, 0]}, {}, "has both Y and y"),
    ({"X": X, "Y": Y, **csr_parts()}, {}, "has both X and X_data"),
    ({"X_data": X[0], "Y": Y}, {}, "has X_data but no X_indices, X_indptr, X_shape"),
    ({"X": X[0], "Y": Y}, {}, r"X must be n x d, but has shape \(4,\)"),
    ({"X": X, "Y": Y[:5]}, {}, "Y has 5 rows, but X has 6"),
    ({"X": X, "y": Y[:5, 0]}, {}, "y has 5 rows, but X has 6"),
    ({"X": X, "Y": Y[:, 0]}, {}, "Y must be n x m"),
    ({"X": X, "y": Y}, {}, "y must be a vector"),
    ({"X": X, "Y": Y[:, :0]}, {}, "at least one task"),
    ({"X": X[:0], "Y": Y[:0]}, {}, "X is empty"),
    ({"X": X[:0], "y": Y[:0, 0]}, {}, "at least one task"),
    ({"X": X[:, :0], "Y": Y}, {}, "X has no features"),
    ({"X": with_(X, (2, 3), np.nan), "Y": Y}, {}, r"X has NaN at index \(2, 3\)"),
    ({"X": with_(X, (2, 3), -np.inf), "Y": Y}, {}, r"X has inf at index \(2, 3\)"),
    ({"X": X, "Y": with_(X, (1, 0), np.nan)}, {}, r"Y has NaN at index \(1, 0\)"),
    ({"X": X, "y": with_(X[:, 0], 4, np.inf)}, {}, "y has inf at index 4"),
    ({"X": X, "Y": with_(Y, (3, 1), 2)}, {}, r"labels must be -1/\+1 \(or 0/1\), but entry \(3, 1\) is 2"),
    ({"X": X, "Y": with_(SIGNS.astype(int), (0, 0), 0)}, {}, "labels mix 0 with -1"),
    ({"X": X.astype(str), "Y": Y}, {}, "array X has type <U"),
    ({"X": X.astype(complex), "Y": Y}, {}, "array X has type complex128"),
    ({"X": X.astype(object), "Y": Y}, {}, "never pickled objects"),
    ({"X": X, "Y": Y.astype(object)}, {}, "array Y has type object"),
    ({"X": X, "Y": Y}, {"split": "train"}, "has no split 'train': the array train_idx is missing"),
    (
        {"X": X, "Y": Y, "train_idx": np.array([0, 2, 4]), "test_idx": np.array([5, 4])},
        {"split": "train", "held_out": True},
        "held_out = true needs splits without common rows, but row 4 is in both",
    ),
    ({"X": X, "Y": Y, "test_idx": np.array([0, -1])}, {"split": "test"}, "test_idx has -1 at position 1, but there are 6 rows"),
    ({"X": X, "Y": Y, "test_idx": np.array([6])}, {"split": "test"}, "test_idx has 6 at position 0"),
    ({"X": X, "Y": Y, "test_idx": np.array([], dtype=int)}, {"split": "test"}, "test_idx is empty"),
    ({"X": X, "Y": Y, "test_idx": np.array([0.0])}, {"split": "test"}, "test_idx must be a vector of row numbers"),
    ({"X": X, "Y": Y, "test_idx": np.array(3)}, {"split": "test"}, "test_idx must be a vector of row numbers"),
    ({"X": X, "Y": Y}, {"target": 1}, "target = 1 is only for files with 'task'"),
    ({"X": X, "Y": X}, {"labels": 2}, "the targets are real numbers"),
    ({"X": X, "y": Y[:, 0], "task": TASK}, {"labels": 1}, "labels cannot be chosen in a file with 'task'"),
    ({"X": X, "y": Y[:, 0], "task": TASK[:5]}, {}, "task must be 6 task numbers"),
    ({"X": X, "y": Y[:, 0], "task": TASK.astype(float)}, {}, "task must be 6 task numbers"),
    ({"X": X, "y": Y[:, 0], "task": TASK - 1}, {}, "task has -1: numbers start at 0"),
    ({"X": X, "y": Y[:, 0], "task": 2 * TASK}, {}, "task 1 has no row"),
    ({"X": X, "y": Y[:, 0], "task": TASK + 2**40}, {}, "task 0 has no row"),
    ({"X": X, "y": TASK, "task": TASK}, {}, "labels must be"),
    ({"X": X, "y": Y[:, 0], "task": TASK, "train_idx": np.array([0, 5])}, {"split": "train"}, "task 1 has no row in split 'train'"),
    ({**csr_parts(), "Y": Y, "X_indices": with_(csr_parts()["X_indices"], 5, -1)}, {}, "X_indices has -1 at position 5"),
    (
        {**csr_parts(), "Y": Y, "X_indices": with_(csr_parts()["X_indices"], 5, 4)},
        {},
        "has 4 at position 5, but there are 4 features",
    ),
    ({**csr_parts(), "Y": Y, "X_indices": csr_parts()["X_indices"][:-1]}, {}, "X_indices has length 22, but X_data has 23"),
    ({**csr_parts(), "Y": Y, "X_indices": X.ravel()[:23]}, {}, "X_indices must be integers"),
    ({**csr_parts(), "Y": Y, "X_data": X}, {}, "X_data must have 1 dimension"),
    ({**csr_parts(), "Y": Y, "X_data": with_(csr_parts()["X_data"], 4, np.nan)}, {}, r"X has NaN at index \(1, 1\)"),
    ({**csr_parts(), "Y": Y, "X_indptr": with_(csr_parts()["X_indptr"], 2, 1)}, {}, "X_indptr must be 7 numbers that rise from 0 to 23"),
    ({**csr_parts(), "Y": Y, "X_indptr": with_(csr_parts()["X_indptr"], -1, 99)}, {}, "X_indptr must be 7 numbers"),
    ({**csr_parts(), "Y": Y, "X_indptr": np.zeros(0, dtype=int)}, {}, "X_indptr must be 7 numbers"),
    ({**csr_parts(), "Y": Y, "X_shape": np.array([6, 4, 1])}, {}, "X_shape must be two numbers"),
    ({**csr_parts(), "Y": Y, "X_shape": np.array([-6, 4])}, {}, "X_shape must be two numbers"),
    ({**csr_parts(), "Y": Y, "X_shape": np.array([2**50, 4])}, {}, "X_indptr must be"),
]


@pytest.mark.parametrize(("arrays", "options", "message"), BAD_ARRAYS)
def test_unusable_arrays(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], message: str) -> None:
    path = save(tmp_path, **arrays)
    with pytest.raises(InputError, match=message) as error:
        read_npz(path, **options)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "dev"}, "split must be one of"),
        ({"labels": 0}, "labels must be"),
        ({"labels": True}, "labels must be"),
        ({"target": -1}, "target"),
    ],
)
def test_unusable_options(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_npz(save(tmp_path, X=X, Y=Y), **options)


@pytest.mark.parametrize("path", [3, None, b"x"])
def test_a_path_is_needed(path: Any) -> None:
    with pytest.raises(InputError, match="path must be the path of a file"):
        read_npz(path)


def test_absent_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.npz: no such file"):
        read_npz(tmp_path / "nothing.npz")
    with pytest.raises(InputError, match="is not a file"):
        read_npz(tmp_path)
    with pytest.raises(InputError, match="null"):
        read_npz("with\0null.npz")


def npy_bytes(array: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array))
    return stream.getvalue()


def zip_of(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("content", [b"", b"not a zip at all\n", bytes(range(256)) * 40, b"PK\x03\x04" + b"\0" * 50, npy_bytes(X)])
def test_files_that_are_no_zip(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no zip archive, or a truncated one"):
        read_npz(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_truncated_file(tmp_path: Path, share: float) -> None:
    path = save(tmp_path, X=X, Y=Y)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="truncated"):
        read_npz(path)


def test_zip_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="magic string"):
        read_npz(zip_of(tmp_path / "a.npz", {"X.npy": b"some text that is long enough", "Y.npy": npy_bytes(Y)}))
    with pytest.raises(InputError, match="has no features"):
        read_npz(zip_of(tmp_path / "b.npz", {}))


def test_header_that_promises_too_much_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    header = npy_bytes(X).replace(b"(6, 4), }" + b" " * 14, b"(600000000000, 4), }   ")
    assert header != npy_bytes(X)
    with pytest.raises(InputError, match=r"array X\.npy is not as long as its header says"):
        read_npz(zip_of(tmp_path / "a.npz", {"X.npy": header, "Y.npy": npy_bytes(Y)}))


def test_array_cut_short(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"array Y\.npy is not as long"):
        read_npz(zip_of(tmp_path / "a.npz", {"X.npy": npy_bytes(X), "Y.npy": npy_bytes(Y)[:-3]}))


def test_unknown_format_version(tmp_path: Path) -> None:
    content = bytearray(npy_bytes(X))
    content[6] = 9
    with pytest.raises(InputError, match="unknown format version"):
        read_npz(zip_of(tmp_path / "a.npz", {"X.npy": bytes(content)}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), archived=st.booleans())
def test_a_damaged_file_is_read_or_refused(tmp_path: Path, data: st.DataObject, archived: bool) -> None:
    """Damage to the archive (which checksums find) or to an array before it is archived (which they do not)."""
    members = {f"{name}.npy": npy_bytes(array) for name, array in {**csr_parts(), "Y": Y, **SPLIT}.items()}
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


REFUSED = {"mtr_scpf": r"X has NaN at index \(0, 1\)", "mtr_osales": r"X has NaN at index \(0, 7\)"}


def test_every_real_file_loads_with_the_shapes_of_the_manifest(data_dir: Path) -> None:
    if not (data_dir / "manifest.json").is_file():
        pytest.skip("no manifest.json in the data directory")
    manifest = json.loads((data_dir / "manifest.json").read_text())
    assert set(manifest) == {path.stem for path in data_dir.glob("*.npz")}
    for name, entry in manifest.items():
        path = data_dir / f"{name}.npz"
        if name in REFUSED:
            with pytest.raises(InputError, match=REFUSED[name]):
                read_npz(path)
            continue
        table = read_table(path)
        data = Selection().of(table, name)
        arrays = {key: tuple(shape) for key, (shape, _) in entry["arrays"].items()}
        assert data.n_features == entry["d"], name
        assert data.design.is_sparse == ("X_data" in arrays), name
        if "task" in arrays:
            assert data.n_tasks == entry["tasks"], name
            assert data.targets.shape == arrays["task"], name
            continue
        assert data.targets.shape == (entry["n"], arrays["Y"][1] if "Y" in arrays else entry["classes"]), name
        if "card" in entry:
            assert np.count_nonzero(data.targets == 1.0) == pytest.approx(entry["card"] * entry["n"]), name
        if "train_idx" in arrays:
            for split in ("train", "test"):
                selection = Selection(split=split, labels=1)
                assert selection.of(table, name).targets.shape == (*arrays[f"{split}_idx"], 1), name


def test_the_rows_of_the_test_split_are_held_out(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, Y=Y, **SPLIT)
    data = read_npz(path, split="train", labels=2, held_out=True)
    assert data.held_out is not None
    np.testing.assert_array_equal(dense(data), X[[0, 2, 4]])
    np.testing.assert_array_equal(dense(data.held_out), X[[5, 1]])
    np.testing.assert_array_equal(data.held_out.targets, SIGNS[[5, 1]][:, :2])
    assert data.notes[-2:] == ("The 2 rows of the split 'test' are held out.", "The 2 most frequent of 3 labels were kept.")
    some = read_npz(path, split="train", examples=2, held_out=True)
    assert some.held_out is not None
    assert (some.design.sizes[0], some.held_out.design.sizes[0]) == (2, 2)
    assert read_npz(path, split="train").held_out is None


def test_held_out_rows_of_a_file_with_tasks(tmp_path: Path) -> None:
    task = np.array([0, 1, 0, 1, 1, 0])
    path = save(tmp_path, X=X, y=X[:, 0], task=task, train_idx=np.array([0, 1, 2, 3]), test_idx=np.array([4, 5]))
    data = read_npz(path, split="train", held_out=True)
    assert data.held_out is not None
    np.testing.assert_array_equal(dense(data.held_out, 0), X[[5]])
    np.testing.assert_array_equal(data.held_out.targets, X[[5, 4], 0])
    lacking = save(tmp_path, X=X, y=X[:, 0], task=task, train_idx=np.array([0, 1]), test_idx=np.array([4]))
    with pytest.raises(InputError, match="task 0 has no row among the held-out rows"):
        read_npz(lacking, split="train", held_out=True)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_rows_are_drawn_in_the_proportions_of_the_classes(tmp_path: Path, storage: str) -> None:
    n = 300
    values = np.arange(2.0 * n).reshape(n, 2) + 1.0
    classes = np.repeat([3, 5, 9], [150, 100, 50])
    path = save(tmp_path, **(csr_parts(values) if storage == "sparse" else {"X": values}), y=classes)
    data = read_npz(path, examples=60, held_out=30, seed=2)
    assert data.held_out is not None
    np.testing.assert_array_equal(np.count_nonzero(data.targets == 1.0, axis=0), [30, 20, 10])
    np.testing.assert_array_equal(np.count_nonzero(data.held_out.targets == 1.0, axis=0), [15, 10, 5])
    assert not {row[0] for row in dense(data)} & {row[0] for row in dense(data.held_out)}
    assert data.notes[-1] == "60 and 30 held-out of 300 rows were drawn in the classes' proportions, with seed 2."
    np.testing.assert_array_equal(dense(read_npz(path, examples=60, seed=2)), dense(data))
    assert not np.array_equal(dense(read_npz(path, examples=60, seed=3)), dense(data))
    rest = read_npz(path, held_out=30)
    assert rest.design.sizes[0] == 270


def test_rows_without_a_class_are_drawn_at_random(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path, X=X, Y=Y, **SPLIT), split="train", held_out=1)
    assert data.held_out is not None
    together = sorted([*dense(data)[:, 0].tolist(), *dense(data.held_out)[:, 0].tolist()])
    assert together == X[[0, 2, 4], 0].tolist()
    assert "2 and 1 held-out of 3 rows were drawn at random, with seed 0." in data.notes
    real = read_npz(save(tmp_path, X=X, y=X[:, 0]), examples=4)
    np.testing.assert_array_equal(real.targets[:, 0], dense(real)[:, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"held_out": True}, "held_out = true takes the rows of the split 'test', so split must be 'train', not 'all'"),
        ({"held_out": 6}, "held_out must be at most 5, so that 1 of 6 rows are left, not 6"),
        ({"held_out": -1}, "held_out must be a whole number"),
        ({"held_out": "test"}, "held_out must be a whole number"),
        ({"examples": 7}, "examples must be at most 6, the number of rows, not 7"),
        ({"examples": 0}, "examples must be a whole number of at least 1"),
        ({"examples": 4, "held_out": 3}, "examples = 4 and held_out = 3 are more than the 6 rows there are"),
        ({"examples": 4, "split": "train"}, "examples must be at most 3"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_rows_that_cannot_be_drawn(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_npz(save(tmp_path, X=X, Y=Y, **SPLIT), **options)


def test_rows_that_cannot_be_drawn_from_other_layouts(tmp_path: Path) -> None:
    path = save(tmp_path, X=X, y=X[:, 0], task=np.array([0, 1, 0, 1, 1, 0]))
    for options in ({"examples": 2}, {"held_out": 2}):
        with pytest.raises(InputError, match="only for files without 'task'"):
            read_npz(path, **options)
    with pytest.raises(InputError, match="has no split 'test'"):
        read_npz(save(tmp_path, X=X, Y=Y, train_idx=SPLIT["train_idx"]), split="train", held_out=True)
