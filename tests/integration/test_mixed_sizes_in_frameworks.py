"""Races over a mix of sizes agree with loops by hand over the same lengths, and count what compilers do."""

from __future__ import annotations

import csv
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
from command_line import output, refusal
from fairlap.race.planning.plan_from_request import plan_of
from fairlap.race.run import Run
from fairlap.request.names import Contestants
from fairlap.request.race_request import RaceRequest
from fairlap.request.units import Seconds
from fairlap.results.results import results_of
from machine_marks import needs
from onnx_files import masked_lookup
from small_races import run_race
from small_transformer import by_hand, onnx_file, weights

needs("onnxruntime")

LENGTHS = [16] * 6 + [40] * 9 + [96] * 3 + [200] * 2
DISTINCT = len(set(LENGTHS))
_WITHIN = 0.10  # of quick calls, on a machine that does other things too


@pytest.fixture
def lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    return _file(tmp_path / "lengths.csv", ("sequence",), [(length,) for length in LENGTHS])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return onnx_file(tmp_path / "transformer.onnx")


def _file(path: Path, names: tuple[str, ...], rows: list[tuple[int, ...]]) -> Path:
    with path.open("w", newline="") as opened:
        csv.writer(opened).writerows([names, *rows])
    return path


def _by_hand(framework: str, model: Path, lengths: Path) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__).parents[1] / "support/lengths_by_hand.py"), framework]
    limits = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["taskset", "-c", "0", *command, str(model), str(lengths)],
        env={**os.environ, **limits},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _raced(model: Path, lengths: Path, on: list[str], **options: Any) -> dict[str, Any]:
    usual = {"dims": "batch=1", "blocks": 1, "seconds": 0.4, "threads": 1}
    results = fairlap.compare(str(model), on=on, shapes_from=str(lengths), **{**usual, **options})
    return {row.contestant: row for row in results.rows}


def test_the_transformer_by_hand_is_that_of_the_file(model: Path) -> None:
    import onnxruntime

    ids = np.random.default_rng(1).integers(0, 500, (2, 9))
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    exact = by_hand(np, {name: each.astype(np.float64) for name, each in weights().items()}, ids)
    np.testing.assert_allclose(session.run(None, {"ids": ids})[0], exact, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_the_times_of_each_size_agree_with_a_loop_by_hand_over_the_same_lengths(model: Path, lengths: Path) -> None:
    """By the quick calls of both, which other processes disturb least."""
    request = RaceRequest(
        models=(str(model),),
        contestants=Contestants("onnxruntime"),
        dims="batch=1",
        shapes_from=str(lengths),
        blocks=2,
        seconds=Seconds(0.8),
        threads=1,
    )
    plan, kept = plan_of(request), []
    race = run_race(plan, keep=lambda _process, samples: kept.append(samples))
    [row] = results_of(Run(plan, race.processes, {}, {}, "2026-01-01T00:00:00+00:00"), "r").rows
    assert row.judged_by == "time of a call over the mix"
    assert row.mix == f"{DISTINCT} sizes of sequence"
    counts = Counter(LENGTHS)
    assert [each.share for each in row.mix_by_size] == pytest.approx(
        [counts[length] / len(LENGTHS) for length in sorted(counts)]
    )
    figures = [
        sum(counts[length] * np.median(samples[f"mix-{length}/wall_ns"]) for length in counts) / len(LENGTHS)
        for samples in kept
    ]
    assert row.judged is not None
    assert [each.mix.call_ns for each in race.processes if each.mix is not None] == pytest.approx(figures)
    assert 0.999 * min(figures) <= row.judged.value <= 1.001 * max(figures)
    apart = []
    for _ in range(3):
        by_hand_ns = _by_hand("onnxruntime", model, lengths)["quick_ns"]
        quick_ns = {
            str(length): min(np.quantile(samples[f"mix-{length}/wall_ns"], 0.1) for samples in kept)
            for length in counts
        }
        apart.append(max(abs(quick_ns[length] / ns - 1) for length, ns in by_hand_ns.items()))
    assert min(apart) < _WITHIN, apart


@pytest.mark.slow
def test_jax_compiles_once_for_each_distinct_size_and_onnxruntime_never_again(model: Path, lengths: Path) -> None:
    pytest.importorskip("jax", reason="`make test` installs it and runs this")
    assert _by_hand("jax", model, lengths)["compiled"] == DISTINCT
    rows = _raced(model, lengths, ["jax", "onnxruntime"])
    assert {row.outcome for row in rows.values()} == {"finished"}, [row.message for row in rows.values()]
    assert rows["jax"].mix_compiled == DISTINCT
    assert rows["onnxruntime"].mix_compiled == 1
    seen_later = [each for each in rows["jax"].mix_by_size if each.first_s is not None]
    assert len(seen_later) == DISTINCT - 1
    assert all(each.compiled == 1 for each in seen_later)
    assert all(each.compiled == 0 for each in rows["onnxruntime"].mix_by_size if each.first_s is not None)
    assert rows["jax"].mix_stall_share.value > 0.9
    assert rows["jax"].mix_stalls_s.value > 10 * rows["onnxruntime"].mix_stalls_s.value
    assert rows["jax"].error_relative < 1e-4


@pytest.mark.thorough
def test_torch_compiles_the_graph_of_each_size(tmp_path: Path, lengths: Path) -> None:
    pytest.importorskip("torch", reason="`make test-thorough` installs it and runs this")
    many = _file(lengths, ("sequence",), [(length,) for length in range(8, 17)])  # more than PyTorch's limit
    rows = _raced(masked_lookup(tmp_path / "m.onnx"), many, ["torch:compile", "torch"], seconds=0.05)
    assert {row.outcome for row in rows.values()} == {"finished"}, [row.message for row in rows.values()]
    assert rows["torch:compile"].mix_compiled == 9
    assert rows["torch"].mix_compiled is None
    assert rows["torch:compile"].mix_stalls_s.value > rows["torch"].mix_stalls_s.value


@pytest.mark.thorough
def test_every_framework_that_reads_the_file_runs_the_mix(model: Path, lengths: Path) -> None:
    for module in ("openvino", "tensorflow", "torch", "jax"):
        pytest.importorskip(module, reason="`make test-thorough` installs it and runs this")
    both = _file(lengths, ("batch", "sequence"), [(1, 16), (2, 16), (1, 40), (4, 8)])
    on = ["onnxruntime", "openvino", "torch", "jax", "tensorflow:graph", "tensorflow:xla"]
    rows = _raced(model, both, on, dims=None, seconds=0.05)
    assert {row.outcome for row in rows.values()} == {"finished"}, [row.message for row in rows.values()]
    assert rows["tensorflow:xla"].mix_compiled == 4
    assert [each.size for each in rows["jax"].mix_by_size] == [
        "batch=1,sequence=16",
        "batch=1,sequence=40",
        "batch=2,sequence=16",
        "batch=4,sequence=8",
    ]


@pytest.mark.slow
def test_a_contestant_that_takes_one_size_alone_is_unsupported(model: Path, lengths: Path) -> None:
    rows = _raced(model, lengths, ["onnxruntime", "onnxruntime:over=http"], seconds=0.05)
    assert rows["onnxruntime"].outcome == "finished"
    assert (rows["onnxruntime:over=http"].outcome, rows["onnxruntime:over=http"].code) == (
        "unsupported",
        "E_UNSUPPORTED",
    )


@pytest.mark.slow_but(first=9)
@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("sequence\n6\n0\n", (), "E_SHAPES"),
        ("sequence\n6\nsix\n", (), "E_SHAPES"),
        ("sequence\n", (), "E_SHAPES"),
        ("sequence\n6,7\n", (), "E_SHAPES"),
        ("length\n6\n", (), "E_MODEL_DIMENSIONS"),
        ("batch\n6\n", (), "E_SHAPES"),
        ("sequence\n" + "".join(f"{size}\n" for size in range(1, 34)), (), "E_SHAPES"),
        ("sequence\n6\n", ("--mode", "grad"), "E_SHAPES"),
        ("sequence\n6\n", ("--shapes", "ids:1x6,mask:1x6"), "E_SHAPES"),
        ("sequence\n6\n", ("--sandbox",), "E_SHAPES"),
    ],
)
def test_a_mix_that_cannot_be_raced_is_one_line_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, options: tuple[str, ...], code: str
) -> None:
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    lengths = tmp_path / "lengths.csv"
    lengths.write_text(text)
    model = masked_lookup(tmp_path / "m.onnx")
    asked = ("--dims", "batch=2", "--shapes-from", lengths, "--no-store", "--quiet")
    refused = refusal("compare", model, "--on", "onnxruntime", *asked, *options)
    assert refused.code == code
    assert "\n" not in str(refused)


@pytest.mark.slow
def test_a_size_that_the_model_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table of positions has 16 rows."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    nodes = [helper.make_node("Add", ["x", "table"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "fixed table",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["sequence", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((16, 4), np.float32), "table")],
    )
    file = tmp_path / "table.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 9
    onnx.save_model(made, file)
    lengths = _file(tmp_path / "lengths.csv", ("sequence",), [(16,), (16,), (12,)])
    refused = refusal("compare", file, "--on", "onnxruntime", "--shapes-from", lengths, "--no-store", "--quiet")
    assert refused.code.startswith("E_")
    assert "sequence 12" in str(refused)


def test_built_in_models_have_fixed_inputs(lengths: Path) -> None:
    refused = refusal("compare", "mlp", "--on", "onnxruntime", "--shapes-from", lengths, "--no-store", "--quiet")
    assert refused.code == "E_SHAPES"


@pytest.mark.slow
def test_a_stored_race_is_planned_again_by_its_own_command(model: Path, lengths: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    asked = ("--dims", "batch=1", "--shapes-from", lengths, "--blocks", "2", "--seconds", "0.05")
    first = output("compare", model, "--on", "onnxruntime", *asked, "--dry-run", "--save-plan", plan, "--json")
    assert output("compare", "--plan", plan, "--dry-run", "--json") == first
    [work] = json.loads(first)["works"]
    assert work["source"]["mix"]["calls"] == [6, 9, 3, 2]
