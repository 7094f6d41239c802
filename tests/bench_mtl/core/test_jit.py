"""Kernels: what is damaged in the cache on disk is compiled again."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

KERNEL = """
from bench_mtl.core.kernels.jit import exact

@exact
def doubled(x):
    return 2.0 * x
"""


@pytest.mark.parametrize("left", [0, 1, 0.5])
@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, left: float) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source = tmp_path / "kernel_of_mine.py"
    source.write_text(KERNEL)

    def loaded() -> Any:
        spec = importlib.util.spec_from_file_location("kernel_of_mine", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.doubled

    assert loaded()(1.5) == 3.0
    (file,) = tmp_path.rglob(kind)
    whole = file.read_bytes()
    file.write_bytes(whole[: left if isinstance(left, int) else int(left * len(whole))])
    assert loaded()(1.5) == 3.0
    again = loaded()
    assert again(1.5) == 3.0
    assert sum(again.stats.cache_hits.values()) == 1  # what was compiled again is in the cache
