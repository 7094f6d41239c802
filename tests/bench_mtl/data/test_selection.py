"""Classes made of the labels of a file, and the choice of rows and labels in every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, load, read_arff, read_libsvm, read_npz

X = np.arange(20, dtype=np.float64).reshape(10, 2)
#: Label 1 never occurs alone; {0} 3 times, {2} twice, {0, 2} 3 times, none once, {1, 2} once.
Y = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=np.uint8)
SPLIT = {"train_idx": np.array([9, 0, 2, 4, 1]), "test_idx": np.array([3, 5, 6, 7, 8])}


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez(path, **{"X": X, "Y": Y, **SPLIT, **arrays})
    return path


def rows(data: TaskData) -> list[int]:
    return (data.design.block(0)[:, 0] / 2.0).astype(int).tolist()


def classes(data: TaskData) -> list[int]:
    assert np.all(np.count_nonzero(data.targets == 1.0, axis=1) == 1)
    assert set(np.unique(data.targets)) == {-1.0, 1.0}
    return data.targets.argmax(axis=1).tolist()


def test_rows_with_one_label(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="single")
    assert rows(data) == [0, 1, 3, 8, 9]
    assert classes(data) == [0, 1, 0, 1, 0]
    assert data.notes[1] == "5 of 10 rows have exactly one label and were kept. 1 of 3 labels were dropped: no row has one of them alone."


def test_sets_of_labels(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="sets:3")
    assert rows(data) == [0, 1, 2, 3, 4, 7, 8, 9]
    assert classes(data) == [0, 2, 1, 0, 1, 1, 2, 0]  # {0} comes before {0, 2}: its first row is earlier
    assert data.notes[1] == "The 3 most frequent of 5 sets of labels became classes, {0}, {0, 2}, {2}; 8 of 10 rows were kept."
    everything = read_npz(save(tmp_path), classes="sets:5")
    assert rows(everything) == list(range(10))
    assert "{0}, {0, 2}, {2}, {}, {1, 2};" in everything.notes[1]


def test_splits_and_held_out_rows(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="single", split="train", held_out=True)
    assert data.held_out is not None
    assert (rows(data), classes(data)) == ([9, 0, 1], [0, 0, 1])
    assert (rows(data.held_out), classes(data.held_out)) == ([3, 8], [0, 1])
    assert data.notes[2:] == (
        "Only the 5 rows of the split 'train' were used, of 10.",
        "3 of them have a class.",
        "The 2 rows of the split 'test' are held out.",
    )


def test_examples_are_drawn_of_the_rows_with_a_class(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="sets:3", examples=4, held_out=4)
    assert data.held_out is not None
    assert sorted(rows(data) + rows(data.held_out)) == [0, 1, 2, 3, 4, 7, 8, 9]
    assert set(classes(data)) == {0, 1, 2}
    with pytest.raises(InputError, match="examples must be at most 8"):
        read_npz(save(tmp_path), classes="sets:3", examples=9)


def test_classes_without_training_row_are_named(tmp_path: Path) -> None:
    path = save(tmp_path, train_idx=np.array([0, 3]))
    assert read_npz(path, classes="single", split="train").notes[-1] == "No training row has class 1 (numbered from 0)."
    assert "No training row has class 1, 2 (numbered from 0)." in read_npz(path, classes="sets:3", split="train").notes


def test_class_numbers_have_one_label_each(tmp_path: Path) -> None:
    path = tmp_path / "y.npz"
    np.savez(path, X=X, y=np.array([3, 4, 5, 3, 4, 5, 3, 4, 5, 3]))
    np.testing.assert_array_equal(read_npz(path, classes="single").targets, read_npz(path).targets)


@pytest.mark.parametrize("asked", ["", "one", "sets", "sets:", "sets:1", "sets:x", "sets:-2", "single:2", 3, ["single"]])
def test_other_choices_are_refused(tmp_path: Path, asked: Any) -> None:
    with pytest.raises(InputError, match="classes must be single or sets:K"):
        read_npz(save(tmp_path), classes=asked)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({}, {"classes": "sets:6"}, "asks for more than the 5 different sets"),
        ({}, {"classes": "single", "labels": 2}, "classes and labels cannot both be given"),
        ({"Y": Y.astype(float)}, {"classes": "single"}, "the targets are real numbers"),
        ({"Y": Y[:, :1]}, {"classes": "single"}, "of 1 label\\(s\\) 1 are such"),
        ({"Y": np.ones((10, 3), dtype=int)}, {"classes": "single"}, "of 3 label\\(s\\) 0 are such"),
        ({"Y": Y[:, :1], "task": np.arange(10) % 2}, {"classes": "single"}, "cannot be made in a file with 'task'"),
        ({"train_idx": np.array([5, 6])}, {"classes": "single", "split": "train"}, "no row of the split 'train' has a class"),
        ({"test_idx": np.array([5])}, {"classes": "single", "split": "train", "held_out": True}, "no row of the split 'test' has a class"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_npz(save(tmp_path, **arrays), **options)


@pytest.mark.parametrize(("name", "asked", "sizes"), [("scene", "single", (1137, 1093, 6)), ("yeast", "sets:10", (770, 487, 10))])
def test_real_data(data_dir: Path, name: str, asked: str, sizes: tuple[int, int, int]) -> None:
    if not (data_dir / f"{name}.npz").is_file():
        pytest.skip(f"the data directory has no {name}.npz")
    data = load({"name": name, "classes": asked, "split": "train", "held_out": True}, data_dir=data_dir)
    assert data.held_out is not None
    assert (len(data.targets), len(data.held_out.targets), data.n_tasks) == sizes
    for some in (data, data.held_out):
        classes(some)
        assert (some.targets == 1.0).any(axis=0).all()


def written(folder: Path, form: str) -> Path:
    """The data above as a LIBSVM or ARFF file."""
    path = folder / f"set.{form}"
    if form == "svm":
        lines = [f"{','.join(map(str, np.flatnonzero(y)))} 1:{x[0]:g} 2:{x[1]:g}" for x, y in zip(X, Y, strict=True)]
    else:
        attributes = ["a numeric", "b numeric", *(f"label{k} {{0,1}}" for k in range(3))]
        lines = ["@relation set", *(f"@attribute {each}" for each in attributes), "@data"]
        lines += [",".join(f"{value:g}" for value in (*x, *y)) for x, y in zip(X, Y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("form", ["svm", "arff"])
@pytest.mark.parametrize(
    "options",
    [{"classes": "single"}, {"classes": "sets:3", "examples": 4, "held_out": 3, "seed": 1}, {"labels": 2, "held_out": 4}, {"examples": 7}],
    ids=lambda options: ",".join(options),
)
def test_every_format_has_the_same_options(tmp_path: Path, form: str, options: dict[str, Any]) -> None:
    expected = read_npz(save(tmp_path), **options)
    if form == "svm":
        data = read_libsvm(written(tmp_path, form), **options)
    else:
        data = read_arff(
            written(tmp_path, form), labels=3, **{{"labels": "most_frequent"}.get(name, name): options[name] for name in options}
        )
    for ours, theirs in ((data, expected), (data.held_out, expected.held_out)):
        assert (ours is None) is (theirs is None)
        if ours is not None and theirs is not None:
            np.testing.assert_array_equal(np.asarray(ours.design.block(0) @ np.eye(2)), theirs.design.block(0))
            np.testing.assert_array_equal(ours.targets, theirs.targets)
    assert data.notes[1:] == expected.notes[1:]  # the first one says what the labels of the file were


@pytest.mark.parametrize(("form", "read"), [("svm", read_libsvm), ("arff", read_arff)])
def test_choices_that_a_file_does_not_have(tmp_path: Path, form: str, read: Any) -> None:
    path, which = written(tmp_path, form), {"labels": 3} if form == "arff" else {}
    with pytest.raises(InputError, match="classes must be single or sets:K"):
        read(path, classes="sets", **which)
    with pytest.raises(InputError, match="examples must be at most 10"):
        read(path, examples=11, **which)
    with pytest.raises(InputError, match="held_out must be a whole number"):
        read(path, held_out=True, **which)
    with pytest.raises(InputError, match=r"(labels|most_frequent) must be a whole number of at least 1"):
        read(path, **{**which, "most_frequent" if form == "arff" else "labels": 0})
