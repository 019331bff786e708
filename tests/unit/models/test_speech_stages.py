"""Features of speech are those that a filter bank by hand and Whisper's own code make; frames spell texts."""

from __future__ import annotations

import wave
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS
from fairlap.bench_models.conformer.stages import SAMPLES, greedy, log_mel, samples, text
from fairlap.models.published_data.speech.log_mel import HOP, RATE, WINDOW, mel_bands


@pytest.fixture
def sound() -> np.ndarray:
    """Two notes, of which one rises, in noise."""
    seconds = np.arange(SAMPLES) / RATE
    notes = 0.3 * np.sin(2 * np.pi * 440 * seconds) + 0.2 * np.sin(2 * np.pi * (900 + 500 * seconds) * seconds)
    return notes + np.random.default_rng(0).normal(0, 0.01, SAMPLES)


def recorded(path: Path, sound: np.ndarray, rate: int = RATE, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.round(sound * 32_767).astype("<i2").tobytes())
    return path


def test_features_are_those_of_whisper_s_own_code(sound: np.ndarray) -> None:
    transformers = pytest.importorskip("transformers", reason="`make test` installs it and runs this")
    theirs = transformers.WhisperFeatureExtractor(feature_size=MELS, chunk_length=SAMPLES / RATE)
    theirs.n_samples = SAMPLES
    expected = theirs._np_extract_fbank_features(sound[None], "cpu")[0]
    np.testing.assert_allclose(log_mel(sound)[0], expected.T, atol=1e-4)


def test_powers_are_those_of_a_sum_over_every_window_and_of_torch_s_stft(sound: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    turned = np.exp(-2j * np.pi * np.outer(np.arange(WINDOW), np.arange(WINDOW // 2 + 1)) / WINDOW)
    hann = np.sin(np.pi * np.arange(WINDOW) / WINDOW) ** 2
    padded = np.concatenate([sound[WINDOW // 2 : 0 : -1], sound, sound[-2 : -WINDOW // 2 - 2 : -1]])
    powers = np.array([abs((padded[n * HOP : n * HOP + WINDOW] * hann) @ turned) ** 2 for n in range(FRAMES)])
    window = torch.hann_window(WINDOW, dtype=torch.float64)
    stft = torch.stft(torch.tensor(sound), WINDOW, HOP, window=window, center=True, return_complex=True)
    np.testing.assert_allclose(powers, (stft.abs() ** 2).numpy().T[:FRAMES], rtol=1e-6, atol=1e-9)
    by_hand = np.log10(np.maximum(powers @ mel_bands(MELS).T, 1e-10))
    np.testing.assert_allclose(log_mel(sound)[0], (np.maximum(by_hand, by_hand.max() - 8) + 4) / 4, atol=1e-6)


def test_each_band_is_a_triangle_of_area_one_and_they_are_even_below_a_kilohertz() -> None:
    bands, apart = mel_bands(MELS), RATE / WINDOW
    wide = bands[60:]  # those that hold enough frequencies for a sum
    np.testing.assert_allclose(wide.sum(axis=1) * apart, 1.0, rtol=0.05)
    tops = bands.argmax(axis=1) * apart
    assert np.all(np.diff(tops) >= 0)
    assert tops[-1] < RATE / 2


def test_a_recording_is_cut_or_filled_up_with_silence(tmp_path: Path, sound: np.ndarray) -> None:
    long, short = np.tile(sound, 2), sound[: SAMPLES // 2]
    np.testing.assert_allclose(samples(recorded(tmp_path / "a.wav", long)), sound, atol=1e-4)
    found = samples(recorded(tmp_path / "b.wav", short))
    np.testing.assert_allclose(found[: SAMPLES // 2], short, atol=1e-4)
    assert not found[SAMPLES // 2 :].any()


@pytest.mark.parametrize(("rate", "channels"), [(44_100, 1), (RATE, 2)])
def test_another_kind_of_recording_is_refused(tmp_path: Path, sound: np.ndarray, rate: int, channels: int) -> None:
    path = recorded(tmp_path / "a.wav", sound, rate, channels)
    with pytest.raises(ValueError, match=f"{channels}, 16, {rate}"):
        samples(path)


def test_the_likeliest_characters_spell_a_text_without_blanks_and_repetitions() -> None:
    path = "__hh_ee_ll_lllo___  bb_yye_"
    logits = np.full((1, len(path), len(CHARACTERS)), -1.0)
    logits[0, np.arange(len(path)), [CHARACTERS.index(each) for each in path]] = 2.0
    assert text(greedy({"logits": logits})) == "hello bye"
    drawn = np.random.default_rng(0).normal(size=(1, FRAMES, len(CHARACTERS)))
    best = drawn[0].argmax(axis=1).tolist()
    assert greedy({"logits": drawn}) == [each for each, _ in groupby(best) if each]
