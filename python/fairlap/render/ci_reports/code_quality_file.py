"""GitLab's code quality JSON (``.codequality.json``): an issue for each slowdown and each contestant that failed."""

from __future__ import annotations

import hashlib

import msgspec

from fairlap.render.ci_reports.outcomes import JobOutcome, job_outcomes
from fairlap.results.results import Results

_SEVERITIES = {"slower": "major", "exceeded": "major", "failed": "critical"}


def encode(results: Results) -> bytes:
    """Write the issues; an empty list where all is well: GitLab then shows earlier issues as resolved."""
    issues = [_issue(each) for each in job_outcomes(results) if each.outcome in _SEVERITIES]
    return msgspec.json.format(msgspec.json.encode(issues), indent=2) + b"\n"


def _issue(found: JobOutcome) -> dict[str, object]:
    """Describe an issue, with a fingerprint that is the same in every run: GitLab sees which issues are new.

    A race is not about a line of a file; the schema wants one, so the model stands for it.
    """
    row = found.row
    same = "\n".join((found.work, row.contestant, found.outcome))
    return {
        "description": f"{found.work}: {row.contestant} is {found.outcome}: {found.text}",
        "check_name": f"fairlap {found.outcome}",
        "fingerprint": hashlib.sha256(same.encode()).hexdigest(),
        "severity": _SEVERITIES[found.outcome],
        "location": {"path": row.workload.lstrip("./") or "fairlap", "lines": {"begin": 1}},
    }
