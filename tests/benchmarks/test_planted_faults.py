"""Every planted fault has its place in the code, and the tests that are to catch it are there."""

import pytest

from benchmarks.planted_faults import FAULTS, main


def test_every_fault_is_placed_once_and_its_tests_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0, capsys.readouterr().err
    assert len(capsys.readouterr().out.splitlines()) == len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_name_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no-such-fault"]) == 2
    assert "no-such-fault" in capsys.readouterr().err
