"""What is built from the tree holds all that it should; `.ci/wheel` installs it and runs what the README says."""

import contextlib
import os
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench_mtl.core.version import __version__

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


def test_the_wheel_holds_the_files_of_the_package_and_no_others(built: Built) -> None:
    assert {name for name in built.wheel if not name.startswith(f"{INFO}/")} == files_of_the_package()


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
