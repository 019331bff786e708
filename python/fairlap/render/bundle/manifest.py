"""What a bundle lists of itself: each part with its SHA-256, and the one hash over that list."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from fairlap.results.prices import Price

MANIFEST, MANIFEST_HASH = "manifest.json", "manifest.sha256"
FORMAT = 1


class Part(msgspec.Struct, frozen=True):
    name: str
    what: str
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    fairlap: str  # the version that computed the rows and made the bundle
    baseline: str = ""  # that the rows are compared with; the fastest if it is empty
    price: Price | None = None
    charts: str = ""  # the versions of the libraries that drew those of the page
    parts: tuple[Part, ...]
    format: int = FORMAT


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def with_manifest(
    parts: Mapping[str, bytes],
    whats: Mapping[str, str],
    *,
    run: str,
    fairlap: str,
    baseline: str,
    price: Price | None,
    charts: str = "",
) -> dict[str, bytes]:
    """Put the manifest and its hash in front of the parts."""
    listed = tuple(Part(name, whats[name], len(part), sha256(part)) for name, part in parts.items())
    manifest = Manifest(run=run, fairlap=fairlap, baseline=baseline, price=price, charts=charts, parts=listed)
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    return {MANIFEST: encoded, MANIFEST_HASH: f"{sha256(encoded)}\n".encode(), **parts}
