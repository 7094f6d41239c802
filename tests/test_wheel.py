"""What is built from the tree holds all that it should, and .ci/wheel reads the README as it says."""

from __future__ import annotations

import configparser
import contextlib
import importlib.machinery
import importlib.util
import os
import subprocess
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
    """Return the files that an installed package has: those of the tree, links followed."""
    return {
        (Path(folder) / name).relative_to(ROOT).as_posix()
        for folder, _, names in os.walk(ROOT / "bench_mtl", followlinks=True)
        for name in names
        if "__pycache__" not in folder
    }


def metadata_of(wheel: dict[str, bytes]) -> Message:
    return message_from_bytes(wheel[f"{INFO}/METADATA"])


def test_the_wheel_holds_the_files_of_the_package_and_no_others(built: Built) -> None:
    assert {name for name in built.wheel if not name.startswith(f"{INFO}/")} == files_of_the_package()


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "engine/suites/quick.toml",
        "problems/l1inf_hinge.py",
        "report/figures/looks.toml",
        "report/render/article.html",
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
        loader.exec_module(module)
    return module


def test_the_readme_has_one_first_comparison_and_its_table_can_be_read(script: ModuleType, tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table, features, labels, commands = script.first_comparison(readme)
    assert commands.startswith("python3 -m venv env\nenv/bin/pip install bench-mtl\nenv/bin/bench-mtl solve ")
    assert f" --data {table} --data-option labels={labels} " in commands
    (tmp_path / table).write_text(script.table_of(features, labels))
    data = load({"file": table, "labels": labels}, data_dir=tmp_path)
    assert (data.n_features, data.n_tasks) == (features, labels)
    assert all(set(data.task(k)[1].tolist()) == {-1.0, 1.0} for k in range(labels))
    for text in ("", readme * 2):
        with pytest.raises(ValueError, match="unpack"):
            script.first_comparison(text)


def test_nothing_leads_back_to_the_checkout(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "bench-mtl").touch()
    leading = {"PATH": f"{tmp_path}{os.pathsep}/usr/bin", "PYTHONPATH": str(ROOT), "HOME": "/"}
    assert script.without_the_checkout(leading) == {"PATH": "/usr/bin", "HOME": "/"}


def test_a_step_that_fails_ends_all(script: ModuleType, tmp_path: Path) -> None:
    script.step("good", ["sh", "-c", "exit 0"], tmp_path)
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        script.step("bad", ["sh", "-c", "exit 3"], tmp_path)
