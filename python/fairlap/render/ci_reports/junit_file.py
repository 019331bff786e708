"""JUnit XML (``.junit.xml``): a test case for each row, which fails where it is slower than the named baseline.

A failure is a slowdown or a required quantity that is exceeded, an error is a contestant that failed, and what is
inconclusive or cannot run is skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

from fairlap.render.ci_reports.outcomes import JobOutcome, Outcome, job_outcomes
from fairlap.results.results import Results
from fairlap.results.row import judged_time_ns

_ELEMENTS: dict[Outcome, str] = {
    "slower": "failure",
    "exceeded": "failure",
    "failed": "error",
    "inconclusive": "skipped",
    "unsupported": "skipped",
}
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def encode(results: Results) -> bytes:
    suites: dict[str, list[JobOutcome]] = {}
    for each in job_outcomes(results):
        suites.setdefault(each.work, []).append(each)
    found = [each for suite in suites.values() for each in suite]
    root = ElementTree.Element("testsuites", {"name": "fairlap", **_counts(found)})
    for work, outcomes in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": _text(work), **_counts(outcomes)})
        if results.run.began_at:
            suite.set("timestamp", results.run.began_at[:19])  # the schema has no time zones
        for each in outcomes:
            suite.append(_case(each))
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(found: JobOutcome) -> ElementTree.Element:
    row = found.row
    case = ElementTree.Element(
        "testcase", {"classname": _text(found.work), "name": _text(row.contestant), "time": _seconds(found)}
    )
    element = _ELEMENTS.get(found.outcome)
    if element is not None:
        attributes = {"message": _text(found.text)}
        if element != "skipped":
            attributes["type"] = row.code or found.outcome
        ElementTree.SubElement(case, element, attributes).text = _text(f"{found.outcome}: {found.text}")
    elif found.text:
        ElementTree.SubElement(case, "system-out").text = _text(found.text)
    return case


def _counts(outcomes: list[JobOutcome]) -> dict[str, str]:
    counted = Counter(_ELEMENTS.get(each.outcome, "") for each in outcomes)
    return {
        "tests": str(len(outcomes)),
        "failures": str(counted["failure"]),
        "errors": str(counted["error"]),
        "skipped": str(counted["skipped"]),
    }


def _seconds(found: JobOutcome) -> str:
    """Format what it is ranked by as a time, which readers chart; 0 without one, since the schema wants a number."""
    judged = judged_time_ns(found.row)
    return "0" if judged is None else f"{judged.value / 1e9:.9f}"


def _text(text: str) -> str:
    """Without characters that XML cannot hold, not even escaped."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
