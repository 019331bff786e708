"""Check that a bundle is what was published, and that its figures follow from its samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.machine.files.regular_file import content_of
from fairlap.render.bundle.archive import CODE, Archive, unpacked
from fairlap.render.bundle.contents import PAGE, RUN, SAMPLES, WHATS, SampleFile, as_json
from fairlap.render.bundle.manifest import FORMAT, MANIFEST, MANIFEST_HASH, Manifest, sha256
from fairlap.render.bundle.recomputed import recompute
from fairlap.render.bundle.signature import SIGNATURE, WrongSigner, fits, signer_of
from fairlap.store.runs.run_file import SamplesOfProcess
from fairlap.version import __version__


# Check that everything in a bundle is one of its parts, and is written as `fairlap bundle` writes it. Another part, or
# a second value for a key, would be read by people and programs, and checked by none.
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


CHANGED, NOT_MADE_AGAIN = "E_BUNDLE_CHANGED", "E_BUNDLE_VERSION"
READINGS = (
    "readings without raw samples (memory, energy, phases, errors, scores, load, learning): by their hashes alone"
)

LICENCES_AS_STATED = "licences, as installed packages stated them: by their hash alone"


@dataclass
class Verification:
    run: str
    fairlap: str
    hash: str
    parts: int
    problems: list[str] = field(default_factory=list)  # each begins with the part that it is about
    unchecked: list[str] = field(default_factory=list)
    not_made_again: list[str] = field(default_factory=list)  # documents, whose hashes alone were checked
    counts: dict[str, int] = field(default_factory=dict)  # what was computed again
    signer: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.problems

    @property
    def code(self) -> str:
        if self.problems:
            return CHANGED
        return NOT_MADE_AGAIN if self.not_made_again else ""


def verify(content: bytes, whose: str, expected_hash: str = "", signers: Path | None = None) -> Verification:
    """Check a bundle; problems of hashes come first, then those of figures.

    A file that is not a bundle is an error, and so is one that none of ``signers`` has signed.
    """
    archive = unpacked(content, whose)
    if MANIFEST not in archive.parts:
        raise InvalidRequest(f"{whose} is not a bundle: it has no {MANIFEST}", code=CODE)
    encoded = archive.parts[MANIFEST]
    try:
        manifest = msgspec.json.decode(encoded, type=Manifest)
    except NOT_THE_DOCUMENT as error:
        unreadable = f"{MANIFEST}: cannot be read, so nothing can be checked: {error}"
        return Verification("", "", sha256(encoded), 0, [unreadable])
    if manifest.format != FORMAT:
        raise InvalidRequest(
            f"{whose} has bundle format {manifest.format}; this version of fairlap reads {FORMAT}", code=CODE
        )
    found = Verification(manifest.run, manifest.fairlap, sha256(encoded), len(manifest.parts))
    found.problems += _of_hashes(archive, manifest, found.hash, expected_hash)
    problems, unknown = check_form(archive.parts, manifest, other_version=manifest.fairlap != __version__)
    again = recompute(archive.parts, manifest, __version__)
    found.problems += [*problems, *again.problems]
    found.not_made_again = [*unknown, *again.not_made_again]
    found.unchecked, found.counts = [READINGS, LICENCES_AS_STATED, *again.unchecked], again.counts
    _check_signature(found, archive, whose, signers)
    return found


def checked_run_of(path: Path) -> bytes:
    """Return the document that ``fairlap runs export`` writes: the run with its raw samples."""
    content = content_of(path)
    found = verify(content, str(path))
    if not found.is_whole:
        raise InvalidRequest(
            f"{path} was changed since it was written: {found.problems[0]}; `fairlap verify {path}` lists all",
            code=CHANGED,
        )
    parts = unpacked(content, str(path)).parts
    document = msgspec.json.decode(parts[RUN])
    document["samples"] = [
        SamplesOfProcess(each.block, each.contestant, each.quantity, parts[each.part])
        for each in msgspec.json.decode(parts[SAMPLES], type=list[SampleFile])
    ]
    return msgspec.json.encode(document)


def _check_signature(found: Verification, archive: Archive, whose: str, signers: Path | None) -> None:
    signature, manifest = archive.parts.get(SIGNATURE), archive.parts[MANIFEST]
    if signers is None:
        if signature is not None:
            found.unchecked.append("whose the signature is: name the public key or the allowed signers with --signer")
        return
    if signature is None:
        raise WrongSigner(f"{whose} is not signed")
    if not fits(manifest, signature):
        found.problems.insert(0, f"{SIGNATURE}: it is not a signature of this manifest")
        return
    found.signer = signer_of(manifest, signature, signers)


def _of_hashes(archive: Archive, manifest: Manifest, own_hash: str, expected_hash: str) -> list[str]:
    problems = []
    if expected_hash and expected_hash.lower() != own_hash:
        problems.append(f"{MANIFEST}: its SHA-256 is {own_hash}, not the expected {expected_hash.lower()}")
    if archive.parts.get(MANIFEST_HASH) != f"{own_hash}\n".encode():
        problems.append(f"{MANIFEST}: its SHA-256 is {own_hash}, and {MANIFEST_HASH} holds another one")
    listed = {part.name: part for part in manifest.parts}
    for name, part in listed.items():
        content = archive.parts.get(name)
        if content is None:
            problems.append(f"{name}: it is missing ({part.what})")
        elif sha256(content) != part.sha256 or len(content) != part.bytes:
            problems.append(f"{name}: its SHA-256 is not that of the manifest ({part.what})")
        elif name in archive.damaged:  # the part is whole, and what the ZIP file says of it is not
            problems.append(f"{name}: {archive.damaged[name]}")
    ours = {MANIFEST, MANIFEST_HASH, SIGNATURE, *listed}
    problems += [f"{name}: the manifest does not list it" for name in archive.parts if name not in ours]
    problems += [f"{name or 'the file'}: {why}" for name, why in archive.damaged.items() if name not in listed]
    return problems
