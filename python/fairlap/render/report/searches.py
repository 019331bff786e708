"""What the page shows of searches, every try: for the largest batch, and for a contestant's best settings."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.race.around_blocks.settings_search import SettingsSearch, SettingsTry
from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.text.settings_search_text import outcome_text, settings_text
from fairlap.results.work_result import WorkResult
from fairlap.scenarios.process_result import BatchTry

_HEADS_OF_SETTINGS = ["round", "settings", "times the default", "time of a call", "why"]
_HEADS_OF_BATCHES = ["contestant", "batch", "outcome", "peak memory", "time per item", "why"]


def batch_tries(work_result: WorkResult) -> Markup | None:
    found = [(each.contestant, each.largest_batch) for each in work_result.contestants if each.largest_batch]
    if not found:
        return None
    rows: list[dict[str, Markup | str]] = []
    for contestant, search in found:
        if not search.tries:
            rows.append({"contestant": contestant, "outcome": "not tried", "why": search.why})
        rows += [_batch_row(contestant, each) for each in sorted(search.tries, key=lambda each: each.batch)]
    caption = f"Batches that were tried: {work_result.work.label}, {work_result.conditions}"
    return table(caption, _HEADS_OF_BATCHES, rows, "batches cards", [str(row["contestant"]) for row in rows])


def _batch_row(contestant: str, each: BatchTry) -> dict[str, Markup | str]:
    return {
        "contestant": contestant,
        "batch": f"{each.batch:,}",
        "outcome": each.outcome.replace("_", " "),
        "peak memory": "–" if each.peak_bytes is None else quantity_text.size(each.peak_bytes),
        "time per item": "–" if each.ns_per_item is None else quantity_text.duration(each.ns_per_item),
        "why": each.why or "–",
    }


def settings_search(search: SettingsSearch) -> Markup:
    space = "; ".join(f"{name}: {', '.join(values)}" for name, values in search.space.items()) or "nothing"
    left_out = "; ".join(f"{name} ({why})" for name, why in search.left_out.items())
    not_reached = "; ".join(settings_text(dict(each)) for each in search.not_reached)
    tried = f"Settings tried for {search.contestant}"
    return tag(
        "div",
        tag("p", tag("strong", search.contestant), ": ", outcome_text(search), "."),
        tag("p", f"Besides the default, the space is {space}. Data seed {search.data_seed}.", class_="caption"),
        tag("p", f"Left out: {left_out}.", class_="caption") if search.left_out else None,
        tag("p", f"Not tried: {not_reached}.", class_="caption") if search.not_reached else None,
        scrolling(tried, table(tried, _HEADS_OF_SETTINGS, [_settings_row(each) for each in search.tries], "cards")),
    )


def _settings_row(each: SettingsTry) -> dict[str, Markup | str]:
    times = [quantity_text.duration(ns) for ns in each.call_ns.values()]
    return {
        "round": f"{each.round}",
        "settings": settings_text(each.settings),
        "times the default": "–" if each.ratio is None else f"{each.ratio:.3g}",
        "time of a call": ", ".join(times) or "–",
        "why": each.why or "–",
    }
