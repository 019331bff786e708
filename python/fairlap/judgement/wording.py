"""A judged change in words: the reason, and what to try next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from fairlap import quantity_text, verdict
from fairlap.judgement.judge_request import SearchedQuantity
from fairlap.judgement.judgement import Judgement, Next, Reason, SpeedupInterval, decided
from fairlap.verdict import Candidate, Interval

_NOISY = 0.05  # of the spread between blocks: `fairlap doctor` may find what causes it


class _Words(NamedTuple):
    less: str
    more: str
    not_less: str
    to_be_less: str
    ratio: str


def _use_of(what: str) -> _Words:
    return _Words(
        f"uses less {what}",
        f"uses more {what}",
        f"does not use less {what}",
        f"use less {what}",
        f"{what} of the base over that of the change",
    )


def _time_of(what: str) -> _Words:
    return _Words(
        f"has a shorter {what}",
        f"has a longer {what}",
        f"does not have a shorter {what}",
        f"have a shorter {what}",
        f"{what} of the base over that of the change",
    )


_WORDS: Mapping[SearchedQuantity, _Words] = {
    "wall": _Words("is faster", "is slower", "is not faster", "be faster", "speedup"),
    "cpu_time": _use_of("CPU time"),
    "memory_peak": _use_of("peak memory"),
    "time_to_first": _time_of("time to the first answer"),
    "compile_time": _time_of("compile time"),
}


def judgement_of(found: Candidate, figures: Mapping[str, Any], *, seconds_each: float) -> Judgement:
    """Put it into words; ``seconds_each`` is what a block took."""
    reason = _reason(found, figures["gain"], figures["level"])
    words = _WORDS[figures["quantity"]]
    return decided(
        found.decision,
        reason,
        _message(reason, found, figures["gain"], figures["level"], words),
        speedup=found.speedup,
        interval=interval_ends(found.interval),
        interval_over_search=interval_ends(found.over_search),
        blocks=found.blocks,
        e=found.e,
        p=found.p,
        spread=math.expm1(found.spread) if math.isfinite(found.spread) else None,
        next=_next(reason, found, figures["level"], seconds_each) if found.decision == "undecided" else None,
        **figures,
    )


def _reason(found: Candidate, gain: float, level: float) -> Reason:
    if found.decision == "keep":
        return "faster"
    if found.decision == "discard":
        return "slower" if found.interval.high < 1 or not gain else "not_faster_by_gain"
    return "too_few_blocks" if found.blocks < verdict.fewest_blocks(level, ended=True) else "not_proven_faster"


def _message(reason: Reason, found: Candidate, gain: float, level: float, words: _Words) -> str:
    interval = quantity_text.ratio_interval(found.speedup, found.interval.low, found.interval.high)
    figures = f"{words.ratio} {interval} in {quantity_text.count(found.blocks, 'block')}"
    by_gain = f" by more than {quantity_text.share(gain, 3)}" if gain else ""
    if reason == "faster":
        return f"the change {words.less}{by_gain}: {figures}"
    if reason == "slower":
        return f"the change {words.more}: {figures}"
    if reason == "not_faster_by_gain":
        return f"the change {words.not_less}{by_gain}: {figures}"
    if reason == "too_few_blocks":
        fewest = verdict.fewest_blocks(level, ended=True)
        return f"too few blocks to claim anything at a level of {level:.2g}, which takes {fewest}: {figures}"
    return f"the change is not shown to {words.to_be_less}{by_gain}, nor that it is not: {figures}"


def _next(reason: Reason, found: Candidate, level: float, seconds_each: float) -> Next:
    if reason == "too_few_blocks":
        needed: int | None = max(found.blocks_needed or 0, verdict.fewest_blocks(level, ended=True))
    else:
        needed = found.blocks_needed
    noisy = math.isfinite(found.spread) and found.spread > _NOISY
    quieter = f"blocks spread by {quantity_text.share(math.expm1(found.spread))}; `fairlap doctor` looks for causes"
    if needed is None:
        advice = quieter if noisy else "no gain is in sight; give --gain so that small changes are discarded sooner"
        return Next(None, None, advice)
    again = next_after(needed, seconds_each)
    return msgspec.structs.replace(again, advice=f"{again.advice}; {quieter}") if noisy else again


def next_after(blocks: int, seconds_each: float) -> Next:
    """Advise a new try of so many blocks."""
    seconds = blocks * seconds_each
    advice = f"judge it again with --budget {math.ceil(seconds)}s, for about {quantity_text.count(blocks, 'block')}"
    return Next(blocks, seconds, advice)


def ratio_word(quantity: SearchedQuantity) -> str:
    return _WORDS[quantity].ratio


def interval_ends(interval: Interval) -> SpeedupInterval:
    low = interval.low if interval.low > 0 else None
    return SpeedupInterval(low, interval.high if math.isfinite(interval.high) else None, interval.level)
