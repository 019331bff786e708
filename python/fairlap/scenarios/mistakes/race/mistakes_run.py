"""Run planted mistakes: those of a contestant one after the other in a fresh process, in blocks.

A process that crashes or hangs ends with that mistake; those that follow have a new one.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import msgspec

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.frameworks.registry import framework_names
from fairlap.launch.runners import NotInstalled, Runner, runners_for
from fairlap.launch.started_worker import python_worker
from fairlap.launch.worker_lost import WorkerLost
from fairlap.launch.worker_process import WorkerProcess
from fairlap.machine.files.scratch_folder import remove_abandoned
from fairlap.machine.programs.passed_environment import own_environment
from fairlap.request.names import ContestantName
from fairlap.scenarios.mistakes.catalogue import CONTROL, mistakes
from fairlap.scenarios.mistakes.mistakes_messages import MistakeSeen, PlantMistake
from fairlap.scenarios.mistakes.ways import E_CONTESTANT, WAYS, way_name

_THREADS = 1
_START_S, _LOAD_S = 60.0, 300.0


class MistakesPlan(msgspec.Struct, frozen=True):
    mistakes: tuple[str, ...]
    blocks: int
    limit_s: float  # of one mistake
    seed: int


class Planted(msgspec.Struct, frozen=True):
    """One mistake in one process of a contestant: what was seen, or how the process was lost."""

    contestant: str
    mistake: str
    block: int
    seen: MistakeSeen | None = None
    hung: bool = False
    lost: str = ""


class MistakesRun(msgspec.Struct):
    plan: MistakesPlan
    ways: dict[str, str]  # by contestant
    planted: list[Planted]
    failures: dict[str, str]  # by contestant: why it has nothing
    codes: dict[str, str]  # of the failures
    versions: dict[str, str]


def run_mistakes(
    contestants: Sequence[ContestantName], plan: MistakesPlan, report: Callable[[str], None]
) -> MistakesRun:
    found = MistakesRun(plan, {name.text: way_name(name) for name in contestants}, [], {}, {}, {})
    order = random.Random(plan.seed)
    with ExitStack() as stack:
        stack.callback(remove_abandoned)  # of workers that were killed
        caches = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runners = [_runner(name, caches, stack, report) for name in contestants]
        for block in range(plan.blocks):
            for runner in order.sample(runners, len(runners)):
                if runner.name.text not in found.failures:
                    report(f"[block {block + 1}/{plan.blocks}] {runner.name.text}")
                    _one_block(runner, block, found)
    return found


def _runner(name: ContestantName, caches: Path, stack: ExitStack, report: Callable[[str], None]) -> Runner:
    """Keras is no contestant of other races, so it has no environments of its own."""
    if name.image:
        raise InvalidRequest(f"{name.text}: mistakes are planted in processes of this machine", code=E_CONTESTANT)
    if name.framework in framework_names():
        [runner] = runners_for((name,), _THREADS, "cpu", caches / name.framework, stack, report)
        return runner
    if name.is_apart:
        raise InvalidRequest(f"{name.text}: {name.framework} runs in this environment only", code=E_CONTESTANT)
    way = WAYS[way_name(name)]
    if find_spec(way.package) is None:
        return Runner(name, missing=NotInstalled(f"{name.framework} is not installed here"))
    return Runner(name, python_worker())


def _one_block(runner: Runner, block: int, found: MistakesRun) -> None:
    name = runner.name.text
    if runner.missing is not None:
        _fail(found, name, runner.missing)
        return
    way = found.ways[name]
    left = [each for each in found.plan.mistakes if not mistakes()[each].why_absent(way, WAYS[way])]
    while left and name not in found.failures:
        for planted in _one_process(runner, block, found, left):
            found.planted.append(planted)
            left.remove(planted.mistake)


def _one_process(runner: Runner, block: int, found: MistakesRun, names: Sequence[str]) -> Iterator[Planted]:
    """Go on until the process is lost, or its only mistake was seen; what is left then is for the next one."""
    contestant, plan = runner.name.text, found.plan
    way = found.ways[contestant]
    environment = {**own_environment(), **runner.environment, **WAYS[way].environment}
    try:
        worker = WorkerProcess(runner.command, environment=environment, start_s=_START_S)
    except WorkerLost as lost:
        _fail(found, contestant, lost)
        return
    with worker:
        try:
            control = worker.ask(PlantMistake(way, CONTROL), within_s=_LOAD_S)
        except WorkerLost as lost:
            _fail(found, contestant, lost)
            return
        found.versions[contestant] = control.version
        if not control.right:
            why = f"it cannot run code without a mistake: {control.raised or 'a wrong answer'} {control.message}"
            _fail(found, contestant, FairlapError(why.strip(), code="E_OUTPUT"))
            return
        for name in list(names[:1] if WAYS[way].alone else names):
            try:
                seen = worker.ask(PlantMistake(way, name), within_s=plan.limit_s)
            except WorkerLost as lost:
                yield Planted(contestant, name, block, hung=lost.outcome == "timeout", lost=lost.message)
                return
            yield Planted(contestant, name, block, seen)
        worker.quit()


def _fail(found: MistakesRun, contestant: str, error: FairlapError) -> None:
    found.failures[contestant], found.codes[contestant] = str(error), error.code
