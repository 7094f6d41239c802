"""Data sets by name or file: what suites and the command line ask for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reading import csr_parts, refused

from bench_mtl.core.errors import InputError
from bench_mtl.data import Entry, data_directory, digits, entries, load, synthetic_l1inf, takes_seed
from bench_mtl.data.catalogue import spec_of
from bench_mtl.data.fingerprint import fingerprint

X = np.arange(8.0).reshape(4, 2)
SCENE = "2407 x 294 dense, 6 labels, split 1211/1196"
SCHOOL = "15362 x 28 dense, 139 tasks, a real target"
Y = np.array([[1, 0], [0, 1], [1, 1], [0, 1]], dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with one set of each layout, and none in the environment."""
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "small.npz", X=X, Y=Y, train_idx=np.array([0, 1, 2]), test_idx=np.array([3]))
    np.savez(folder / "pages.npz", **csr_parts(np.tile(np.eye(2), (2, 1))), y=np.array([3, 1, 2, 3]))
    np.savez(folder / "schools.npz", X=X, y=X[:, 0], task=np.array([0, 1, 1, 0]))
    np.savez(folder / "faces.npz", X=X.astype(np.uint8), y=np.array([0, 1, 1, 0]))
    np.savez(folder / "odd.npz", Z=X)
    (folder / "damaged.npz").write_bytes(b"PK")
    (folder / "table.xlsx").write_bytes(b"PK")
    for end in ("svm", "libsvm", "txt", "SVM"):
        (folder / f"lines.{end}").write_text("0,1 1:1\n1 2:1\n")
    (folder / "prices.csv").write_text("day,A,B\n1,1,2\n2,2,2\n3,3,1\n")
    (folder / "lines.arff").write_text("@relation r\n@attribute x numeric\n@attribute l {0,1}\n@data\n1,0\n2,1\n")
    return folder


def test_generators_take_their_options_and_a_seed() -> None:
    spec = {"name": "synthetic_l1inf", "tasks": 2, "features": 5, "examples": 3}
    np.testing.assert_array_equal(load(spec, seed=4).task(1)[0], synthetic_l1inf(tasks=2, features=5, examples=3, seed=4).task(1)[0])
    np.testing.assert_array_equal(load(spec).task(1)[0], load(spec, seed=0).task(1)[0])
    fixed = {**spec, "seed": 9}
    np.testing.assert_array_equal(load(fixed, seed=4).task(1)[0], load(fixed).task(1)[0])
    assert load({"name": "synthetic_sparse_low_rank", "examples": 2, "shared": True}).design.is_shared
    np.testing.assert_array_equal(load({"name": "digits"}, seed=3).targets, digits().targets)
    assert load({"name": "digits", "examples": 20, "preprocess": "unit_rows"}).design.output_shape == (20, 10)


def test_files_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"name": "small", "split": "train", "labels": 1, "preprocess": ["unit_rows", "svd:1"]}
    data = load(spec, data_dir=folder, seed=3)
    assert (data.design.output_shape, data.n_features) == ((3, 1), 1)
    monkeypatch.setenv("BENCH_MTL_DATA", str(folder))
    np.testing.assert_array_equal(load(spec).task(0)[0], data.task(0)[0])
    assert load({"name": "schools"}).n_tasks == 2


@pytest.mark.parametrize(
    ("spec", "tasks"),
    [
        ({"file": "small.npz"}, 2),
        *(({"file": f"lines.{end}", "features": 3}, 2) for end in ("svm", "libsvm", "txt", "SVM")),
        ({"file": "lines.arff", "labels": 1}, 1),
        ({"file": "prices.csv", "held_out": 1}, 1),
    ],
)
def test_files_by_path(folder: Path, monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], tasks: int) -> None:
    assert load(spec, data_dir=folder).n_tasks == tasks
    assert load({**spec, "file": str(folder / spec["file"])}).n_tasks == tasks
    monkeypatch.chdir(folder)
    assert load(spec).n_tasks == tasks
    monkeypatch.setenv("HOME", str(folder))
    assert load({**spec, "file": f"~/{spec['file']}"}).n_tasks == tasks


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "data must be a table with exactly one of 'name' and 'file'"),
        ({"name": "digits", "file": "small.npz"}, "exactly one of"),
        ({"name": 3}, "name of data must be a non-empty string, not 3"),
        ({"file": ""}, "file of data must be a non-empty string"),
        ({"name": "digit"}, "unknown data 'digit': did you mean 'digits'"),
        ({"name": "smal"}, r"unknown data 'smal': did you mean 'small'.*there is no .*smal\.npz \(set the data directory with"),
        ({"name": "synthetic_l1inf", "task": 3}, "unknown key for data 'synthetic_l1inf' 'task': did you mean 'tasks'"),
        ({"name": "small", "seeds": 3}, "unknown key for data 'small' 'seeds': did you mean 'seed'"),
        ({"name": "small", "zzz": 1, "aaa": 2, "seeds": 3}, "unknown key for data 'small' 'zzz'"),
        ({"name": "small", "preprocess": 3}, "preprocess of data 'small' must be the name of a step or a list"),
        ({"name": "damaged"}, r"damaged\.npz: not readable as an \.npz file"),
        ({"file": "table.xlsx"}, r"file 'table\.xlsx' of data: its name must end in one of \.npz, \.arff"),
        ({"file": "absent.svm"}, r"file 'absent\.svm' is missing: looked for .*data/absent\.svm and .*absent\.svm \(set the data"),
        ({"file": "/nowhere/absent.npz"}, r"data file '/nowhere/absent\.npz' is missing: looked for /nowhere/absent\.npz$"),
    ],
)
def test_unusable_specs(folder: Path, spec: Any, message: str) -> None:
    with refused(message):
        load(spec, data_dir=folder)


def test_data_directory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data_directory() is None
    with pytest.raises(InputError, match=r"no data directory is set \(set the data directory with --data-dir or BENCH_MTL_DATA\)"):
        load({"name": "small"})
    assert data_directory(folder) == folder
    with pytest.raises(InputError, match=r"absent \(from --data-dir\) is not a folder"):
        data_directory(tmp_path / "absent")
    monkeypatch.setenv("BENCH_MTL_DATA", str(tmp_path))
    assert data_directory() == tmp_path
    assert data_directory(folder) == folder
    monkeypatch.setenv("BENCH_MTL_DATA", str(folder / "small.npz"))
    with pytest.raises(InputError, match=r"\(from BENCH_MTL_DATA\) is not a folder"):
        load({"name": "small"})
    assert load({"name": "synthetic_l1inf", "tasks": 1}).n_tasks == 1  # needs no data directory
    monkeypatch.setenv("BENCH_MTL_DATA", "")
    assert data_directory() is None


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"name": "synthetic_l1inf"}, True),
        ({"name": "synthetic_l1inf", "seed": 0}, False),
        ({"name": "digits"}, False),
        ({"name": "digits", "examples": 100}, True),
        ({"name": "scene"}, False),
        ({"file": "a.npz"}, False),
        ({"name": "digits", "held_out": 1}, True),
        ({"name": "scene", "split": "train", "held_out": True}, False),
        ({"name": "scene", "held_out": 100}, True),
        ({"file": "a.npz", "examples": 5}, True),
        ({"file": "a.svm", "held_out": 5}, True),
        ({"file": "a.csv", "held_out": 5}, False),
        ({"file": "a.unknown", "examples": 5}, True),
    ],
)
def test_takes_seed(spec: dict[str, Any], expected: bool) -> None:
    assert takes_seed(spec) is expected
    with pytest.raises(InputError, match="exactly one of"):
        takes_seed({"tasks": 3})


def test_entries(folder: Path) -> None:
    assert [entry.name for entry in entries()] == [
        "blocks_dense", "blocks_sparse", "digits", "synthetic_glm", "synthetic_l1inf", "synthetic_market", "synthetic_multiclass",
        "synthetic_sparse_low_rank", "synthetic_stream",
    ]  # fmt: skip
    assert [entry.name for entry in entries() if entry.kind != "generator"] == ["digits"]
    assert [entry for entry in entries(folder) if entry.kind == "file"] == [
        Entry(
            "damaged",
            "file",
            f"unreadable: {folder / 'damaged.npz'}: not readable as an .npz file: it is no zip archive, or a truncated one",
        ),
        Entry("faces", "file", "4 x 2 grey levels, a label"),
        Entry("odd", "file", "unreadable: it has no features X"),
        Entry("pages", "file", "4 x 2 sparse, 3 classes"),
        Entry("schools", "file", "4 x 2 dense, 2 tasks, a real target"),
        Entry("small", "file", "4 x 2 dense, 2 labels, split 3/1"),
    ]


def test_every_entry_of_the_real_data_is_described(data_dir: Path) -> None:
    described = {entry.name: entry.description for entry in entries(data_dir)}
    assert not [name for name, text in described.items() if "unreadable" in text]
    assert described.get("scene", SCENE) == SCENE
    assert described.get("school", SCHOOL) == SCHOOL


def test_sizes_that_no_machine_has_are_refused() -> None:
    for size in (2**31, 2**62):
        with pytest.raises(InputError, match="data 'synthetic_l1inf'"):
            load({"name": "synthetic_l1inf", "tasks": size, "features": size, "examples": size})


def test_one_word_is_a_name_first_and_a_file_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_MTL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    for name in ("v1.2.npz", "digits", "here"):
        (tmp_path / name).write_bytes(b"")
    assert spec_of("digits") == {"name": "digits"}
    assert spec_of("v1.2", tmp_path) == {"name": "v1.2"}
    assert spec_of("here") == {"file": "here"}
    assert spec_of("none.SVM") == {"file": "none.SVM"}
    assert spec_of("nothing.9") == {"name": "nothing.9"}


def test_paths_that_cannot_be_looked_at_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data directory \(from --data-dir\) .* cannot be used"):
        load({"name": "scene"}, data_dir=tmp_path / ("n" * 300))
    for file in ("n" * 300 + ".svm", "a\0b.npz"):
        with pytest.raises(InputError, match=r"data file .* cannot be used"):
            load({"file": file})


def test_a_fallback_takes_the_place_of_an_absent_set(folder: Path) -> None:
    instead = {"name": "digits", "examples": 20}
    here = load({"name": "small", "split": "train", "fallback": instead}, data_dir=folder)
    assert (here.name, here.design.sizes[0]) == ("small", 3)
    absent = {"name": "mnist_t10k", "labels": 3, "fallback": instead}
    for place in (folder, None):
        data = load(absent, data_dir=place)
        assert (data.name, data.design.sizes[0]) == ("digits", 20)
        assert data.notes[0] == "The data directory has no 'mnist_t10k': 'digits' in its place."
    assert fingerprint(absent, data_dir=folder) == fingerprint(instead, data_dir=folder)
    for spec in ({"file": "a.npz", "fallback": {"name": "digits"}}, {"name": "absent", "fallback": "digits"}):
        with pytest.raises(InputError, match=r"fallback of data|must be a table"):
            load(spec, data_dir=folder)


@pytest.mark.parametrize("odd", [{"y": np.ones((3, 1))}, {"y": np.array(1.0)}, {"Y": np.ones((3, 2)), "task": np.zeros((3, 1), int)}])
def test_an_odd_file_is_listed_as_unreadable(tmp_path: Path, odd: dict[str, Any]) -> None:
    np.savez(tmp_path / "mine.npz", X=np.eye(3), **odd)
    (mine,) = (entry for entry in entries(tmp_path) if entry.kind == "file")
    assert mine.description.startswith("unreadable: ")
