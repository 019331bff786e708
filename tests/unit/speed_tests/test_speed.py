"""A callable of a test against its baseline: what is claimed, what fails, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import pytest
from fairlap.errors import InvalidRequest
from fairlap.speed_tests.baselines import Baselines, read_baselines, write_baselines
from fairlap.speed_tests.fresh_processes import FreshProcesses, Measured, TestFailed, report
from fairlap.speed_tests.speed import Session, SpeedTest, TooSlow

KEY = "test_it.py::test_speed"


class FakeProcesses:
    """Fresh processes whose medians are known."""

    def __init__(self, medians_ns: dict[str, tuple[float, ...]]) -> None:
        self._medians_ns, self.runs = medians_ns, 0

    def medians_ns(self, node_id: str) -> dict[str, tuple[float, ...]]:
        self.runs += 1
        return self._medians_ns


def around(middle_ns: float, count: int = 6, spread: float = 0.002, seed: int = 0) -> tuple[float, ...]:
    rng = random.Random(seed)
    return tuple(middle_ns * rng.lognormvariate(0, spread) for _ in range(count))


def session(
    file: Path, before: tuple[float, ...] | None, after: tuple[float, ...], *, facts: dict[str, str] | None = None,
    strict: bool = False, saves: bool = False,
) -> Session:  # fmt: skip
    made = Session(file, cast(FreshProcesses, FakeProcesses({KEY: after})), saves, strict)
    if before is not None:
        saved = Baselines()
        saved.save(KEY, before, made.facts if facts is None else facts)
        write_baselines(file, saved)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "baseline.json"


@pytest.mark.parametrize(
    ("after_ns", "allowed", "change"),
    [(1e6, "10%", "equivalent"), (0.7e6, "10%", "faster"), (1.06e6, "30%", "slower")],
)
def test_what_is_not_slower_than_allowed_passes(file: Path, after_ns: float, allowed: str, change: str) -> None:
    test = SpeedTest(session(file, around(1e6), around(after_ns, seed=1)), KEY)
    assert test(list, max_slowdown=allowed).change == change


def test_a_slowdown_that_is_shown_fails_with_its_interval(file: Path) -> None:
    used = session(file, around(1e6), around(1.3e6, seed=1))
    with pytest.raises(TooSlow):
        SpeedTest(used, KEY)(list, max_slowdown="5%")
    [speed] = used.speeds
    assert (speed.change, len(speed.medians_ns)) == ("slower", 6)
    assert speed.low is not None
    assert speed.high is not None
    assert 1.05 < speed.low < 1.3 < speed.high


def test_what_is_inconclusive_fails_only_when_strict(file: Path) -> None:
    medians = around(1.05e6, spread=0.1, seed=1)
    assert SpeedTest(session(file, around(1e6, spread=0.1), medians), KEY)(list).change == "inconclusive"
    with pytest.raises(TooSlow):
        SpeedTest(session(file, around(1e6, spread=0.1), medians, strict=True), KEY)(list)


def test_a_baseline_of_another_machine_is_not_comparable(file: Path) -> None:
    used = session(file, around(1e6), around(9e6), facts={"cpu model": "another", "cores": "2"})
    speed = SpeedTest(used, KEY)(list)
    assert (speed.change, speed.ratio) == ("not comparable", None)


def test_a_baseline_of_one_process_has_no_verdict(file: Path) -> None:
    assert SpeedTest(session(file, (1e6,), around(9e6)), KEY)(list).change == "not comparable"


def test_without_a_baseline_nothing_is_compared(file: Path) -> None:
    speed = SpeedTest(session(file, None, ()), KEY)(list, seconds="20ms")
    assert (speed.change, len(speed.medians_ns)) == ("not compared", 1)


def test_saving_keeps_other_baselines_and_drops_machines_without_any(file: Path) -> None:
    old = Baselines()
    old.save("other", (1.0, 2.0), {"cpu model": "kept"})
    old.save(KEY, (1.0, 2.0), {"cpu model": "gone"})
    write_baselines(file, old)
    used = session(file, None, around(1e6), saves=True)
    SpeedTest(used, KEY)(list)
    assert used.save() == 1
    found = read_baselines(file)
    assert found.tests["other"].medians_ns == (1.0, 2.0)
    assert found.tests[KEY].medians_ns == around(1e6)
    assert len(found.machines) == 2
    assert {"cpu model": "gone"} not in found.machines.values()


def test_several_callables_of_a_test_are_run_again_once(file: Path) -> None:
    medians = {KEY: around(1.0), f"{KEY} #2": around(2.0), f"{KEY}[named]": around(3.0)}
    processes = FakeProcesses(medians)
    used = Session(file, cast(FreshProcesses, processes), saves=True)
    test = SpeedTest(used, KEY)
    assert [test(list).medians_ns, test(list).medians_ns, test(list, name="named").medians_ns] == list(medians.values())
    assert processes.runs == 1
    with pytest.raises(TestFailed):
        test(list, name="only here")
    with pytest.raises(InvalidRequest):
        test(list, name="named")


@pytest.mark.parametrize(
    "options", [{"max_slowdown": "0"}, {"max_slowdown": "-5%"}, {"seconds": 0}, {"seconds": "soon"}]
)
def test_a_wrong_option_is_refused(file: Path, options: dict[str, str | float]) -> None:
    with pytest.raises(InvalidRequest):
        SpeedTest(session(file, None, ()), KEY)(list, **options)  # type: ignore[arg-type]


def test_what_is_no_callable_is_refused(file: Path) -> None:
    with pytest.raises(InvalidRequest):
        SpeedTest(session(file, None, ()), KEY)(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"format": 9}', '{"tests": {"a": 1}}', '{"tests": {"a": {"medians_ns": [0], "machine": ""}}}'],
)
def test_a_file_that_holds_no_baselines_is_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(InvalidRequest) as raised:
        read_baselines(file)
    assert raised.value.code == "E_BASELINE_FILE"
    assert str(file) in str(raised.value)


def test_a_fresh_process_reports_what_it_measured(file: Path) -> None:
    test = SpeedTest(session(file, None, ()), KEY, report_to=file)
    test(list, seconds=0.01)
    test(dict, seconds=0.01, name="x")
    assert [line.split('"')[3] for line in file.read_text().splitlines()] == [KEY, f"{KEY}[x]"]


@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("echo 'E   assert 1 == 2'; exit 1", "assert 1 == 2"),
        ("exit 5", "no output"),
        ("kill -9 $$", "no output"),
        ("echo rubbish > $FAIRLAP_SPEED_REPORT", "cannot be read"),
        ("sleep 60", "within 0.5 s"),
    ],
)
def test_a_fresh_process_that_fails_is_one_line(tmp_path: Path, script: str, word: str) -> None:
    processes = FreshProcesses(("sh", "-c", script), tmp_path, tmp_path, 4, 0.5)
    with pytest.raises(TestFailed) as raised:
        processes.medians_ns("a::b")
    assert word in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.sanitized
def test_processes_that_measure_different_things_are_refused(tmp_path: Path) -> None:
    line = '{"key": "k", "median_ns": 1.0}'
    script = f"test -e once || echo '{line}' > $FAIRLAP_SPEED_REPORT; touch once"
    with pytest.raises(TestFailed):
        FreshProcesses(("sh", "-c", script), tmp_path, tmp_path, 2, 5.0).medians_ns("a::b")
    report(Measured("k", 1.0), tmp_path / "report")
    assert (tmp_path / "report").read_text().startswith('{"key":"k"')


def test_baselines_are_written_sorted(file: Path) -> None:
    baselines = Baselines()
    for test in ("b", "a"):
        baselines.save(test, (1.0, 2.0), {"cpu model": test})
    write_baselines(file, baselines)
    assert list(read_baselines(file).tests) == ["a", "b"]
    assert file.read_text().endswith("}\n")
