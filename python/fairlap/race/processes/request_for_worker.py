"""What a worker is asked to prepare: one contestant on one piece of work, as the plan has it."""

from __future__ import annotations

from fairlap.launch.runners import Runner
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.plan import Plan
from fairlap.race.processes.sandbox import sandbox_of
from fairlap.scenarios.ranks_messages import RankLimits
from fairlap.worker import protocol


def request_for(plan: Plan, materials: Materials, runner: Runner, *, bind_ranks: bool = False) -> protocol.Prepare:
    work, limits = materials.work, plan.limits
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
        sandbox=sandbox_of(plan, materials, runner),
        bind_ranks=bind_ranks,
    )
