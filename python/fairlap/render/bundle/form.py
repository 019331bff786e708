"""Check that everything in a bundle is one of its parts, and is written as `fairlap bundle` writes it.

A part that nobody knows, or a second value for a key, would be read by people and programs, and checked by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.render.bundle.contents import PAGE, SAMPLES, WHATS, SampleFile, as_json
from fairlap.render.bundle.manifest import MANIFEST, Manifest


def check_form(parts: Mapping[str, bytes], manifest: Manifest, *, other_version: bool) -> tuple[list[str], list[str]]:
    """Problems, and parts that only another version of fairlap knows."""
    problems: list[str] = []
    unknown: list[str] = []
    whats = WHATS | _whats_of_samples(parts.get(SAMPLES, b""))
    for part in manifest.parts:
        if part.name not in whats:
            if other_version:
                unknown.append(f"{part.name}: this version of fairlap knows no such part")
            else:
                problems.append(f"{part.name}: `fairlap bundle` writes no such part")
        elif part.what != whats[part.name] and not other_version:
            problems.append(f"{MANIFEST}: it calls {part.name} {part.what!r} instead of {whats[part.name]!r}")
    if not other_version:
        listed = {part.name for part in manifest.parts}
        problems += [f"{name}: every bundle has it, and it is missing" for name in WHATS.keys() - listed - {PAGE}]
        if as_json(manifest) != parts[MANIFEST]:
            problems.append(f"{MANIFEST}: it holds more than a manifest does, or is laid out otherwise")
    problems += [
        f"{name}: it is not as `fairlap bundle` writes it: a key is there twice, or the text is laid out otherwise"
        for name, content in parts.items()
        if name.endswith(".json") and name != MANIFEST and not _is_as_written(content)
    ]
    return problems, unknown


def _whats_of_samples(listed: bytes) -> dict[str, str]:
    try:
        return {each.part: each.what for each in msgspec.json.decode(listed, type=list[SampleFile])}
    except NOT_THE_DOCUMENT:
        return {}  # it is named where the samples are read


def _is_as_written(content: bytes) -> bool:
    try:
        return as_json(msgspec.json.decode(content)) == content
    except NOT_THE_DOCUMENT:
        return True  # it is named where the part is read
