"""``fairlap.compare`` and its siblings: callables in this process, or models in separate processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from fairlap.errors import InvalidRequest
from fairlap.machine.files.scratch_folder import ScratchFolder

if TYPE_CHECKING:
    from fairlap.cli.races.run_race import RunOutput
    from fairlap.engine import NativeFunction
    from fairlap.race.planning.plan import Plan
    from fairlap.render.outputs import Format
    from fairlap.request.race_request import RaceRequest
    from fairlap.results.choice.choice import Choice
    from fairlap.results.results import Results
    from fairlap.scenarios.callables.axes.result import ComparisonOverAxes
    from fairlap.scenarios.callables.result import InProcessComparison


@overload
def compare(what: str | Sequence[str], *, on: str | Sequence[str], **options: Any) -> Results: ...


@overload
def compare(what: Mapping[str, Callable[..., object] | NativeFunction], **options: Any) -> InProcessComparison: ...


def compare(
    what: str | Sequence[str] | Mapping[str, Callable[..., object] | NativeFunction],
    *,
    on: str | Sequence[str] | None = None,
    **options: Any,
) -> Results | InProcessComparison:
    """Compare callables by name, or a model ``on`` several frameworks.

    A mapping of callables is compared in this process, with the options of
    :func:`fairlap.scenarios.callables.in_process.compare`.

    The name of a model, or of your own such as ``"model.onnx"``, is raced as ``fairlap compare`` does, each contestant
    in new processes, with the options of a request file. ``shapes`` and ``inputs`` may be mappings, from the names of
    the model's inputs to sizes and to arrays; ``dims`` and ``ranges`` too, and ``labels`` and ``groups`` arrays.
    ``require`` and ``use`` fill the result's ``decision``, changes, ``require="memory_peak<=+2%"``, its ``findings``,
    as of a gate against the ``baseline`` or the first; ``output`` names files. It has a row for each contestant:
    ``compare("model.onnx", on=["onnxruntime", "jax"], shapes={"ids": (8, 128)}).rows``. Nothing is stored.
    Callables that can be imported race as ``compare("callable", on=["python:call=k.a", "python:call=k.b"])``; with
    ``reference="k:ref"`` and ``inputs="k:draw"`` their answers are checked.
    Commands race on no model: ``compare("callable", on=(), commands={"old": "./old", "new": "./new"})``.

    While another race uses the same cores or GPU, it waits; with ``wait=False`` it raises ``E_BUSY``.
    """
    if on is None and not isinstance(what, str):
        from fairlap.scenarios.callables.in_process import compare as compare_callables

        return compare_callables(what, **options)  # type: ignore[arg-type]
    if on is None:
        raise InvalidRequest('name the contestants: compare("model.onnx", on=["onnxruntime", "jax"])')
    if isinstance(what, Mapping):
        raise InvalidRequest("callables run in this process; `on` is for a model")
    return _raced(what, on, options)


def compare_over(
    callables: Mapping[str, Callable[..., object]],
    *,
    inputs: Callable[..., object] | Sequence[Callable[..., object] | str],
    axes: Mapping[str, str | Sequence[object]],
    output: str | Path | Sequence[str | Path] = (),
    **options: Any,
) -> ComparisonOverAxes:
    """Compare callables by name over sizes, types and layouts of their inputs, in this process.

    ``inputs`` draws the arguments of one call, and ``axes`` has the values of its parameters:
    ``compare_over({"a": f, "b": g}, inputs=draw, axes={"n": "1K..1M:x2"})``. ``output`` names files, whose suffixes
    decide their formats. Further options are those of
    :func:`fairlap.scenarios.callables.axes.over_axes.compare_over`.
    """
    from fairlap.render.encoders import write_document
    from fairlap.scenarios.callables.axes.over_axes import compare_over as compare_callables
    from fairlap.scenarios.callables.render.axes_document import document_of

    files = _files(output)
    result = compare_callables(callables, inputs=inputs, axes=axes, **options)
    for failure in write_document(document_of(result), files):
        warnings.warn(str(failure), stacklevel=2)
    return result


def choose(
    models: Sequence[str],
    *,
    on: str | Sequence[str],
    inputs: str | Mapping[str, Any],
    labels: Any,
    metric: str,
    minimise: str = "",
    score_margin: str | float = 0.01,
    max_drop: str | float | None = None,
    output: str | Path | Sequence[str | Path] = (),
    **options: Any,
) -> Choice:
    """Choose between models for one task, as ``fairlap choose`` does: race them on the same labelled data.

    ``inputs`` and ``labels`` are files or arrays, ``metric`` one of those of ``fairlap compare``. Further options are
    those of a request file, such as ``batch=8``, ``require="top1>=90%"``, ``price="1.2/h"`` and ``blocks=12``.
    ``max_drop`` bounds how much worse than the first candidate one may score. ``output`` names files, whose suffixes
    decide their formats. Nothing is stored.
    """
    from fairlap.choice.choose import choose_by_request, question_of
    from fairlap.render.choice.document import document_of
    from fairlap.render.encoders import write_document
    from fairlap.request.python_options import request_from_python, texts_in

    files = _files(output)
    given = {**options, "inputs": inputs, "labels": labels, "metric": metric}
    with ScratchFolder() as folder:
        request = request_from_python(texts_in("models", models), on, given, folder)
        found = choose_by_request(request, question_of(request, minimise, score_margin, max_drop))
    for failure in write_document(document_of(found), files):
        warnings.warn(str(failure), stacklevel=2)
    return found


def load(what: str | Sequence[str], *, on: str | Sequence[str], **options: Any) -> Results:
    """Find how many requests each contestant serves under a bound on their latency, as ``fairlap load`` does.

    Give one bound, and what else a request file's table ``load`` and the request itself can hold:
    ``load("mlp", on=["torch", "jax"], p99="20ms", workers=2, blocks=6).rows[0].largest_rate_per_s``. Nothing is stored.
    """
    from fairlap.request.fields.load import LoadRequest

    of_load = {name: options.pop(name) for name in LoadRequest.__struct_fields__ if name in options}
    return _raced(what, on, {**options, "load": of_load})


def _raced(what: object, on: object, options: Mapping[str, Any]) -> Results:
    from fairlap.request.python_options import request_from_python, texts_in

    with ScratchFolder() as folder:
        return _results(request_from_python(texts_in("what", what), on, options, folder))


def _files(output: object) -> list[tuple[Path, Format]]:
    """Check the files that a document is written to."""
    from fairlap.cli.options.output_options import writable
    from fairlap.render.encoders import SUFFIXES
    from fairlap.request.python_options import texts_in

    return writable(map(Path, texts_in("output", output)), only=SUFFIXES)


def _results(request: RaceRequest) -> Results:
    from fairlap.cli.races.run_race import checked_output
    from fairlap.frameworks.programs.command import require_programs
    from fairlap.machine.hardware.cuda_devices import require_driver
    from fairlap.machine.race_lock.lock import one_race
    from fairlap.race.planning.plan_from_request import plan_of
    from fairlap.race.planning.shared_processes import require_several_works, require_shared
    from fairlap.race.stopping import Ending
    from fairlap.results.decision.required_measured import require_measured

    output = checked_output(request, request, store=False)
    require_several_works(request)
    plan = plan_of(request)
    require_measured(plan)
    require_shared(plan)
    require_driver(plan.device)
    require_programs(plan.contestants)
    longest_s = Ending(plan, target=request.target, budget_s=request.budget).longest_s
    with one_race(plan.all_devices, wait=request.wait, longest_s=longest_s):
        return _raced_alone(plan, request, output)


def _raced_alone(plan: Plan, request: RaceRequest, output: RunOutput) -> Results:
    from fairlap.machine.facts import machine_facts
    from fairlap.race.around_blocks.after_blocks import Findings
    from fairlap.race.around_blocks.best_settings import with_best_settings
    from fairlap.race.planning.plan_file import plan_to_keep
    from fairlap.race.progress import Messages
    from fairlap.race.progress_in_notebook import progress_in_kernel
    from fairlap.race.race import Race
    from fairlap.race.run import Run, roofs_for
    from fairlap.race.stopping import Ending
    from fairlap.render.outputs import write_all
    from fairlap.results.decision.question import with_decision
    from fairlap.results.decision.required_decided import are_required_decided
    from fairlap.results.results import results_of
    from fairlap.scenarios.learning.race.kept_weights import KeptWeights

    plan = with_best_settings(plan)
    decided = partial(are_required_decided, plan)
    ending = Ending(plan, target=request.target, budget_s=request.budget, also_decided=decided)
    findings = Findings(traces=request.trace)
    progress = progress_in_kernel(plan, request.budget)
    weights = KeptWeights(plan, request.keep_weights, (progress or Messages()).say)
    race = Race(plan, ending=ending, kept={KeptWeights: weights}, findings=findings, progress=progress)
    began_at = datetime.now(UTC).isoformat(timespec="seconds")
    run = Run(plan_to_keep(plan), race.processes, machine_facts(), {}, began_at, roofs=roofs_for(plan))
    run.profiles, run.compilations = findings.profiles, findings.compilations
    with progress or nullcontext():
        race.run()
    for failure in weights.failures:
        warnings.warn(failure, stacklevel=4)
    run.wall_s, run.ended_early = race.shares(), race.ended_early
    results = with_decision(
        results_of(run, run.began_at, baseline=request.baseline, price=output.price), output.question
    )
    for failure in write_all(output.files, results):
        warnings.warn(failure, stacklevel=4)
    return results
