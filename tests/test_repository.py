"""The repository stays light and tidy: of a published report it keeps the results, the text and the first figure."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Of all files, in blocks as `git ls-files | xargs du -c` counts them.
MOST_KIB = 35 * 1024

#: A figure that cannot be made from the results beside it: it is of 567 fits.
OTHER_FIGURES = {"reports/boosting-table/sharing.svg"}
MOST_OF_A_FIGURE = 150_000

#: All that may lie at the top of the tree.
TOP = {
    # the packages, their tests and what they found
    "bench_mtl", "problems", "solvers", "papers", "tests", "reports", "benchmarks", "pyproject.toml", "constraints.txt", "Makefile",
    ".gitignore", ".pre-commit-config.yaml", ".ci",
    # what a reader begins with
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "LICENSE", "docs", "mkdocs.yml",
    # what a release needs
    "CITATION.cff", "paper", "recipe",
}  # fmt: skip


def kept(folder: str) -> list[Path]:
    """Return the files below a folder that git tracks."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    names = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in names.split("\0") if name and (path := ROOT / name).exists()]


def test_nothing_else_lies_at_the_top() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in kept(".")} <= TOP


def test_the_folders_of_a_release_are_small() -> None:
    assert {file.relative_to(ROOT).as_posix() for folder in ("paper", "recipe") for file in kept(folder)} == {
        "paper/paper.md",
        "paper/paper.bib",
        "recipe/recipe.yaml",
    }


def test_the_tree_is_light() -> None:
    assert sum(-(-file.lstat().st_size // 4096) * 4 for file in kept(".")) <= MOST_KIB


def test_reports_are_light() -> None:
    files = kept("reports")
    assert {file.suffix for file in files} == {".md", ".sqlite", ".svg"}
    figures = {file for file in files if file.suffix == ".svg" and file.relative_to(ROOT).as_posix() not in OTHER_FIGURES}
    assert figures == {file.with_name("cover.svg") for file in files if file.suffix == ".md" and "](cover.svg)" in file.read_text()}
    assert max(file.stat().st_size for file in figures) < MOST_OF_A_FIGURE


def test_nothing_else_is_large() -> None:
    assert [file for file in kept(".") if file.suffix != ".sqlite" and file.stat().st_size > 1_000_000] == []
