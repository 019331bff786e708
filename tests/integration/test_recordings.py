"""Recordings in LibriSpeech's tree are scored in a race, and learnt to a score."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import SHORT, here
from machine_marks import needed, needs
from recordings import SAID, part_of_speech, with_vocabulary

needs("soundfile")
jiwer = needed("jiwer")

FRAMES, MELS, IDS, SPACE = 320, 80, 32, 4


def rows_in(file: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["outcome"] for row in found} == {"finished"}, [row["message"] for row in found]
    return found


@pytest.mark.slow
def test_a_model_s_frames_are_scored_against_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
    pytest.importorskip("onnxruntime", reason="`make test` installs it and runs this")
    from fairlap.models.published_data.speech.speech_folders import SoundSize, ids_of, short_enough, speech_in
    from onnx import TensorProto, helper, numpy_helper

    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    folder, model = part_of_speech(tmp_path / "test-clean"), with_vocabulary(tmp_path)
    weight = np.random.default_rng(0).normal(0, 1, (MELS, IDS)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "speech",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FRAMES, MELS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", FRAMES, IDS])],
        [numpy_helper.from_array(weight, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
    done = here(
        *("compare", model, "--on", "onnxruntime", "--inputs", folder, "--labels", folder),
        *("--shapes", f"x:3x{FRAMES}x{MELS}", "--metric", f"ctc_cer,ctc_wer@{SPACE}", *SHORT),
        *("-o", tmp_path / "rows.jsonl"),
    )
    assert done.returncode == 0, done.stderr
    size = SoundSize.of_frames(FRAMES, MELS)
    ids = json.loads((tmp_path / "vocab.json").read_text())
    given, right = [], []
    for each in short_enough(speech_in(folder), size):
        best = (size.taken(each.sound()) @ weight).argmax(axis=1).tolist()
        given.append([one for one, _ in groupby(best) if one])
        right.append(ids_of(each, ids))
    characters = jiwer.wer([" ".join(map(str, row)) for row in right], [" ".join(map(str, row)) for row in given])
    words = jiwer.wer([spelt(row) for row in right], [spelt(row) for row in given])
    [row] = rows_in(tmp_path / "rows.jsonl")
    assert row["scores"]["ctc_cer"]["items"] == len(right) == 7
    assert row["scores"]["ctc_cer"]["value"] == pytest.approx(characters)
    assert row["scores"][f"ctc_wer@{SPACE}"]["value"] == pytest.approx(words)


def spelt(row: list[int]) -> str:
    """Write ids as letters, with spaces between words."""
    return " ".join("".join(chr(ord("A") + each) if each != SPACE else " " for each in row).split())


@pytest.mark.slow
def test_a_conformer_learns_recordings_to_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="`make test` installs it and runs this")
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    folder = part_of_speech(tmp_path / "dev-clean", {(84, 1): [row for rows in SAID.values() for row in rows]})
    done = here(
        *("compare", "conformer:tiny", "--on", "torch", "--mode", "train", "--to-score", "99%", "--epochs", "1"),
        *("--train-on", folder, "--batch", "2", "--metric", "ctc_cer", *SHORT, "-o", tmp_path / "rows.jsonl"),
    )
    [row] = rows_in(tmp_path / "rows.jsonl")
    assert row["reached_share"] == 0, done.stderr
    assert row["best_score"] == pytest.approx(1 - row["scores"]["ctc_cer"]["value"])
