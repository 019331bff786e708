"""Every figure again, from the raw samples: processes, then rows, comparisons and what is derived from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np

from fairlap.errors import FairlapError, described
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.race.processes.recorded_turns import medians_of_turns, timing_of
from fairlap.race.run import Run
from fairlap.render.bundle.contents import (
    CARD,
    ENVIRONMENT,
    HASHES,
    PLAN,
    RUN,
    SAMPLE_FOLDER,
    SAMPLES,
    SampleFile,
    derived_parts,
)
from fairlap.render.bundle.differences import count_figures, differing
from fairlap.render.bundle.documents import check_documents
from fairlap.render.bundle.manifest import Manifest
from fairlap.results.results import results_of
from fairlap.scenarios.process_result import ProcessResult, Timing
from fairlap.store.tables import BYTES_OF_A_SAMPLE

_Samples = dict[tuple[int, str], dict[str, np.ndarray]]


@dataclass
class Recomputed:
    problems: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    not_made_again: list[str] = field(default_factory=list)  # documents that another machine could make again
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, more: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + more


def recompute(parts: Mapping[str, bytes], manifest: Manifest, version: str) -> Recomputed:
    """Parts may be damaged: what cannot be read is a problem, and the rest is checked."""
    found = Recomputed()
    try:
        document = msgspec.json.decode(parts[RUN])
        run = msgspec.json.decode(parts[RUN], type=Run)
        files = msgspec.json.decode(parts[SAMPLES], type=list[SampleFile])
    except KeyError as missing:
        found.problems.append(f"{missing.args[0]}: it is missing, so no figure can be computed again")
        return found
    except NOT_THE_DOCUMENT as error:
        found.problems.append(f"{RUN} or {SAMPLES}: cannot be read, so no figure can be computed again: {error}")
        return found
    other_version = manifest.fairlap != version
    if not other_version:
        found.problems += _not_of_a_run(document, run)
    samples = _samples(parts, files, found)
    kept = {(*whose, quantity): ns for whose, own in samples.items() for quantity, ns in own.items()}
    run.processes = [_process(process, samples, found) for process in run.processes]
    try:
        results = results_of(run, manifest.run, baseline=manifest.baseline, price=manifest.price)
        derived = derived_parts(results)
    except Exception as error:  # processes that were changed can be anything
        found.problems.append(f"{RUN}: no rows can be computed from its processes: {described(error)}")
        return found
    _compare(document, parts, derived, found, other_version=other_version)
    problems, found.not_made_again = check_documents(
        parts, manifest, results, kept, derived[CARD], other_version=other_version
    )
    found.problems += problems
    return found


def _not_of_a_run(document: dict[str, object], run: Run) -> Iterator[str]:
    """Find what was written into the file besides the fields of a run, such as an added sentence."""
    known = msgspec.json.decode(msgspec.json.encode(run))
    for line in differing({name: document.get(name) for name in known}, known, "run"):
        yield f"{RUN}: {line}"


def _samples(parts: Mapping[str, bytes], files: list[SampleFile], found: Recomputed) -> _Samples:
    samples: _Samples = {}
    listed = {each.part for each in files}
    unlisted = [name for name in parts if name.startswith(SAMPLE_FOLDER) and name not in listed]
    found.problems += [f"{name}: {SAMPLES} does not list it" for name in unlisted]
    for each in files:
        content = parts.get(each.part)
        if content is None or len(content) % BYTES_OF_A_SAMPLE:
            found.problems.append(f"{each.part}: there are no whole samples in it ({each.what})")
            continue
        samples.setdefault((each.block, each.contestant), {})[each.quantity] = np.frombuffer(content, dtype="<f8")
        found.count("samples", len(content) // BYTES_OF_A_SAMPLE)
    return samples


def _process(process: ProcessResult, samples: _Samples, found: Recomputed) -> ProcessResult:
    """Return the process with what its samples give; it is left as recorded where they give nothing."""
    whose = f"{process.contestant} in block {process.block}"
    own = samples.pop((process.block, process.contestant), {})
    timings: dict[str, Timing] = {}
    for quantity, recorded in process.timings.items():
        timings[quantity] = recorded
        if quantity not in own:
            found.problems.append(f"{RUN}: {whose} has no samples of {quantity}")
            continue
        try:
            timings[quantity] = timing_of(
                own[quantity],
                in_rounds=bool(process.rounds_ns),
                calls_per_sample=recorded.calls_per_sample,
                method=recorded.method,
                resolution_ns=recorded.resolution_ns,
                whose=process.contestant,
            )
        except (FairlapError, ValueError) as error:
            found.problems.append(f"{RUN}: {whose}, {quantity}: no percentiles of its samples: {error}")
            continue
        found.count("timings")
        before, after = msgspec.to_builtins(recorded), msgspec.to_builtins(timings[quantity])
        found.problems += [f"{RUN}: {line}" for line in differing(before, after, f"{whose}, {quantity}")]
    changed = msgspec.structs.replace(process, timings=timings)
    if timings and (headline := own.get(next(iter(timings)))) is not None:
        calls_ns = own.get("wall_ns", headline)
        found.problems += [f"{RUN}: {line}" for line in _of_headline(changed, headline, calls_ns, whose, found)]
    return changed


def _of_headline(
    process: ProcessResult, headline_ns: np.ndarray, calls_ns: np.ndarray, whose: str, found: Recomputed
) -> Iterator[str]:
    """Its medians of turns, and the time that it measured, which every single sample is part of."""
    if "measured" in process.phases_s:
        seconds = float(np.nansum(calls_ns)) * process.headline.calls_per_sample / 1e9
        yield from differing(process.phases_s["measured"], seconds, f"{whose}, measured seconds")
    if not process.rounds_ns:
        return
    if sum(process.round_samples) != headline_ns.size or len(process.round_samples) != len(process.rounds_ns):
        if process.round_samples:
            yield f"{whose}, samples of its turns do not add up to {headline_ns.size}"
        else:
            note = "medians of turns: the run is of a fairlap that did not record how many samples each turn had"
            found.unchecked += [note] * (note not in found.unchecked)
        return
    medians = medians_of_turns(headline_ns, process.round_samples)
    found.count("medians of turns", len(medians))
    yield from differing(process.rounds_ns, medians, f"{whose}, medians of its turns")
    process.rounds_ns = medians


def _compare(
    document: dict[str, object],
    parts: Mapping[str, bytes],
    derived: Mapping[str, bytes],
    found: Recomputed,
    *,
    other_version: bool,
) -> None:
    computed = msgspec.json.decode(derived[RUN])
    not_of_processes = {*document, *computed} - set(Run.__struct_fields__)
    recorded_rest, computed_rest = (
        {name: whole[name] for name in sorted(not_of_processes & {*whole})} for whole in (document, computed)
    )
    found.problems += [
        f"{RUN}: {line}" for line in differing(recorded_rest, computed_rest, "run", only_shared=other_version)
    ]
    for name in ("rows", "work_results"):
        found.count("figures of rows and comparisons", count_figures(computed[name]))
    found.count("rows", len(computed["rows"]))
    found.count("comparisons", sum(len(each["comparisons"]) for each in computed["work_results"]))
    for name in (PLAN, ENVIRONMENT, HASHES):
        try:
            recorded = msgspec.json.decode(parts.get(name, b"null"))
        except NOT_THE_DOCUMENT as error:
            found.problems.append(f"{name}: cannot be read: {error}")
            continue
        problems = differing(recorded, msgspec.json.decode(derived[name]), name, only_shared=other_version)
        found.problems += [f"{line} ({RUN})" for line in problems]
