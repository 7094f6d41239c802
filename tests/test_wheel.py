"""What is built from the tree holds all that it should, and .ci/wheel reads the README as it says."""

from __future__ import annotations

import configparser
import contextlib
import importlib.machinery
import importlib.util
import os
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

from bench_mtl.core.version import __version__
from bench_mtl.data import load

ROOT = Path(__file__).resolve().parents[1]
INFO = f"bench_mtl-{__version__}.dist-info"


@dataclass(frozen=True)
class Built:
    """Archives by their members' names: the wheel of the tree, that of the unpacked source archive, and the source archive."""

    wheel: dict[str, bytes]
    again: dict[str, bytes]
    source: set[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    import hatchling.build as backend

    out = tmp_path_factory.mktemp("built")
    with contextlib.chdir(ROOT):
        wheel = out / backend.build_wheel(str(out))
        source = out / backend.build_sdist(str(out))
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
        archive.extractall(out / "unpacked", filter="data")
    with contextlib.chdir(out / "unpacked" / source.name.removesuffix(".tar.gz")):
        again = out / "again" / backend.build_wheel(str(out / "again"))
    return Built(members(wheel), members(again), names)


def members(wheel: Path) -> dict[str, bytes]:
    """Return what a wheel holds, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def files_of_the_package() -> set[str]:
    """Return the files that an installed package has: those of the tree, links followed, and the papers' published numbers."""
    found = {
        (Path(folder) / name).relative_to(ROOT).as_posix()
        for folder, _, names in os.walk(ROOT / "bench_mtl", followlinks=True)
        for name in names
        if "__pycache__" not in folder
    }
    return found | {f"bench_mtl/papers/published/{path.name}" for path in (ROOT / "docs" / "papers").iterdir()}


def metadata_of(wheel: dict[str, bytes]) -> Message:
    return message_from_bytes(wheel[f"{INFO}/METADATA"])


def test_the_wheel_holds_the_files_of_the_package_and_no_others(built: Built) -> None:
    assert {name for name in built.wheel if not name.startswith(f"{INFO}/")} == files_of_the_package()


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "engine/suites/quick.toml",
        "papers/published/chen2012_table4.csv",
        "problems/l1inf_hinge.py",
        "report/figures/looks.toml",
        "report/page/template.html",
        "report/page/vendor/chart.umd.min.js",
        "solvers/pdhg/__init__.py",
        "validation/probes/problems/origin.py",
    ],
)
def test_a_file_that_the_package_reads_is_there(name: str) -> None:
    assert f"bench_mtl/{name}" in files_of_the_package()


def test_the_source_archive_makes_the_same_wheel(built: Built) -> None:
    assert built.again.keys() == built.wheel.keys()
    assert [name for name, content in built.wheel.items() if built.again[name] != content] == []


def test_the_source_archive_holds_the_project_without_its_reports(built: Built) -> None:
    top = {name.partition("/")[0] for name in built.source}
    assert {"pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "Makefile", "tests", "docs", "problems", "solvers", ".ci"} <= top
    assert "reports" not in top
    assert not [name for name in built.source if "__pycache__" in name or name.endswith(".sqlite")]
    for folder in ("problems/", "solvers/"):
        at_the_top = {name for name in built.source if name.startswith(folder)}
        assert at_the_top
        assert {f"bench_mtl/{name}" for name in at_the_top} <= built.source


def test_the_wheel_says_what_the_project_says(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    said = metadata_of(built.wheel)
    assert said["Version"] == __version__
    assert said["License-Expression"] == project["license"]
    assert "the bench_mtl developers" in said["Author"]
    needs = {Requirement(text).name for text in said.get_all("Requires-Dist") if "extra ==" not in text}
    assert needs == {Requirement(text).name for text in project["dependencies"]}
    licences = {path.relative_to(ROOT).as_posix() for pattern in project["license-files"] for path in ROOT.glob(pattern)}
    assert set(said.get_all("License-File")) == licences
    assert {f"{INFO}/licenses/{name}" for name in licences} <= set(built.wheel)


def test_the_wheel_has_the_entry_points_of_the_project(built: Built) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(built.wheel[f"{INFO}/entry_points.txt"].decode())
    found = {section: dict(parser[section]) for section in parser.sections()}
    assert found == {"console_scripts": project["scripts"], **project["entry-points"]}


# The script


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("ci_wheel", str(ROOT / ".ci" / "wheel"))
    spec = importlib.util.spec_from_loader("ci_wheel", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        patch.setitem(sys.modules, "ci_wheel", module)  # its dataclass asks for it
        loader.exec_module(module)
    return module


MARKED = "# A\n\n<!-- first comparison: {table} -->\n\n```\n{commands}```\n\n```\nls\n```\n"
COMMANDS = "python3 -m venv mtl\n# and then\nmtl/bin/pip install \\\n  bench-mtl\n\nmtl/bin/bench-mtl doctor\n"


def test_the_commands_of_the_first_comparison_are_read_as_they_stand(script: ModuleType) -> None:
    found = script.first_comparison(MARKED.format(table="flags.csv, 8 features, 3 labels", commands=COMMANDS))
    assert found.commands == ("python3 -m venv mtl", "mtl/bin/pip install bench-mtl", "mtl/bin/bench-mtl doctor")
    assert (found.table, found.features, found.labels) == ("flags.csv", 8, 3)


def test_a_first_comparison_may_have_no_table(script: ModuleType) -> None:
    text = MARKED.format(table="", commands=COMMANDS).replace("comparison:  -->", "comparison -->")
    assert script.first_comparison(text).table is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n\n```\nls\n```\n", "0 blocks follow"),
        (MARKED.format(table="a.csv, 8 features, 3 labels", commands="ls\n") * 2, "2 blocks follow"),
        (MARKED.format(table="8 features", commands="ls\n"), "0 blocks follow"),
        (MARKED.format(table="a.csv, 8 features, 3 labels", commands="ls\n" * 5), "takes 5 commands, 4 at most"),
        (MARKED.format(table="a.csv, 8 features, 3 labels", commands="# ls\n"), "takes 0 commands"),
    ],
    ids=["no mark", "two marks", "no table's name", "five commands", "no command"],
)
def test_a_readme_without_a_first_comparison_is_refused(script: ModuleType, text: str, said: str) -> None:
    with pytest.raises(script.StepError, match=said):
        script.first_comparison(text)


def test_the_table_can_be_read_and_has_labels_of_both_signs(script: ModuleType, tmp_path: Path) -> None:
    script.write_table(tmp_path / "flags.csv", 8, 3)
    data = load({"file": "flags.csv", "labels": 3}, data_dir=tmp_path)
    assert (data.n_features, data.n_tasks) == (8, 3)
    assert all(set(data.task(k)[1].tolist()) == {-1.0, 1.0} for k in range(3))


def test_nothing_leads_back_to_the_checkout(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench-mtl").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = script.clean_environment()
    assert found["PATH"] == "/usr/bin"
    assert "PYTHONPATH" not in found


def test_a_step_that_fails_ends_all(script: ModuleType, tmp_path: Path) -> None:
    assert script.step("good", ["sh", "-c", "echo said"], tmp_path, dict(os.environ)) == "said\n"
    with pytest.raises(script.StepError, match="bad: exit code 3"):
        script.step("bad", ["sh", "-c", "exit 3"], tmp_path, dict(os.environ))
