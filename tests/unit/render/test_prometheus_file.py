"""Rows as Prometheus metrics: what its parser reads is what the row has."""

from __future__ import annotations

import math

import pytest
from drawn_rows import rows
from fairlap.render.files.prometheus_file import GAUGES, PREFIX, encode, full_name
from fairlap.render.outputs import FORMATS, encoded
from fairlap.results.results import results_of
from fairlap.results.row import Row
from hypothesis import given, settings
from hypothesis.strategies import lists
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families
from runs_for_rows import a_run

RUN = "20260102-030405-abc"


def samples(content: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = [
        ((sample.name, frozenset(sample.labels.items())), sample.value)
        for family in text_string_to_metric_families(content.decode())
        for sample in family.samples
    ]
    assert len(found) == len(dict(found)), "a series has two samples"
    return dict(found)


def test_a_race_is_written_with_its_figures_in_base_units() -> None:
    shown = results_of(a_run(), RUN).rows
    found = samples(encoded(shown, FORMATS[".prom"]))
    for row in shown:
        own = {name: value for (name, labels), value in found.items() if ("contestant", row.contestant) in labels}
        assert row.latency_p50_ns is not None
        assert own[f"{PREFIX}latency_p50_seconds"] == pytest.approx(row.latency_p50_ns.value / 1e9)
        assert own[f"{PREFIX}latency_p50_low_seconds"] == pytest.approx((row.latency_p50_ns.low or 0.0) / 1e9)
        assert own[f"{PREFIX}finished"] == 1
        assert own[f"{PREFIX}began_timestamp_seconds"] == 1767323045
        assert f"{PREFIX}energy_per_item_joules" not in own  # absent is no sample, and never 0
    labels = {frozenset(labels) - {("version", "1.0")} for _, labels in found}
    assert all({"workload", "mode", "batch", "device", "conditions"} <= {name for name, _ in each} for each in labels)


@pytest.mark.slow
@settings(max_examples=60)
@given(lists(rows(), max_size=4))
def test_any_rows_are_read_back_by_the_parser(drawn: list[Row]) -> None:
    found = samples(encode(drawn))
    assert {name for name, _ in found} <= {full_name(gauge, end) for gauge, _ in GAUGES for end in ("", "low", "high")}
    assert sum(name == f"{PREFIX}finished" for name, _ in found) <= len(drawn)
    assert not any(math.isnan(value) for value in found.values())


def test_of_two_runs_the_newer_one_is_written() -> None:
    [row, *_] = results_of(a_run(), RUN).rows
    newer = replace(row, recorded_at="2026-02-01T00:00:00+00:00", outcome="crash")
    for both in ([row, newer], [newer, row]):
        found = samples(encode(both))
        assert [value for (name, _), value in found.items() if name == f"{PREFIX}finished"] == [0]


def test_no_rows_are_an_empty_file() -> None:
    assert encode([]) == b""
