"""Tests have the same names in every process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEST = "import pytest\n@pytest.mark.parametrize('thing', [object()], ids=str)\ndef test_it(thing): pass\n"


def test_a_name_with_the_address_of_an_object_is_refused(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert result.returncode == pytest.ExitCode.USAGE_ERROR, result.stdout + result.stderr
    assert "the address of an object is in the name of a test" in result.stdout + result.stderr
