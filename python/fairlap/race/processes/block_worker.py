"""The worker of one contestant in a block, its environment, and what it is asked to prepare.

The C library gives freed memory back to the kernel, or not, depending on the layout of the heap, which the hash seed
shifts. The same net then runs in two modes a factor of two apart. Under ``controlled`` conditions the environment takes
that draw away from every contestant alike; ``as-found`` leaves it in, since it is what users get.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairlap.engine.measurement import Notice
from fairlap.launch.runners import Runner
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.race.equal_work.materials import UNSEEN, Materials
from fairlap.race.planning.plan import Block, Limits, Plan
from fairlap.race.processes.at_scale import runs_as_ranks
from fairlap.race.processes.sandbox import sandbox_of
from fairlap.race.scenario_side import sides_asked
from fairlap.request.names import COMMAND
from fairlap.scenarios.ranks.ranks_messages import RankLimits
from fairlap.worker import protocol
from fairlap.worker.process_options import KEPT_MEMORY

CONTROLLED_MEMORY: Mapping[str, str] = {**KEPT_MEMORY, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
OFFLINE: Mapping[str, str] = {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "OPENVINO_TELEMETRY": "0",
}
"""Telemetry and network access of frameworks are off under all conditions."""

PADDING = "FAIRLAP_PADDING"
TEMPORARY = "temporary"
"""The folder of a race for what its workers leave behind: TensorFlow's generated code, or anything after a kill."""


def block_worker(
    block: Block,
    runner: Runner,
    limits: Limits,
    *,
    greeted: bool = True,
    ends_by_s: float = math.inf,
    longest_request_s: float = math.inf,
) -> WorkerProcess:
    """Start it under the limits of start and memory; the rest as in :class:`WorkerProcess`."""
    return WorkerProcess(
        runner.command,
        environment=environment_of(block, runner),
        start_s=limits.start_s,
        cores=runner.cores(block.cores),
        memory_limit_bytes=limits.memory_bytes,
        greeted=greeted,
        ends_by_s=ends_by_s,
        longest_request_s=longest_request_s,
        container=runner.container,
    )


def environment_of(block: Block, runner: Runner) -> dict[str, str]:
    """Build the whole environment of one worker.

    It is the user's own without secrets but those that are passed, what the adapter wants, and what the block drew. In
    a container the image's own takes the place of the user's.
    """
    of_user = own_environment(runner.passed)
    if runner.container is not None:
        of_user = {name: of_user[name] for name in runner.passed if name in of_user}
    variables = {**of_user, **OFFLINE, **runner.environment}
    variables["PYTHONHASHSEED"] = str(block.hash_seed)
    variables[PADDING] = "x" * block.padding_bytes
    if block.conditions == "controlled":
        variables.update(CONTROLLED_MEMORY)
    temporary = runner.scratch / TEMPORARY
    if runner.container is None and runner.name.framework != COMMAND and temporary.is_dir():
        variables["TMPDIR"] = str(temporary)
    return variables


def request_for(plan: Plan, materials: Materials, runner: Runner, *, bind_ranks: bool = False) -> protocol.Prepare:
    """Ask for one contestant on one piece of work, as the plan has it."""
    work, limits = materials.work, plan.limits
    inputs = str(materials.inputs_file("inputs"))
    request = protocol.Prepare(
        framework=runner.adapter,
        workload=materials.package,
        batch=work.batch,
        threads=runner.name.threads(plan.threads_of(work)),
        weights=str(materials.weights_file),
        inputs=inputs,
        changed=str(materials.inputs_file("changed")),
        unseen=tuple(str(materials.inputs_file(which)) for which in UNSEEN),
        calibration=tuple(map(str, materials.calibration_files)),
        labels=inputs if materials.has_labels else None,
        mode=work.mode,
        precision=work.precision,
        training=work.training,
        sizes=work.sizes,
        variant=runner.name.variant,
        device=plan.device,
        devices=plan.devices_of(work) if runs_as_ranks(work) and plan.device != "cpu" else (),
        options=runner.name.framework_options,
        scale=work.scale,
        limits=RankLimits(limits.start_s, limits.prepare_s, limits.answer_s, limits.measure_s),
        sandbox=sandbox_of(plan, materials, runner),
        bind_ranks=bind_ranks,
    )
    for side in sides_asked(plan):
        request = side.prepared_with(request, plan, materials, runner.name)
    return request


def unseen_orphans(worker: WorkerProcess) -> list[Notice]:
    """Warn where what the contestant leaves behind cannot be seen."""
    if worker.hello.holds_orphans:
        return []
    text = "processes that it leaves behind cannot be tracked on this system, so they may run in others' turns"
    return [Notice("W_ORPHANS", text)]
