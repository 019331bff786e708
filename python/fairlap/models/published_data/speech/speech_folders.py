"""LibriSpeech's trees of recordings: ``SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac``, and a text file in each chapter.

``SPEAKER-CHAPTER.trans.txt`` has a line for each recording: its name, and what is said in capital letters. A folder is
one part, such as ``dev-clean``, or the folder of several: ``train-*`` are learnt from, ``test-*``, else ``dev-*``, are
held out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fairlap.models.published_data.published_images import Array, refuse
from fairlap.models.published_data.speech.log_mel import HOP, RATE, log_mel_frames

_TRAIN, _HELD_OUT = "train-", ("test-", "dev-")
_TEXTS = ".trans.txt"
_LINE = re.compile(r"(?P<name>\d+-\d+-\d{4,}) (?P<text>[A-Z' ]*[A-Z][A-Z' ]*)")
_MOST_SHOWN = 40


@dataclass(frozen=True)
class SoundSize:
    """What a model takes: ``frames`` of 10 ms with powers of ``bands``, or samples as they are where there are none."""

    samples: int
    bands: int = 0

    @classmethod
    def of_frames(cls, frames: int, bands: int) -> SoundSize:
        return cls(frames * HOP, bands)

    @property
    def seconds(self) -> float:
        return self.samples / RATE

    def taken(self, sound: Array) -> Array:
        """Fill it up with silence, and compute its features."""
        whole = np.pad(sound, (0, self.samples - len(sound)))
        if not self.bands:
            return whole.astype(np.float32)
        return log_mel_frames(whole, self.samples // HOP, self.bands)


@dataclass(frozen=True)
class Utterance:
    file: Path
    text: str
    said_in: str  # the file with its text and the line there
    held_out: bool

    @property
    def samples(self) -> int:
        """Read from the file's header."""
        return _opened(self.file)

    def sound(self) -> Array:
        return read_sound(self.file)


def holds_speech(folder: Path) -> bool:
    """Whether it is a part, or has one; a folder that cannot be listed is none."""
    try:
        return _is_part(folder) or bool(_parts(folder))
    except OSError:
        return False


def refuse_beside_speech(folder: Path) -> None:
    """Raise InvalidRequest for the folder above one of recordings, and for that of a speaker or a chapter in a part."""
    below = _visible(folder)
    near = [*_part_above(folder), *filter(holds_speech, below)]
    near = near or [within for each in below if each.is_dir() for within in filter(holds_speech, _listed(each))]
    if near:
        raise refuse(folder, f"the recordings as LibriSpeech stores them are in {near[0]}; name that folder")


def speech_in(folder: Path) -> list[Utterance]:
    """List all recordings by their names. Raise InvalidRequest for a tree that is not as LibriSpeech has it."""
    if find_spec("soundfile") is None:
        raise refuse(folder, "FLAC is read with soundfile, which is not installed: pip install 'fairlap[speech]'")
    parts = [folder] if _is_part(folder) else _parts(folder)
    held = next((start for start in _HELD_OUT if any(each.name.startswith(start) for each in parts)), "")
    learnt = [each for each in parts if each.name.startswith(_TRAIN)]
    if learnt and held and len(parts) > 1:
        parts = [*learnt, *(each for each in parts if each.name.startswith(held))]
    split = len(parts) > 1 and bool(learnt) and bool(held)
    found = [each for part in parts for each in _of_part(part, held_out=split and part not in learnt)]
    if not found:
        raise refuse(folder, "it has no recordings; a part has SPEAKER/CHAPTER/SPEAKER-CHAPTER-NNNN.flac")
    return found


def short_enough(found: Sequence[Utterance], size: SoundSize, most_characters: int | None = None) -> list[Utterance]:
    """Leave out those that a model could not hear to their end, or whose text is longer."""
    kept = [
        each
        for each in found
        if (most_characters is None or len(each.text) <= most_characters) and each.samples <= size.samples
    ]
    if not kept:
        within = f"{size.seconds:g} s" + ("" if most_characters is None else f" and {most_characters} characters")
        raise refuse(found[0].file.parents[2], f"none of its {len(found):,} recordings is within {within}")
    return kept


def ids_of(each: Utterance, ids: Mapping[str, int]) -> list[int]:
    """Spell its text by the characters of a model, in small letters where it has no capital ones."""
    between = "|" if "|" in ids else " "
    symbols = [between if one == " " else one if one in ids else one.lower() for one in each.text]
    if unknown := next((one for one in symbols if one not in ids), ""):
        raise refuse(each.file, f"{unknown!r} of its text, {each.said_in}, is not a character of the model")
    return [ids[one] for one in symbols]


def read_sound(file: Path) -> Array:
    """Read all samples, from -1 to 1."""
    import soundfile

    _opened(file)
    try:
        found: Array = soundfile.read(file, dtype="int16")[0] / 32_768
    except (soundfile.SoundFileError, OSError):
        raise refuse(file, "it is damaged") from None
    return found


def _opened(file: Path) -> int:
    """Count its samples."""
    import soundfile

    try:
        found = soundfile.info(str(file))
    except (soundfile.SoundFileError, OSError):
        raise refuse(file, "it is not FLAC that can be read") from None
    kind = (found.format, found.subtype, found.channels, found.samplerate)
    if kind != ("FLAC", "PCM_16", 1, RATE):
        raise refuse(
            file, f"it must be FLAC of 16 bits with one channel at {RATE} Hz (got {', '.join(map(str, kind))})"
        )
    return int(found.frames)


def _part_above(folder: Path) -> list[Path]:
    """Find the part that a speaker or a chapter is in, by what it holds: those above may not be readable here."""
    depth = next((depth for depth, text in enumerate((f"*{_TEXTS}", f"*/*{_TEXTS}")) if any(folder.glob(text))), None)
    return [] if depth is None else [folder.absolute().parents[1 - depth]]


def _is_part(folder: Path) -> bool:
    return any(True for speaker in _numbered(folder) for _ in _numbered(speaker))


def _parts(folder: Path) -> list[Path]:
    starts = (_TRAIN, *_HELD_OUT)
    return [each for each in _visible(folder) if each.name.startswith(starts) and _is_part(each)]


def _numbered(folder: Path) -> Iterator[Path]:
    return (each for each in _visible(folder) if each.name.isdecimal() and each.is_dir())


def _listed(folder: Path) -> list[Path]:
    try:
        return _visible(folder)
    except OSError:
        return []


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith(".")) if folder.is_dir() else []


def _of_part(part: Path, *, held_out: bool) -> Iterator[Utterance]:
    for speaker in _visible(part):
        if not (speaker.name.isdecimal() and speaker.is_dir()):
            raise refuse(speaker, f"it is not the folder of a speaker, a number; {part.name} has those alone")
        for chapter in _visible(speaker):
            if not (chapter.name.isdecimal() and chapter.is_dir()):
                raise refuse(chapter, "it is not the folder of a chapter, a number; that of a speaker has those alone")
            yield from _of_chapter(chapter, held_out=held_out)


def _of_chapter(chapter: Path, *, held_out: bool) -> Iterator[Utterance]:
    start = f"{chapter.parent.name}-{chapter.name}"
    texts = chapter / f"{start}{_TEXTS}"
    if not texts.is_file():
        raise refuse(texts, "it is missing; each chapter has one, with what its recordings say")
    said = dict(_lines(texts, start))
    files = {each.stem: each for each in _visible(chapter) if each != texts}
    for name, file in files.items():
        if file.suffix != ".flac" or not file.is_file():
            raise refuse(file, f"it is not a FLAC file; a chapter has recordings and {texts.name} alone")
        if name not in said:
            raise refuse(file, f"it has no line in {texts.name}")
    for name, (line, text) in said.items():
        if name not in files:
            raise refuse(chapter / f"{name}.flac", f"it is missing, and line {line} of {texts.name} is of it")
        yield Utterance(files[name], text, f"line {line} of {texts.name}", held_out)


def _lines(texts: Path, start: str) -> Iterator[tuple[str, tuple[int, str]]]:
    known: set[str] = set()
    try:
        lines = texts.read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError:
        raise refuse(texts, "it has letters outside of ASCII") from None
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is None or not found["name"].startswith(f"{start}-"):
            shown = line[:_MOST_SHOWN]
            raise refuse(texts, f"line {number}, {shown!a}, is not {start}-NNNN and what is said in capital letters")
        if found["name"] in known:
            raise refuse(texts, f"line {number}: {found['name']} has a line already")
        known.add(found["name"])
        yield found["name"], (number, found["text"])
