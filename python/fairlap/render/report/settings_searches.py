"""The section of the page about contestants whose best settings were searched for: the space and every try."""

from __future__ import annotations

from fairlap import quantity_text
from fairlap.race.around_blocks.settings_search import SettingsSearch, SettingsTry
from fairlap.render.report.markup import Markup, scrolling, table, tag
from fairlap.render.text.settings_search_text import outcome_text, settings_text

_HEADS = ["round", "settings", "times the default", "time of a call", "why"]


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
        scrolling(tried, table(tried, _HEADS, [_row(each) for each in search.tries], "cards")),
    )


def _row(each: SettingsTry) -> dict[str, Markup | str]:
    times = [quantity_text.duration(ns) for ns in each.call_ns.values()]
    return {
        "round": f"{each.round}",
        "settings": settings_text(each.settings),
        "times the default": "–" if each.ratio is None else f"{each.ratio:.3g}",
        "time of a call": ", ".join(times) or "–",
        "why": each.why or "–",
    }
