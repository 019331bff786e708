"""Reports for CI systems are read by the parsers that people use, and say what the gate says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import refusal
from fairlap.history.gate import Status
from fairlap.render.ci_reports import code_quality_file, junit_file, metrics_file
from fairlap.render.ci_reports.outcomes import job_outcomes
from fairlap.render.outputs import FORMATS, UnknownFormat, format_of, write
from fairlap.results.results import Results, results_of
from runs_to_show import HOSTILE, run_of
from saved_runs import saved_run


def results(
    medians_ns: dict[str, float], *, max_slowdown: float = 0.02, blocks: int = 12, baseline: str = "base"
) -> Results:
    return results_of(saved_run(medians_ns, blocks=blocks), "r", baseline=baseline, max_slowdown=max_slowdown)


def troubled() -> Results:
    """One of each outcome."""
    run = saved_run({"base": 1e6, "slow": 1.3e6, "same": 1e6, "wrong": 1e6, "absent": 1e6})
    for process in run.processes:
        if process.contestant == "wrong" and process.block == 0:
            process.outcome, process.code, process.message = "disqualified", "E_OUTPUT", "logits \x00 differs\x1b[0m"
        if process.contestant == "absent":
            process.outcome, process.code, process.message = "not_installed", "E_NOT_INSTALLED", "no package"
            process.timings = {}
    return results_of(run, "r", baseline="base")


OUTCOMES = {"base": "passed", "slow": "slower", "same": "passed", "wrong": "failed", "absent": "unsupported"}


def test_each_row_has_an_outcome() -> None:
    assert {each.row.contestant: each.outcome for each in job_outcomes(troubled())} == OUTCOMES


@pytest.mark.parametrize(
    ("change_ns", "max_slowdown", "blocks", "outcome", "status"),
    [
        (1.2e6, 0.02, 12, "slower", Status.SLOWER),
        (1.2e6, 0.3, 12, "passed", Status.PASSED),
        (0.8e6, 0.02, 12, "passed", Status.PASSED),
        (1.2e6, 0.02, 4, "inconclusive", Status.INCONCLUSIVE),
    ],
)
def test_an_outcome_is_what_the_gate_finds(
    change_ns: float, max_slowdown: float, blocks: int, outcome: str, status: Status
) -> None:
    shown = results({"base": 1e6, "change": change_ns}, max_slowdown=max_slowdown, blocks=blocks)
    [found] = shown.findings_against("base", max_slowdown=max_slowdown)
    assert found.status is status
    assert {each.row.contestant: each.outcome for each in job_outcomes(shown)}["change"] == outcome


def test_without_a_named_baseline_no_contestant_fails_for_being_slower() -> None:
    shown = results({"base": 1e6, "change": 1.2e6}, baseline="")
    assert {each.outcome for each in job_outcomes(shown)} == {"passed"}


def test_junitparser_reads_the_outcomes(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser", reason="`make test` installs it and runs this")
    write(tmp_path / "result.junit.xml", troubled())
    root = junitparser.JUnitXml.fromfile(str(tmp_path / "result.junit.xml"))
    [suite] = root
    kinds = {case.name: [type(each).__name__ for each in case.result] for case in suite}
    assert kinds == {"base": [], "slow": ["Failure"], "same": [], "wrong": ["Error"], "absent": ["Skipped"]}
    assert (root.tests, root.failures, root.errors, root.skipped) == (5, 1, 1, 1)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (5, 1, 1, 1)
    [wrong] = [case for case in suite if case.name == "wrong"]
    assert wrong.result[0].type == "E_OUTPUT"
    [base] = [case for case in suite if case.name == "base"]
    assert math.isclose(base.time, 1e-3, rel_tol=0.01)


ATTRIBUTES = {  # of the schema that Jenkins publishes
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
    "testcase": {"name", "classname", "time", "assertions", "status"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


@pytest.mark.parametrize("shown", [troubled(), results_of(run_of(HOSTILE), "r", baseline=HOSTILE[0])])
def test_junit_has_only_what_its_schema_allows(shown: Results) -> None:
    root = ElementTree.fromstring(junit_file.encode(shown))
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    assert len(root.findall(".//testcase")) == len(shown.rows)
    names = {case.get("name") for case in root.iter("testcase")}
    assert names == {row.contestant for row in shown.rows}


@pytest.mark.parametrize("shown", [troubled(), results_of(run_of(HOSTILE), "r")])
def test_prometheus_reads_the_metrics(shown: Results) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="the extra watch is not installed")
    text = metrics_file.encode(shown.rows).decode()
    families = {family.name: family.samples for family in parser.text_string_to_metric_families(text)}
    medians = [each for each in families["fairlap_call_seconds"] if each.labels["bound"] == "median"]
    timed = [row for row in shown.rows if row.latency_p50_ns is not None and row.latency_p50_ns.value is not None]
    assert len(medians) == len(timed)
    for row in timed:
        [own] = [
            each
            for each in medians
            if each.labels["contestant"] == row.contestant and each.labels["work"].endswith(f"batch {row.batch}")
        ]
        assert row.latency_p50_ns is not None
        assert own.value == row.latency_p50_ns.value * 1e-9


def test_code_quality_has_what_gitlab_requires(tmp_path: Path) -> None:
    write(tmp_path / "issues.codequality.json", troubled())
    issues = json.loads((tmp_path / "issues.codequality.json").read_text())
    assert {(each["check_name"], each["severity"]) for each in issues} == {
        ("fairlap slower", "major"),
        ("fairlap failed", "critical"),
    }
    for issue in issues:
        assert set(issue) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["location"] == {"path": "mlp", "lines": {"begin": 1}}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert json.loads(code_quality_file.encode(troubled())) == issues  # the same in the next run
    assert json.loads(code_quality_file.encode(results({"base": 1e6, "change": 1e6}))) == []


@pytest.mark.parametrize("suffix", [".junit.xml", ".metrics.txt", ".codequality.json"])
def test_the_longest_suffix_decides(suffix: str) -> None:
    assert format_of(Path(f"a.b{suffix.upper()}")) is FORMATS[suffix]
    assert format_of(Path("a.json")) is FORMATS[".json"]
    with pytest.raises(UnknownFormat):
        format_of(Path(f"a{suffix}"), {".json": FORMATS[".json"]})
    for name in (suffix, "a.xml", "a.txt", "junit.xml"):
        with pytest.raises(UnknownFormat):
            format_of(Path(name))


def test_a_command_that_writes_json_alone_refuses_the_json_of_others(tmp_path: Path) -> None:
    assert refusal("floor", "-o", tmp_path / "a.codequality.json").code == "E_OUTPUT_FORMAT"
