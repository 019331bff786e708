"""Figures of collective operations: intervals over blocks, ratios to MPI's, and a planted latency and bandwidth."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import numpy as np
import pytest
from fairlap.render.charts.parts.chart import round_times
from fairlap.render.document import Table
from fairlap.render.encoders import encoded
from fairlap.render.encoders.text import text_of
from fairlap.scenarios.collectives.race.collectives_run import MEMORY, CollectivesPlan, CollectivesRun, Trial
from fairlap.scenarios.collectives.render.chart import FITTED, MEASURED
from fairlap.scenarios.collectives.render.document import about, document_of
from fairlap.scenarios.collectives.render.shared_words import size_texts
from fairlap.scenarios.collectives.results.collectives_result import CollectivesResult, latency_and_slope, result_of
from fairlap.scenarios.ranks.ranks_messages import RankLimits

SIZES = (4000, 1_000_000, 16_000_000)
LATENCY_NS, BYTES_PER_S = 50_000.0, 2e9
BLOCKS = 8


def run() -> CollectivesRun:
    plan = CollectivesPlan(2, 1, ("all_reduce", "broadcast"), SIZES, BLOCKS, 0.1, 1, RankLimits())
    rng = np.random.default_rng(0)
    trials = []
    for block in range(BLOCKS):
        machine = rng.lognormal(0, 0.02)
        for size in SIZES:
            time_ns = machine * (LATENCY_NS + 1e9 * size / BYTES_PER_S)
            trials += [
                Trial("mpi", "all_reduce", size, block, time_ns),
                Trial("torch", "all_reduce", size, block, 3 * time_ns),
                Trial("torch", "broadcast", size, block, None, why="it has none"),
                Trial("jax", "all_reduce", size, block, None, wrong="all_reduce gave rank 1 something else"),
                Trial(MEMORY, "copy", size, block, size / 10.0),
            ]
    return CollectivesRun(plan, trials, {"gone": "it was killed"}, {"gone": "E_RANK"}, {"mpi": "4"}, {"mpi": "MPI"})


def tables_of(result: CollectivesResult) -> dict[str, Table]:
    return {each.title: table for each in document_of(result).sections for table in each.tables}


@pytest.fixture(scope="module")
def result() -> CollectivesResult:
    return result_of(run())


def test_a_planted_latency_and_bandwidth_are_found(result: CollectivesResult) -> None:
    [fit] = [each for each in result.fits if each.contestant == "mpi"]
    assert fit.holds
    assert fit.largest_miss < 0.01
    for found, planted in ((fit.latency_ns, LATENCY_NS), (fit.bytes_per_s, BYTES_PER_S)):
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.low <= planted <= found.high
        assert found.value == pytest.approx(planted, rel=0.03)


def test_ratios_to_mpi_are_those_of_the_same_block(result: CollectivesResult) -> None:
    ratios = [row.times_mpi for row in result.rows if row.contestant == "torch" and row.operation == "all_reduce"]
    assert len(ratios) == len(SIZES)
    assert all(ratio is not None and ratio.value == pytest.approx(3) for ratio in ratios)


def test_what_is_lacking_or_wrong_has_no_time(result: CollectivesResult) -> None:
    absent = {(row.contestant, row.operation) for row in result.rows if row.time_ns is None}
    assert absent == {("torch", "broadcast"), ("jax", "all_reduce")}
    assert all(row.absent for row in result.rows if row.time_ns is None)


def test_a_copy_has_no_latency_that_could_be_seen(result: CollectivesResult) -> None:
    [fit] = [each for each in result.fits if each.contestant == MEMORY]
    assert fit.latency_ns is None
    assert fit.bytes_per_s is not None
    assert fit.bytes_per_s.value == pytest.approx(10e9, rel=0.01)


def test_times_that_do_not_follow_the_model_have_no_figures_of_it() -> None:
    spoilt = run()
    spoilt.trials = [
        Trial("mpi", "all_reduce", size, block, time_ns)
        for block in range(BLOCKS)
        for size, time_ns in zip(SIZES, (1e6, 1e4, 1e6), strict=True)
    ]
    [fit] = result_of(spoilt).fits
    assert not fit.holds
    assert "does not hold" in text_of(document_of(result_of(spoilt)))


def test_large_arrays_that_take_no_longer_have_no_bandwidth() -> None:
    latency, slope = latency_and_slope([4000, 1_000_000], [1e4, 1e4])
    assert latency == pytest.approx(1e4, rel=1e-3)
    assert slope * 1_000_000 < 1e-2 * latency


@pytest.mark.parametrize(
    ("sizes", "texts"),
    [
        ((4000, 16_000_000), ["4 KB", "16 MB"]),
        ((4500, 256_000), ["4.5 KB", "256 KB"]),
        ((4096, 2**20), ["4 KiB", "1 MiB"]),
        ((512, 4608), ["512 B", "4.5 KiB"]),
        ((4000, 2**20), ["4 KB", "1.048576 MB"]),
    ],
)
def test_sizes_are_exact_and_in_one_system(sizes: tuple[int, ...], texts: list[str]) -> None:
    assert list(size_texts(sizes).values()) == texts


def test_brackets_are_explained_where_there_are_some(result: CollectivesResult) -> None:
    assert "Brackets" in about(result)
    few = run()
    few.trials = [trial for trial in few.trials if trial.block == 0]
    few.plan = msgspec.structs.replace(few.plan, blocks=1)
    assert "[" not in text_of(document_of(result_of(few)))
    assert "Brackets" not in about(result_of(few))


@pytest.mark.slow
def test_measured_points_and_fitted_lines_have_their_entry_in_the_legend(result: CollectivesResult) -> None:
    picture = encoded(document_of(result), "svg").decode()
    assert MEASURED in picture
    assert FITTED in picture
    unfitted = msgspec.structs.replace(result, fits=())
    assert FITTED not in encoded(document_of(unfitted), "svg").decode()


def test_ticks_are_round_few_and_within_the_times() -> None:
    assert round_times([1.1e6, 4e7]) == [2e6, 5e6, 1e7, 2e7]
    assert round_times([5e3, 2e9]) == [1e4, 1e5, 1e6, 1e7, 1e8, 1e9]
    assert all(0 < len(round_times([low, 2 * low])) <= 6 for low in (1e3, 2.1e4, 6e7))


def test_a_page_has_every_heading_once(result: CollectivesResult) -> None:
    page = encoded(document_of(result), "html").decode()
    headings = re.findall(r"<(?:h1|h2|caption)[^>]*>(.*?)</", page)
    assert len(headings) == len(set(headings)) > 4


def test_no_column_of_ratios_where_there_are_none(result: CollectivesResult) -> None:
    tables = tables_of(result)
    assert tables["all-reduce"].heads == ["size", "contestant", "time", "bandwidth", "× mpi"]
    assert tables["copy in memory"].heads == ["size", "contestant", "time", "bandwidth"]


def test_the_document_has_every_line_every_fit_and_every_reason(result: CollectivesResult) -> None:
    found = document_of(result)
    tables = tables_of(result)
    fits = tables.pop("Fitted: time = latency + bytes / bandwidth")
    assert sum(len(table.rows) for table in tables.values()) == len(result.rows)
    assert [row[1] for row in fits.rows] == [fit.contestant for fit in result.fits]
    assert any(row[0] == "16 MB" and row[1] == "mpi 4" and row[2] for row in tables["all-reduce"].rows)
    notes = found.sections[-1].notes
    assert {"mpi: MPI", "torch, broadcast: it has none", "gone: it was killed"} <= {*notes}
    assert len(notes) == len(set(notes)) == 4  # and what was wrong
    rows = list(csv.DictReader(io.StringIO(encoded(found, "csv").decode())))
    assert len(rows) == len(result.rows)
    assert [float(row["times_mpi"]) for row in rows if row["contestant"] == "torch" and row["times_mpi"]] == [
        pytest.approx(3)
    ] * len(SIZES)
    written = json.loads(encoded(found, "json"))
    assert len(written["rows"]) == len(result.rows)
    assert written["failures"] == {"gone": "it was killed"}


def test_a_picture_has_every_size(result: CollectivesResult) -> None:
    picture = encoded(document_of(result), "svg").decode()
    assert picture.count("16 MB") == picture.count("4 KB") >= 2
