"""Charts as SVG and PNG files, drawn without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlap.errors import FairlapError, InvalidRequest, NotWritten
from fairlap.render.charts.charts_of_run import charts_of, main_chart_of, main_charts_by_batch
from fairlap.render.charts.parts.chart import Chart
from fairlap.render.charts.parts.chart_tables import chart_tables, group_of
from fairlap.render.charts.parts.labels import WIDE, short_names
from fairlap.render.charts.parts.libraries import STILL_FONT, png_of, svg_of, vl_convert
from fairlap.render.charts.parts.look import LIGHT, filled_in
from fairlap.request.work import Work
from fairlap.results.results import Results
from fairlap.results.work_result import WorkResult

_WIDTH = 720
_KEY_WITHOUT_NAME, _LETTER_OF_KEY = 30, 7
_OF_A_PART = ("data", "layer", "title", "description", "width", "height")  # data that all layers share stand above them

Record = Mapping[str, Any]


def main_chart(shown: Results, *, png: bool) -> bytes:
    """Draw the times of all processes or latency against rate, for each work under the verdict's conditions.

    Several batches of one model are a curve of the time per item and one of the memory instead.
    """
    tables = chart_tables(shown)
    charts = charts_of(shown, tables)
    main, by_batch = main_chart_of(charts), main_charts_by_batch(charts)
    specs = []
    for works in _same_but_for_batch(shown).values():
        for work in works[:1] if len(works) > 1 and by_batch else works:
            drawn_of_it = by_batch if len(works) > 1 and by_batch else [main]
            specs += [static_spec(chart, shown, shown.of_work(work)[0], tables) for chart in drawn_of_it]
    drawn = [spec for spec in specs if spec is not None]
    if not drawn:
        raise FairlapError("there is nothing to draw: no process finished")
    return picture(drawn[0] if len(drawn) == 1 else _stacked(drawn), png=png)


def _same_but_for_batch(shown: Results) -> dict[str, list[Work]]:
    groups: dict[str, list[Work]] = {}
    for work in shown.works():
        groups.setdefault(group_of(work), []).append(work)
    return groups


def _stacked(specs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One above the other, each with its own data and colours."""
    parts: list[Any] = []
    datasets: dict[str, Any] = {}
    for number, spec in enumerate(specs):
        datasets |= {f"{number} {name}": records for name, records in spec["datasets"].items()}
        own = {key: value for key, value in spec.items() if key in _OF_A_PART}
        parts.append(_with_data_of(number, own))
    independent = {"scale": dict.fromkeys(("color", "x", "y"), "independent")}
    whole = {key: value for key, value in specs[0].items() if key in ("$schema", "config", "padding")}
    return whole | {"vconcat": parts, "datasets": datasets, "resolve": independent, "spacing": 40}


def _with_data_of(number: int, spec: Any) -> Any:
    if isinstance(spec, list):
        return [_with_data_of(number, each) for each in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        key: {"name": f"{number} {value['name']}"}
        if key == "data"
        else value.replace("domain('", f"domain('concat_{number}_")  # as Vega names the scales of stacked charts
        if key == "expr"
        else _with_data_of(number, value)
        for key, value in spec.items()
    }


def picture(spec: dict[str, Any], *, png: bool) -> bytes:
    svg = svg_of(spec)
    return png_of(svg) if png else svg.encode()


def write_charts(shown: Results, folder: Path) -> list[Path]:
    """Write every chart as SVG and PNG, for each work under the conditions of the verdict, and return the paths.

    One over batches is written once for all of them, and so is one over works.
    """
    vl_convert()  # raises where it is missing
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"cannot write charts to {folder}: {error.strerror}", code="E_FILE") from None
    tables = chart_tables(shown)
    written = []
    groups = _same_but_for_batch(shown)
    for work in shown.works():
        work_result = shown.of_work(work)[0]
        for chart in charts_of(shown, tables):
            over_batches = chart.scope == "batches" and len(groups[group_of(work)]) > 1
            if over_batches and work != groups[group_of(work)][0]:
                continue
            if chart.scope == "works" and work != shown.works()[0]:
                continue
            spec = static_spec(chart, shown, work_result, tables)
            if spec is None:
                continue
            svg = svg_of(spec)
            whose = group_of(work) if over_batches else "all works" if chart.scope == "works" else work.label
            stem = folder / f"{_file_name(whose)}-{chart.key}"
            for path, content in (
                (stem.with_name(f"{stem.name}.svg"), svg.encode()),
                (stem.with_name(f"{stem.name}.png"), png_of(svg)),
            ):
                _write(path, content)
                written.append(path)
    return written


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise NotWritten(f"{path} could not be written: {error.strerror}") from None


def static_spec(
    chart: Chart, shown: Results, work_result: WorkResult, tables: Mapping[str, Sequence[Record]]
) -> dict[str, Any] | None:
    """Combine the chart with its data, ready to draw; None where there is no data."""
    if chart.absent:
        return None
    in_group = _same_but_for_batch(shown)[group_of(work_result.work)]
    works = {work.id for work in in_group}
    data = {name: [r for r in tables[name] if _wanted(r, chart, work_result, works)] for name in chart.tables}
    if not data[chart.tables[0]]:
        return None
    present = {record["contestant"] for records in data.values() for record in records if "contestant" in record}
    colours = dict(zip(shown.contestants, LIGHT.colours(len(shown.contestants)), strict=True))
    ordered = [result.contestant for result, _ in work_result.with_rows()]
    names = [name for name in ordered if name in present]
    spec: dict[str, Any] = filled_in(chart.spec, LIGHT, names, [colours[name] for name in names])
    columns = _columns_of_legends(spec, names)
    for legend in _legends(spec):
        legend["columns"] = columns
    if "facet" in spec:
        spec["spec"]["width"] = _WIDTH - 100
        spec["data"] = {"values": data[chart.tables[0]]}
    else:
        spec.setdefault("height", len(names) * chart.row_height)
        spec |= {"width": _WIDTH, "autosize": {"type": "fit-x", "contains": "padding"}, "datasets": data}
    subtitle = f"{shown.run.plan.title_of(work_result.work)} · {work_result.conditions}"
    if chart.scope == "batches":
        batches = ", ".join(f"{work.batch:,}" for work in sorted(in_group, key=lambda work: work.batch))
        subtitle = subtitle.replace(f" · batch {work_result.work.batch}", f" · batch {batches}", 1)
    if chart.scope == "works":
        subtitle = work_result.conditions
    title = {"text": chart.title, "subtitle": subtitle, "anchor": "start", "offset": 14}
    return spec | {
        "title": title,
        "description": f"{chart.title}. {chart.note}",
        "config": LIGHT.config(STILL_FONT) | {"background": LIGHT.paper},
        "padding": 16,
    }


def _wanted(record: Record, chart: Chart, work_result: WorkResult, works: set[str]) -> bool:
    if chart.scope == "batches":
        return record["work_id"] in works and bool(record["conditions"] == work_result.conditions)
    if chart.scope == "works":
        return bool(record["conditions"] == work_result.conditions)
    same_work = bool(record["work_id"] == work_result.work.id)
    return same_work and (chart.scope == "both conditions" or record["conditions"] == work_result.conditions)


def _columns_of_legends(spec: dict[str, Any], names: Sequence[str]) -> int:
    """Find how many keys of contestants fit above the plot, which begins where the labels of its rows end."""
    axis = spec.get("encoding", {}).get("y", {}).get("axis") or {}
    shown = short_names(names, WIDE).values()
    key = _KEY_WITHOUT_NAME + _LETTER_OF_KEY * max(map(len, shown), default=0)
    return max(1, (_WIDTH - int(axis.get("labelLimit", 0))) // key)


def _legends(spec: Any) -> Iterator[dict[str, Any]]:
    if isinstance(spec, dict):
        if isinstance(spec.get("legend"), dict):
            yield spec["legend"]
        for value in spec.values():
            yield from _legends(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _legends(value)


def _file_name(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", label).strip("-")
