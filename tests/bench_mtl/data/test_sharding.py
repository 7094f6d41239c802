"""Data of files in shards: bit by bit what the readers give at once, with about two shards in memory, or nothing at all."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reading import csr_parts, refused

from bench_mtl.core.errors import InputError
from bench_mtl.core.sharded_design import ShardedDesign
from bench_mtl.data import load, read_shards, shard_file, write_shards
from bench_mtl.data.sharding import in_shards
from bench_mtl.data.table import Table

#: So few MiB make blocks and shards of some rows.
TINY = 2e-4
SIZES: list[dict[str, Any]] = [{}, {"rows": 1}, {"rows": 4}, {"megabytes": TINY}, {"megabytes": 1e-9}]

LINES = """\
# a comment line
0,2 1:0.5 3:-2
2 2:1e-3

 1:4 2:5 7:0
0,1,2 3:7 # another
3 7:1
"""
TABLE = "size,weight,kind,tall,old,price\n" + "".join(
    f"{i / 3},{2 * i},{('cat', 'dog', 'bird')[i % 3 if i < 25 else 0]},{i % 2},{int(i > 20)},{i * 0.1}\n" for i in range(30)
)
LEFT_OUT: dict[str, Any] = {"drop": ["kind"]}


def bits(array: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=np.float64).tobytes()


def require_equal(path: Path, options: dict[str, Any], **size: Any) -> int:
    """What is written in shards has the bits of what is read at once; returns the number of shards."""
    spec = {"file": str(path), **options}
    folder = path.parent / f"shards of {path.name}"
    while folder.exists():
        folder = folder.with_name(f"{folder.name}.")
    told = shard_file(spec, folder, **size)
    whole = load(spec, prices=False)
    data = read_shards(told.manifest, verify=True)
    assert isinstance(data.design, ShardedDesign)
    X = whole.task(0)[0]
    joined = data.design.restricted(np.arange(data.design.n_features)).block(0)
    assert (joined.shape, data.targets.shape) == (X.shape, whole.targets.shape)
    assert bits(data.targets) == bits(whole.targets)
    assert sp.issparse(joined) == sp.issparse(X)
    if sp.issparse(X):
        np.testing.assert_array_equal(joined.indptr, X.indptr)
        np.testing.assert_array_equal(joined.indices, X.indices)
        joined, X = joined.data, X.data
    assert bits(joined) == bits(X)
    assert (told.rows, told.tasks, told.features) == (*whole.targets.shape, whole.n_features)
    assert (told.name, told.notes) == (whole.name, whole.notes)
    files = [file for file in folder.iterdir() if file.suffix == ".npy"]
    assert told.shards == len([file for file in files if file.name.endswith(".targets.npy")])
    assert told.bytes == sum(file.stat().st_size for file in files)
    assert not list(path.parent.glob(".*"))
    return told.shards


RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((23, 4))
GREY = RNG.integers(0, 256, (23, 4), dtype=np.uint8)
SPARSE = np.where(RNG.random((23, 6)) < 0.3, RNG.standard_normal((23, 6)), 0.0)
LABELS = np.where(RNG.random((23, 3)) < 0.4, 1, 0)
SPLITS = {"train_idx": np.array([20, 3, 4, 1, 9, 9]), "test_idx": np.arange(5, 9)}
TWICE = {"X_data": np.arange(1, 6), "X_indices": np.array([2, 0, 2, 1, 1]), "X_indptr": np.array([0, 3, 3, 5]), "X_shape": np.array([3, 3])}
#: The name of a file, what it holds, and options of its reader.
CASES: list[tuple[str, Any, dict[str, Any]]] = [
    *(("set.svm", LINES, options) for options in ({}, {"features": 9}, {"labels": 2})),
    ("set.txt", "+1 1:1\n-1 2:2\n-1 1:3", {}),
    ("set.txt", "1 0:1 2:1\n2 1:1\n0\n", {}),
    ("set.txt", "1 1:1 2:1\n2 1:1\n0\n", {"zero_based": False}),
    ("set.txt", "1,1 1:1\n", {}),
    ("set.txt", "1 1:0.1\r\n\r\n-1 2:1e308\r\n", {}),
    ("set.txt", "4.5 1:1\n4 2:1\n-3 1:2\n", {}),
    ("set.npz", {"X": DENSE, "Y": LABELS}, {"labels": 2}),
    ("set.npz", {"X": DENSE.astype(np.float32), "Y": LABELS.astype(np.float32)}, {}),
    ("set.npz", {"X": np.asfortranarray(DENSE), "Y": np.asfortranarray(2 * LABELS - 1)}, {}),
    ("set.npz", {"X": GREY, "y": RNG.integers(0, 4, 23)}, {}),
    ("set.npz", {"X": GREY > 9, "y": RNG.integers(0, 2, 23) * 2 - 1}, {}),
    ("set.npz", {"X": DENSE, "y": RNG.standard_normal(23)}, {}),
    ("set.npz", {"X": DENSE, "Y": LABELS, **SPLITS}, {"split": "test"}),
    ("set.npz", {**csr_parts(SPARSE), "Y": LABELS, **SPLITS}, {"split": "train"}),
    ("set.npz", {**csr_parts(SPARSE), "Y": LABELS, **SPLITS}, {"split": "test", "labels": 1}),
    ("set.npz", {**csr_parts(SPARSE * 0), "y": RNG.standard_normal(23)}, {}),
    ("set.npz", {**TWICE, "Y": LABELS[:3]}, {}),
    *(
        (name, TABLE, options)
        for name in ("own.csv", "own.tsv", "own.parquet")
        for options in (
            {"labels": ["tall", "old"], **LEFT_OUT},
            {"labels": ["tall", "old"], **LEFT_OUT, "most_frequent": 1}, {"targets": -2, **LEFT_OUT},
            {"class_column": "kind"}, {"class_column": "kind", "most_frequent": 2, "drop": "price"}, {"class_column": "old", **LEFT_OUT},
        )
    ),
    ("bare.csv", "1;2;3\n4;5;6.5\n7;8;9\n" + 40 * "\n", {"header": False, "separator": ";", "targets": 1}),
    *(
        ("own.npy", columns, {"targets": 2})
        for columns in (DENSE, DENSE.astype(np.float32), GREY, np.asfortranarray(DENSE), np.eye(5, dtype=np.int64))
    ),
]  # fmt: skip


def written(path: Path, content: Any, is_packed: bool) -> Path:
    """Write a file of the format that its name tells."""
    if path.suffix == ".npz":
        (np.savez_compressed if is_packed else np.savez)(path, **content)
    elif path.suffix == ".npy":
        np.save(path, content)
    else:
        path.write_text(content.replace(",", "\t") if path.suffix == ".tsv" else content, newline="")
    if path.suffix == ".parquet":
        pd.read_csv(path).to_parquet(path, row_group_size=11)
    return path


@pytest.mark.parametrize(
    ("case", "size"),
    [
        pytest.param(case, size, id=f"{case}-{size}", marks=[] if place in (0, 1 + case % 4) else pytest.mark.slow)
        for case in range(len(CASES))
        for place, size in enumerate(SIZES)
    ],
)
def test_shards_have_the_bits_that_are_read_at_once(tmp_path: Path, case: int, size: dict[str, Any]) -> None:
    """However large blocks and shards are."""
    name, content, options = CASES[case]
    path = written(tmp_path / name, content, "rows" in size)
    shards = require_equal(path, options, **size)
    rows = len(load({"file": str(path), **options}, prices=False).targets)
    assert "rows" not in size or shards == -(-rows // size["rows"])


CELLS = st.sampled_from(
    ["1", "0", "-1", "2", "0.1", "1e5", "123456789012345678", "9007199254740993", "0.1234567890123456789", "18446744073709551615",
     "-9223372036854775808", "True", "False", "yes", "", "NA", " 3", "1e-320", "inf", "1e999", '"4"', "007", "1_000", "0x10"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    rows=st.lists(st.tuples(CELLS, st.sampled_from(["1", "0", "0", "-1"]), CELLS), min_size=1, max_size=9),
    options=st.sampled_from([{"labels": "b"}, {"targets": "b"}, {"targets": "c"}, {"class_column": "c"}, {"labels": "b", "drop": "c"}]),
)
@example(rows=[("123456789012345678", "1", "0.1"), ("0.5", "0", "0.2")] * 3, options={"labels": "b"})
@example(rows=[("1", "1", "True"), ("1", "0", "2")], options={"class_column": "c"})
def test_any_table_is_written_as_it_is_read_or_refused_as_it_is_refused(
    tmp_path: Path, rows: list[tuple[str, str, str]], options: dict[str, Any]
) -> None:
    """Types that pandas would find in a part of a column and not in the whole are those of the whole."""
    path = tmp_path / "any.csv"
    path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in rows))
    spec = {"file": str(path), **options}
    if refusal(spec) is not None:
        with pytest.raises(InputError, match=re.escape(f"{path}: ")):
            shard_file(spec, tmp_path / "refused", megabytes=2e-5)
        assert not (tmp_path / "refused").exists()
        return
    event("written")
    try:
        require_equal(path, options, megabytes=2e-5)
    except InputError as error:
        if "whole numbers beyond 2^63 in some rows only" not in str(error):
            raise


def refusal(spec: dict[str, Any]) -> str | None:
    """What a reader says to a file that it refuses."""
    try:
        load(spec, prices=False)
    except InputError as error:
        return str(error)
    return None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=st.one_of(st.binary(max_size=60), st.text(alphabet="01 ,:-+.e#\nnaqid", max_size=60).map(str.encode)))
@example(content=b"1 1:1\n2 0:1\n")
def test_any_libsvm_file_is_written_as_it_is_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.svm"
    path.write_bytes(content)
    if (said := refusal({"file": str(path)})) is not None:
        assert "\n" not in said
        with pytest.raises(InputError):
            shard_file({"file": str(path)}, tmp_path / "refused", megabytes=1e-5)
        assert not (tmp_path / "refused").exists()
        return
    require_equal(path, {}, megabytes=1e-5)


def test_the_last_shard_has_what_is_left_and_none_is_larger_than_asked() -> None:
    matrix = sp.random_array((50, 9), density=0.4, rng=np.random.default_rng(1), format="csr")
    for X in (matrix, matrix.toarray()):
        for rows in (1, 7, 50, 51):
            parts = iter([(X[:20], np.ones((20, 2))), (X[20:21], np.ones((1, 2))), (X[21:], np.ones((29, 2)))])
            sizes = [part.shape[0] for part, _ in in_shards(Table(50, 9, 2, lambda parts=parts: parts), rows, 0)]
            assert sizes == [rows] * (50 // rows) + ([50 % rows] if 50 % rows else [])
        parts = iter([(X, np.ones((50, 2)))])
        for part, Y in in_shards(Table(50, 9, 2, lambda parts=parts: parts), None, 300):
            arrays = [part.data, part.indices, part.indptr[1:]] if sp.issparse(part) else [part]
            stored = sum(array.nbytes for array in arrays)
            assert stored <= 300
            assert Y.nbytes <= 300


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("own.csv", {"labels": "tall", "drop": "kind", "impute": "mean"}, "impute needs all rows at once"),
    ("own.csv", {"labels": "tall", "drop": "kind", "examples": 3}, "examples needs all rows at once"),
    ("own.csv", {"labels": "tall", "drop": "kind", "classes": "single"}, "classes needs all rows at once"),
    ("own.csv", {"targets": "price", "task": "kind"}, "task gives each task rows of its own"),
    ("school.npz", {"target": 1}, "target is for files with 'task', which gives each task rows of its own"),
    ("own.csv", {"targets": "price", "seed": 1}, "seed is that of a drawing of rows"),
    ("own.csv", {"targets": "price", "held_out": 0.2}, "with split='train' and split='test'"),
    ("own.csv", {"lables": "tall"}, "did you mean 'labels'?"),
    ("own.csv", {"labels": 1, "preprocess": "none"}, "unknown key for shards of 'own.csv' 'preprocess'"),
    ("late.csv", {"labels": "b"}, "column 'a' in line 42 has no value"),
    ("mixed.csv", {"labels": "b"}, "column 'b' in line 41 must be a label 0/1 or -1/+1, not 0"),
    ("cube.npy", {"targets": 1}, "must hold a matrix of numbers, a row an example, not float64 of shape (2, 2, 2)"),
    ("own.arff", {}, "own.arff cannot be written in shards"),
    ("late.npz", {}, "X has NaN at index (39, 1)"),
    ("school.npz", {}, "has 'task', which gives each task rows of its own"),
    ("broken.npz", {}, "not readable as an .npz file"),
]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    ones, signs = np.ones((40, 2)), np.ones((40, 1), dtype=int)
    Path("own.csv").write_text(TABLE)
    Path("late.csv").write_text("a,b\n" + 40 * "1,0\n" + ",1\n")
    Path("mixed.csv").write_text("a,b\n" + 39 * "1,-1\n" + "2,0\n")
    Path("own.arff").write_text("@relation r\n@attribute x numeric\n@attribute l {0,1}\n@data\n1,0\n2,1\n")
    Path("set.svm").write_text(LINES)
    np.save("own.npy", ones)
    np.save("cube.npy", np.ones((2, 2, 2)))
    np.savez("late.npz", X=np.where(np.arange(80).reshape(40, 2) == 79, np.nan, ones), Y=signs)
    np.savez("school.npz", X=ones, y=np.ones(40), task=np.arange(40) % 2)
    np.savez("broken.npz", X=ones, Y=signs)
    content = bytearray(Path("broken.npz").read_bytes())
    content[300] ^= 1
    Path("broken.npz").write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(("name", "options", "message"), REFUSED)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(sources: Path, name: str, options: dict[str, Any], message: str) -> None:
    before = sorted(sources.iterdir())
    with refused(re.escape(message)):
        shard_file({"file": name, **options}, sources / "new", megabytes=TINY)
    assert sorted(sources.iterdir()) == before


def test_other_calls_that_are_wrong(sources: Path) -> None:
    calls: list[tuple[dict[str, Any], str, dict[str, Any], str]] = [
        ({"file": "own.npy", "targets": 1}, "new", {"rows": 3, "megabytes": 1.0}, "rows and megabytes both say"),
        ({"file": "own.npy", "targets": 1}, ".", {}, "exists: shards are written to a new folder"),
        ({"file": "own.npy", "targets": 1}, "/proc/new", {}, "shards cannot be written to /proc/new: "),
        ({"name": "digits"}, "new", {}, "'digits' is no file"),
        ({"file": "own.npy", "targets": 1}, "new", {"rows": 0}, "rows must be a whole number of at least 1, not 0"),
        ({"file": "own.npy", "targets": 1}, "new", {"megabytes": 0.0}, "megabytes must be above 0"),
    ]
    for spec, folder, size, message in calls:
        with pytest.raises(InputError, match=message):
            shard_file(spec, sources / folder, **size)
    assert not (sources / "new").exists()


def test_what_fails_under_way_leaves_nothing(sources: Path) -> None:
    def stop(line: str) -> None:
        if "written" in line:
            raise KeyboardInterrupt

    before = sorted(sources.iterdir())
    with pytest.raises(KeyboardInterrupt):
        shard_file({"file": "own.npy", "targets": 1}, sources / "new", rows=3, notify=stop)
    assert sorted(sources.iterdir()) == before


#: Rows and columns of the file that is larger than memory: 96 MiB as numbers.
LARGE = (98304, 128)
SHARD_MIB = 1
LIMITED = """
import resource, sys
from pathlib import Path
from bench_mtl.data import shard_file
import sklearn.datasets, pandas, pyarrow.parquet, scipy.sparse  # what they take is no part of the data
pandas.DataFrame({"a": [1.0, 2.0], "b": [1, 0]}).to_csv("warm.csv", index=False)
shard_file({"file": "warm.csv", "labels": "b"}, Path("warm"))
pandas.DataFrame({"a": [1.0, 2.0], "b": [1, 0]}).to_parquet("warm.parquet")
shard_file({"file": "warm.parquet", "labels": "b"}, Path("warm too"))
data = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData:")) * 1024
limit = data + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
if sys.argv[1] == "whole":
    from bench_mtl.data import load
    load({"file": sys.argv[2], **eval(sys.argv[4])}, prices=False)
else:
    print(shard_file({"file": sys.argv[2], **eval(sys.argv[4])}, Path(sys.argv[2] + " shards"), megabytes=float(sys.argv[1])))
"""


def large_file(path: Path) -> Path:
    """Write a large matrix in the format of the name: whole numbers, the labels among them."""
    n, d = LARGE
    X = np.random.default_rng(0).integers(1, 9, (n, d)).astype(np.float64)
    Y = np.where(X[:, :1] > 4, 1, -1)
    if path.suffix == ".npz":
        np.savez(path, X=X, Y=Y)
    elif path.suffix == ".npy":
        np.save(path, np.hstack([X, Y]))
    elif path.suffix == ".parquet":
        pd.DataFrame(np.hstack([X, Y]), columns=[f"c{j}" for j in range(d + 1)]).to_parquet(path, row_group_size=4096)
    elif path.suffix == ".svm":
        line = (" ".join(f"{j + 1}:{j % 7 + 1}" for j in range(d)) + "\n").encode()
        path.write_bytes(b"".join(b"%d " % (1 - 2 * (i % 2)) + line for i in range(n // 4)))
    else:
        cells = (",".join("1.5" for _ in range(d)) + "\n").encode()
        header = ",".join(["y", *(f"c{j}" for j in range(d))]).encode() + b"\n"
        path.write_bytes(header + b"".join(b"%d," % (i % 2) + cells for i in range(n)))
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of data is kept by Linux alone")
@pytest.mark.parametrize(
    ("name", "options", "rows", "fraction"),
    [
        ("large.npz", {}, LARGE[0], 0.25),
        pytest.param("large.npy", {"labels": 1}, LARGE[0], 0.25, marks=pytest.mark.slow),
        pytest.param("large.parquet", {"labels": 1}, LARGE[0], 0.25, marks=pytest.mark.slow),
        pytest.param("large.csv", {"labels": "y"}, LARGE[0], 0.5, marks=pytest.mark.slow),  # pandas itself takes 23 MiB to parse text
        pytest.param("large.svm", {}, LARGE[0] // 4, 0.5, marks=pytest.mark.slow),
    ],
)
def test_a_file_larger_than_memory_is_written(tmp_path: Path, name: str, options: dict[str, Any], rows: int, fraction: float) -> None:
    """A process that may have a fraction of the data as memory writes all of them; it cannot read them at once."""
    path, size = large_file(tmp_path / name), 8 * rows * LARGE[1]
    limit = int(size * fraction)
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}

    def run(what: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / what).mkdir()
        words = [sys.executable, "-c", LIMITED, what, str(path), str(limit), repr(options)]
        return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path / what, env=environment, check=False, timeout=300)

    if name != "large.parquet":  # Arrow may wait for ever for a thread that had no memory
        whole = run("whole")
        assert whole.returncode != 0
        assert "memory" in whole.stderr.lower() or "unable to allocate" in whole.stderr.lower()
    shards = run(str(SHARD_MIB))
    assert shards.returncode == 0, shards.stderr
    assert f" {rows} rows" in shards.stdout


@pytest.mark.parametrize("key", ["stored", "name", "files", "rows"])
def test_a_manifest_that_lacks_something_is_refused(tmp_path: Path, key: str) -> None:
    manifest = write_shards(tmp_path / "d", [(np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))])
    content = json.loads(manifest.read_text())
    del content["shards"][0][key]
    for shards in (content["shards"], []):
        manifest.write_text(json.dumps({**content, "shards": shards}))
        with pytest.raises(InputError, match=r"shards\.json: (not readable as a manifest of shards|has no shards)"):
            read_shards(manifest)
    manifest.write_text(json.dumps({**content, "features": 2**60}))
    with pytest.raises(InputError, match=r"shards\.json: features must be a whole number"):
        read_shards(manifest)
    with pytest.raises(InputError, match="name too long"):
        read_shards("n" * 300)
