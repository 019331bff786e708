"""Times are read from the reports that real programs wrote.

They are Google Benchmark 1.3.0 and 1.7.1, pyperf 2.10 and hyperfine 1.15. The figures expected are those that can be
read in the files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fairlap.errors import InvalidRequest
from fairlap.frameworks.programs.reported_times import BadReport, NoReport, reported_time
from fairlap.request.commands import ReportFormat, report_in

GOOGLE, AGGREGATES, OLD_GOOGLE, PYPERF, PYPERF_MEMORY, HYPERFINE = (
    (Path(__file__).parent / "reports" / f"{name}.json").read_text()
    for name in (
        "google-benchmark-1.7.1",
        "google-benchmark-1.7.1-aggregates",
        "google-benchmark-1.3.0",
        "pyperf-2.10",
        "pyperf-2.10-memory",
        "hyperfine-1.15",
    )
)

# As documented, with figures of our own: https://bheisler.github.io/criterion.rs/book/
MESSAGES = (
    '{"reason":"benchmark-complete","id":"sum/1000","typical":{"estimate":250.5,"unit":"ns"}}\n'
    '{"reason":"benchmark-complete","id":"work","typical":{"estimate":3e6,"unit":"cycles"}}\n'
    '{"reason":"group-complete","group_name":"sum","benchmarks":["sum/1000"]}\n'
)
ESTIMATES = {
    "mean": {"point_estimate": 260.0},
    "median": {"point_estimate": 255.0},
    "std_dev": {"point_estimate": 2.0},
    "slope": {"point_estimate": 250.0},
}
CRITERION = """Benchmarking sum
Benchmarking sum: Collecting 100 samples in estimated 5.0000 s (1 iterations)
sum                     time:   [249.10 ns 250.50 ns 252.00 ns]
                        thrpt:  [3.1 MiB/s 3.2 MiB/s 3.3 MiB/s]
                        change: [-38.292% -37.342% -36.524%] (p = 0.00 < 0.05)
a group with a long name/copy
                        time:   [1.0000 \u00b5s 1.5000 \u00b5s 2.0000 \u00b5s]
instructions            time:   [100 cycles 110 cycles 120 cycles]
"""


@pytest.mark.parametrize(
    ("text", "format_", "name", "time_ns"),
    [
        (GOOGLE, "google-benchmark", "sum", 250.5),
        (GOOGLE, "google-benchmark", "copy/min_time:0.020", 20.0),  # in microseconds there
        (AGGREGATES, "google-benchmark", "", 250.5),
        (OLD_GOOGLE, "google-benchmark", "", 420.0),
        (PYPERF, "pyperf", "sum", 18_400.0),
        (PYPERF, "pyperf", "half", 8_670.0),
        (HYPERFINE, "hyperfine", "sleep 0.01", 10.95e6),
        (MESSAGES, "criterion", "sum/1000", 250.5),
        (MESSAGES, "criterion", "sum", 250.5),
        (json.dumps(ESTIMATES), "criterion", "", 250.0),
        (json.dumps({**ESTIMATES, "slope": None}), "criterion", "", 260.0),
        (CRITERION, "criterion", "sum", 250.5),
        (CRITERION, "criterion", "a group with a long name/copy", 1500.0),
        ("warm-up 3 s\nstep: 1,250.5 us\nPASS 3 of 4\n", "number", "", 1_250_500.0),
        ("step 12ms\nwhole 2e-3 seconds\n", "number", "step", 12e6),
        ("BenchmarkSum-8 \t 100\t 1234 ns/op\nok pkg 1.5s\n", "number", "BenchmarkSum", 1234.0),
        ("1000 loops, best of 5: 4.11 nsec per loop\n", "number", "", 4.11),
    ],
)
def test_the_time_of_a_benchmark_is_the_median_of_its_repetitions(
    text: str, format_: ReportFormat, name: str, time_ns: float
) -> None:
    measured = text in (GOOGLE, AGGREGATES, OLD_GOOGLE, PYPERF, HYPERFINE)
    assert reported_time(text, format_, name)[1] == pytest.approx(time_ns, rel=0.05 if measured else 1e-9)


def test_a_report_is_found_between_other_output() -> None:
    text = "{not json}\nstarting\n" + GOOGLE + "done {1}\n"
    assert reported_time(text, "google-benchmark", "sum") == reported_time(GOOGLE, "google-benchmark", "sum")


def test_the_repetitions_and_their_median_aggregate_agree() -> None:
    entries = json.loads(GOOGLE)["benchmarks"]
    [median] = [each["real_time"] for each in entries if each["name"] == "sum/min_time:0.020_median"]
    name, time_ns = reported_time(GOOGLE, "google-benchmark", "sum")
    assert name == "sum/min_time:0.020"
    assert time_ns == pytest.approx(median)


@pytest.mark.parametrize(
    ("text", "format_", "name", "mentioned"),
    [
        (GOOGLE, "google-benchmark", "", "sum/min_time:0.020, copy/min_time:0.020, broken"),
        (GOOGLE, "google-benchmark", "other", "sum/min_time:0.020"),
        (GOOGLE, "google-benchmark", "broken", "no input"),
        (PYPERF, "pyperf", "", "sum, half"),
        (PYPERF_MEMORY, "pyperf", "", "byte"),
        (HYPERFINE, "hyperfine", "", "sleep 0.02, sleep 0.01"),
        (MESSAGES, "criterion", "work", "cycles"),
        (CRITERION, "criterion", "instructions", "cycles"),
        (json.dumps({"mean": {"point_estimate": -0.1}, "median": {}}), "criterion", "", "new/estimates.json"),
        ('{"context": {}, "benchmarks": [{"name": 3}]}', "google-benchmark", "", "name"),
        ('{"context": {}, "benchmarks": [{"name": "x", "real_time": 0.0}]}', "google-benchmark", "", "above 0"),
        ('{"context": {}, "benchmarks": [{"name": "x", "real_time": 1e999}]}', "google-benchmark", "", "above 0"),
        ('{"context": {}, "benchmarks": [{"name": "x", "real_time": 1.0, "time_unit": "h"}]}', "google-benchmark", "",
         "h"),
        ('{"context": {}, "benchmarks": [{"name": "x_BigO", "run_name": "x", "run_type": "aggregate"}]}',
         "google-benchmark", "", "no time"),
        ('{"results": [{"command": "x"}]}', "hyperfine", "", "no time"),
        ("0 ms", "number", "", "above 0"),
    ],
)  # fmt: skip
def test_what_has_no_time_is_refused_with_the_reason(
    text: str, format_: ReportFormat, name: str, mentioned: str
) -> None:
    with pytest.raises(BadReport) as raised:
        reported_time(text, format_, name)
    assert raised.value.code == "E_REPORT"
    assert mentioned in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("format_", ["google-benchmark", "pyperf", "hyperfine", "criterion", "number"])
@pytest.mark.parametrize("text", ["", "\0\ufffd", "{", "{}", "{" * 200_000, '{"a":' * 5000, "rate 5 MB/s, 12 items\n"])
def test_a_text_of_another_format_is_no_report(text: str, format_: ReportFormat) -> None:
    with pytest.raises(NoReport):
        reported_time(text, format_)


def test_reports_of_one_tool_are_not_read_as_those_of_another() -> None:
    reports: dict[ReportFormat, str] = {
        "google-benchmark": GOOGLE, "pyperf": PYPERF, "hyperfine": HYPERFINE, "criterion": CRITERION,
    }  # fmt: skip
    for format_ in reports:
        for other, text in reports.items():
            if other != format_:
                with pytest.raises(NoReport):
                    reported_time(text, format_, "sum")


@pytest.mark.parametrize("text", ["", "googlebenchmark", "pyperf:", "pyperf: ", "hyperfine,pyperf"])
def test_a_format_that_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        report_in(text)
    assert raised.value.code == "E_REPORT"


def test_a_benchmark_may_have_colons_in_its_name() -> None:
    assert report_in("google-benchmark:sum/min_time:0.020") == ("google-benchmark", "sum/min_time:0.020")
