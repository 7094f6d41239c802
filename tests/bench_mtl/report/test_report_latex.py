"""The tables for LaTeX, through a LaTeX where there is one."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from bench_mtl.report import write_report

PG = {"solver": "pg_1 & {co} $x$ #2 ^~ 50% \\", "samples": [(0.1, 0, 1.0, 1.0, 0.5, None), (0.4, 99, 100.0, 1.0, 1 - 5e-7, None)]}
TIMEOUT = {"solver": "<sub>", "status": "timeout", "reason": "a very long reason, " * 20, "samples": [(60.0, 0, 1.0, 1.0, 0.5, None)]}
SCS = {"solver": "scs", "family": "conic", "status": "timeout", "times": {"build": 0.5}, "samples": [(3.0, 40, 0.0, 1.0, 0.9, 1e-3)]}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX (make system installs one)")
def test_every_table_compiles_with_booktabs_alone(make_store, tmp_path):
    folder = make_store(
        *({**run, "problem": label, "seed": seed} for run in (PG, TIMEOUT, SCS) for label in ("a_b", "c|d") for seed in (1, 2))
    )
    write_report(folder, formats=["tex"])
    tables = sorted(path.stem for path in (folder / "tables").glob("*.tex"))
    assert {"winners", "summary", "not_verified"} <= set(tables)
    pages = "\n\\clearpage\n".join(f"\\input{{tables/{name}}}" for name in tables)
    (folder / "all.tex").write_text(
        f"\\documentclass{{article}}\n\\usepackage{{booktabs}}\n\\begin{{document}}\n{pages}\n\\end{{document}}\n"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert made.returncode == 0, made.stdout[-2000:]
    assert "Undefined control sequence" not in made.stdout
    assert (folder / "all.pdf").stat().st_size > 10_000
