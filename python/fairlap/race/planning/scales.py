"""The scales of a request: the works that they make, and what cannot be raced at several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from fairlap import quantity_text
from fairlap.engine.arguments import whole_number
from fairlap.errors import InvalidRequest
from fairlap.frameworks.registry import framework_named
from fairlap.models.modes import MODES
from fairlap.models.spec import Spec
from fairlap.race.equal_work.mode_side import mode_side
from fairlap.race.operations import is_operation
from fairlap.race.planning.plan_drawing import require_threads
from fairlap.race.scenario_side import sides_asked
from fairlap.request.fields.scale import E_SCALE, Scale
from fairlap.request.names import THREADS, ContestantName, Devices
from fairlap.request.race_request import MOST_BATCH, RaceRequest
from fairlap.request.work import Work
from fairlap.worker.serving import over_http

MOST_RANKS = MOST_THREADS = 4096


def threads_asked(request: RaceRequest, cores: Sequence[int], usable: int) -> tuple[int, ...]:
    """List the numbers of threads, each once, the smallest first.

    Without any, it is as many as the cores that the quota leaves usable, shared by the ranks of a host.
    """
    if request.threads is None:
        on_a_host = math.ceil(max(_ranks_asked(request), default=1) / max(len(request.hosts or ()), 1))
        return (max(usable // on_a_host, 1),)
    asked = request.threads if isinstance(request.threads, tuple) else (request.threads,)
    for each in asked:
        if request.hosts is None:
            require_threads(each, cores)
        else:  # whose cores are not known here
            whole_number("threads", each, least=1, most=MOST_THREADS)
    return tuple(sorted(set(asked)))


def scales_asked(request: RaceRequest, cores: Sequence[int], usable: int) -> tuple[Scale, ...]:
    """Every combination of processes and threads, fewer processes first; none where the request has one scale alone."""
    threads, ranks = threads_asked(request, cores, usable), _ranks_asked(request)
    if request.scaling is not None and max(ranks, default=1) < 2:
        raise InvalidRequest(
            "--scaling says what is shared between the processes of a step; add --processes 1,2", code=E_SCALE
        )
    if len(threads) < 2 and not ranks:
        return ()
    hosts, scaling = request.hosts or (), request.scaling or "strong"
    found = tuple(Scale(each, count, scaling, hosts[:count]) for count in ranks or (1,) for each in threads)
    _require_contestants(request, found)
    if any(scale.ranks > 1 or scale.hosts for scale in found):
        _require_ranks(request.contestants)
        _require_no_more(request)
    return found


def devices_asked(request: RaceRequest, scales: Sequence[Scale]) -> tuple[str, ...]:
    """List the devices of the processes of a host, that of the first one first. Each process has a separate GPU.

    Two ranks on one GPU are refused by NCCL, in words that name neither.
    """
    most = max((scale.most_on_a_host for scale in scales), default=1)
    found = Devices(request.device).for_processes(most)
    if found == ("cpu",) or len(found) == most:
        return found
    named = f"--device {request.device} names {quantity_text.count(len(found), 'GPU')}"
    if most == 1:
        why = f"{named}, and one process works on one; add --processes {len(found)}, or name one"
    else:
        why = f"{named}, and {most} processes of a host need one each; --device cuda takes the first {most}"
    raise InvalidRequest(why, code=E_SCALE)


def _require_hosts(hosts: Sequence[str]) -> None:
    if not hosts:
        raise InvalidRequest("--hosts is empty; name hosts, or leave it out", code=E_SCALE)
    for host in hosts:
        if not host or host.startswith("-") or any(map(str.isspace, host)):
            raise InvalidRequest(f"--hosts: {host!r} is not the name of a host", code=E_SCALE)
    if len(set(hosts)) < len(hosts):
        raise InvalidRequest(f"--hosts names a host twice: {', '.join(hosts)}", code=E_SCALE)


def _ranks_asked(request: RaceRequest) -> tuple[int, ...]:
    """List the numbers of ranks, the smallest first; hosts without a number have one each."""
    if request.hosts is not None:
        _require_hosts(request.hosts)
    if request.processes is None:
        return () if request.hosts is None else (len(request.hosts),)
    asked = request.processes if isinstance(request.processes, tuple) else (request.processes,)
    for each in asked:
        whole_number("processes", each, least=1, most=MOST_RANKS)
    return tuple(sorted(set(asked)))


def _require_contestants(request: RaceRequest, scales: Sequence[Scale]) -> None:
    for name in request.contestants:
        if name.best:
            raise InvalidRequest(
                f"{name.text}: a search for the best settings is for one scale; name one number of --threads, and no "
                "--processes",
                code=E_SCALE,
            )
        if THREADS in name.framework_options and len({scale.threads for scale in scales}) > 1:
            raise InvalidRequest(
                f"{name.text}: it names its own threads, and --threads gives it several; leave one of them out",
                code=E_SCALE,
            )


def without_ranks(contestants: Sequence[ContestantName]) -> list[str]:
    """Those that cannot run as several processes."""
    return [
        name.text
        for name in contestants
        if over_http.OPTION in name.framework_options
        or (name.framework and not framework_named(name.framework).rank_launcher)
    ]


def _require_ranks(contestants: Sequence[ContestantName]) -> None:
    """Programs find out by themselves."""
    if without := without_ranks(contestants):
        raise InvalidRequest(
            f"{', '.join(without)}: does not run as several processes; leave it out of --on, or leave out --processes "
            "and --hosts",
            code=E_SCALE,
        )


def _require_no_more(request: RaceRequest) -> None:
    """Of what a race of single processes can be asked besides."""
    modes = request.mode if isinstance(request.mode, tuple) else (request.mode,)
    given = {
        **{side.title: True for side in sides_asked(request)},
        "--data": request.data is not None,
        "--max-batch": request.max_batch is not None,
        "--count-allocations": request.count_allocations,
        "--min-memory": request.min_memory,
        "--profile": request.profile,
        "--recompile": request.recompile != (),
        "--command": bool(request.commands),
        **{f"--mode {mode}": True for mode in modes if not MODES[mode].shared_by_ranks},
    }
    for option, asked in given.items():
        if asked:
            raise InvalidRequest(
                f"{option} is for contestants of one process; leave it out, or leave out --processes and --hosts. "
                "`fairlap explain E_SCALE` gives the reasons",
                code=E_SCALE,
            )


def at_scales(work: Work, spec: Spec, scales: Sequence[Scale]) -> list[Work]:
    """Repeat the work at each of the scales; its batch is the global one."""
    if not scales:
        return [work]
    if any(scale.ranks > 1 for scale in scales):
        _require_parts(work, spec)
    shared = math.lcm(*(scale.ranks for scale in scales if scale.scaling != "weak"))
    if work.batch % shared:
        raise InvalidRequest(_why_not_shared(work, scales, shared), code=E_SCALE)
    return [_at(work, scale) for scale in scales]


def _why_not_shared(work: Work, scales: Sequence[Scale], shared: int) -> str:
    """With the nearest batches that all these numbers of ranks can share, a multiple of each."""
    down = work.batch - work.batch % shared
    nearest = [each for each in (down, down + shared) if 0 < each <= MOST_BATCH]
    use = f"use --batch {' or '.join(map(str, nearest))}, or --scaling weak" if nearest else "use --scaling weak"
    *others, last = sorted({scale.ranks for scale in scales if work.batch % scale.ranks})
    ranks = f"{', '.join(map(str, others))} and {last} ranks" if others else quantity_text.count(last, "rank")
    return f"{work.model}: {ranks} cannot share a batch of {work.batch} equally; {use}"


def _at(work: Work, scale: Scale) -> Work:
    batch = work.batch
    if scale.scaling == "weak":
        batch = whole_number("batch", work.batch * scale.ranks, least=1, most=MOST_BATCH)
    return msgspec.structs.replace(work, batch=batch, scale=scale)


def _require_parts(work: Work, spec: Spec) -> None:
    """Refuse a model whose batch cannot be parted between ranks, or that would compute something else in parts."""
    if work.source is not None or is_operation(work.model) or not spec.computes:
        raise InvalidRequest(
            f"{work.model} has inputs of a fixed size, which ranks cannot share; race a built-in model, or leave out "
            "--processes",
            code=E_SCALE,
        )
    if spec.continuation:
        raise InvalidRequest(
            f"{work.model} answers token by token, which ranks cannot share; leave out --processes", code=E_SCALE
        )
    if why := mode_side(work.mode).why_no_ranks(work, spec):
        raise InvalidRequest(why, code=E_SCALE)
