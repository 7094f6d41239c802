"""Laws over all readers: the same data in every format, the same choice of rows and labels, wrong paths named in a line."""

import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reading import csr_parts, dense, refused, written

from bench_mtl.core.errors import InputError
from bench_mtl.data import TaskData, load, read_arff, read_libsvm, read_npz, read_prices, read_shards, read_tabular, resolved
from bench_mtl.data.catalogue import options_of

X = np.arange(20, dtype=np.float64).reshape(10, 2) + 0.5
#: Label 1 never occurs alone; {0} 3 times, {2} twice, {0, 2} 3 times, none once, {1, 2} once.
Y = np.array([[1, 0, 0], [0, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 0, 0]], dtype=np.uint8)
NAMES = ["a", "b", "label0", "label1", "label2"]
SVM = "".join(f"{','.join(map(str, np.flatnonzero(y)))} 1:{x[0]:g} 2:{x[1]:g}\n" for x, y in zip(X, Y, strict=True))
HEADER = "@relation set\n" + "".join(f"@attribute {name} {'{0,1}' if j > 1 else 'numeric'}\n" for j, name in enumerate(NAMES)) + "@data\n"
CELLS = [[f"{value:g}" for value in (*x, *y)] for x, y in zip(X, Y, strict=True)]
LINES = [",".join(row) for row in CELLS]
FRAME = pd.DataFrame(np.hstack([X, Y]), columns=NAMES).astype(dict.fromkeys(NAMES[2:], int))


def text(content: str) -> Callable[[Path], Any]:
    return partial(written, content=content)


SPARSE_LINES = "".join("{" + ", ".join(f"{j} {cell}" for j, cell in enumerate(row) if cell != "0") + "}\n" for row in CELLS)
CSV = "\n".join([",".join(NAMES), *LINES]) + "\n"
#: What writes these data to a file of a name, and what tells its reader which columns are labels.
FORMATS: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "set.npz": (lambda path: np.savez(path, X=X, Y=Y), {}),
    "csr.npz": (lambda path: np.savez_compressed(path, **csr_parts(X), Y=Y), {}),
    "set.svm": (text(SVM), {}),
    "set.svm.gz": (text(SVM), {}),
    "set.arff": (text(HEADER + "\n".join(LINES) + "\n"), {"labels": 3}),
    "sparse.arff.gz": (text(HEADER + SPARSE_LINES), {"labels": 3}),
    "set.csv": (text(CSV), {"labels": 3}),
    "set.csv.gz": (text(CSV), {"labels": 3}),
    "semicolons.csv": (text(CSV.replace(",", ";").replace(".", ",")), {"labels": 3, "decimal": ","}),
    "bars.csv": (text(CSV.replace(",", "|")), {"labels": NAMES[2:], "separator": "|"}),
    "bare.csv": (text("\n".join(LINES) + "\n\n\n"), {"labels": ["3", "4", "5"], "header": False}),
    "set.tsv": (text(CSV.replace(",", "\t")), {"labels": 3}),
    "set.parquet": (lambda path: FRAME.to_parquet(path), {"labels": 3}),
    "set.npy": (lambda path: np.save(path, np.hstack([X, Y])), {"labels": 3}),
}


def read(folder: Path, name: str, **options: Any) -> TaskData:
    write, which = FORMATS[name]
    write(folder / name)
    if which and "labels" in options:
        options = {"most_frequent": options["labels"], **{key: value for key, value in options.items() if key != "labels"}}
    return load({"file": str(folder / name), **which, **options}, prices=False)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"classes": "single"},
        {"classes": "sets:3", "examples": 4, "held_out": 3, "seed": 1},
        {"labels": 2, "held_out": 4},
        {"examples": 7},
    ],
    ids=lambda options: ",".join(options) or "all",
)
@pytest.mark.parametrize("name", FORMATS)
def test_the_same_data_in_every_format_and_the_same_choice_of_them(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    expected, data = read(tmp_path, "set.npz", **options), read(tmp_path, name, **options)
    for ours, theirs in ((data, expected), (data.held_out, expected.held_out)):
        assert (ours is None) is (theirs is None)
        if ours is not None and theirs is not None:
            np.testing.assert_array_equal(dense(ours), dense(theirs))
            np.testing.assert_array_equal(ours.targets, theirs.targets)
    if not options:
        np.testing.assert_array_equal(data.targets, 2.0 * Y - 1.0)
        np.testing.assert_array_equal(dense(data), X)
    assert data.name == name.partition(".")[0]
    assert data.notes[1:] == expected.notes[1:]  # the first one says what the labels of the file were


@pytest.mark.parametrize("name", FORMATS)
def test_options_of_other_types_are_refused_by_name(tmp_path: Path, name: str) -> None:
    write, which = FORMATS[name]
    write(tmp_path / name)
    spec = {"file": str(tmp_path / name), **which}
    for option in options_of(resolved(spec, None, prices=False)[0]):
        for value in (math.nan, -0.5):
            with refused(option):
                load({**spec, option: value}, prices=False)


@pytest.mark.parametrize("name", FORMATS)
def test_choices_that_a_file_does_not_have(tmp_path: Path, name: str) -> None:
    for options, message in (
        ({"classes": "sets"}, "classes must be single or sets:K"),
        ({"examples": 11}, "examples must be a whole number of at least 1 and at most 10"),
        ({"held_out": True}, "held_out (= true takes|must be a whole number)"),
        ({"labels": 0}, "(labels|most_frequent) must be a whole number of at least 1"),
        ({"labels": 4}, "labels = 4 asks for more than the 3"),
    ):
        with pytest.raises(InputError, match=message):
            read(tmp_path, name, **options)


@pytest.mark.parametrize("reader", [read_arff, read_libsvm, read_npz, read_prices, read_shards, read_tabular])
def test_a_path_has_a_file(tmp_path: Path, reader: Any) -> None:
    for path, message in (
        (3, "path must be the path of a file"),
        (b"x", "path must be the path of a file"),
        (tmp_path / "nothing", "nothing: no such file"),
        (tmp_path, "is not a file"),
        ("with\0null", "null"),
    ):
        with refused(message):
            reader(path)
    noise = tmp_path / "noise"
    noise.write_bytes(bytes(range(256)) * 10)
    with refused(re.escape(f"{noise}: ")):
        reader(noise)


def test_real_data(data_dir: Path) -> None:
    for name, asked, sizes in (("scene", "single", (1137, 1093, 6)), ("yeast", "sets:10", (770, 487, 10))):
        if not (data_dir / f"{name}.npz").is_file():
            pytest.skip(f"the data directory has no {name}.npz")
        data = load({"name": name, "classes": asked, "split": "train", "held_out": True}, data_dir=data_dir)
        assert (len(data.targets), len(data.held_out.targets), data.n_tasks) == sizes
        for some in (data, data.held_out):
            assert np.all(np.count_nonzero(some.targets == 1.0, axis=1) == 1)
            assert (some.targets == 1.0).any(axis=0).all()
