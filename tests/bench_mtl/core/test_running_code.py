"""One hash for all code of a package, which tells programmes apart that call themselves the same version."""

import os
import shutil
from pathlib import Path

import bench_mtl
from bench_mtl.core.running_code import PLUGINS, code_digests


def test_code_is_told_apart_by_what_its_files_hold_and_are_called(tmp_path: Path) -> None:
    folder = tmp_path / "plugins"
    (folder / "solvers").mkdir(parents=True)
    file = folder / "solvers" / "one.py"
    file.write_text("STEP = 1\n")
    found = [digest(folder)]
    details = file.stat()
    file.write_text("STEP = 2\n")
    os.utime(file, ns=(details.st_atime_ns, details.st_mtime_ns + 1))  # as large as before
    found.append(digest(folder))
    file.rename(file.with_name("two.py"))
    found.append(digest(folder))
    (folder / "shared.py").touch()
    found.append(digest(folder))
    assert len(set(found)) == 4
    assert all(len(each) == 16 for each in found)
    for name in ("notes.txt", "solvers/__pycache__/two.py", ".hidden/three.py"):  # nothing of this is imported
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert digest(folder) == found[-1]
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert digest(tmp_path / "elsewhere") == found[-1]
    assert digest(tmp_path / "nowhere") == ""


def digest(folder: Path) -> str:
    return code_digests(folder)[PLUGINS]


def test_it_covers_all_of_the_package_problems_and_solvers_too(tmp_path: Path) -> None:
    whole = code_digests()["bench_mtl"]
    copy = tmp_path / "bench_mtl"
    shutil.copytree(Path(bench_mtl.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    assert digest(copy) == whole
    for name in ("engine/driver.py", "solvers/pdhg/__init__.py", "problems/portfolio/__init__.py", "runner/certifier.py"):
        changed = copy / name if (copy / name).exists() else (copy / name).parent.with_suffix(".py")
        before = changed.read_bytes()
        changed.write_bytes(before + b"\n")
        assert digest(copy) != whole, name
        changed.write_bytes(before)
    assert digest(copy) == whole
