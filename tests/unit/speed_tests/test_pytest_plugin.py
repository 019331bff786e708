"""The pytest plugin in sessions of its own: saving, comparing, failing, and staying out of the way."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fairlap.speed_tests.baselines import Baselines, read_baselines

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.sanitized

SLEEP = """
import time
def test_speed(fairlap):
    speed = fairlap(lambda: time.sleep({seconds}), seconds=0.05, max_slowdown="10%")
    assert speed.median_ns > 0
"""


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quicker, and the same whether the entry point is installed or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = ("-p", "fairlap.pytest_plugin", "-p", "no:cacheprovider")
    return pytester.runpytest_subprocess(*plugin, *arguments, timeout=120)


def baselines(pytester: pytest.Pytester) -> Baselines:
    return read_baselines(pytester.path / "fairlap-baseline.json")


def test_without_a_baseline_one_process_is_measured_and_nothing_is_claimed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SLEEP.format(seconds=0.001))
    result = run(pytester)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_speed: 1.* ms in 1 process, not compared (*"])
    assert baselines(pytester).tests == {}


@pytest.mark.slow
def test_a_slowdown_against_saved_baselines_fails_and_none_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=SLEEP.format(seconds=0.002))
    run(pytester, "--fairlap-save", "--fairlap-processes=4").assert_outcomes(passed=1)
    saved = baselines(pytester)
    [baseline] = saved.tests.values()
    assert [median > 2e6 for median in baseline.medians_ns] == [True] * 4
    assert saved.facts_of(baseline)["cpu model"]
    run(pytester, "--fairlap-processes=4").assert_outcomes(passed=1)
    pytester.makepyfile(test_it=SLEEP.format(seconds=0.005))
    result = run(pytester, "--fairlap-processes=4")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*TooSlow: test_it.py::test_speed: 5.* ms in 4 fresh processes, slower, *"])
    assert baselines(pytester).tests == saved.tests  # comparing saves nothing


@pytest.mark.slow
def test_a_test_that_fails_alone_is_named_with_its_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it="""
        ready = []
        def test_before(): ready.append(1)
        def test_speed(fairlap): fairlap(lambda: ready[0], seconds=0.01)
        """
    )
    result = run(pytester, "--fairlap-save", "--fairlap-processes=4")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*the test failed in a fresh process: *IndexError*"])


def test_what_the_callable_raises_fails_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_speed(fairlap): fairlap(lambda: 1 // 0, seconds=0.01)")
    run(pytester).assert_outcomes(failed=1)


@pytest.mark.slow
def test_parametrized_tests_with_options_and_several_callables_are_run_again(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--size', type=int)")
    pytester.makepyfile(
        **{
            "sub/test_it": """
            import pytest
            @pytest.mark.parametrize("kind", ["a b", "c::d"])
            def test_speed(fairlap, request, kind):
                assert request.config.getoption("--size") == 7
                fairlap(list, name="list", seconds=0.01)
                fairlap(dict, seconds=0.01)
            """
        }
    )
    node = "sub/test_it.py::test_speed[a b]"
    run(pytester, node, "--size", "7", "--fairlap-save", "--fairlap-processes=4").assert_outcomes(passed=1)
    assert sorted(baselines(pytester).tests) == [
        "sub/test_it.py::test_speed[a b] #2",
        "sub/test_it.py::test_speed[a b][list]",
    ]


@pytest.mark.parametrize(
    "arguments", [("--fairlap-baseline=old.json",), ("--fairlap-baseline=no-such-folder/new.json", "--fairlap-save")]
)
def test_a_file_that_cannot_be_read_or_saved_ends_the_session_in_one_line_before_anything_is_measured(
    pytester: pytest.Pytester, arguments: tuple[str, ...]
) -> None:
    pytester.makepyfile(
        test_it="""
        def test_speed(fairlap):
            open("measured", "w").close()
            fairlap(list, seconds=0.01)
        """
    )
    (pytester.path / "old.json").write_text('{"format": 1, "tests": {"a": {"medians_ns": [-1], "machine": ""}}}')
    result = run(pytester, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not (pytester.path / "measured").exists()
    lines = [line for line in [*result.outlines, *result.errlines] if line.startswith("ERROR")]
    assert [line.endswith("[E_BASELINE_FILE]") for line in lines] == [True]
    assert "def test_speed" not in result.stdout.str() + result.stderr.str()


def test_a_file_that_is_damaged_is_no_matter_to_a_session_without_speed_tests(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_other(): pass")
    (pytester.path / "fairlap-baseline.json").write_text("{")
    run(pytester).assert_outcomes(passed=1)


def test_too_few_processes_are_refused(pytester: pytest.Pytester) -> None:
    result = run(pytester, "--fairlap-processes=3")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.slow
def test_workers_of_a_parallel_session_measure_nothing(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(test_it="def test_speed(fairlap): assert fairlap(list).medians_ns == ()")
    run(pytester, "-p", "xdist", "-n", "1").assert_outcomes(passed=1)


def test_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, fairlap.pytest_plugin; print({'numpy', 'msgspec', 'fairlap.engine'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
