"""Which works of a race the processes of its contestants take one after the other, and why not where each has its own.

Most of the life of a process is its start. What one work leaves behind may change the next one, so works share
processes only where that was measured not to happen; see docs/explanation/taking-turns.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.models.operations.listed import is_pattern
from fairlap.race.planning.plan import Block, Plan
from fairlap.request.names import ContestantName
from fairlap.request.race_request import RaceRequest
from fairlap.request.work import Work
from fairlap.worker.process_options import process_options_in
from fairlap.worker.serving import over_http

Kind = Hashable
"""Works of one kind may share a process; None for a work that shares it with no other."""

_UNLIKE = "no two works are alike enough"


def why_fresh(plan: Plan) -> str:
    """Why every work of this plan has its own processes; empty where some share theirs."""
    if plan.fresh == "every":
        return "that is what was asked for"
    if plan.in_turn_because:
        return f"contestants run one after the other, because {plan.in_turn_because}"
    as_found = all(block.conditions != "controlled" for block in plan.blocks) and bool(plan.blocks)
    is_limited = plan.limits.memory_bytes is not None
    if why := _why_whatever_races(plan.contestants, sandbox=plan.sandbox, is_limited=is_limited, as_found=as_found):
        return why
    kinds = Counter(kind for work in plan.works if (kind := _kind(plan, work)) is not None)
    return "" if any(count > 1 for count in kinds.values()) else _UNLIKE


def _why_whatever_races(
    contestants: Sequence[ContestantName], *, sandbox: bool, is_limited: bool, as_found: bool
) -> str:
    if sandbox:
        return "contestants are in a sandbox"
    if is_limited:
        return "the memory of each process is limited"
    if alone := [name.text for name in contestants if not _takes_several(name)]:
        return f"{', '.join(alone)} may carry something from one work to the next"
    return "contestants run as found" if as_found else ""


def require_shareable(request: RaceRequest, contestants: Sequence[ContestantName]) -> None:
    """As ``require_honoured``, before models are read, which may take a minute: by what holds for any work."""
    as_found, is_limited = request.conditions == "as-found", request.memory_limit_bytes is not None
    why = _why_whatever_races(contestants, sandbox=request.sandbox, is_limited=is_limited, as_found=as_found)
    if request.fresh != "every" and why:
        raise _dishonoured(request.fresh, why)


def require_several_works(request: RaceRequest) -> None:
    """As ``require_shared``, before the model is read, where there is one work of each kind."""
    several = [each for each in (request.batch, request.processes) if isinstance(each, tuple) and len(each) > 1]
    several_models = len(request.models) > 1 or any(map(is_pattern, request.models))
    if request.fresh == "never" and not (several or several_models or len(request.shapes) > 1 or request.shapes_from):
        raise _dishonoured(request.fresh, _UNLIKE)


def require_honoured(plan: Plan) -> None:
    """Refuse to share no process where that was asked for, unless there is nothing to share."""
    if plan.fresh != "every" and (why := why_fresh(plan)) and why != _UNLIKE:
        raise _dishonoured(plan.fresh, why)


def require_shared(plan: Plan) -> None:
    """Refuse to start no processes of their own for works of a race that share none. Those of a suite share others."""
    if plan.fresh == "never" and (why := why_fresh(plan)):
        raise _dishonoured(plan.fresh, why)


def _dishonoured(fresh: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"--fresh {fresh}: each work has its own processes here, because {why}; leave it out")


def kinds_of_works(plan: Plan) -> tuple[Kind | None, ...]:
    """In the order of the works."""
    if why_fresh(plan):
        return (None,) * len(plan.works)
    return tuple(_kind(plan, work) for work in plan.works)


def in_groups(works: Sequence[int], kinds: Sequence[Kind | None]) -> list[int]:
    """Works in the drawn order of their kinds, and of each kind as drawn, so that its processes need not wait."""
    place = {work: number for number, work in enumerate(works)}
    first: dict[Kind | None, int] = {}
    for work in works:
        if kinds[work] is not None:
            first.setdefault(kinds[work], place[work])
    return sorted(works, key=lambda work: (first.get(kinds[work], place[work]), place[work]))


def sharing(block: Block, kind: Kind | None, first_blocks: dict[Kind, Block]) -> Block:
    """Let it go on with the processes of the first block of its kind, if that is not this one."""
    if kind is None:
        return block
    first = first_blocks.setdefault(kind, block)
    if first is block:
        return block
    return msgspec.structs.replace(
        block,
        hash_seed=first.hash_seed,
        padding_bytes=first.padding_bytes,
        cores=first.cores,
        processes_of=first.number,
    )


def with_fresh_processes(plan: Plan) -> Plan:
    """Give each work its own processes in every block, as quantities of a start and of memory need them."""
    blocks = tuple(msgspec.structs.replace(block, processes_of=None) for block in plan.blocks)
    return msgspec.structs.replace(plan, blocks=blocks, fresh="every")


def starts_processes(block: Block) -> int:
    """Find the number of the block in which its processes start, by the plan."""
    return block.number if block.processes_of is None else block.processes_of


def works_of_processes(plan: Plan) -> Mapping[int, int]:
    """How many works the processes of each block take, by the number of the block that starts them."""
    return Counter(map(starts_processes, plan.blocks))


def _takes_several(name: ContestantName) -> bool:
    if not name.framework or name.url or over_http.OPTION in name.framework_options:
        return False
    if process_options_in(name.framework_options).sandbox:
        return False
    try:
        return name.variant in framework_named(name.framework).of_several_works
    except InvalidRequest:  # of a run from elsewhere
        return False


def _kind(plan: Plan, work: Work) -> Kind | None:
    if not plan.scenario(work).may_share_process(work):
        return None
    model = None if work.source is None else (work.source.path, work.source.folder, work.source.files)
    return model, work.mode, work.precisions, plan.threads_of(work)
