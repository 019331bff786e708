"""Requirements over the columns of a row: parsed with units, and met by the whole interval or not at all."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.task_metrics import Score
from fairlap.race.planning.plan_required import changes_and_limits
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.results.decision.requirements import Qualification, qualification, requirements_of
from fairlap.results.prices import price_given
from fairlap.results.results import results_of
from fairlap.results.row import Row
from fairlap.verdict import changes_among
from hypothesis import given, settings
from hypothesis import strategies as st
from runs_for_rows import a_run, crashed

ROWS = {row.contestant: row for row in results_of(a_run(), price=price_given("1EUR/h")).rows}


def with_latency(value: float, low: float | None, high: float | None) -> Row:
    return msgspec.structs.replace(ROWS["torch"], latency_p99_ns=Estimate(value, low, high))


def judged(row: Row, text: str) -> Qualification:
    return qualification(row, requirements_of(text))


def with_scores(**values: float) -> Row:
    scores = {name: Score(value, value - 0.02, value + 0.02, "Wilson", 100) for name, value in values.items()}
    return msgspec.structs.replace(ROWS["torch"], scores=scores)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("top1>=90%", "yes"),
        ("top1>=0.94", "unknown"),
        ("top1 >= 98%", "no"),
        ("top1>=0.9, mse<3", "yes"),
        ("mse<2.505", "unknown"),
        ("top1:logits>=90%", "unknown"),  # the score is of another output
        ("f1>=0.1", "unknown"),  # it was not asked for
    ],
)
def test_the_whole_interval_of_a_score_has_to_meet_its_limit(text: str, status: str) -> None:
    assert judged(with_scores(top1=0.95, mse=2.5), text).status == status


def test_a_score_may_be_bounded_below_0_and_is_no_change_from_a_baseline() -> None:
    assert changes_and_limits("mcc>=-0.1,memory_peak<=+2%")[1] == "mcc>=-0.1"
    assert [each.quantity for each in changes_and_limits("mcc>=-0.1,memory_peak<=-2%")[0]] == ["memory_peak"]
    assert [each.limit for each in requirements_of("mcc>=-0.1, pearson>-5%")] == [-0.1, -0.05]
    assert judged(with_scores(mcc=-0.05), "mcc>=-0.1").status == "yes"
    assert judged(with_scores(mcc=-0.2), "mcc>=-0.1").status == "no"


@pytest.mark.parametrize("text", ["top1>=90GB", "mse<5%", "top1>=x"])
def test_a_score_takes_a_number_and_a_share_also_percent(text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        requirements_of(text)
    assert error.value.code == "E_REQUIRE"


@pytest.mark.parametrize(
    ("text", "column", "limit"),
    [
        ("latency_p99<20ms", "latency_p99_ns", 20e6),
        ("latency < 1.5us", "latency_p50_ns", 1500),
        ("latency_p99_ns<=20ns", "latency_p99_ns", 20),
        ("import<2s", "import_s", 2),
        ("time_to_first_inference<500ms", "time_to_first_inference_s", 0.5),
        ("memory<4GB", "peak_memory_bytes", 4e9),
        ("memory_peak<=4GB", "peak_memory_bytes", 4e9),  # as gates call it
        ("compile_time<2s", "compile_cold_s", 2),
        ("min_memory<4GiB", "min_memory_bytes", 4 * 1024**3),
        ("energy<2mJ", "energy_per_item_j", 0.002),
        ("energy<1Wh", "energy_per_item_j", 3600),
        ("power<1.5kW", "mean_power_w", 1500),
        ("throughput>1000/s", "throughput_per_s", 1000),
        ("throughput>=1e3", "throughput_per_s", 1000),
        ("accuracy>75%", "accuracy", 0.75),
        ("error<0.1%", "error_relative", 0.001),
        ("cost<0.02", "cost_per_1000_items", 0.02),
        ("cost<0.02 eur", "cost_per_1000_items", 0.02),
        ("largest_batch>=64", "largest_batch", 64),
    ],
)
def test_a_requirement_names_a_column_and_has_its_limit_in_the_unit_of_the_column(
    text: str, column: str, limit: float
) -> None:
    [found] = requirements_of(text)
    assert found.column == column
    assert found.limit == pytest.approx(limit)
    assert found.text == text


@pytest.mark.parametrize(
    "text",
    [
        "", ",", "latency", "latency<", "latency<20", "latency<20MB", "latency<-1ms", "latency<1e999ms", "latnecy<1ms",
        "verdict<1", "contestant<1", "memory<4", "memory=4GB", "cost<0.02EURO", "latency<1ms<2ms", "latency<nanms",
        "throughput>5ms", "absent<1", "latency<5ms,,memory<1GB", "latency<5ms,", ",latency<5ms", "latency<5ms, ,cost<1",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_code(text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        requirements_of(text)
    assert error.value.code == "E_REQUIRE"


@pytest.mark.parametrize("text", ["memory_peak<=2", "memory_peak<=2%", "latency<20"])
def test_a_limit_without_its_unit_is_refused_with_the_units_and_the_change_that_may_be_meant(text: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        requirements_of(text)
    name = text.partition("<")[0]
    assert f"{name}<" in str(error.value).partition(";")[2]
    assert ("GiB" if "memory" in name else "ms") in str(error.value)
    [change] = changes_among(str(error.value).rpartition(" ")[2])[0]
    assert (change.quantity, change.change) == (name, 0.02)


@settings(max_examples=40)
@given(st.text(alphabet="latency_p99memory<>=,. 0123456789msGB%e-µ", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert requirements_of(text)


@pytest.mark.parametrize(
    ("figure", "status"),
    [
        ((10e6, 9e6, 11e6), "yes"),
        ((20e6, 19e6, 21e6), "unknown"),  # around the limit
        ((19e6, 18e6, 20e6), "unknown"),  # its end is the limit
        ((21e6, 20e6, 22e6), "no"),
        ((30e6, 29e6, 31e6), "no"),
        ((10e6, None, None), "unknown"),  # an estimate without an interval
    ],
)
def test_the_whole_interval_decides(figure: tuple[float, float | None, float | None], status: str) -> None:
    assert judged(with_latency(*figure), "latency_p99<20ms").status == status


def test_an_absent_figure_is_unknown_with_the_reason_of_the_row() -> None:
    found = judged(ROWS["torch"], "energy<1J, memory<4GB")
    assert found.status == "unknown"
    assert "no source of power was read" in found.reasons["energy<1J"]
    assert list(found.reasons) == ["energy<1J"]


def test_one_requirement_that_is_not_met_outweighs_an_unknown_one() -> None:
    found = judged(ROWS["torch"], "energy<1J, latency<1ms")
    assert found.status == "no"
    assert list(found.reasons) == ["energy<1J", "latency<1ms"]


def test_a_limit_in_another_currency_is_unknown_and_never_converted() -> None:
    assert judged(ROWS["torch"], "cost<1").status == "yes"
    assert judged(ROWS["torch"], "cost<1EUR").status == "yes"
    assert judged(ROWS["torch"], "cost<1USD").status == "unknown"


def test_a_contestant_that_did_other_work_or_none_never_qualifies() -> None:
    run = a_run()
    for process in run.processes:
        if process.contestant == "torch":
            crashed(process)
    run.processes[0].outcome = "disqualified"
    for row in results_of(run).rows:
        out = row.processes_finished == 0 or row.outcome == "disqualified"
        assert judged(row, "memory<4GB").status == ("no" if out else "yes")
    assert any(row.outcome == "disqualified" or row.processes_finished == 0 for row in results_of(run).rows)


@given(st.floats(1, 1e9), st.floats(0, 1e8), st.sampled_from(["<", "<=", ">", ">="]), st.integers(1, 1000))
def test_what_is_certain_holds_for_every_value_of_the_interval(low: float, width: float, sign: str, limit: int) -> None:
    row = with_latency(low + width / 2, low, low + width)
    status = judged(row, f"latency_p99{sign}{limit}ms").status
    compare = {"<": float.__lt__, "<=": float.__le__, ">": float.__gt__, ">=": float.__ge__}[sign]
    met = [compare(low + width * part / 10, limit * 1e6) for part in range(11)]
    assert status == "unknown" or all(met) == (status == "yes")
    if status == "no":
        assert not any(met)
