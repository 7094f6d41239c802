"""Own data: frames, and tables in CSV, TSV and Parquet files."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reading import refused, written

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, load, read_tabular, shard_file

TEXT = """size,weight,kind,tall,old,price
1.5,2,cat,0,1,10.5
2.5,4,dog,1,1,20
3.5,8,cat,1,0,30
4.5,16,bird,0,0,40
"""
FRAME = pd.read_csv(io.StringIO(TEXT))
FEATURES = np.array([[1.5, 2.0], [2.5, 4.0], [3.5, 8.0], [4.5, 16.0]])
LABELS = np.array([[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
KINDS = np.array([[-1, 1, -1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]])
CLASSES = "The tasks are the classes of 'kind' against all others: bird, cat, dog."
PRICE = FRAME[["price"]].to_numpy()
GERMAN = np.array([[1234.5, 0.25], [2.0, 1e6]])


#: Text, options, features, targets, notes.
READ: list[tuple[str, dict[str, Any], Any, Any, tuple[str, ...]]] = [
    (TEXT, {"labels": ["tall", "old"], "drop": ["kind", "price"]}, FEATURES, LABELS, ("The labels are tall, old.",)),
    (TEXT, {"targets": 1, "drop": ["kind", "tall", "old"]}, FEATURES, PRICE, ("The targets are price.",)),
    (TEXT, {"targets": -2, "drop": ["kind", "tall", "old"]}, PRICE, FEATURES, ("The targets are size, weight.",)),
    (TEXT, {"class_column": "kind", "drop": ["tall", "old", "price"]}, FEATURES, KINDS, (CLASSES,)),
    ("Unnamed: 0,a,y\n0,5,1\n1,6,0\n", {"labels": "y", "drop": "Unnamed: 0"}, [[5], [6]], [[1], [-1]], ("The labels are y.",)),
    (",a,y\n0,5,1\n1,6,0\n", {"labels": "y", "drop": ""}, [[5], [6]], [[1], [-1]], ("The labels are y.",)),
    ("a,y\n1,0\n2,1\n\n\n", {"labels": 1}, [[1], [2]], [[-1], [1]], ("The labels are y.",)),
    (
        "a,b,y\n1,5,1\n,6,0\n4,,0\n", {"labels": 1, "impute": "mean"}, [[1, 5], [2.5, 6], [4, 5.5]], [[1], [-1], [-1]],
        ("The labels are y.", "2 missing values in 2 columns became the mean of the column over all rows of the table."),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "features", "targets", "notes"), READ)
def test_which_columns_are_what(
    tmp_path: Path, text: str, options: dict[str, Any], features: Any, targets: Any, notes: tuple[str, ...]
) -> None:
    file = read_tabular(written(tmp_path / "own.csv", text), **options)
    np.testing.assert_array_equal(file.task(0)[0], features)
    np.testing.assert_array_equal(file.targets, targets)
    assert (file.name, file.notes) == ("own", notes)
    if "\n\n" not in text and options.get("drop") != "":
        frame = TaskData.from_frame(pd.read_csv(io.StringIO(text)), **options)
        np.testing.assert_array_equal(frame.task(0)[0], features)
        np.testing.assert_array_equal(frame.targets, targets)


def test_classes_may_be_categories() -> None:
    by_category = TaskData.from_frame(FRAME.astype({"kind": "category"}), class_column="kind", drop=["tall", "old", "price"])
    np.testing.assert_array_equal(by_category.targets, KINDS)


def test_a_column_of_tasks_gives_each_its_own_rows(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"targets": "price", "drop": ["tall", "old"]}
    frames = {str(kind): rows.drop(columns="kind") for kind, rows in FRAME.groupby("kind")}
    for data in (
        read_tabular(written(tmp_path / "own.csv", TEXT), task="kind", **asked),
        TaskData.from_frame(FRAME, task="kind", **asked),
        TaskData.from_tasks(frames, **asked),
        TaskData.from_tasks({**frames, "cat": frames["cat"].iloc[:, ::-1]}, **asked),  # columns may be in any order
    ):
        assert data.n_tasks == 3
        for k, rows in enumerate(([3], [0, 2], [1])):
            np.testing.assert_array_equal(np.sort(data.task(k)[0]), FEATURES[rows])
            np.testing.assert_array_equal(data.task(k)[1], PRICE[rows, 0])
    assert data.notes == ("The tasks are bird, cat, dog.",)


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("a.csv", "a;b;y\n1234,5;0,25;1\n2;1000000;0\n", {"decimal": ","}),
        ("b.csv", "a;b;y\n1.234,5;0,25;1\n2;1.000.000;0\n", {"decimal": ",", "thousands": ".", "separator": ";"}),
        ("c.csv", 'a,b,y\n"1,234.5",0.25,1\n2,"1,000,000",0\n', {"thousands": ","}),
        ("d.tsv", "a\tb\ty\n1234,5\t,25\t1\n2\t1000000\t0\n", {"decimal": ","}),
    ],
)
def test_decimals_thousands_and_packed_files(tmp_path: Path, name: str, text: str, options: dict[str, Any], end: str) -> None:
    spec = {"file": str(written(tmp_path / f"{name}{end}", text)), "labels": "y", **options}
    data = load(spec)
    np.testing.assert_array_equal(data.task(0)[0], GERMAN)
    np.testing.assert_array_equal(data.targets, [[1], [-1]])
    shards = shard_file(spec, tmp_path / "shards", rows=1)
    assert data.name == shards.name == name[0]
    np.testing.assert_array_equal(load({"file": str(shards.manifest)}).design.forward(np.eye(2, 1)), GERMAN[:, :1])


def test_arrays() -> None:
    np.testing.assert_array_equal(TaskData.from_arrays(FEATURES, LABELS).targets, LABELS)
    assert not TaskData.from_arrays([FEATURES, FEATURES[:2]], [LABELS[:, 0], LABELS[:2, 1]]).design.is_shared


SMALL = "a,y\n1,0\n2,1\n"
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (TEXT, {}, r"which columns are to be learned\? Give one of labels, targets and class_column: .* size, .*, price$"),
    (TEXT, {"labels": 1, "targets": 1}, r"Give one of labels, targets and class_column, not labels and targets"),
    (TEXT, {"labels": "tal"}, r"labels names column 'tal', which does not exist: did you mean 'tall'\?"),
    (TEXT, {"labels": []}, r"labels must be a number or names of columns, not \[\]"),
    (TEXT, {"labels": "tall"}, r"'kind' in line 2 is no number: 'cat'; features are numbers: leave the column out by drop = 'kind'"),
    ("y;a\n1;0,5\n0;1,5\n", {"labels": "y", "separator": ";"}, r"'a' in line 2 is no number: '0,5'; decimal = ','"),
    (TEXT, {"labels": "kind"}, r"'kind' in line 2 is no number: 'cat'; write 0/1 or -1/\+1; class_column = 'kind' would make a task"),
    (TEXT, {"labels": "tall", "drop": "tall"}, r"column 'tall' is named twice: to be learned, and as drop"),
    (TEXT, {"labels": ["tall", "old"], "task": "kind"}, r"one column to learn, not 2"),
    (TEXT, {"class_column": "old", "task": "kind"}, r"cannot be given with task"),
    (TEXT, {"targets": "price", "drop": ["size", "weight", "kind", "tall", "old"]}, r"no column is left for the features"),
    (TEXT, {"targets": 1, "impute": "zero"}, r"impute must be .*mean.*median.*'zero'"),
    ("a,a,y\n1,2,0\n", {"labels": 1}, r"has two columns named 'a'"),
    ("Unnamed: 0,a,y\n0,5,1\n", {"labels": 1}, r"column 1 has no name.* pandas writes .*: leave it out by drop = 'Unnamed: 0'$"),
    (",a,y\n0,5,1\n", {"labels": 1}, r"column 1 has no name.* pandas writes .*: leave it out by drop = ''$"),
    ("1,2,0\n3,4,1\n", {"labels": 1}, r"has numbers where the names of the columns should be: header = false"),
    ("a;b;y\n1;2;0\n", {"labels": 1}, r"has one column only: its cells are separated by ';', so give separator = ';'"),
    ("", {"labels": 1}, r"has no line of data"),
    ("a,y\n\n\n", {"labels": 1}, r"has (2 columns|no row|no line of data)"),
    ("a,y\n1,0\n2\n", {"labels": 1}, r"column 'y' in line 3 has no value; labels are not filled: leave the row out$"),
    ("a,y\n1,0\n2,1,7\n", {"labels": 1}, r"not readable as a table: .*line 3"),
    ("a,y\n1,0,4\n", {"labels": 1}, r"has 2 columns in line 1, but 3 in line 2"),
    ("a,y\n1,0\ninf,1\n", {"labels": 1}, r"column 'a' in line 3 must be finite, not inf"),
    (
        "a,b,y\n1,5,1\n,6,0\n4,,0\n",
        {"labels": 1},
        r"column 'a' in line 3 has no value; .*would fill it\. Besides: column 'b' in line 4",
    ),
    ("a,y\n,0\n,1\n", {"labels": 1, "impute": "mean"}, r"column 'a' has no value at all: drop it"),
    ("a,y\n1,x\n2,x\n", {"class_column": "y"}, r"column 'y' has the same class in every row"),
    (SMALL, {"labels": 1, "decimal": "comma"}, "decimal must be one character, not 'comma'"),
    (SMALL, {"labels": 1, "decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
]


@pytest.mark.parametrize(("text", "options", "said"), REFUSED)
def test_what_cannot_be_used_is_named_in_one_line(tmp_path: Path, text: str, options: dict[str, Any], said: str) -> None:
    path = written(tmp_path / "own.csv", text)
    with refused(said) as raised:
        read_tabular(path, **options)
    assert str(raised.value).startswith(str(path))


def test_frames_name_rows_and_other_types() -> None:
    several = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0], "c": [np.nan, 1.0], "d": pd.Categorical(["u", "v"]), "y": [0, 1]})
    dates = pd.DataFrame({"when": pd.to_datetime(["2020-01-01"]), "y": [1]})
    frames: list[tuple[Any, str]] = [
        (FRAME[["kind", "tall"]].rename(columns={"tall": "y"}), r"^column 'kind' in row 0 is no number: 'cat'"),
        (several, r"column 'a' in row 0 is no number: 'x'; .*drop = 'a'.* Besides: .*'c' .* has no value; .*'d'"),
        (FEATURES, r"^frame must be a pandas DataFrame, not ndarray: TaskData.from_arrays takes arrays$"),
        (dates, r"^column 'when' holds dates: features are numbers"),
        (pd.read_csv(io.StringIO(",a,y\n0,5,1\n")), "column 1 has no name but 'Unnamed: 0', as the index"),
    ]
    for frame, message in frames:
        with pytest.raises(InputError, match=message):
            TaskData.from_frame(frame, labels="y")
    with pytest.raises(InputError, match=r"^task 'b': column 'y' is in some frames only$"):
        TaskData.from_tasks({"a": pd.DataFrame({"x": [1], "y": [1]}), "b": pd.DataFrame({"x": [1], "z": [1]})}, labels="y")
    with pytest.raises(InputError, match=r"^frames must be a table"):
        TaskData.from_tasks({}, labels="y")


def test_a_table_holds_prices_only_where_they_are_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", "day,A,B\n1,1,2\n2,2,2\n3,3,1\n")
    assert load({"file": str(path)}).notes[0].startswith("Prices were read")
    with pytest.raises(InputError, match=r"which columns are to be learned\?"):
        load({"file": str(path)}, prices=False)
    assert load({"file": str(path), "targets": "B", "drop": "day"}).notes == ("The targets are B.",)
