"""Races of input pipelines agree with loops by hand over the same files, and pipelines that cheat are named."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import fairlap
import pytest
import stored_data
from command_line import refusal
from fairlap.frameworks.registry import framework_named, is_importable
from fairlap.race.processes.block_worker import CONTROLLED_MEMORY, OFFLINE
from installed_package import install_frameworks

pytestmark = [pytest.mark.sanitized, pytest.mark.timeout(600)]

BY_HAND = Path(__file__).parents[1] / "trust/agreement/by_hand/passes.py"
LIBRARIES = ("loop", "dataloader", "tfdata")
WITHIN = 1.25  # times, on a machine that does other things too
FORMS: dict[str, Callable[..., Path]] = {
    "images": stored_data.image_folder,
    "tar": stored_data.tar,
    "parquet": stored_data.parquet,
    "rows": stored_data.rows,
}


@pytest.fixture(autouse=True)
def wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    install_frameworks(tmp_path / "package", monkeypatch, {"wrong": "wrong_pipelines:WrongPipeline"})


def raced(data: Path, on: list[str], settings: str = ":batch=4:size=32", **options: Any) -> dict[str, Any]:
    usual = {"blocks": 1, "threads": 1, "seconds": 0.05}
    results = fairlap.compare(f"data:{data}{settings}", on=on, **{**usual, **options})
    return {row.contestant: row for row in results.rows}


def here(names: tuple[str, ...]) -> list[str]:
    return [name for name in names if is_importable(framework_named(name.partition(":")[0]))]


def test_a_plain_loop_races_and_one_that_keeps_its_first_pass_is_out(tmp_path: Path) -> None:
    data = stored_data.image_folder(tmp_path / "photos")
    for _ in range(4):  # other programs may keep the first batch of one race waiting for longer than a pass takes
        rows = raced(data, ["loop", "wrong:kept"])
        row = rows["loop"]
        if row.judged is not None and row.scenario_figures["first_batch_s"].value < 22 / row.judged.value:
            break
    assert (row.outcome, row.judged_unit, row.judged_better) == ("finished", "1/s", "higher")
    assert row.judged is not None
    assert row.throughput_per_s.value == pytest.approx(row.judged.value)
    assert row.batch == 22  # a call is a pass over all items
    assert 0 < row.scenario_figures["first_batch_s"].value < 22 / row.judged.value
    assert (rows["wrong:kept"].outcome, rows["wrong:kept"].code) == ("disqualified", "E_KEPT_ANSWERS")


def test_what_a_race_of_pipelines_cannot_use_is_refused(tmp_path: Path) -> None:
    data = f"data:{stored_data.rows(tmp_path / 'rows')}"
    for words in (["--batch", "4"], ["--mode", "train"], ["--data", "synthetic"], ["--precision", "bf16"]):
        assert refusal("compare", data, "--on", "loop", *words).code == "E_DATA"
    assert refusal("compare", f"{data}:size=8", "--on", "loop").code == "E_DATA"
    assert refusal("compare", data, "mlp", "--on", "loop").code == "E_DATA"


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
def test_every_pipeline_yields_every_item_of_every_form(form: str, tmp_path: Path) -> None:
    data = FORMS[form](tmp_path / f"data.{form}")
    settings = ":batch=4" if form == "rows" else ":batch=4:size=32:type=float32"
    workers = ("loop:workers=2", "loop:workers=2:pool=processes", "dataloader:workers=2", "tfdata:workers=2:prefetch=1")
    on = here((*LIBRARIES, *workers, "grain", "spdl"))
    rows = raced(data, on, settings)
    in_file_order = form in ("tar", "parquet")
    for name, row in rows.items():
        expected = "unsupported" if name == "grain" and in_file_order else "finished"
        assert row.outcome == expected, row.message


@pytest.mark.thorough
@pytest.mark.parametrize(
    "trick", ["drop-last", "repeat", "wrong-label", "smaller", "nearest", "undecoded", "twice", "large-batches"]
)
def test_every_cheat_is_disqualified_in_a_race(trick: str, tmp_path: Path) -> None:
    rows = raced(stored_data.image_folder(tmp_path / "photos"), ["loop", "wrong", f"wrong:{trick}"])
    assert rows["wrong"].outcome == "finished"
    assert (rows[f"wrong:{trick}"].outcome, rows[f"wrong:{trick}"].code) == ("disqualified", "E_OUTPUT")


@pytest.mark.slow
def test_passes_from_a_cold_page_cache_are_cold_and_take_longer(tmp_path: Path) -> None:
    data = stored_data.rows(tmp_path / "rows", items=2000, size=8192)
    passes = {
        cache: raced(data, ["loop", "loop:workers=1"], f":batch=64:cache={cache}")["loop"] for cache in ("warm", "cold")
    }
    if any(warning.code == "W_PAGE_CACHE" for warning in passes["cold"].warnings):
        pytest.skip("this file system keeps its files in memory")
    assert passes["cold"].judged.value < passes["warm"].judged.value
    assert "cold" in passes["cold"].judged_by
    assert passes["cold"].work_id != passes["warm"].work_id


@pytest.mark.thorough
def test_a_search_finds_settings_of_a_pipeline(tmp_path: Path) -> None:
    data = stored_data.image_folder(tmp_path / "photos")
    rows = raced(data, ["loop", "loop:best"], best_budget=30)
    assert (rows["loop"].division, rows["loop:best"].division) == ("default", "best")
    assert rows["loop:best"].outcome == "finished"


@pytest.mark.parametrize(
    ("form", "library"),
    [
        pytest.param(form, library, marks=pytest.mark.slow if library == "loop" else pytest.mark.thorough)
        for form in ("images", "tar", "rows")
        for library in LIBRARIES
    ],
)
def test_items_per_second_agree_with_a_loop_by_hand(form: str, library: str, tmp_path: Path) -> None:
    if not here((library,)):
        pytest.skip(f"{library} is not installed here; `make test` installs it and runs this")
    data = (
        stored_data.rows(tmp_path / "rows", 40_000, 512)
        if form == "rows"
        else FORMS[form](tmp_path / f"data.{form}", 200)
    )
    settings = ":batch=32" if form == "rows" else ":batch=32:size=64"
    before = by_hand(library, data)
    row = raced(data, [library], settings, blocks=2, seconds=1.0)[library]
    after = by_hand(library, data)
    if max(before, after) > WITHIN * min(before, after):
        pytest.skip(f"the loop by hand does not agree with itself here: {before:.0f} and {after:.0f} items per second")
    ratio = row.judged.value / math.sqrt(before * after)
    assert 1 / WITHIN < ratio < WITHIN, f"{row.judged.value:.0f}/s, by hand {before:.0f} and {after:.0f}"


def by_hand(library: str, data: Path) -> float:
    command = ["taskset", "-c", "0", sys.executable, str(BY_HAND), library, str(data), "64", "32", "8"]
    quiet = {"OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    alike = {**os.environ, **CONTROLLED_MEMORY, **OFFLINE, **quiet}  # as contestants are started
    done = subprocess.run(command, env=alike, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    rate: float = 1e9 * found["items"] / median(found["ns"])
    return rate
