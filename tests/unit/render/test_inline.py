"""Results within a notebook: HTML that is part of its page, closed in itself, without scripts, in its colours."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import fairlap
import pytest
from fairlap.render.charts.interval_lines import IntervalLine, interval_lines
from fairlap.render.charts.parts.look import INHERITED
from fairlap.results.results import Results, results_of
from fairlap.scenarios.callables.result import InProcessComparison
from html_read import ReadHtml
from runs_to_show import ENDING, HOSTILE, SCRIPT, WRONG, run_of

LIGHT_AND_DARK = ("#ffffff", "#1e1e1e", "#111111")  # of notebooks


def race(contestants: tuple[str, ...] = ("torch", "jax", WRONG), batches: tuple[int, ...] = (4,)) -> Results:
    return results_of(run_of(contestants, batches=batches), "<b>id</b>")


@pytest.fixture(scope="module")
def callables() -> InProcessComparison:
    """Compare hostile names, of which one answers wrong."""
    numbers = list(range(300))
    return fairlap.compare(
        {SCRIPT: lambda: sum(numbers), "slow": lambda: sum(list(numbers)) + 0 * sum(numbers), ENDING: lambda: 1},
        blocks=6,
        seconds=0.002,
    )


def test_names_that_are_html_stay_text(callables: InProcessComparison) -> None:
    for html in (race(HOSTILE)._repr_html_(), race(HOSTILE, (1, 2, 4, 8))._repr_html_(), callables._repr_html_()):
        page = ReadHtml(html)
        assert page.misplaced == []
        assert page.elements[0] == ("div", {"class": "fairlap-inline", **page.elements[0][1]})
        assert not {"script", "img", "iframe", "object", "link", "base", "form"} & {name for name, _ in page.elements}
        assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
        assert not any({"src", "href", "srcset"} & {*attributes} for _, attributes in page.elements)
        assert SCRIPT in page.text
        assert ENDING in page.text
        assert not re.search(r"url\(|@import|expression", " ".join(page.styles))


def test_the_style_reaches_nothing_else_of_the_notebook() -> None:
    [style] = ReadHtml(race()._repr_html_()).styles
    selectors = [each.strip() for each in re.findall(r"([^{}]+)\{", style)]
    assert len(selectors) > 10
    assert all(each.startswith(".fairlap-inline") for each in selectors)
    assert "," not in re.sub(r"\([^)]*\)", "", "".join(selectors))  # nor does a part of a list


def test_the_answer_comes_before_the_table_and_the_table_before_the_picture(callables: InProcessComparison) -> None:
    for html, answer in ((race()._repr_html_(), "torch is the fastest"), (callables._repr_html_(), SCRIPT)):
        page = ReadHtml(html)
        assert page.text.startswith(answer)
        order = [name for name, _ in page.elements if name in ("p", "table", "svg")]
        assert order.index("p") < order.index("table") < order.index("svg")


def test_the_figures_are_those_of_the_rows() -> None:
    shown = race()
    text = ReadHtml(shown._repr_html_()).text
    torch, jax = shown.rows[:2]
    assert torch.judged is not None
    assert jax.ratio is not None
    assert f"{torch.judged.value / 1e6:.3f} ms" in text
    assert f"{jax.ratio.value:.2f}" in text
    assert "its answer is wrong" in text


def test_many_works_are_a_table_first_and_can_be_unfolded() -> None:
    page = ReadHtml(race(batches=(1, 2, 4, 8))._repr_html_())
    assert page.text.index("All works") < page.text.index("Ranked" if "Ranked" in page.text else "place")
    assert len([name for name, _ in page.elements if name == "summary"]) >= 4
    assert next(name for name, _ in page.elements if name in ("table", "details")) == "table"


def test_a_run_without_a_process_and_one_contestant_alone_are_shown(callables: InProcessComparison) -> None:
    empty = run_of(("torch",), batches=(4,))
    empty.processes.clear()
    for results in (results_of(empty, "r"), race(("torch",))):
        page = ReadHtml(results._repr_html_())
        assert page.misplaced == []
        assert page.text
    assert "torch: 1" in ReadHtml(race(("torch",))._repr_html_()).text


def test_a_callable_that_answers_wrong_is_shown_with_its_code(callables: InProcessComparison) -> None:
    page = ReadHtml(callables._repr_html_())
    assert "E_OUTPUT" in page.text
    assert "not ranked" in page.text
    drawn = page.named("circle")
    assert len(drawn) == 2  # it is in the table alone


def test_elsewhere_they_are_plain_text(callables: InProcessComparison) -> None:
    for shown in (repr(race()), str(callables)):
        assert "<div" not in shown
        assert "svg" not in shown


def lines(*values: float, spread: float = 0.0) -> list[IntervalLine]:
    bounds = [(value * (1 - spread), value * (1 + spread)) if spread else (None, None) for value in values]
    return [
        IntervalLine(f"n{place}", value, low, high, f"{value:g}", place)
        for place, (value, (low, high)) in enumerate(zip(values, bounds, strict=True))
    ]


def x_of(page: ReadHtml) -> list[float]:
    return [float(each["cx"] or "nan") for each in page.named("circle")]


def test_equal_ratios_are_equal_distances_in_the_picture() -> None:
    a, b, c = x_of(ReadHtml(interval_lines(lines(1.0, 2.0, 4.0), "d", INHERITED)))
    assert math.isclose(b - a, c - b, abs_tol=0.11)
    assert c - a > 200


def test_an_interval_is_drawn_from_end_to_end_and_lies_around_its_figure() -> None:
    page = ReadHtml(interval_lines(lines(1.0, 3.0, spread=0.1), "d", INHERITED))
    drawn = [each for each in page.named("line") if each["stroke"] != "currentColor"]
    for at, each in zip(x_of(page), drawn, strict=True):
        assert float(each["x1"] or "nan") < at < float(each["x2"] or "nan")
    assert page.named("svg")[0]["aria-label"] == "d"


def test_figures_that_are_all_equal_are_drawn_in_the_middle() -> None:
    assert len(set(x_of(ReadHtml(interval_lines(lines(5.0, 5.0), "d", INHERITED))))) == 1
    assert ReadHtml(interval_lines([], "d", INHERITED)).misplaced == []


def luminance(colour: str) -> float:
    """By the definition of WCAG 2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contestants_can_be_seen_in_light_and_in_dark_notebooks() -> None:
    assert contrast("#000000", "#ffffff") == 21
    for colour in INHERITED.contestants:
        assert min(contrast(colour, paper) for paper in LIGHT_AND_DARK) >= 3
    html = race()._repr_html_()
    assert set(re.findall(r'fill="([^"]*)"', html)) <= {"currentColor", *INHERITED.contestants}
    assert not re.search(r"[;{ ](color|background(-color)?): *(#|rgb|white|black)", html)  # it inherits both


def test_showing_needs_no_library_of_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert "<svg" in race()._repr_html_()


def test_importing_fairlap_loads_nothing_of_a_notebook() -> None:
    code = "import sys, fairlap; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {"IPython", "pandas", "pyarrow", "ast", "fairlap.magics", "fairlap.store", "sqlite3"}
