"""Classes made of the labels of a file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, read_npz

X = np.arange(20, dtype=np.float64).reshape(10, 2)
#: Label 1 never occurs alone; {0} 3 times, {2} twice, {0, 2} 3 times, none once, {1, 2} once.
Y = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=np.uint8)
SPLIT = {"train_idx": np.array([9, 0, 2, 4, 1]), "test_idx": np.array([3, 5, 6, 7, 8])}


def save(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez(path, **{"X": X, "Y": Y, **SPLIT, **arrays})
    return path


def rows_and_classes(data: TaskData | None) -> tuple[list[int], list[int]]:
    assert np.all(np.count_nonzero(data.targets == 1.0, axis=1) == 1)
    assert set(np.unique(data.targets)) == {-1.0, 1.0}
    return (data.design.block(0)[:, 0] / 2.0).astype(int).tolist(), data.targets.argmax(axis=1).tolist()


@pytest.mark.parametrize(
    ("asked", "rows", "classes", "note"),
    [
        (
            "single", [0, 1, 3, 8, 9], [0, 1, 0, 1, 0],
            "5 of 10 rows have exactly one label and were retained. 1 of 3 labels were dropped: no row has one of them alone.",
        ),
        (  # {0} comes before {0, 2}: its first row is earlier
            "sets:3", [0, 1, 2, 3, 4, 7, 8, 9], [0, 2, 1, 0, 1, 1, 2, 0],
            "The 3 most frequent of 5 sets of labels became classes, {0}, {0, 2}, {2}; 8 of 10 rows were retained.",
        ),
        (
            "sets:5", list(range(10)), [0, 2, 1, 0, 1, 3, 4, 1, 2, 0],
            "The 5 most frequent of 5 sets of labels became classes, {0}, {0, 2}, {2}, {}, {1, 2}; 10 of 10 rows were retained.",
        ),
    ],
)  # fmt: skip
def test_classes_of_labels(tmp_path: Path, asked: str, rows: list[int], classes: list[int], note: str) -> None:
    data = read_npz(save(tmp_path), classes=asked)
    assert rows_and_classes(data) == (rows, classes)
    assert data.notes[1] == note


def test_splits_and_held_out_rows(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="single", split="train", held_out=True)
    assert rows_and_classes(data) == ([9, 0, 1], [0, 0, 1])
    assert rows_and_classes(data.held_out) == ([3, 8], [0, 1])
    assert data.notes[2:] == (
        "Only the 5 rows of the split 'train' were used, of 10.",
        "3 of them have a class.",
        "The 2 rows of the split 'test' are held out.",
    )


def test_examples_are_drawn_of_the_rows_with_a_class(tmp_path: Path) -> None:
    data = read_npz(save(tmp_path), classes="sets:3", examples=4, held_out=4)
    training, held_out = rows_and_classes(data), rows_and_classes(data.held_out)
    assert sorted(training[0] + held_out[0]) == [0, 1, 2, 3, 4, 7, 8, 9]
    assert set(training[1]) == {0, 1, 2}
    with pytest.raises(InputError, match=r"examples must be a whole number of at least \d and at most 8"):
        read_npz(save(tmp_path), classes="sets:3", examples=9)


def test_classes_without_training_row_are_named(tmp_path: Path) -> None:
    path = save(tmp_path, train_idx=np.array([0, 3]))
    assert read_npz(path, classes="single", split="train").notes[-1] == "No training row has class 1 (numbered from 0)."
    assert "No training row has class 1, 2 (numbered from 0)." in read_npz(path, classes="sets:3", split="train").notes


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        *(
            ({}, {"classes": asked}, "classes must be single or sets:K")
            for asked in ("", "one", "sets", "sets:", "sets:1", "sets:x", "sets:-2", "single:2", 3, ["single"])
        ),
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
def test_classes_that_are_refused(tmp_path: Path, arrays: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_npz(save(tmp_path, **arrays), **options)
