"""Own data: frames, and tables in CSV, TSV and Parquet files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, load, read_tabular, shard_file

TEXT = """size,weight,kind,tall,old,price
1.5,2,cat,0,1,10.5
2.5,4,dog,1,1,20
3.5,8,cat,1,0,30
4.5,16,bird,0,0,40
"""
FEATURES = np.array([[1.5, 2.0], [2.5, 4.0], [3.5, 8.0], [4.5, 16.0]])
LABELS = np.array([[-1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])


def saved(folder: Path, text: str, name: str = "own.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def frame(text: str = TEXT) -> pd.DataFrame:
    from io import StringIO

    return pd.read_csv(StringIO(text))


def test_names_say_which_columns_are_labels(tmp_path: Path) -> None:
    data = read_tabular(saved(tmp_path, TEXT), labels=["tall", "old"], drop=["kind", "price"])
    np.testing.assert_array_equal(data.task(0)[0], FEATURES)
    np.testing.assert_array_equal(data.targets, LABELS)
    assert data.name == "own"
    assert data.notes == ("The labels are tall, old.",)


@pytest.mark.parametrize(("count", "columns"), [(1, ["price"]), (2, ["old", "price"]), (-2, ["size", "weight"])])
def test_a_number_is_that_of_the_last_columns_or_the_first(count: int, columns: list[str]) -> None:
    table = frame().drop(columns="kind")
    data = TaskData.from_frame(table, targets=count)
    np.testing.assert_array_equal(data.targets, table[columns].to_numpy())
    np.testing.assert_array_equal(data.task(0)[0], table.drop(columns=columns).to_numpy())


def test_every_class_of_a_column_is_a_task_against_all_others() -> None:
    data = TaskData.from_frame(frame(), class_column="kind", drop=["tall", "old", "price"])
    np.testing.assert_array_equal(data.targets, [[-1, 1, -1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]])
    assert data.notes == ("The tasks are the classes of 'kind' against all others: bird, cat, dog.",)
    by_category = TaskData.from_frame(frame().astype({"kind": "category"}), class_column="kind", drop=["tall", "old", "price"])
    np.testing.assert_array_equal(by_category.targets, data.targets)


def test_a_column_of_tasks_gives_each_its_own_rows(tmp_path: Path) -> None:
    data = read_tabular(saved(tmp_path, TEXT), targets="price", task="kind", drop=["tall", "old"])
    assert data.n_tasks == 3
    np.testing.assert_array_equal(data.task(1)[0], FEATURES[[0, 2]])
    np.testing.assert_array_equal(data.task(1)[1], [10.5, 30.0])
    own = TaskData.from_frame(frame(), targets="price", task="kind", drop=["tall", "old"])
    np.testing.assert_array_equal(own.targets, data.targets)
    several = TaskData.from_tasks(
        {str(kind): rows.drop(columns="kind") for kind, rows in frame().groupby("kind")}, targets="price", drop=["tall", "old"]
    )
    np.testing.assert_array_equal(several.targets, data.targets)
    for k in range(3):
        np.testing.assert_array_equal(several.task(k)[0], data.task(k)[0])


def test_frames_of_tasks_may_have_their_columns_in_any_order() -> None:
    table = frame().drop(columns="kind")
    data = TaskData.from_tasks({"a": table, "b": table[table.columns[::-1]]}, targets="price")
    np.testing.assert_array_equal(data.task(0)[0], data.task(1)[0])
    assert data.notes == ("The tasks are a, b.",)


def test_the_same_table_in_every_format(tmp_path: Path) -> None:
    table = frame().drop(columns="kind")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    table.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    table.to_csv(tmp_path / "bare.csv", index=False, header=False)
    table.to_parquet(tmp_path / "a.parquet")
    expected = TaskData.from_frame(table, targets=["price"])
    for name, options in (
        ("a.csv", {}), ("a.tsv", {}), ("a.parquet", {}), ("semicolons.csv", {"separator": ";"}), ("bare.csv", {"header": False}),
    ):  # fmt: skip
        data = load({"file": str(tmp_path / name), "targets": 1, **options})
        np.testing.assert_array_equal(data.task(0)[0], expected.task(0)[0])
        np.testing.assert_array_equal(data.targets, expected.targets)
    by_name = load({"file": str(tmp_path / "bare.csv"), "targets": "5", "header": False})
    np.testing.assert_array_equal(by_name.targets, expected.targets)


def test_decimals_thousands_and_packed_files(tmp_path: Path) -> None:
    expected = np.array([[1234.5, 0.25], [2.0, 1e6]])
    for name, text, options in (
        ("a.csv", "a;b;y\n1234,5;0,25;1\n2;1000000;0\n", {"decimal": ","}),
        ("b.csv", "a;b;y\n1.234,5;0,25;1\n2;1.000.000;0\n", {"decimal": ",", "thousands": ".", "separator": ";"}),
        ("c.csv", 'a,b,y\n"1,234.5",0.25,1\n2,"1,000,000",0\n', {"thousands": ","}),
        ("d.tsv", "a\tb\ty\n1234,5\t,25\t1\n2\t1000000\t0\n", {"decimal": ","}),
    ):
        saved(tmp_path, text, name)
        packed = tmp_path / f"{name}.gz"
        packed.write_bytes(gzip.compress(text.encode()))
        for path in (tmp_path / name, packed):
            data = load({"file": str(path), "labels": "y", **options})
            np.testing.assert_array_equal(data.task(0)[0], expected)
            np.testing.assert_array_equal(data.targets, [[1], [-1]])
            assert data.name == Path(name).stem
        shards = shard_file({"file": str(packed), "labels": "y", **options}, tmp_path / f"{name}-shards", rows=1)
        np.testing.assert_array_equal(load({"file": str(shards.manifest)}).design.forward(np.eye(2, 1)), expected[:, :1])
    for options, message in (
        ({"decimal": "comma"}, "decimal must be one character, not 'comma'"),
        ({"decimal": None}, "decimal must be one character, not None"),
        ({"thousands": ""}, "thousands must be one character, not ''"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
    ):
        with pytest.raises(InputError, match=message):
            read_tabular(tmp_path / "a.csv", labels="y", **options)


@pytest.mark.parametrize("name", ["Unnamed: 0", ""])
def test_an_index_is_no_feature(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, f"{name},a,y\n0,5,1\n1,6,0\n")
    with pytest.raises(InputError, match=f"column 1 has no name.* pandas writes .*: leave it out by drop = '{name}'$"):
        read_tabular(path, labels="y")
    assert read_tabular(path, labels="y", drop=name).n_features == 1
    with pytest.raises(InputError, match="column 1 has no name but 'Unnamed: 0', as the index"):
        TaskData.from_frame(pd.read_csv(path), labels="y")


def test_arrays() -> None:
    X, Y = FEATURES, LABELS
    np.testing.assert_array_equal(TaskData.from_arrays(X, Y).targets, LABELS)
    assert not TaskData.from_arrays([X, X[:2]], [Y[:, 0], Y[:2, 1]]).design.is_shared


def test_missing_features_are_filled_where_that_is_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,b,y\n1,5,0\n,6,1\n4,,0\n")
    data = read_tabular(path, labels=1, impute="mean")
    np.testing.assert_array_equal(data.task(0)[0], [[1, 5], [2.5, 6], [4, 5.5]])
    assert data.notes[-1] == "2 missing values in 2 columns became the mean of the column over all rows of the table."
    with pytest.raises(
        InputError,
        match=r"column 'a' in line 3 has no value; impute = .* would fill it\. Besides: column 'b' in line 4 has no value$",
    ):
        read_tabular(path, labels=1)


def test_rows_are_drawn_as_from_other_files(tmp_path: Path) -> None:
    path = saved(tmp_path, "a,y\n" + "".join(f"{i},{i % 2}\n" for i in range(20)))
    data = read_tabular(path, labels="y", examples=10, held_out=4, seed=1)
    assert data.design.output_shape == (10, 1)
    assert data.held_out is not None
    assert data.held_out.design.output_shape == (4, 1)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (
            TEXT,
            {},
            r"which columns are to be learned\? Give one of labels, targets and class_column: .* size, .*, price$",
        ),
        (TEXT, {"labels": 1, "targets": 1}, r"Give one of labels, targets and class_column, not labels and targets"),
        (TEXT, {"labels": "tal"}, r"labels names column 'tal', which does not exist: did you mean 'tall'\?"),
        (TEXT, {"labels": ["tall", "tall"]}, r"labels names column 'tall' twice"),
        (TEXT, {"labels": 6}, r"labels = 6 does not fit 6 columns"),
        (TEXT, {"labels": True}, r"labels must be a number or names of columns, not True"),
        (TEXT, {"labels": []}, r"labels must be a number or names of columns, not \[\]"),
        (
            TEXT,
            {"labels": "tall"},
            r"'kind' in line 2 is no number: 'cat'; features are numbers: leave the column out by drop = 'kind'",
        ),
        (TEXT, {"labels": "price", "drop": "kind"}, r"column 'price' in line 2 must be a label 0/1 or -1/\+1, not 10.5"),
        (
            TEXT,
            {"labels": "kind"},
            r"column 'kind' in line 2 is no number: 'cat'; write 0/1 or -1/\+1; class_column = 'kind' would make a task",
        ),
        (TEXT, {"labels": "tall", "drop": "tall"}, r"column 'tall' is named twice: to be learned, and as drop"),
        (TEXT, {"labels": ["tall", "old"], "task": "kind"}, r"one column to learn, not 2"),
        (TEXT, {"class_column": "old", "task": "kind"}, r"cannot be given with task"),
        (TEXT, {"class_column": ["old"], "drop": 3}, r"drop must be a list of names, not 3"),
        (TEXT, {"targets": "price", "drop": ["size", "weight", "kind", "tall", "old"]}, r"no column is left for the features"),
        (TEXT, {"targets": 1, "impute": "zero"}, r"impute must be .*mean.*median.*'zero'"),
        ("a,a,y\n1,2,0\n", {"labels": 1}, r"has two columns named 'a'"),
        ("a,,y\n1,2,0\n", {"labels": 1}, r"column 2 has no name"),
        ("1,2,0\n3,4,1\n", {"labels": 1}, r"has numbers where the names of the columns should be: header = false"),
        ("a;b;y\n1;2;0\n", {"labels": 1}, r"has one column only: its cells are separated by ';', so give separator = ';'"),
        ("", {"labels": 1}, r"has no line of data"),
        ("a,y\n", {"labels": 1}, r"has no line of data"),
        ("a,y\n1,0\n2\n", {"labels": 1}, r"column 'y' in line 3 has no value; labels are not filled: leave the row out$"),
        ("a,y\n1,0\n\n2,1\n", {"labels": 1}, r"column 'a' in line 3 has no value|column 'y' in line 3 has no value"),
        ("a,y\n1,0\n2,1,7\n", {"labels": 1}, r"not readable as a table: .*line 3"),
        ("a,y\n1,0,4\n", {"labels": 1}, r"has 2 columns in line 1, but 3 in line 2"),
        ("a,y\n1,0\ninf,1\n", {"labels": 1}, r"column 'a' in line 3 must be finite, not inf"),
        ("a,y\n,0\n,1\n", {"labels": 1, "impute": "mean"}, r"column 'a' has no value at all: drop it"),
        ("a,y\n1,x\n2,x\n", {"class_column": "y"}, r"column 'y' has the same class in every row"),
        ("a,y\n1,0\n", {"labels": 1, "separator": ",,"}, r"separator must be one character"),
        ("a,y\n1,0\n", {"labels": 1, "header": "no"}, r"header must be true or false"),
        ("a,y\n1,-1\n1,0\n", {"labels": 1}, r"column 'y' in line 3 must be a label"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_line(tmp_path: Path, text: str, options: dict[str, Any], said: str) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(InputError, match=said) as raised:
        read_tabular(path, **options)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_all_columns_that_are_no_features_are_named_at_once() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0], "c": [np.nan, 1.0], "d": pd.Categorical(["u", "v"]), "y": [0, 1]})
    with pytest.raises(InputError, match=r"column 'a' in row 0 is no number: 'x'; .*drop = 'a'.* Besides: .*'c' .* has no value; .*'d'"):
        TaskData.from_frame(frame, labels="y")


def test_empty_lines_at_the_end_are_no_examples(tmp_path: Path) -> None:
    assert read_tabular(saved(tmp_path, "a,y\n1,0\n2,1\n\n\n"), labels=1).design.output_shape == (2, 1)


def test_frames_name_rows_and_other_types() -> None:
    with pytest.raises(InputError, match=r"^column 'kind' in row 0 is no number: 'cat'"):
        TaskData.from_frame(frame(), labels="tall")
    with pytest.raises(InputError, match=r"^frame must be a pandas DataFrame, not ndarray: TaskData.from_arrays takes arrays$"):
        TaskData.from_frame(FEATURES, labels=1)
    with pytest.raises(InputError, match=r"^column 'when' holds dates: features are numbers"):
        TaskData.from_frame(pd.DataFrame({"when": pd.to_datetime(["2020-01-01"]), "y": [1]}), labels=1)
    with pytest.raises(InputError, match=r"^task 'b': column 'y' is in some frames only$"):
        TaskData.from_tasks({"a": pd.DataFrame({"x": [1], "y": [1]}), "b": pd.DataFrame({"x": [1], "z": [1]})}, labels="y")
    with pytest.raises(InputError, match=r"^frames must be a table"):
        TaskData.from_tasks({}, labels="y")


def test_a_table_holds_prices_only_where_they_are_asked_for(tmp_path: Path) -> None:
    path = saved(tmp_path, "day,A,B\n1,1,2\n2,2,2\n3,3,1\n")
    assert load({"file": str(path)}).notes[0].startswith("Prices were read")
    with pytest.raises(InputError, match=r"which columns are to be learned\?"):
        load({"file": str(path)}, prices=False)
    assert load({"file": str(path), "targets": "B", "drop": "day"}).notes == ("The targets are B.",)
