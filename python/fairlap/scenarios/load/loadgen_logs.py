"""What LoadGen wrote: its summary and its detailed log make the result, its accuracy log has the answers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from fairlap.models.arrays import Arrays
from fairlap.scenarios.load.loadgen_messages import LoadGenFailed, LoadGenResult, LoadGenRun, Unmet

SUMMARY, DETAIL, ACCURACY = "mlperf_log_summary.txt", "mlperf_log_detail.txt", "mlperf_log_accuracy.json"
TRACE = "mlperf_log_trace.json"  # empty

_LINE = ":::MLLOG "
_PERCENTILES = ("50.00", "90.00", "95.00", "97.00", "99.00", "99.90")
_CONDITIONS: dict[str, Unmet] = {
    "result_perf_constraints_met": "bound",
    "result_min_duration_met": "duration",
    "result_min_queries_met": "queries",
    "early_stopping_met": "early_stopping",
}
_TOKEN_CONDITIONS: dict[str, Unmet] = {
    "TTFT constrain not met": "first_token",
    "TPOT constrain not met": "per_token",
}
_NOT_JSON = re.compile(r'("value": )-?(?:nan|inf)\b')


def empty_logs(logs: str | Path) -> None:
    """Raise LoadGenFailed if they cannot be written: after that, LoadGen itself aborts the process at its next run."""
    for name in (SUMMARY, DETAIL, ACCURACY, TRACE):
        try:
            (Path(logs) / name).write_bytes(b"")
        except OSError as error:
            raise LoadGenFailed(f"LoadGen cannot write {Path(logs) / name}: {error.strerror}") from None


def result_in(request: LoadGenRun, tokens: int = 0) -> LoadGenResult:
    """Read that of the run whose logs are in this folder.

    ``tokens``: of each answer, where they were counted. Raises LoadGenFailed for logs that are missing, cut off or
    damaged.
    """
    folder = Path(request.logs)
    values, errors = _logged(folder / DETAIL)
    try:
        version = str(values["loadgen_version"])
        if request.accuracy:
            return LoadGenResult(
                request.scenario, True, version, not errors, ("errors",) if errors else (), errors=errors
            )
        found = _performance(request, version, values, errors, _summary(folder / SUMMARY))
        return found if not tokens else _with_tokens(found, values, _text(folder / SUMMARY))
    except (KeyError, ValueError) as error:
        raise LoadGenFailed(f"{folder / DETAIL} is incomplete: LoadGen did not write {error}") from None


def _performance(
    request: LoadGenRun, version: str, values: Mapping[str, Any], errors: tuple[str, ...], summary: Mapping[str, str]
) -> LoadGenResult:
    scenario = request.scenario
    unmet = [code for key, code in _CONDITIONS.items() if values.get(key) is False]
    if errors:
        unmet.append("errors")
    of_a_query = "_per_query" if scenario == "multi-stream" else ""
    between = "query_" if of_a_query else ""
    queries = int(values["result_query_count"])
    is_valid = values["result_validity"] == "VALID"
    if is_valid != (summary["Result is"] == "VALID"):
        raise ValueError("the same validity in its summary")
    early_s = _seconds(values.get("early_stopping_latency_" + ("ss" if scenario == "single-stream" else "ms")) or None)
    return LoadGenResult(
        scenario,
        accuracy=False,
        version=version,
        valid=is_valid and not errors,
        why_invalid=tuple(unmet),
        figure=_figure(request, values, summary),
        unit="s" if scenario in ("single-stream", "multi-stream") else "1/s",
        percentile=None if scenario == "offline" else request.judged_percentile,
        early_stopping_s=early_s,
        queries=queries,
        samples=queries * int(values["generated_samples_per_query"]),
        late_queries=values["result_overlatency_query_count"] if scenario == "server" else None,
        scheduled_per_s=values["result_scheduled_samples_per_sec"] if scenario == "server" else None,
        min_s=_seconds(values[f"result_min_{between}latency_ns"]),
        mean_s=_seconds(values[f"result_mean_{between}latency_ns"]),
        max_s=_seconds(values[f"result_max_{between}latency_ns"]),
        latencies_s={
            f"{float(each):g}": values[f"result_{each}_percentile{of_a_query}_latency_ns"] / 1e9
            for each in _PERCENTILES
        },
        errors=errors,
        early_stopping=" ".join(str(values.get("early_stopping_result", "")).replace(" *", ";").split()).strip("; "),
    )


def _with_tokens(found: LoadGenResult, values: Mapping[str, Any], summary: str) -> LoadGenResult:
    """LoadGen judges first tokens and times per token then, in place of whole answers; offline it times none."""
    missed: list[Unmet] = [code for text, code in _TOKEN_CONDITIONS.items() if text in summary]
    unmet = [*missed, *(code for code in found.why_invalid if code != "bound" or not missed)]
    tokens_per_s = values.get("result_completed_tokens_per_second", values.get("result_tokens_per_second"))
    return msgspec.structs.replace(
        found,
        why_invalid=tuple(unmet),
        late_queries=None,
        first_token_s=_by_percentile(values, "result_first_token_{}_percentile_latency_ns"),
        per_token_s=_by_percentile(values, "result_time_per_output_token_{}_percentile_ns"),
        tokens_per_s=_finite(tokens_per_s),
    )


def _by_percentile(values: Mapping[str, Any], key: str) -> dict[str, float]:
    found = {f"{float(each):g}": values.get(key.format(each)) for each in _PERCENTILES}
    return {name: value / 1e9 for name, value in found.items() if value is not None}


def _figure(request: LoadGenRun, values: Mapping[str, Any], summary: Mapping[str, str]) -> float | None:
    if request.scenario == "offline":
        return _finite(values["result_samples_per_second"])
    if request.scenario == "server":
        return _finite(values["result_completed_samples_per_sec"])
    return float(summary[f"{100 * request.judged_percentile:.1f}th percentile latency (ns)"]) / 1e9


def _logged(detail: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Read the last value of each key, and the texts of errors."""
    values: dict[str, Any] = {}
    errors: list[str] = []
    for line in _text(detail).splitlines():
        if not line.startswith(_LINE):
            continue
        try:
            entry = json.loads(_NOT_JSON.sub(r"\1null", line.removeprefix(_LINE)))
            values[entry["key"]] = entry["value"]
            if entry["metadata"]["is_error"]:
                errors.append(str(entry["value"]))
        except (ValueError, KeyError, TypeError):
            raise LoadGenFailed(f"{detail} is damaged: {line[:120]!r}") from None
    return values, tuple(errors)


def _summary(path: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in _text(path).splitlines())
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise LoadGenFailed(f"LoadGen left no log that can be read, {path}: {error.strerror}") from None


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class LoggedAnswer:
    item: int
    outputs: Arrays  # by name, of this item alone


def answers_in(logs: str | Path, outputs: Mapping[str, Sequence[int]]) -> list[LoggedAnswer]:
    """Read the answers in a run's accuracy log, in the order in which they came.

    ``outputs`` has the shape that each output has for one item, in the spec's order. Raises LoadGenFailed if an answer
    has another size.
    """
    path = Path(logs) / ACCURACY
    try:
        entries = json.loads(_text(path))
        return [LoggedAnswer(entry["qsl_idx"], _outputs(bytes.fromhex(entry["data"]), outputs)) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise LoadGenFailed(f"{path} is damaged: {error}") from None


def _outputs(data: bytes, outputs: Mapping[str, Sequence[int]]) -> dict[str, npt.NDArray[np.float32]]:
    values = np.frombuffer(data, "<f4")
    sizes = [math.prod(shape) for shape in outputs.values()]
    if values.size != sum(sizes):
        raise ValueError(f"an answer has {values.size} values, not {sum(sizes)}")
    parts = np.split(values, np.cumsum(sizes)[:-1])
    return {name: part.reshape(tuple(shape)) for (name, shape), part in zip(outputs.items(), parts, strict=True)}
