"""Which operators account for the difference between two runs."""

from __future__ import annotations

from fairlap.history.between_runs import compare_saved_runs
from fairlap.history.operators import OperatorsCompared, compare_operators
from fairlap.history.text import operators_text
from fairlap.race.around_blocks.profile_result import ProfileResult
from fairlap.race.run import Run
from fairlap.results.columns.operators import OVERHEAD
from fairlap.scenarios.untimed.profile_messages import Operator, Profile
from saved_runs import WORK, saved_run

NOISE = (-1.0, 0.0, 1.0)


def profiled(
    call_ns: float, times_ns: dict[str, float], *, noise: tuple[float, ...] = NOISE, name: str = "torch"
) -> Run:
    run = saved_run({name: call_ns})
    for number, shift in enumerate(noise):
        operators = tuple(Operator(each, "", 1.0, ns + shift) for each, ns in times_ns.items())
        profile = Profile("some profiler", 20, call_ns + shift, call_ns, operators)
        run.profiles.append(ProfileResult(number, name, WORK.id, profile=profile))
    return run


def compared(before: Run, after: Run, margin: float = 0.02) -> list[OperatorsCompared]:
    return compare_operators(before, after, compare_saved_runs(before, after), margin=margin)


def test_the_operator_that_changed_most_is_named_first_with_its_share_and_interval() -> None:
    before = profiled(1000, {"mm": 500, "conv": 300, "relu": 100})
    after = profiled(1400, {"mm": 800, "conv": 360, "relu": 100})
    [found] = compared(before, after)
    assert [change.name for change in found.changes] == ["mm", "conv", OVERHEAD]
    first = found.changes[0]
    assert (first.difference_ns, first.share) == (300, 0.75)
    assert first.low_ns is not None
    assert first.high_ns is not None
    assert 297 < first.low_ns < 300 < first.high_ns < 303
    assert found.calls_ns == (1000, 1400)
    assert found.processes == (3, 3)


def test_an_operator_that_only_one_run_has_counts_whole() -> None:
    [found] = compared(profiled(1000, {"mm": 900, "old": 50}), profiled(1100, {"mm": 900, "new": 150}))
    changes = {change.name: change for change in found.changes}
    assert (changes["new"].before_ns, changes["new"].difference_ns) == (0, 150)
    assert (changes["old"].after_ns, changes["old"].difference_ns) == (0, -50)
    assert "mm" not in changes
    assert operators_text(found).count("; only") == 2


def test_a_change_whose_interval_includes_0_is_not_listed() -> None:
    wild = (-200.0, 0.0, 200.0)
    [found] = compared(profiled(1000, {"mm": 500}, noise=wild), profiled(1050, {"mm": 550}, noise=wild))
    assert found.changes == ()
    assert found.others_ns != 0


def test_a_change_below_the_margin_is_not_listed() -> None:
    before, after = profiled(1000, {"mm": 500, "relu": 100}), profiled(1110, {"mm": 600, "relu": 110})
    assert [each.name for each in compared(before, after)[0].changes] == ["mm"]
    assert [each.name for each in compared(before, after, margin=0.005)[0].changes] == ["mm", "relu"]


def test_with_one_profile_process_there_is_no_interval_and_nothing_is_claimed() -> None:
    [found] = compared(profiled(1000, {"mm": 500}, noise=(0.0,)), profiled(2000, {"mm": 1500}, noise=(0.0,)))
    assert found.changes == ()


def test_runs_of_which_one_was_not_profiled_have_no_operators_to_compare() -> None:
    assert compared(saved_run({"torch": 1000}), profiled(1000, {"mm": 500})) == []


def test_versions_are_matched_as_in_the_rest_of_the_comparison() -> None:
    before = profiled(1000, {"mm": 500}, name="torch==2.12.0")
    after = profiled(1500, {"mm": 1000}, name="torch==2.13.0")
    [found] = compared(before, after)
    assert (found.before, found.after, found.changes[0].name) == ("torch==2.12.0", "torch==2.13.0", "mm")
