"""Copies of the tree, compiled code and all, in which files are changed and changed back."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The packages whose code is tested.
PACKAGES = ("bench_mtl", "problems", "solvers")


class UnusableError(Exception):
    """A check cannot be made: its table does not fit the tree, or the tree does not pass its own tests."""


class Copy:
    """A copy of a tree, for one change after the other."""

    def __init__(self, root: Path, place: Path) -> None:
        self.tree = place / "tree"
        self.place = place
        self._compiled_before = place / "compiled"
        _copy_tree(root, self.tree)
        data = root.parent / "shared"
        if data.exists():  # where tests look for real data
            (place / "shared").symlink_to(data.resolve())
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.tree), os.environ.get("PYTHONPATH", "")])),
            "PYTHONDONTWRITEBYTECODE": "",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
        }
        self._remember_compiled()

    def require_own_code(self, root: Path) -> None:
        """Raise UnusableError unless a Python started anywhere, and the console script, load the code of the copy."""
        names = [package for package in PACKAGES if (self.tree / package).is_dir()]
        code = f"import {', '.join(names)}; print(*({', '.join(f'{name}.__file__' for name in names)},), sep='\\n')"
        files = self._output([sys.executable, "-P", "-c", code]).stdout.split()
        if not all(Path(file).is_relative_to(self.tree) for file in files):
            raise UnusableError(f"the copy is not what is imported, but {', '.join(files)}")
        script = Path(sys.executable).with_name("bench-mtl")
        if script.exists():
            told = self._output([str(script), "--version"], check=False, PYTHONVERBOSE="1").stderr
            if str(self.tree / "bench_mtl") not in told or f"{root / 'bench_mtl'}{os.sep}" in told:
                raise UnusableError(f"the copy is not what {script.name} imports")

    @contextmanager
    def changed(self, name: str, content: bytes) -> Iterator[None]:
        """Give a file another content, and the old one again afterwards, whatever happens."""
        file = self.tree / name
        before, state = file.read_bytes(), file.stat()
        try:
            _forget_bytecode(file)
            file.write_bytes(content)
            yield
        finally:
            file.write_bytes(before)
            os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
            _forget_bytecode(file)
            shutil.rmtree(self.place / "hypothesis", ignore_errors=True)

    @contextmanager
    def compiled_again(self, names: set[str], module: str) -> Iterator[None]:
        """Let the kernels of these files be compiled again, and no others, and bring back what there was afterwards.

        The machine code of a kernel holds that of the kernels that it calls, so `names` are the changed file and all files of kernels that
        import it. Once the package sees changed kernels it deletes all machine code, which is right but slow; so `module`, one of the
        changed, is imported first, and then the code of all other files is brought back.
        """
        if not names:
            yield
            return
        self._remember_compiled()
        try:
            self._output([sys.executable, "-c", f"import {module}"], check=False)
            void = {((self.tree / name).parent, Path(name).stem) for name in names}
            for file in list(self._compiled()):
                if (file.parent.parent, file.name.split(".")[0]) in void:
                    file.unlink()
            for before, now in self._remembered():
                if before.suffix in (".nbi", ".nbc") and (now.parent.parent, now.name.split(".")[0]) not in void and not now.exists():
                    shutil.copy2(before, now)
            yield
        finally:
            for file in list(self._compiled()):
                file.unlink()
            for before, now in self._remembered():
                now.parent.mkdir(exist_ok=True)
                shutil.copy2(before, now)

    def compiled_files(self) -> set[str]:
        """Return the names of the files of which there is machine code."""
        machine_code = (file for file in self._compiled() if file.suffix == ".nbi")
        files = {file.parent.parent / f"{file.name.split('.')[0]}.py" for file in machine_code}
        return {file.relative_to(self.tree).as_posix() for file in files}

    def _output(self, command: list[str], check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
        together = {**self.environment, **environment}
        return subprocess.run(command, cwd=self.place, env=together, capture_output=True, text=True, check=check)

    def _compiled(self) -> Iterator[Path]:
        """What lies beside bytecode: the machine code of kernels, and what it was made from."""
        for package in PACKAGES:
            for folder in (self.tree / package).rglob("__pycache__"):
                if folder.resolve() == folder:  # not by way of a link
                    yield from (file for file in folder.iterdir() if file.suffix != ".pyc")

    def _remember_compiled(self) -> None:
        for file in self._compiled():
            copy = self._compiled_before / file.relative_to(self.tree)
            if not copy.exists() or copy.stat().st_mtime_ns != file.stat().st_mtime_ns:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, copy)

    def _remembered(self) -> Iterator[tuple[Path, Path]]:
        for file in self._compiled_before.rglob("*"):
            if file.is_file():
                yield file, self.tree / file.relative_to(self._compiled_before)


def _copy_tree(root: Path, target: Path) -> None:
    """Copy what git knows, or could know, and the compiled code beside it, times of change included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    )
    folders = set()
    for name in sorted(set(filter(None, listed.stdout.split("\0")))):
        source, copy = root / name, target / name
        if source.is_symlink() or source.is_file():  # not one that is deleted and not yet committed
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
            if source.suffix == ".py":
                folders.add(source.parent)
    for folder in sorted(folders):
        cache = folder / "__pycache__"
        if cache.is_dir():
            shutil.copytree(cache, target / cache.relative_to(root))


def _forget_bytecode(file: Path) -> None:
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
