"""The parts of a bundle, made from a run and its raw samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from fairlap.errors import InvalidRequest
from fairlap.race.run import Run
from fairlap.render.bundle.archive import CODE, packed
from fairlap.render.bundle.facts import environment_of, hashes_of, licences_of
from fairlap.render.bundle.manifest import MANIFEST, sha256, with_manifest
from fairlap.render.bundle.signature import SIGNATURE
from fairlap.render.outputs import ROW_FORMATS, encoded
from fairlap.results.prices import Price
from fairlap.results.results import Results, results_of
from fairlap.store.runs.run_file import run_document
from fairlap.version import __version__

SampleSource = Callable[[int, str], Mapping[str, np.ndarray]]

METHOD, RUN, PLAN, ENVIRONMENT, HASHES = "METHOD.md", "run.json", "plan.json", "environment.json", "hashes.json"
SAMPLE_FOLDER = "samples/"
SAMPLES, LICENCES, CARD, PAGE = "samples.json", "licences.json", "model-card.md", "page.html"
WHATS = {
    METHOD: "how this was measured, and what the parts are",
    RUN: "the run: plan, machine, processes, rows, comparisons",
    PLAN: "the plan",
    ENVIRONMENT: "machine, software and settings",
    HASHES: "hashes of models, weights and data",
    LICENCES: "licences of packages, models and data",
    CARD: "the table of results",
    PAGE: "the report",
    SAMPLES: "which process and quantity each file of samples is of",
}


class SampleFile(msgspec.Struct, frozen=True):
    part: str
    block: int
    contestant: str
    quantity: str

    @property
    def what(self) -> str:
        return f"samples of {self.contestant} in block {self.block}, {self.quantity}"


@dataclass(frozen=True)
class Bundle:
    content: bytes
    hash: str  # SHA-256 of its manifest
    parts: int


def bundle_of(
    run: Run,
    run_id: str,
    samples: SampleSource,
    *,
    baseline: str = "",
    price: Price | None = None,
    with_page: bool = True,
    sign: Callable[[bytes], bytes] | None = None,
) -> Bundle:
    """Make a bundle; every timing needs its raw samples, without which nothing could be checked.

    ``sign`` makes a signature of the manifest.
    """
    run = msgspec.json.decode(msgspec.json.encode(run), type=Run)  # as it will be read again
    results = results_of(run, run_id, baseline=baseline, price=price)
    sampled = _samples(run, samples)
    parts = {METHOD: method(), **derived_parts(results)}
    parts[LICENCES] = as_json(licences_of(run))
    if with_page:
        kept = {
            (each.block, each.contestant, each.quantity): np.frombuffer(content, dtype="<f8")
            for each, content in sampled.items()
        }
        parts[PAGE] = page(results, kept)
    parts[SAMPLES] = as_json(list(sampled))
    parts |= {each.part: content for each, content in sampled.items()}
    whats = WHATS | {each.part: each.what for each in sampled}
    charts = chart_libraries() if with_page else ""
    whole = with_manifest(parts, whats, run=run_id, fairlap=__version__, baseline=baseline, price=price, charts=charts)
    if sign is not None:
        whole[SIGNATURE] = sign(whole[MANIFEST])
    return Bundle(packed(whole), sha256(whole[MANIFEST]), len(parts))


def derived_parts(results: Results) -> dict[str, bytes]:
    """Derive what follows from the run's processes alone, so that the check can make it again."""
    run = results.run
    return {
        RUN: as_json(run_document(run, results, run_id=results.run_id)),
        PLAN: as_json(run.plan),
        ENVIRONMENT: as_json(environment_of(run)),
        HASHES: as_json(hashes_of(run)),
        CARD: encoded(results.rows, ROW_FORMATS[".md"]),
    }


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _samples(run: Run, samples: SampleSource) -> dict[SampleFile, bytes]:
    found: dict[SampleFile, bytes] = {}
    for process in run.processes:
        kept = samples(process.block, process.contestant)
        lacking = next((quantity for quantity in process.timings if quantity not in kept), "")
        if lacking:
            raise InvalidRequest(
                f"the run has no raw samples of {process.contestant} in block {process.block} ({lacking}); bundle a "
                "stored run, or a file of `fairlap runs export`",
                code=CODE,
            )
        for quantity, ns in kept.items():
            name = f"{SAMPLE_FOLDER}{len(found):05}.f64"
            each = SampleFile(name, process.block, process.contestant, quantity)
            found[each] = np.ascontiguousarray(ns, dtype="<f8").tobytes()
    if not found:
        raise InvalidRequest(
            "the run has no raw samples; bundle a stored run, or a file of `fairlap runs export`", code=CODE
        )
    return found


def page(results: Results, samples: Mapping[tuple[int, str, str], np.ndarray]) -> bytes:
    """Render the report, with samples by block, contestant and quantity."""
    from fairlap.render.report.page import page_of

    def of(block: int, contestant: str) -> dict[str, np.ndarray]:
        return {quantity: ns for (its, name, quantity), ns in samples.items() if (its, name) == (block, contestant)}

    return page_of(replace(results, samples=of)).encode()


def method() -> bytes:
    return files("fairlap.render.bundle").joinpath("method.md").read_bytes()


def chart_libraries() -> str:
    """They decide the scripts of a page; empty where they are not installed."""
    try:
        return ", ".join(f"{name} {version(name)}" for name in ("altair", "vl-convert-python"))
    except PackageNotFoundError:
        return ""
