"""Results of several folders in one."""

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hand_made import MACHINE, case, content, fill, finished_in, numbers, outcome, suite
from hypothesis import given
from hypothesis import strategies as st

from bench_mtl import InputError, Status
from bench_mtl.results import FILE_NAME, Store
from bench_mtl.results.merge import merge


def read(folder: Path) -> tuple[Any, Any, Any, Any]:
    with Store.open(folder) as store:
        return store.runs(), store.samples(), store.environments(), store.meta()


def primals(folder: Path) -> dict[int, float]:
    """Best objectives by the number of the case."""
    return dict(zip(numbers(folder), read(folder)[0]["primal"], strict=True))


def test_parts_of_a_suite_become_one(tmp_path: Path) -> None:
    plan = [case(number) for number in range(6)]
    first = fill(tmp_path / "first", {number: outcome(4, value=1.0) for number in (0, 2)}, plan=plan)
    second = fill(tmp_path / "second", {number: outcome(2, value=2.0) for number in (1, 2, 5)}, plan=plan, processor="slow one")
    out = tmp_path / "new" / "out"
    merged = merge([first, second], out)
    assert (merged.runs, merged.superseded, merged.ambiguous) == (4, 1, 4 - 1)
    assert primals(out) == {0: 1.0, 2: 1.0, 1: 2.0, 5: 2.0}
    runs, samples, environments, meta = read(out)
    assert samples.groupby("run_id").size().loc[runs["id"]].tolist() == [4, 4, 2, 2]
    assert [environments[place - 1]["processor"] for place in runs["environment_id"]] == ["quick one"] * 2 + ["slow one"] * 2
    assert meta == read(first)[3]
    assert [path.name for path in out.iterdir()] == [FILE_NAME]
    with Store.create(out, suite()) as store:
        assert store.plan(plan) == [case(3), case(4)]
        assert store.add_environment(MACHINE) == 1


def test_nothing_is_lost(tmp_path: Path) -> None:
    first = fill(tmp_path / "first", {0: outcome(value=1.0), 1: outcome(status=Status.ERROR), 2: outcome(value=1.5)})
    with Store.create(first, suite()) as store:
        store.plan([case(1, "renamed")], retry_failed=True)  # unlists 0 and 2, supersedes 1
    second = fill(tmp_path / "second", {2: outcome(value=2.0), 1: outcome(value=2.0), 3: outcome(value=2.0)}, plan=[])
    with Store.create(second, suite()) as store:
        store.plan([case(3, "hinge"), case(2, "hinge"), case(1, "hinge")])
    out = tmp_path / "out"
    merged = merge([first, second], out)
    assert (merged.runs, merged.superseded) == (3, 1)
    assert list(primals(out).items()) == [(3, 2.0), (2, 1.5), (1, 2.0)]  # of 2 the first folder has a row, which it does not list
    assert set(read(out)[0]["problem_label"]) == {"hinge"}
    assert finished_in(out) == {case(number).key for number in range(4)}
    with closing(sqlite3.connect(out / FILE_NAME)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("run", "sample", "listing")] == [6, 18, 4]


@given(data=st.data())
def test_merging_a_folder_with_itself_changes_nothing_that_is_reported(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    ended = data.draw(st.dictionaries(st.integers(0, 5), st.builds(outcome, st.integers(0, 3), st.sampled_from(list(Status))), max_size=5))
    listed = data.draw(st.permutations(sorted(ended)))[: data.draw(st.integers(0, 5))]
    folder = tmp_path_factory.mktemp("results")
    fill(folder / "a", ended)
    with Store.create(folder / "a", suite()) as store:
        store.plan([case(number) for number in listed], retry_failed=data.draw(st.booleans()))
    merged = merge([folder / "a"] * data.draw(st.integers(2, 3)), folder / "b")
    before, after = read(folder / "a"), read(folder / "b")
    assert all(one.equals(other) for one, other in zip(before[:2], after[:2], strict=True))
    assert after[2:] == before[2:]
    assert merged.runs == len(before[0])
    assert finished_in(folder / "a") == finished_in(folder / "b")


def test_texts_that_differ_are_all_there_and_still_a_suite_file(tmp_path: Path) -> None:
    texts = ['name = "hand"\nx = 1\n', 'name = "hand"\n\nx = """\n2"""\n']
    names = ["one", "line\nbreak", "three"]
    for name, text in zip(names, [texts[0], texts[1], texts[0]], strict=True):
        fill(tmp_path / name, [0], of=suite(text=text))
    merge([tmp_path / name for name in names], tmp_path / "out")
    text = read(tmp_path / "out")[3]["suite_text"]
    assert text == '# Suite of one, three\nname = "hand"\nx = 1\n\n# Suite of line break\n# name = "hand"\n#\n# x = """\n# 2"""\n'
    assert tomllib.loads(text) == {"name": "hand", "x": 1}


def test_results_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    first = fill(tmp_path / "first", [0])
    second = fill(tmp_path / "second", [0], of=suite("other"))
    third = fill(tmp_path / "third", [0], of=suite(targets=(1e-3,)))
    out, reported = tmp_path / "out", tmp_path / "reported"
    reported.mkdir()
    (reported / "report.md").write_text("mine")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "notes.txt").write_text("mine")
    before = {folder: content(folder) for folder in (first, second, third, reported, notes)}
    for folders, target, message in [
        ([first, second], out, f"only results of one suite can be merged: {first} has hand, {second} has other"),
        ([first, third], out, f"same targets can be merged: {first} has .*0.01, 0.0001.*, {third} has .*0.001"),
        ([first], out, "at least two"),
        ([first, tmp_path / "nothing"], out, "no results in"),
        ([first, first], second / ".." / "first", "is one of the folders to merge"),
        ([first, first], second, "already holds results"),
        ([first, first], reported, r"holds report\.md but no"),
        ([first, first], notes, r"holds notes\.txt"),
        ([first, first], reported / "report.md" / "below", "cannot be"),
    ]:
        with pytest.raises(InputError, match=message):
            merge(folders, target)
    assert not out.exists()
    assert {folder: content(folder) for folder in before} == before
