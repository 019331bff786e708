"""Recordings of LibriSpeech become what a conformer or a user's model hears; another tree is a line with the file."""

from __future__ import annotations

import json
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS
from fairlap.bench_models.conformer.stages import SAMPLES, log_mel, samples
from fairlap.data.labelled.opening import LONGEST, data_named, items_in
from fairlap.errors import FairlapError
from fairlap.models.published_data.speech.speech_folders import holds_speech, refuse_beside_speech
from fairlap.models.registry import find
from fairlap.models.sources.given_data.labels import labels_in
from fairlap.models.sources.given_data.reading import given_files, inputs_of
from fairlap.request.fields.source import Source
from fairlap.scenarios.learning.race.learning_data import data_to_learn
from recordings import RATE, SAID, part_of_speech, sound, with_vocabulary

soundfile: Any = pytest.importorskip("soundfile", reason="`make test` installs it and runs this")

KEPT = ["NOR IS MISTER QUILTER'S", "I", "AND WHY", "GO", "DO YOU KNOW THE COUNT OF MONTE CRISTO'S", "OH"]
"""In the order of the folders' names; one text is longer than a label, and one recording than the model hears."""


def asked(folder: Path, model: Path, sizes: tuple[int, ...] = (2, FRAMES, MELS)) -> Source:
    return Source(str(model), str(model), inputs=str(folder), labels=str(folder), shapes=(("x", sizes),))


def test_a_conformer_learns_what_a_loop_by_hand_reads(tmp_path: Path) -> None:
    found = items_in(data_named(str(part_of_speech(tmp_path / "dev-clean"))))
    assert found.classes == tuple(CHARACTERS)
    assert found.inputs["features"].shape == (len(KEPT), FRAMES, MELS)
    assert found.labels.shape == (len(KEPT), LONGEST)
    spelt = ["".join(CHARACTERS[each] for each in row if each).upper() for row in found.labels]
    assert spelt == KEPT
    whole = np.pad(sound(2, 16_000) / 32_768, (0, SAMPLES - 16_000))  # of "AND WHY"
    np.testing.assert_array_equal(found.inputs["features"][2], log_mel(whole)[0])
    assert found.held_out is None
    assert "6 of 8" in found.origin


def test_a_recording_is_the_same_in_flac_and_in_wav(tmp_path: Path) -> None:
    drawn = sound(0, SAMPLES + 5)
    soundfile.write(tmp_path / "a.flac", drawn, RATE, subtype="PCM_16")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(drawn.astype("<i2").tobytes())
    np.testing.assert_array_equal(samples(tmp_path / "a.flac"), samples(tmp_path / "a.wav"))


def test_a_conformer_takes_them(tmp_path: Path) -> None:
    notices: list[str] = []
    folder = part_of_speech(tmp_path / "dev-clean")
    data, spec = data_to_learn(find("conformer:tiny"), str(folder), 1.0, notices.append)
    assert (spec.name, data.hash) == ("conformer:tiny", items_in(data).hash)
    assert len(notices) == 1
    with pytest.raises(FairlapError) as refused:
        data_to_learn(find("digits"), str(folder), 1.0, notices.append)
    assert refused.value.code == "E_DATA"


def test_a_folder_above_or_below_the_right_one_is_answered_with_that(tmp_path: Path) -> None:
    part = part_of_speech(tmp_path / "unpacked" / "LibriSpeech" / "dev-clean")
    chapter = next(part.glob("*/*/"))
    model = with_vocabulary(tmp_path)
    above = ((part.parents[2], part.parent), (part.parents[1], part.parent))
    for folder, right in (*above, (chapter.parent, part), (chapter, part)):
        source = asked(folder, model)
        readers: tuple[Callable[[], object], ...] = (
            lambda source=source: inputs_of(source),  # type: ignore[misc]
            lambda source=source: labels_in(source.labels, ["ctc_cer"], source),  # type: ignore[misc]
            lambda folder=folder: items_in(data_named(str(folder))),  # type: ignore[misc]
        )
        for read in readers:
            with pytest.raises(FairlapError) as refused:
                read()
            assert refused.value.code == "E_DATA"
            assert f" {right};" in str(refused.value)


def test_of_several_parts_those_to_test_are_held_out(tmp_path: Path) -> None:
    for name in ("train-clean-100", "train-other-500", "dev-clean", "test-clean"):
        part_of_speech(tmp_path / name)
    (tmp_path / "SPEAKERS.TXT").write_text(";ID\n")
    found = items_in(data_named(str(tmp_path)))
    assert found.held_out is not None
    assert found.held_out.tolist() == [False] * 12 + [True] * 6
    [inputs] = inputs_of(asked(tmp_path, with_vocabulary(tmp_path)))
    assert len(inputs[""]) == 7  # a text of any length is scored


def test_a_model_of_one_s_own_hears_features_or_samples_and_spells_by_its_vocabulary(tmp_path: Path) -> None:
    folder, model = part_of_speech(tmp_path / "dev-clean"), with_vocabulary(tmp_path)
    source = asked(folder, model)
    [inputs] = inputs_of(source)
    labels = labels_in(source.labels, ["ctc_cer"], source)
    ids = json.loads((tmp_path / "vocab.json").read_text())
    assert inputs[""].shape == (7, FRAMES, MELS)
    assert labels.shape == (7, max(map(len, [*KEPT, SAID[84, 121550][0][0]])))
    assert [each for each in labels[2] if each != -100] == [ids[each] for each in "AND|WHY"]
    assert model.parent / "vocab.json" in given_files(source)
    [heard] = inputs_of(asked(folder, model, (2, 20_000)))
    assert heard[""].shape == (4, 20_000)  # four are that short
    np.testing.assert_array_equal(heard[""][2][:16_000], (sound(2, 16_000) / 32_768).astype(np.float32))
    assert not heard[""][2][16_000:].any()
    assert labels_in(str(folder), ["ctc_cer"], asked(folder, model, (2, 20_000))).shape[0] == 4


def test_many_recordings_are_kept_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlap.models.array_files import stored_rows

    data = data_named(str(part_of_speech(tmp_path / "dev-clean")))
    before = items_in(data)
    monkeypatch.setattr(stored_rows, "IN_MEMORY_BYTES", 4 * FRAMES * MELS + 1)
    monkeypatch.setenv("FAIRLAP_CACHE", str(tmp_path / "cache"))
    after = items_in(data)
    assert not after.inputs["features"].flags.owndata
    assert after.hash == before.hash


CHAPTER = Path("84") / "121123"
TEXTS = CHAPTER / "84-121123.trans.txt"


def rewritten(change: Callable[[str], str]) -> Callable[[Path], object]:
    return lambda folder: (folder / TEXTS).write_text(change((folder / TEXTS).read_text()))


def recorded(rate: int = RATE, channels: int = 1, subtype: str = "PCM_16") -> Callable[[Path], object]:
    name = CHAPTER / "84-121123-0000.flac"
    return lambda folder: soundfile.write(folder / name, np.zeros((900, channels), np.int16), rate, subtype=subtype)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: (folder / TEXTS).unlink(), TEXTS.name),
        (lambda folder: (folder / CHAPTER / "84-121123-0001.flac").unlink(), "84-121123-0001.flac"),
        (lambda folder: (folder / CHAPTER / "84-121123-0009.flac").write_bytes(b""), "84-121123-0009.flac"),
        (lambda folder: (folder / CHAPTER / "84-121123-0001.mp3").write_bytes(b""), "84-121123-0001.mp3"),
        (lambda folder: (folder / CHAPTER / "84-121123-0000.flac").write_bytes(b"no sound"), "84-121123-0000.flac"),
        (lambda folder: (folder / "READER.txt").write_text("x"), "READER.txt"),
        (lambda folder: (folder / "84" / "notes").mkdir(), "notes"),
        (rewritten(lambda text: text.replace("-0001 ", "-0000 ")), "line 2"),
        (rewritten(lambda text: text.replace("84-121123-0001", "85-121123-0001")), "line 2"),
        (rewritten(lambda text: text.replace(" GO", "")), "line 1"),
        (rewritten(lambda text: text.replace("GO", "go")), "line 1"),
        (rewritten(lambda text: text.replace("GO", "GÖ")), TEXTS.name),
        (recorded(rate=8_000), "84-121123-0000.flac"),
        (recorded(channels=2), "84-121123-0000.flac"),
        (recorded(subtype="PCM_24"), "84-121123-0000.flac"),
    ],
)
def test_another_tree_is_a_line_with_the_file(tmp_path: Path, change: Callable[[Path], object], named: str) -> None:
    folder = part_of_speech(tmp_path / "dev-clean")
    change(folder)
    with pytest.raises(FairlapError) as refused:
        items_in(data_named(str(folder)))
    assert refused.value.code == "E_DATA"
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_recording_that_is_cut_off_is_named(tmp_path: Path) -> None:
    folder = part_of_speech(tmp_path / "dev-clean")
    file = folder / CHAPTER / "84-121123-0001.flac"
    file.write_bytes(file.read_bytes()[:-2000])
    with pytest.raises(FairlapError) as refused:
        items_in(data_named(str(folder)))
    assert (refused.value.code, file.name in str(refused.value)) == ("E_DATA", True)


def test_where_no_recording_is_short_enough_that_is_said(tmp_path: Path) -> None:
    folder = part_of_speech(tmp_path / "dev-clean", {(84, 1): [("GO", SAMPLES + 1)] * 6})
    with pytest.raises(FairlapError) as refused:
        items_in(data_named(str(folder)))
    assert refused.value.code == "E_DATA"


def refused_labels(source: Source) -> str:
    with pytest.raises(FairlapError) as refused:
        labels_in(source.labels, ["ctc_cer"], source)
    assert refused.value.code == "E_DATA"
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_vocabulary_is_needed_with_every_character_and_its_blank_first(tmp_path: Path) -> None:
    source = asked(part_of_speech(tmp_path / "dev-clean"), tmp_path / "m.onnx")
    assert "vocab.json" in refused_labels(source)
    vocabulary = tmp_path / "vocab.json"
    for content, named in {
        '["A"]': vocabulary.name,
        '{"A": 1, " ": 2}': "1272-128104-0000.flac",
        json.dumps({"[PAD]": 5, **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ '", 6)}): vocabulary.name,
    }.items():
        vocabulary.write_text(content)
        assert named in refused_labels(source)
    assert "--shapes" in refused_labels(msgspec.structs.replace(source, shapes=()))


def test_without_inputs_the_current_folder_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(part_of_speech(tmp_path / "dev-clean"))
    assert holds_speech(Path())
    assert inputs_of(msgspec.structs.replace(asked(tmp_path, tmp_path / "m.onnx"), inputs="")) == []


def test_folders_of_images_are_none_of_recordings(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "1.png").write_bytes(b"")
    assert not holds_speech(tmp_path)
    assert not holds_speech(tmp_path / "0" / "1.png")
    assert not holds_speech(tmp_path / "missing")


def test_the_part_above_is_named_where_it_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of_speech(tmp_path / "dev-clean")
    chapter = next(part.glob("*/*/"))
    listed = Path.iterdir

    def within(folder: Path) -> Iterator[Path]:
        if not folder.is_relative_to(chapter.parent):
            raise PermissionError(13, "Permission denied", str(folder))  # as in a sandbox
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", within)
    for folder in (chapter, chapter.parent):
        with pytest.raises(FairlapError) as refused:
            refuse_beside_speech(folder)
        assert refused.value.code == "E_DATA"
        assert f" {part};" in str(refused.value)
