"""What a worker is asked to prepare: one contestant on one piece of work, as the plan has it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fairlap.frameworks.command import program_of
from fairlap.launch.runners import Runner
from fairlap.models.sources.registry import require_kind
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.plan import Plan
from fairlap.request.commands import words_of
from fairlap.request.names import COMMAND, FOLDER, RUN
from fairlap.scenarios.ranks_messages import RankLimits
from fairlap.worker import protocol
from fairlap.worker.process_options import process_options_in


def request_for(plan: Plan, materials: Materials, runner: Runner) -> protocol.Prepare:
    work, limits = materials.work, plan.limits
    sandboxed = plan.sandbox or process_options_in(runner.name.framework_options).sandbox
    inputs = str(materials.inputs_file("inputs"))
    return protocol.Prepare(
        framework=runner.adapter,
        workload=materials.package,
        batch=work.batch,
        threads=runner.name.threads(plan.threads_of(work)),
        weights=str(materials.weights_file),
        inputs=inputs,
        changed=str(materials.inputs_file("changed")),
        unseen=tuple(str(materials.inputs_file(which)) for which in UNSEEN),
        calibration=tuple(map(str, materials.calibration_files)),
        labels=None if materials.spec.loss == "mean_square" else inputs,
        mode=work.mode,
        precision=work.precision,
        training=work.training,
        sizes=work.sizes,
        variant=runner.name.variant,
        device=plan.device,
        options=runner.name.framework_options,
        scale=work.scale,
        limits=RankLimits(limits.start_s, limits.prepare_s, limits.answer_s, limits.measure_s),
        sandbox=_sandbox(plan, materials, runner) if sandboxed else None,
    )


def _sandbox(plan: Plan, materials: Materials, runner: Runner) -> protocol.Sandbox:
    """What a contestant is handed, and what it is made of."""
    work, options = materials.work, runner.name.framework_options
    readable = [materials.folder, *_folder_of(materials.package)]
    readable += [Path(plan.data)] if "/" in plan.data else []
    writable = [runner.scratch]
    if (source := work.source) is not None:
        kind = require_kind(source)
        readable += kind.readable(source) if kind.files(source) else [Path(source.folder)]
        writable.insert(0, materials.folder)  # where some keep what they converted
    if runner.name.framework == COMMAND:
        folder = options.get(FOLDER) or str(Path.cwd())
        readable += [Path(folder), program_of(words_of(options[RUN]), folder).parent]
    if runner.name.framework == "python":  # a callable, of a module in the current folder or in a checkout
        readable += [Path.cwd(), Path(options.get("path") or ".").absolute()]
    return protocol.Sandbox(tuple(map(str, readable)), tuple(map(str, writable)))


def _folder_of(package: str) -> list[Path]:
    if Path(package).is_absolute():
        return [Path(package)]
    found = find_spec(package)
    return [Path(found.origin).resolve().parent] if found is not None and found.origin is not None else []
