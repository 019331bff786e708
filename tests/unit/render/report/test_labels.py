"""Labels of contestants in charts are short and tell the contestants apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fairlap.render.charts.parts.labels import NARROW, WIDE, short_names
from fairlap.render.charts.parts.static import write_charts
from fairlap.results.results import results_of
from runs_to_show import run_of, samples

PORTS = ("http://127.0.0.1:18001", "http://127.0.0.1:18002")
HOSTS = ("http://inference.example.org:18001", "http://inference.example.org:18002")
SERVED = tuple(f"{port}/v2/models/resnet50/infer" for port in PORTS)
VERSIONS = tuple(f"onnxruntime:openvino:threads=2=={version}.0.0" for version in (1, 2))


@pytest.mark.parametrize("names", [PORTS, SERVED, VERSIONS, ("torch", *SERVED), (*PORTS, *VERSIONS)])
@pytest.mark.parametrize("most", [WIDE, NARROW])
def test_shortened_names_are_distinct(names: tuple[str, ...], most: int) -> None:
    short = short_names(names, most)
    assert set(short) == set(names)
    assert len(set(short.values())) == len(names)
    assert all(len(each) <= most for each in short.values())


def test_short_names_stay_and_long_ones_are_cut_in_the_middle() -> None:
    assert short_names(("torch", "a" * 30 + "b" * 30), WIDE) == {
        "torch": "torch",
        "a" * 30 + "b" * 30: "a" * 9 + "…" + "b" * 10,
    }


def test_names_that_no_cut_tells_apart_stay_whole() -> None:
    names = ("a" * 61, "a" * 15 + "b" + "a" * 45, "a" * 45 + "b" + "a" * 15)
    assert short_names(names, WIDE) == dict(zip(names, names, strict=True))


@pytest.mark.slow
def test_no_two_lines_and_no_two_keys_of_a_chart_have_the_same_label(tmp_path: Path) -> None:
    shown = results_of(run_of(HOSTS, batches=(4,)), "r", samples=samples)
    for path in write_charts(shown, tmp_path):
        if path.suffix == ".svg":
            ends = {text[-4:] for text in re.findall(r">([^<>]*http[^<>]*)</text>", path.read_text())}
            assert ends in ({"8001", "8002"}, set()), path.name
