"""``fairlap time --axis`` writes every format, keeps what it measured, and refuses what it cannot honour."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke, refusal

KERNELS = """
def draw(rng, n=1024):
    return (rng.random(n).tolist(),)

def largest(values):
    return max(values)

def ordered(values):
    return sorted(values)

def fails_above_4(values):
    if len(values) > 4:
        raise ValueError("too long")

def fails(values):
    raise ValueError("always")

def nbytes(n):
    return 8 * n
"""
TWO = ("axis_kernels:largest", "axis_kernels:ordered")
DRAWN = ("--inputs", "axis_kernels:draw", "--any-answers")


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "axis_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("axis_kernels", None)


@pytest.mark.slow
def test_every_format_is_written_from_one_comparison(tmp_path: Path) -> None:
    files = {suffix: tmp_path / f"found.{suffix}" for suffix in ("html", "svg", "md", "csv", "json")}
    outputs = [text for file in files.values() for text in ("-o", str(file))]
    done = invoke("time", *TWO, *DRAWN, "--axis", "n=16..256:x4", "--blocks", "8", "--seconds", "1ms", *outputs)
    assert done.exit_code == 0
    document = json.loads(files["json"].read_text())
    assert [each["point"] for each in document["points"]] == [{"n": 16}, {"n": 64}, {"n": 256}]
    assert document["points"][0]["blocks"] == 8
    lines = list(csv.DictReader(files["csv"].open()))
    assert [(line["n"], line["callable"]) for line in lines[:2]] == [("16", TWO[0]), ("16", TWO[1])]
    assert all(bool(line["verdict"]) == (line["callable"] == TWO[1]) for line in lines)
    assert files["svg"].read_text().startswith("<svg")
    assert "<svg" not in files["md"].read_text()
    assert all(str(n) in files["md"].read_text() for n in (16, 64, 256))


def test_json_alone_is_on_standard_output(tmp_path: Path) -> None:
    axes = ("--axis", "n=16,64", "--seed", "3", "--blocks", "6", "--seconds", "1ms", "--json", "--raw")
    done = invoke("time", *TWO, *DRAWN, *axes)
    document = json.loads(done.stdout)
    assert (document["seed"], document["size_axis"], document["axes"]) == (3, "n", {"n": [16, 64]})
    assert len(document["points"][0]["rows"][0]["block_medians_ns"]) == 6


def test_a_point_that_fails_makes_the_status_2_and_leaves_the_others() -> None:
    names = ("axis_kernels:largest", "axis_kernels:fails_above_4")
    done = invoke("time", *names, *DRAWN, "--axis", "n=4,16", "--blocks", "6", "--seconds", "1ms", "--json")
    assert done.exit_code == 2
    kept, failed = json.loads(done.stdout)["points"]
    assert (kept["blocks"], kept["code"]) == (6, "")
    assert (failed["blocks"], failed["code"]) == (0, "E_POINT")


def test_a_wrong_answer_makes_the_status_1() -> None:
    axes = ("--inputs", "axis_kernels:draw", "--axis", "n=4,16", "--blocks", "6", "--seconds", "1ms", "--json")
    done = invoke("time", *TWO, "--reference", TWO[0], *axes)
    assert done.exit_code == 1
    points = json.loads(done.stdout)["points"]
    assert [point["answers"]["wrong"][TWO[1]]["code"] for point in points] == ["E_OUTPUT"] * 2


def test_where_no_point_can_be_timed_it_is_an_error() -> None:
    names = ("axis_kernels:largest", "axis_kernels:fails")
    assert refusal("time", *names, *DRAWN, "--axis", "n=4,16").code == "E_POINT"


@pytest.mark.parametrize(
    "arguments",
    [
        (*TWO, "--axis", "n=4"),
        (TWO[0], *DRAWN, "--axis", "n=4"),
        (*TWO, "--bytes", "axis_kernels:nbytes"),
        (*TWO, *DRAWN, "--axis", "n=4", "--axis", "n=8"),
        (*TWO, *DRAWN, "--axis", "m=4"),
        (*TWO, *DRAWN, "--axis", "n=4..8"),
        (*TWO, *DRAWN, "--axis", "n=4", "--only-winner"),
        (*TWO, *DRAWN, "--axis", "n=4", "--grid", "4"),
        (*TWO, *DRAWN, "--inputs", "axis_kernels:draw", "--axis", "n=4"),
        (*TWO, *DRAWN, "--axis", "layout=sideways"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments: tuple[str, ...]) -> None:
    assert refusal("time", *arguments).code == "E_AXIS"


def test_a_file_of_another_format_is_refused_before_anything_runs(tmp_path: Path) -> None:
    axes = ("--axis", "n=4", "-o", str(tmp_path / "found.parquet"))
    assert refusal("time", *TWO, *DRAWN, *axes).code == "E_OUTPUT_FORMAT"
