import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.call_cost import CallCost
from fairlap.render.charts.charts_of_run import charts_of
from fairlap.render.charts.parts.chart_tables import chart_tables
from fairlap.render.charts.parts.libraries import svg_of
from fairlap.render.charts.parts.look import CONTESTANTS, DARK, INK, LIGHT, filled_in
from fairlap.render.charts.parts.static import main_chart, static_spec, write_charts
from fairlap.render.report.page import page_of
from fairlap.render.report.page_data import packed
from fairlap.request.units import Share
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import Timing
from runs_of_precisions import planned, shown
from runs_to_show import ENDING, HOSTILE, SCRIPT, STEADY_FROM, run_of, samples
from runs_under_roofs import BANDWIDTHS, PEAK, a_run_under_roofs


def test_each_chart_is_written_as_svg_and_as_png(tmp_path: Path) -> None:
    shown = results_of(run_of(HOSTILE, batches=(4,)), "r", samples=samples)
    written = write_charts(shown, tmp_path / "new" / "charts")
    drawn = [chart.key for chart in charts_of(shown, chart_tables(shown)) if not chart.absent]
    assert {path.name for path in written} == {
        f"mlp-infer-fp32-batch-4-{key}.{kind}" for key in drawn for kind in ("svg", "png")
    }
    for path in written:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            texts = ["".join(each.itertext()) for each in ElementTree.parse(path).iter()]
            assert not any(each.tag.endswith("script") for each in ElementTree.parse(path).iter())
            assert texts
    ranked = (tmp_path / "new" / "charts" / "mlp-infer-fp32-batch-4-intervals.svg").read_text()
    assert "&lt;script&gt;" in ranked
    memory = (tmp_path / "new" / "charts" / "mlp-infer-fp32-batch-4-memory.svg").read_text()
    assert re.findall(r">(\d+ \w+B)<", memory) == [f"{each} MiB" for each in (16, 32, 48, 64, 80)]


@pytest.mark.slow_but("separately")
@pytest.mark.parametrize("together", [True, False], ids=["ranked together", "raced separately"])
def test_time_against_error_is_drawn_where_several_precisions_were_raced(together: bool) -> None:
    plan = planned(precision=("fp32", "bf16", "int8"), across_precisions=together, max_drop=Share("1%"))
    found = shown(plan)
    tables = chart_tables(found)
    points = tables["precisions"]
    assert len(points) == 6 * len(plan.works)
    works = {point["work_id"] for point in points}
    assert works == {work.id for work in plan.works}
    here = [point for point in points if point["work_id"] == plan.works[0].id]
    assert {(point["precision"], point["qualified"]) for point in here} == {
        ("fp32", True),
        ("bf16", True),
        ("int8", False),
    }
    assert {point["precision"] for point in here if point["frontier"]} == {"fp32", "bf16"}
    assert {point["label"] for point in here} >= {"torch (fp32)", "jax (int8)"}
    [chart] = [each for each in charts_of(found, tables) if each.key == "precisions"]
    for work in found.works():
        spec = static_spec(chart, found, found.of_work(work)[0], tables)
        assert spec is not None
        assert "<path" in svg_of(spec)


def test_one_precision_has_no_chart_of_precisions() -> None:
    found = shown(planned(precision="bf16"))
    assert "precisions" not in {chart.key for chart in charts_of(found, chart_tables(found))}


def test_sizes_of_a_family_are_one_chart_against_their_parameters() -> None:
    found = results_of(run_of(models=("vit:tiny", "vit:small", "llama:260k", "mlp"), batches=(4,)), "r")
    tables = chart_tables(found)
    assert {(each["model"], each["parameters"]) for each in tables["sizes"]} == {
        ("vit:tiny", 5_717_416),
        ("vit:small", 22_050_664),
    }
    assert {each["line"] for each in tables["sizes"]} == {"vit · infer · fp32 · batch 4"}
    [chart] = [each for each in charts_of(found, tables) if each.key == "judged_by_parameters"]
    spec = static_spec(chart, found, found.work_results[0], tables)
    assert spec is not None
    assert chart.scope == "works"
    assert "10M" in svg_of(spec)


def test_works_of_a_family_that_differ_in_more_than_the_size_are_separate_lines() -> None:
    found = results_of(run_of(models=("vit:tiny", "vit:small"), batches=(4, 8)), "r")
    tables = chart_tables(found)
    assert {each["line"] for each in tables["sizes"]} == {f"vit · infer · fp32 · batch {batch}" for batch in (4, 8)}
    [chart] = [each for each in charts_of(found, tables) if each.key == "judged_by_parameters"]
    spec = static_spec(chart, found, found.work_results[0], tables)
    assert spec is not None
    dashed = [key for key in re.findall(r'role-legend-symbol"[^>]*><path ([^>]*)', svg_of(spec)) if "dasharray" in key]
    assert len(dashed) == 2
    assert all(" stroke=" in key for key in dashed)


def test_models_that_are_no_sizes_of_one_family_have_no_such_chart() -> None:
    found = results_of(run_of(models=("vit:tiny", "llama:260k"), batches=(4,)), "r")
    tables = chart_tables(found)
    assert tables["sizes"] == []
    assert "judged_by_parameters" not in {chart.key for chart in charts_of(found, tables)}


@pytest.mark.slow
def test_the_roofline_has_every_row_under_lines_that_meet_at_the_peak(tmp_path: Path) -> None:
    cost = CallCost(moved_bytes=3e6, working_set_bytes=4e6, operators=1, operations=1e8)
    shown = results_of(a_run_under_roofs(cost), "r")
    tables = chart_tables(shown)
    by_name = {each["contestant"]: each for each in tables["roofline"]}
    assert set(by_name) == {"torch", "jax:fast"}
    assert by_name["torch"]["gflop_per_s"] == pytest.approx(50, rel=0.01)
    assert by_name["torch"]["operations_per_byte"] == pytest.approx(1e8 / 3e6, rel=0.001)
    lines: dict[str, list[tuple[float, float]]] = {}
    for end in tables["roof_lines"]:
        lines.setdefault(end["roof"].split()[0], []).append((end["operations_per_byte"], end["gflop_per_s"]))
    assert set(lines) == {"fp32", *BANDWIDTHS}
    for level, bandwidth in BANDWIDTHS.items():
        (low, at_low), (ridge, peak) = lines[level]
        assert at_low / low == pytest.approx(bandwidth / 1e9, rel=0.001)
        assert ridge == pytest.approx(PEAK / bandwidth, rel=0.001)
        assert peak == PEAK / 1e9
    assert [path.name for path in write_charts(shown, tmp_path) if "roofline" in path.name]


def test_a_run_without_roofs_has_no_roofline() -> None:
    found = results_of(run_of(batches=(4,)), "r")
    assert "roofline" not in {chart.key for chart in charts_of(found, chart_tables(found))}


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest) as refused:
        write_charts(results_of(run_of(batches=(4,)), "r"), tmp_path / "file" / "charts")
    assert refused.value.code == "E_FILE"


def test_every_process_that_finished_is_a_dot() -> None:
    run = run_of()
    dots = chart_tables(results_of(run, "r"))["processes"]
    assert len(dots) == sum(process.finished for process in run.processes)
    assert {dot["counts"] for dot in dots} == {"counts", "left out"} or {dot["counts"] for dot in dots} == {"counts"}


def test_samples_are_thinned_and_the_steady_mark_stands_where_the_engine_found_it() -> None:
    def many(block: int, contestant: str) -> dict[str, np.ndarray]:
        return {"wall_ns": np.full(100_000, 1e6)}

    points = chart_tables(results_of(run_of(), "r", samples=many))["samples"]
    assert len(points) < 20_000
    assert {point["sample"] for point in points if point["steady"]} == {STEADY_FROM}


def test_curves_of_samples_leave_the_warm_up_out() -> None:
    curve = chart_tables(results_of(run_of(), "r", samples=samples))["sample_curves"]
    assert max(point["ns"] for point in curve) < 1.1e6


def test_a_block_without_samples_leaves_its_lines_out_and_no_more() -> None:
    def some(block: int, contestant: str) -> dict[str, np.ndarray]:
        return {"wall_ns": np.full(100, 1e6)} if contestant == "jax" else {}

    points = chart_tables(results_of(run_of(), "r", samples=some))["samples"]
    assert {point["contestant"] for point in points} == {"jax"}


def test_an_exact_answer_has_no_place_on_a_logarithmic_scale() -> None:
    run = run_of(("torch", "jax"), batches=(4,))
    for process in run.processes:
        if process.contestant == "jax":
            process.errors = [type(error)("logits", "before", 1.0, 0.0, 0.0, True) for error in process.errors]
    assert {each["contestant"] for each in chart_tables(results_of(run, "r"))["errors"]} == {"torch"}


def test_the_tolerance_of_a_model_that_is_not_installed_is_not_made_up() -> None:
    run = run_of(batches=(4,))
    assert chart_tables(results_of(run, "r"))["tolerances"]
    work = type(run.plan.works[0])("of-another-machine", 4)
    for process in run.processes:
        process.work_id = work.id
    plan = type(run.plan)(run.plan.contestants, (work,), 1, 3, run.plan.blocks)
    shown = results_of(type(run)(plan, run.processes, {}, {}), "r")
    assert chart_tables(shown)["tolerances"] == []
    [errors] = [chart for chart in charts_of(shown, chart_tables(shown)) if chart.key == "errors"]
    assert "tolerance" in errors.note
    assert "dashed" not in errors.note


def test_a_contestant_named_like_a_placeholder_is_still_a_name() -> None:
    names = [INK, CONTESTANTS]
    spec = {"scale": {"domain": [CONTESTANTS]}, "color": INK}
    assert filled_in(spec, DARK, names, []) == {"scale": {"domain": names}, "color": DARK.ink}


def test_contestants_keep_eight_colours_apart_on_both_papers() -> None:
    for look in (LIGHT, DARK):
        assert len(set(look.colours(8))) == 8


def test_a_text_that_comes_again_is_written_once_and_absent_stays_absent() -> None:
    island = packed([{"a": SCRIPT, "n": 1.0}, {"a": SCRIPT, "n": None}, {"a": ENDING}])
    assert island == {"length": 3, "columns": {"a": {"of": [SCRIPT, ENDING], "at": [0, 0, 1]}, "n": [1.0, None, None]}}


def _texts(svg: bytes) -> list[str]:
    return [text.strip() for text in ElementTree.fromstring(svg).itertext() if text.strip()]


@pytest.mark.slow
def test_the_picture_of_several_batches_is_a_curve_of_the_times_per_item_and_one_of_the_memory() -> None:
    run = run_of(batches=(1, 2, 4, 8, 16))
    for process in run.processes:  # a call of any batch takes one or two milliseconds
        batch = run.plan.work_with(process.work_id).batch
        clock = process.timings["wall_ns"]
        ns = clock.p50_ns * 4 / batch
        process.timings = {"wall_ns": Timing(ns, ns, ns, 100, 1, 0, "flat", "tsc", 10.0)}
    shown = results_of(run, "r")
    texts = _texts(main_chart(shown, png=False))
    titles = [text for text in texts if "by batch size" in text and "." not in text]
    assert set(titles) == {"Time per item by batch size", "Peak memory by batch size"}
    assert "median time per item" in texts
    subtitles = [text for text in texts if text.startswith("mlp") and "controlled" in text]
    assert len(set(subtitles)) == 1
    assert "batch 1, 2, 4, 8, 16" in subtitles[0]
    assert {"1", "2", "4", "8", "16", "1 ms", "200 µs"} <= set(texts)  # the axes have the figures
    marks = ElementTree.fromstring(main_chart(shown, png=False)).iter("{http://www.w3.org/2000/svg}path")
    assert sum("peak memory: " in mark.get("aria-label", "") for mark in marks) >= 10
    assert {"torch", "jax"} <= set(texts)  # which line is whose
    one = _texts(main_chart(results_of(run_of(batches=(4,)), "r"), png=False))
    assert not any("by batch size" in text for text in one)


@pytest.mark.slow
def test_a_chart_over_batches_is_written_once_with_all_of_them_in_its_subtitle(tmp_path: Path) -> None:
    written = {path.name for path in write_charts(results_of(run_of(batches=(4, 8)), "r"), tmp_path)}
    for key in ("judged_by_batch", "time_per_item_by_batch", "sweep", "peak_by_batch"):
        [name] = [name for name in written if name.endswith(f"{key}.svg")]
        assert name == f"mlp-infer-fp32-{key}.svg"
        texts = _texts((tmp_path / name).read_bytes())
        assert any("batch 4, 8 " in text for text in texts)
        assert {"torch", "jax"} <= set(texts)
    assert len([name for name in written if name.endswith("-intervals.svg")]) == 2


def test_the_page_of_one_contestant_opens_with_its_figures_and_not_with_a_missing_verdict() -> None:
    run = run_of(("torch",), batches=(1, 2, 4, 8, 16))
    answer = page_of(results_of(run, "r")).partition('id="answer"')[2].partition("</section>")[0]
    opening = re.findall(r'<p class="headline">(.*?)</p>', answer)[0]
    assert {"torch", "batch 1", "batch 16"} <= {part for part in ("torch", "batch 1", "batch 16") if part in opening}
    assert "No verdict" not in answer
    two = page_of(results_of(run_of(("torch", "jax"), batches=(1, 2), blocks=1), "r"))
    assert "No verdict" in two
