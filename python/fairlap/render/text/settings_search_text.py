"""The outcome of a search for the best settings, in words."""

from __future__ import annotations

from collections.abc import Mapping

from fairlap import quantity_text
from fairlap.race.around_blocks.settings_search import SearchRegret, SettingsSearch


def outcome_text(search: SettingsSearch) -> str:
    """Without the contestant."""
    bound = regret_text(search.regret)
    return f"{_found_text(search)}; {bound}" if bound else _found_text(search)


def _found_text(search: SettingsSearch) -> str:
    alternatives = {tuple(each.settings.items()) for each in search.tries if each.settings}
    took = f"{quantity_text.count(len(alternatives), 'alternative')} tried in {quantity_text.seconds(search.seconds)}"
    if search.ended_by == "budget" and search.not_reached:
        took += f", {len(search.not_reached)} not tried"
    if search.found and search.ended_by == "budget":
        took += ", ended by the budget"
    if search.ended_by == "default":
        return f"its default settings did not run, so nothing could be compared with them ({took})"
    if not search.found and search.ended_by == "budget":
        return f"raced at its default settings, because no other choice proved faster within the budget ({took})"
    if not search.found or search.ratio is None:
        return f"its default settings are the best that were found ({took})"
    return f"{settings_text(search.found)}, {search.ratio:.3g} times the default's time in the search ({took})"


def regret_text(regret: SearchRegret | None) -> str:
    """Say how much slower than the others it may be; empty where no others ran."""
    if regret is None:
        return ""
    if regret.at_most is None:
        return f"no bound on how much faster others that ran may be ({regret.unbounded})"
    slower = f"at most {quantity_text.share(regret.at_most)} slower" if regret.at_most else "no slower"
    sure = f"({quantity_text.share(1 - regret.level, 3)} confidence)"
    text = f"it is {slower} than each of {regret.bounded} others of the last round {sure}"
    return f"{text}; no bound on those dropped after one block ({regret.unbounded})" if regret.unbounded else text


def settings_text(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "default"
