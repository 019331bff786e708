"""A bisection for a terminal: the answer, the step, and a line for each commit or release that was tried."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.bisection.bisection import Bisection, CommitOf, Ratio, TriedCommit
from fairlap.render.encoders.text import aligned

_SHORT = 10
_MOST_SUBJECT = 50


def text_of(found: Bisection) -> str:
    parts = [f"{found.outcome.replace('_', ' ')}: {found.message}{f' [{found.code}]' if found.code else ''}"]
    if found.commit is not None:
        parts += _about(found.commit, found)
    elif found.suspects:
        parts += [f"  {_name(each)} {each.subject}".rstrip() for each in found.suspects]
    if found.step is not None:
        before = "the version before" if found.package else "its parent"
        where = before if found.commit is not None else f"the {_noun(found)} before them"
        parts.append(
            f"  {_ratio(found.step)} times as much as {where}, in {quantity_text.count(found.step.blocks, 'block')}"
        )
    if found.ends is not None and found.step is not None:
        parts.append(f"  both ends: {_ratio(found.ends)}; probability {quantity_text.probability(found.probability)}")
    if found.another_step is not None:
        other = found.another_step
        kind = "another step" if other.ratio > 1 else "a step to the better"
        parts.append(
            f"  the ends differ by {quantity_text.times(other.ratio)} beyond that: there is {kind}; look for it with "
            f"--good {_id(found, other.good)} --bad {_id(found, other.bad)}"
        )
    if found.tried:
        heads = (_noun(found), "of good", "blocks", "probability", "" if found.package else "subject")
        parts += ["", f"tried, of {quantity_text.count(found.commits, _noun(found))}:"]
        parts += [f"  {line}" for line in aligned([heads, *map(_cells, found.tried)])]
    if found.next:
        parts += ["", "to name the operators that became slower:", *(f"  {each}" for each in found.next)]
    return "\n".join(parts)


def _noun(found: Bisection) -> str:
    return "release" if found.package else "commit"


def _name(each: CommitOf | TriedCommit) -> str:
    return each.version or each.commit[:_SHORT]


def _id(found: Bisection, whole: str) -> str:
    return whole if found.package else whole[:_SHORT]


def _about(commit: CommitOf, found: Bisection) -> list[str]:
    if found.package:
        others = [f"{each.name} {each.before or 'none'} -> {each.after or 'none'}" for each in found.changed]
        return [f"  {', '.join(others)}"] if others else []
    merge = "; it is a merge: bisect what it merged with --good COMMIT^1 --bad COMMIT^2" if commit.merges else ""
    return [f"  {commit.subject}", f"  {commit.author_date}{merge}"]


def _cells(tried: TriedCommit) -> tuple[str, ...]:
    subject = tried.subject if len(tried.subject) <= _MOST_SUBJECT else f"{tried.subject[: _MOST_SUBJECT - 3]}..."
    name = _name(tried)
    if tried.ratio is None:
        code = f" [{tried.code}]" if tried.code else ""
        return name, "skipped", "", "", f"{subject} ({' '.join(tried.reason.split())}{code})".strip()
    ratio = quantity_text.ratio_interval(tried.ratio, tried.low, tried.high)
    return name, ratio, str(tried.blocks), quantity_text.probability(tried.probability), subject


def _ratio(ratio: Ratio) -> str:
    return quantity_text.ratio_interval(ratio.value, ratio.low, ratio.high)
