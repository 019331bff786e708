"""What people read of a bundle, its method, table and report, made again and compared with what it has.

A page with another winner or a script in it would otherwise pass with a manifest made to fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import zip_longest

import numpy as np

from fairlap.errors import NotAvailable, described
from fairlap.render.bundle.contents import CARD, METHOD, PAGE, chart_libraries, method, page
from fairlap.render.bundle.differences import TOLERANCE
from fairlap.render.bundle.manifest import Manifest
from fairlap.results.results import Results

_NUMBER = re.compile(r"\d+\.\d+(?:[eE][-+]?\d+)?")


def check_documents(
    parts: Mapping[str, bytes],
    manifest: Manifest,
    results: Results,
    samples: Mapping[tuple[int, str, str], np.ndarray],
    card: bytes,
    *,
    other_version: bool,
) -> tuple[list[str], list[str]]:
    """Problems, and which documents could not be made again here, with the reason."""
    problems: list[str] = []
    not_made_again: list[str] = []
    expected = {METHOD: method(), CARD: card}
    if other_version:
        also = [PAGE] if PAGE in parts else []
        why = f"written by fairlap {manifest.fairlap}, and only the hash was checked"
        return problems, [f"{name}: {why}" for name in (*expected, *also)]
    if PAGE in parts:
        if why := _why_no_page(manifest):
            not_made_again.append(f"{PAGE}: {why}, so only its hash was checked; do not rely on it, nor open it unseen")
        else:
            try:
                expected[PAGE] = page(results, samples)
            except NotAvailable as error:
                not_made_again.append(f"{PAGE}: {error}; only its hash was checked")
            except Exception as error:  # processes that were changed can be anything
                problems.append(f"{PAGE}: no page can be made of the run: {described(error)}")
    elif manifest.charts:
        problems.append(f"{PAGE}: it is missing, and the manifest names {manifest.charts}, which drew its charts")
    for name, content in expected.items():
        if where := difference_of_texts(parts.get(name, b""), content):
            problems.append(f"{name}: it is not what follows from the samples: {where}")
    return problems, not_made_again


def _why_no_page(manifest: Manifest) -> str:
    if not chart_libraries():
        return "making it again needs Altair and vl-convert: pip install 'fairlap[report]'"
    if manifest.charts != chart_libraries():
        return f"it was made with {manifest.charts or 'unknown versions'}, and {chart_libraries()} is installed here"
    return ""


def difference_of_texts(recorded: bytes, computed: bytes) -> str:
    """Find where two texts first differ by more than the ninth digit of a number; empty where they do not.

    Another processor may round that digit otherwise.
    """
    if recorded == computed:
        return ""
    try:
        one, other = recorded.decode(), computed.decode()
    except UnicodeDecodeError:
        return "it is not valid UTF-8"
    if _NUMBER.split(one) != _NUMBER.split(other):
        lines = zip_longest(one.splitlines(), other.splitlines(), fillvalue="")
        line = next((line for line, same in lines if line != same), "")
        return f"{line[:80]!r}" if line else "it ends elsewhere"
    for first, second in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True):
        if first != second and not math.isclose(float(first), float(second), rel_tol=TOLERANCE, abs_tol=0.0):
            return f"{first} where {second} follows"
    return ""
