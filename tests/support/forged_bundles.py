"""Bundles that someone changed, with all hashes made to fit."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from fairlap.render.bundle.archive import packed, unpacked
from fairlap.render.bundle.manifest import MANIFEST, MANIFEST_HASH, Manifest, with_manifest
from fairlap.render.bundle.signature import SIGNATURE

_NOT_LISTED = (MANIFEST, MANIFEST_HASH, SIGNATURE)


def parts_of(content: bytes) -> dict[str, bytes]:
    return dict(unpacked(content, "x").parts)


def rehashed(parts: Mapping[str, bytes], **other: str) -> bytes:
    """As someone would who changes a part and all hashes with it. ``other`` are fields of the manifest."""
    old = msgspec.structs.replace(msgspec.json.decode(parts[MANIFEST], type=Manifest), **other)
    own = {name: part for name, part in parts.items() if name not in _NOT_LISTED}
    whats = dict.fromkeys(own, "") | {part.name: part.what for part in old.parts}
    whole = with_manifest(
        own, whats, run=old.run, fairlap=old.fairlap, baseline=old.baseline, price=old.price, charts=old.charts
    )
    signed = {SIGNATURE: parts[SIGNATURE]} if SIGNATURE in parts else {}
    return packed({**whole, **signed})
