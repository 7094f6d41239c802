"""`make portable`: which settings a processor runs, and that they have an effect."""

import portable
import pytest
from portable import NUMERICAL, TESTS, Processor, Setting, few_settings, marked_files, settings

OLD = Processor(("AVX2", "AVX512F", "AVX512_SKX"), frozenset({"SSE42", "AVX"}), ("Sandybridge",))
NEW = Processor(("X86_V3", "X86_V4", "AVX512_ICL"), frozenset({"AVX", "AVX2", "FMA3", "AVX512_SKX", "X86_V3", "X86_V4"}), ("SkylakeX",))
OTHER = Processor((), frozenset({"NEON"}), ())


def test_what_a_processor_cannot_run_is_skipped_by_name() -> None:
    for chosen in (settings, few_settings):
        assert [setting.name for setting in chosen(OLD) if not setting.impossible] == ["OpenBLAS Sandybridge"]
        assert all(setting.impossible for setting in chosen(OTHER))
        assert not any(setting.impossible for setting in chosen(NEW))
    assert next(setting.impossible for setting in settings(OLD) if "SkylakeX" in setting.name) == "this processor has no AVX512_SKX"


def test_two_settings_change_all_that_can_be_changed_and_one_without_effect_is_a_failure() -> None:
    first, second = few_settings(NEW)
    assert first.environment == {"OPENBLAS_CORETYPE": "Haswell"}
    assert second.environment == {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}
    assert "SkylakeX, not Haswell" in first.complaint(NEW)
    assert "SkylakeX, not Sandybridge" in second.complaint(NEW)
    assert "X86_V3, X86_V4" in second.complaint(Processor(NEW.dispatched, NEW.features, ("Sandybridge",)))


def test_here_every_setting_has_an_effect() -> None:
    possible = [setting for setting in few_settings(Processor.seen_with({})) if not setting.impossible]
    if not possible:
        pytest.skip("neither OpenBLAS nor NumPy can be set on this processor")
    assert possible[-1].complaint(Processor.seen_with(possible[-1].environment)) == ""


def test_what_make_test_has_run_is_not_run_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    here = Processor(("X86_V3",), frozenset({"AVX", "AVX2", "FMA3", "X86_V3"}), ("Haswell",))
    older, ran = Processor(here.dispatched, frozenset({"AVX"}), ("Sandybridge",)), list[str]()
    monkeypatch.setattr(Processor, "seen_with", lambda environment: older if "Sandybridge" in environment.values() else here)

    def tested(setting: Setting, tests: list[str]) -> bool:
        ran.append(setting.name)
        return True

    monkeypatch.setattr(portable, "_tested", tested)
    assert portable.main([]) == 0
    assert capsys.readouterr().out == "OpenBLAS Haswell: skipped, the same instructions as `make test`\n"
    assert ran == ["OpenBLAS Sandybridge, NumPy without AVX2"]


def test_the_numerical_tests_are_there_and_those_with_the_marker_among_them() -> None:
    assert [path for path in NUMERICAL if not (TESTS / path).exists()] == []
    assert len(marked := marked_files()) > 10
    assert [file for file in marked if not any((TESTS / file).is_relative_to(TESTS / path) for path in NUMERICAL)] == []
