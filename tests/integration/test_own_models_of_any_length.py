"""Models of one's own over lengths that change, padded or not, against loops by hand over the same lengths."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import fairlap
import numpy as np
import pytest
from command_line import refusal
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from machine_marks import needs
from small_races import run_race

LENGTHS = [12] * 5 + [20] * 8 + [40] * 4 + [90] * 3
DISTINCT = len(set(LENGTHS))
SUPPORT = Path(__file__).parents[1] / "support"
_WITHIN = 0.12  # of quick calls, on a machine that does other things too

needs("torch", reason="`make test-thorough` installs it and runs this")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a user would be whose code has these models."""
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(SUPPORT)


@pytest.fixture
def lengths(tmp_path: Path) -> Path:
    return _file(tmp_path / "lengths.csv", "seq")


def _file(path: Path, name: str, lengths: list[int] = LENGTHS) -> Path:
    path.write_text("\n".join([name, *map(str, lengths)]))
    return path


def _by_hand(framework: str, buckets: str) -> dict[str, Any]:
    command = [sys.executable, str(SUPPORT / "padded_by_hand.py"), framework, buckets, ",".join(map(str, LENGTHS))]
    limits = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["taskset", "-c", "0", *command], env={**os.environ, **limits}, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _raced(model: str | Path, sizes: str | Path, on: str, **options: Any) -> dict[str, Any]:
    usual = {"blocks": 1, "seconds": 0.1, "threads": 1}
    results = fairlap.compare(str(model), on=on.split(","), shapes_from=str(sizes), **{**usual, **options})
    rows = {row.contestant: row for row in results.rows}
    assert {row.outcome for row in rows.values()} == {"finished"}, [row.message for row in rows.values()]
    return rows


def _quick_ns(model: str, lengths: Path, contestant: str) -> dict[str, float]:
    request = RaceRequest(
        models=(model,),
        contestants=Contestants(contestant),
        shapes_from=str(lengths),
        blocks=2,
        seconds=Seconds(0.6),
        threads=1,
    )
    kept: list[Any] = []
    run_race(plan_of(request), keep=lambda _process, samples: kept.append(samples))
    return {
        str(length): min(float(np.quantile(samples[f"mix-{length}/wall_ns"], 0.1)) for samples in kept)
        for length in set(LENGTHS)
    }


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize("buckets", ["none", "24+96"])
def test_times_agree_with_a_loop_by_hand_which_pads_as_well(framework: str, buckets: str, lengths: Path) -> None:
    """By the quick calls of both, which other processes disturb least."""
    pytest.importorskip(framework, reason="`make test-thorough` installs it and runs this")
    model = {"torch": "own_lengths:encoder", "jax": "own_lengths:jax_encoder"}[framework]
    contestant = framework if buckets == "none" else f"{framework}:bucket={buckets}"
    quick_ns = _quick_ns(model, lengths, contestant)
    apart = []
    for _ in range(3):
        by_hand = _by_hand(framework, buckets)
        assert by_hand["apart"] < 1e-4
        assert by_hand["compiled"] == {"torch": 0, "jax": DISTINCT if buckets == "none" else 2}[framework]
        apart.append(max(abs(quick_ns[length] / ns - 1) for length, ns in by_hand["quick_ns"].items()))
    assert min(apart) < _WITHIN, apart


@pytest.mark.slow
def test_a_bucketed_contestant_compiles_fewer_graphs_and_answers_the_same(lengths: Path) -> None:
    pytest.importorskip("jax", reason="`make test-thorough` installs it and runs this")
    padded = "jax:bucket=24+96"
    rows = _raced("own_lengths:jax_encoder", lengths, f"jax,{padded},jax:pad=128")
    assert {name: row.mix_compiled for name, row in rows.items()} == {"jax": DISTINCT, padded: 2, "jax:pad=128": 1}
    assert {row.mix for row in rows.values()} == {f"{DISTINCT} sizes of seq"}
    counts = Counter(LENGTHS)
    for row in rows.values():
        assert row.error_relative < 1e-4
        assert [each.share for each in row.mix_by_size] == pytest.approx(
            [counts[length] / len(LENGTHS) for length in sorted(counts)]
        )
    assert [each.compiled for each in rows[padded].mix_by_size if each.first_s is not None].count(1) == 1
    assert rows[padded].mix_stalls_s.value < rows["jax"].mix_stalls_s.value
    at_small = {name: row.mix_by_size[0].call_ns.value for name, row in rows.items()}
    assert at_small["jax:pad=128"] > 1.2 * at_small["jax"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "contestant"),
    [
        ("own_lengths:averaging", "torch:pad=64"),
        ("own_lengths:averaging", "torch:compile:bucket=32+96"),
        ("own_lengths:jax_averaging", "jax:pad=64"),
        ("convnet", "torch:pad=16"),
    ],
)
def test_a_model_that_averages_over_the_padding_is_refused_by_name(model: str, contestant: str, tmp_path: Path) -> None:
    sizes = _file(tmp_path / "sizes.csv", "image" if model == "convnet" else "seq", [12, 20, 20])
    refused = refusal("compare", model, "--on", contestant, "--shapes-from", sizes, "--no-store", "--quiet")
    assert refused.code == "E_PADDING"
    assert contestant in str(refused)


@pytest.mark.slow
def test_a_contestant_that_runs_one_size_alone_runs_all_of_them_padded(lengths: Path) -> None:
    """The export of a module has the size that it was exported with."""
    pytest.importorskip("onnxruntime", reason="`make test-thorough` installs it and runs this")
    results = fairlap.compare(
        "own_lengths:encoder",
        on=["torch", "onnxruntime", "onnxruntime:bucket=96"],
        shapes_from=str(lengths),
        blocks=1,
        seconds=0.1,
        threads=1,
    )
    rows = {row.contestant: row for row in results.rows}
    assert {name: row.outcome for name, row in rows.items()} == {
        "torch": "finished",
        "onnxruntime": "unsupported",
        "onnxruntime:bucket=96": "finished",
    }
    assert rows["onnxruntime:bucket=96"].mix_compiled == 1
    error = rows["onnxruntime:bucket=96"].error_relative
    assert error is not None
    assert error < 1e-4


@pytest.mark.thorough
def test_a_module_compiles_once_more_for_any_size_and_once_where_it_is_padded_to_one(lengths: Path) -> None:
    rows = _raced("own_lengths:encoder", lengths, "torch,torch:compile,torch:compile:pad=96")
    assert rows["torch"].mix_compiled is None
    assert rows["torch:compile"].mix_compiled == 2
    assert rows["torch:compile:pad=96"].mix_compiled == 1


@pytest.mark.slow
def test_an_exported_program_takes_the_sizes_that_it_leaves_open(tmp_path: Path) -> None:
    from own_lengths import exported

    file = exported(tmp_path / "encoder.pt2")
    rows = _raced(file, "ids:1=uniform:30..32", "torch,torch:pad=32")
    assert sum(each.share for each in rows["torch"].mix_by_size) == pytest.approx(1)
    assert [each.size for each in rows["torch"].mix_by_size] == ["30", "31", "32"]
    for name, low in (("ids:1", "300..400"), ("ids:0", "2..3"), ("words:1", "8..9"), ("seq", "8..9")):
        refused = refusal("compare", file, "--on", "torch", "--shapes-from", f"{name}=uniform:{low}", "--no-store")
        assert refused.code == "E_MODEL_DIMENSIONS", name


@pytest.mark.thorough
def test_a_keras_file_takes_the_sizes_that_it_leaves_open(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="`make test-thorough` installs it and runs this")
    pytest.importorskip("jax", reason="`make test-thorough` installs it and runs this")
    command = "import sys; from own_lengths import in_keras; from pathlib import Path; in_keras(Path(sys.argv[1]))"
    file = tmp_path / "tokens.keras"
    subprocess.run([sys.executable, "-c", command, str(file)], check=True, cwd=SUPPORT, capture_output=True)
    sizes = _file(tmp_path / "sizes.csv", "ids:1", [8, 8, 21, 40])
    on = "tensorflow:graph,jax,torch,tensorflow:graph:bucket=24+40,jax:pad=40"
    rows = _raced(file, sizes, on, batch=1)
    compiled = {name: row.mix_compiled for name, row in rows.items()}
    assert compiled == {
        "tensorflow:graph": 3,
        "jax": 3,
        "torch": None,
        "tensorflow:graph:bucket=24+40": 2,
        "jax:pad=40": 1,
    }


@pytest.mark.slow
def test_a_model_of_transformers_is_padded_with_its_mask(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="`make test-thorough` installs it and runs this")
    from transformers_folders import folder_of

    sizes = _file(tmp_path / "sizes.csv", "sequence", [4, 9, 9, 13])
    rows = _raced(f"hf:{folder_of(tmp_path / 'bert', 'bert')}", sizes, "torch,torch:bucket=8+16", dims="batch=2")
    assert rows["torch:bucket=8+16"].error_relative < 1e-4
    refused = refusal(
        "compare", f"hf:{tmp_path / 'bert'}", "--on", "torch", "--shapes-from", "length=uniform:4..9", "--no-store"
    )
    assert refused.code == "E_MODEL_DIMENSIONS"


@pytest.mark.slow
def test_a_built_in_model_takes_its_free_size(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="`make test-thorough` installs it and runs this")
    rows = _raced("convnet", _file(tmp_path / "sizes.csv", "image", [8, 16, 16]), "torch,jax", batch=2)
    assert rows["jax"].mix_compiled == 2
    assert [each.size for each in rows["torch"].mix_by_size] == ["8", "16"]
    assert all(row.error_relative < 1e-4 for row in rows.values())


@pytest.mark.thorough
def test_a_built_in_model_with_a_mask_is_padded(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="`make test-thorough` installs it and runs this")
    rows = _raced("bert_base", _file(tmp_path / "sizes.csv", "tokens", [6, 11, 11]), "torch,torch:pad=16,jax:pad=16")
    assert rows["jax:pad=16"].mix_compiled == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "sizes", "contestant", "code"),
    [
        ("own_lengths:encoder", "length=uniform:8..9", "torch", "E_SHAPES"),
        ("own_lengths:of_one_size", "seq=uniform:8..9", "torch", "E_SHAPES"),
        ("own_lengths:unseeded", "seq=uniform:8..9", "torch", "E_SHAPES"),
        ("own_lengths:encoder", "seq=uniform:8..40", "torch:bucket=16+32", "E_PADDING"),
    ],
)
def test_sizes_that_a_function_does_not_take_are_refused(model: str, sizes: str, contestant: str, code: str) -> None:
    asked = ("--on", contestant, "--shapes-from", sizes, "--no-store", "--quiet")
    assert refusal("compare", model, *asked).code == code


@pytest.mark.parametrize(
    ("model", "contestant", "asked", "code"),
    [
        ("mlp", "torch", ("--shapes-from", "tokens=uniform:8..9"), "E_SHAPES"),
        ("convnet", "torch", ("--shapes-from", "image=uniform:4..9"), "E_SHAPES"),
        ("convnet", "torch", ("--shapes-from", "image=uniform:0..9"), "E_SHAPES"),
        ("convnet", "torch", ("--shapes-from", "image=gaussian(8,1):8..16"), "E_SHAPES"),
        ("convnet", "torch", ("--shapes-from", "image=uniform:8..8", "--batch", "1,2"), "E_SHAPES"),
        ("convnet", "torch:pad=16", (), "E_PADDING"),
        ("convnet", "torch:best:pad=16", ("--shapes-from", "image=uniform:8..9"), "E_PADDING"),
        ("convnet", "torch:pad=16", ("--shapes-from", "image=uniform:8..8"), "E_PADDING"),
        ("convnet", "torch:pad=sixteen", ("--shapes-from", "image=uniform:8..9"), "E_CONTESTANT"),
    ],
)
def test_what_cannot_be_padded_is_one_line_with_a_code(
    model: str, contestant: str, asked: tuple[str, ...], code: str
) -> None:
    refused = refusal("compare", model, "--on", contestant, *asked, "--no-store", "--quiet")
    assert refused.code == code
    assert "\n" not in str(refused)
