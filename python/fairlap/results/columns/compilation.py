"""The columns of a row about what compiling did, and what was found of it under the row's own conditions."""

from __future__ import annotations

from fairlap.race.around_blocks.compilation_result import CompilationResult
from fairlap.race.run import Run
from fairlap.results.estimates import Cell, absence_reason, cell_or
from fairlap.results.work_result import ContestantResult, WorkResult

_NOT_ASKED_FOR = "it was not asked for here; --recompile does, under the verdict's conditions"
_NOT_FINISHED = "it was interrupted or not reached; fairlap compare --resume finishes it"
_COLUMNS = ("graphs", "graph_breaks", "operators_before", "kernels_after", "operators_counted")
_NOT_COUNTED = "the framework does not count it"


def found_for(run: Run, work_result: WorkResult, result: ContestantResult) -> CompilationResult | None:
    wanted = (result.contestant, work_result.work.id, work_result.conditions)
    return next((each for each in run.compilations if (each.contestant, each.work_id, each.conditions) == wanted), None)


def compilation_of(run: Run, work_result: WorkResult, result: ContestantResult) -> dict[str, Cell]:
    found = found_for(run, work_result, result)
    if found is None:
        return dict.fromkeys(_COLUMNS, Cell(None, _why_nothing(run, work_result, result)))
    described, absent = found.described, found.described.absent
    operators = described.operators
    counts = {"graphs": described.graphs, "graph_breaks": described.graph_breaks}
    whole = {
        "operators_before": operators and operators.before,
        "kernels_after": operators and operators.after,
        "operators_counted": operators and operators.counted,
    }
    return {
        **{name: cell_or(value, absent.get(name) or _otherwise(found)) for name, value in counts.items()},
        **{name: cell_or(value, absent.get("operators") or _otherwise(found)) for name, value in whole.items()},
    }


def stalls_of(run: Run, work_result: WorkResult, result: ContestantResult) -> dict[str, float]:
    found = found_for(run, work_result, result)
    batches = () if found is None else found.batches
    stalls = {each.text: each.resized.stall_s for each in batches}
    return {inputs: stall_s for inputs, stall_s in stalls.items() if stall_s is not None}


def without_stall(run: Run, work_result: WorkResult, result: ContestantResult) -> dict[str, str]:
    """By batch, size or type. Empty where none was asked for."""
    if work_result.conditions != run.plan.headline:
        return {}
    known = stalls_of(run, work_result, result)
    found = found_for(run, work_result, result)
    reasons = {each.text: each.resized.why for each in found.batches} if found else {}
    otherwise = _why_nothing(run, work_result, result) if found is None else _otherwise(found)
    asked = run.plan.recompiled_on
    return {inputs: reasons.get(inputs) or otherwise for inputs in asked if inputs not in known}


def _otherwise(found: CompilationResult) -> str:
    return f"{found.message} [{found.code}]" if found.message else _NOT_COUNTED


def _why_nothing(run: Run, work_result: WorkResult, result: ContestantResult) -> str:
    if not run.plan.recompiled_on or work_result.conditions != run.plan.headline:
        return _NOT_ASKED_FOR
    return absence_reason(result) or _NOT_FINISHED
