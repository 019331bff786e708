"""The command that draws a plan again, recovered from the plan and checked by drawing it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import product
from typing import Literal

import msgspec

from fairlap.errors import FairlapError
from fairlap.models.registry import find
from fairlap.race.planning.plan import Limits, Plan
from fairlap.race.planning.plan_drawing import draw_plan
from fairlap.render.scenario_side import NoCommand, Words, number_word, render_side_of, require_command
from fairlap.request.commands import is_named_command
from fairlap.request.fields.scale import Scale
from fairlap.request.fields.source import Source, dims_in, range_in, shapes_in
from fairlap.request.fields.training import optimizer_in, schedule_in
from fairlap.request.names import FOLDER, OUTPUT, REPORTED, RUN, ContestantName, Contestants
from fairlap.request.race_request import BEST_BUDGET_S, BLOCKS_UNTIL_DECIDED, PROFILE_PROCESSES
from fairlap.request.work import Conditions, Mode, Precision, Work


def command_of(plan: Plan) -> str:
    """Empty where no command draws it: plans may be edited, and request files may give what the command line cannot.

    It is to be run in the folder of the race, where models of your own were given with relative paths, and where the
    same cores are available. Operations that were skipped are not part of it, and best settings are searched again.
    """
    try:
        return shlex.join(["fairlap", plan.command, *_words(plan)])
    except (NoCommand, FairlapError, ValueError):
        return ""


def _words(plan: Plan) -> Words:
    require_command(bool(plan.works) and bool(plan.blocks))
    kinds = {block.conditions for block in plan.blocks}
    conditions: Conditions | Literal["both"] = "both" if len(kinds) > 1 else plan.headline
    blocks = len(plan.blocks) // len(plan.works) // len(kinds)
    named, contestants = _contestants(plan)
    sides = [render_side_of(each) for each in plan.scenarios]
    lacks = {option for side in sides for option in side.lacks}
    models, works = _works(plan.works, lacks)
    words = [*models, *(["--on", ",".join(named)] if named else []), *_commands(plan), *works]
    words += [] if "--device" in lacks else ["--device", plan.device]
    words += [word for side in sides for word in side.words(plan)]
    words += [*_scales(plan), "--conditions", conditions]
    if plan.until_decided:
        require_command(blocks == BLOCKS_UNTIL_DECIDED)
    else:
        words += ["--blocks", str(blocks)]
    require_command(plan.limits == Limits(memory_bytes=plan.limits.memory_bytes) and plan.measuring.samples is None)
    words += ["--fresh", plan.fresh] if plan.fresh != "every" else []
    words += ["--seconds", number_word(plan.measuring.seconds), "--seed", str(plan.seed)]
    words += [] if plan.budget_s is None else ["--budget", f"{number_word(plan.budget_s)}s"]
    words += [] if plan.target is None else ["--target", number_word(plan.target)]
    if plan.data:
        words += ["--data", plan.data]
    words += _data_seed(plan, contestants, blocks, conditions)
    words += _training(plan)
    words += [] if plan.max_drop is None else ["--max-drop", number_word(plan.max_drop)]
    words += ["--only-winner"] if plan.only_winner else []
    if plan.gate is not None:
        words += ["--baseline", plan.gate.baseline, "--max-slowdown", f"{number_word(100 * plan.gate.max_slowdown)}%"]
    require_command(plan.gate is not None or not plan.required)
    words += [word for each in plan.required for word in ("--require", each.text)]
    if plan.limits.memory_bytes is not None:
        words += ["--memory-limit", str(plan.limits.memory_bytes)]
    words += ["--lock-clocks", plan.lock_clocks] if plan.lock_clocks else []
    words += ["--sandbox"] if plan.sandbox else []
    words += [word for name, text in plan.scenario_settings.items() for word in (f"--{name}", text)]
    words += [word for name in plan.pass_env for word in ("--pass-env", name)]
    if any(name.best for name in contestants):
        words += ["--best-budget", f"{number_word(plan.best_budget_s)}s"]
    else:
        require_command(plan.best_budget_s == BEST_BUDGET_S)
    return [*words, *_after_the_blocks(plan)]


def _contestants(plan: Plan) -> tuple[list[str], tuple[ContestantName, ...]]:
    """As a user names them, and as they were before a search found the best settings of some."""
    commands = tuple(name for name in plan.contestants if is_named_command(name))
    raced = tuple(name for name in plan.contestants if not is_named_command(name))
    require_command((*raced, *commands) == plan.contestants)
    texts = list(dict.fromkeys(name.plain_text for name in raced))
    asked = Contestants(",".join(texts)) if texts else ()
    require_command([name.text for name in asked] == texts)
    together = plan.works[0].together
    names = tuple(each for name in asked for each in (name.across(together) if together else (name,)))
    searched = {search.contestant for search in plan.searches}
    for name, other in zip(names, raced, strict=True):
        require_command(name == other or (name.text == other.text and name.best and name.text in searched))
    return texts, (*names, *commands)


def _commands(plan: Plan) -> Words:
    """Named commands. What all must print is found again by running the first."""
    require_command(not any(name.is_apart for name in plan.contestants if is_named_command(name)))
    given = {name.text: name.framework_options for name in plan.contestants if is_named_command(name)}
    words = []
    for text, options in given.items():
        folder = options.get(FOLDER, "")
        words += ["--command", f"{text}{f'@{folder}' if folder else ''}={options[RUN]}"]
    outputs = {options.get(OUTPUT, "") for options in given.values()}
    require_command(len(outputs) < 2 and not any("=" in options.get(FOLDER, "") for options in given.values()))
    [reported] = {options.get(REPORTED, "") for options in given.values()} or {""}
    words += ["--reported", reported] if reported else []
    return [*words, *(["--same-output"] if any(outputs) else [])]


def _data_seed(
    plan: Plan, contestants: tuple[ContestantName, ...], blocks: int, conditions: Conditions | Literal["both"]
) -> Words:
    """Nothing where the usual seeds draw the same blocks; the one that does, otherwise."""
    one = bool(plan.data) or any(work.source for work in plan.works)
    usual = plan.usual_data_seeds
    cores = plan.available_cores or tuple(sorted({core for block in plan.blocks for core in block.cores}))
    wanted = msgspec.structs.replace(plan, contestants=contestants, searches=(), skipped=(), available_cores=cores)
    wanted = msgspec.structs.replace(wanted, pass_env=(), budget_s=None, target=None)  # nothing is drawn from them
    tries: list[tuple[Sequence[int], Words]] = [(usual[:1] if one else usual, [])]
    tries += [(plan.data_seeds, ["--data-seed", str(plan.data_seed)])] if len(plan.data_seeds) == 1 else []
    for seeds, words in tries:
        if _drawn(wanted, seeds, blocks, conditions) == wanted:
            return words
    raise NoCommand


def _drawn(plan: Plan, data_seeds: Sequence[int], blocks: int, conditions: Conditions | Literal["both"]) -> Plan:
    given = {name: getattr(plan, name) for name in Plan.__struct_fields__ if name not in ("blocks", "format")}
    return draw_plan(**given, blocks=blocks, conditions=conditions, data_seeds=data_seeds)


def _works(works: Sequence[Work], lacks: Set[str]) -> tuple[Words, Words]:
    """Models, modes, precisions and batches, of which every combination is raced, in the order of a request."""
    models = list(dict.fromkeys(_model(work) for work in works))
    modes = tuple(dict.fromkeys(work.mode for work in works))
    precisions = tuple(dict.fromkeys(work.precisions for work in works))
    together = any(len(each) > 1 for each in precisions)
    require_command(not together or len(precisions) == 1)
    shapes = tuple(dict.fromkeys(work.source.shapes for work in works if work.source))
    scales = tuple(dict.fromkeys(work.scale for work in works))
    found = [(_key(work), work.scale) for work in works]
    for batches in dict.fromkeys((_batches(works), ())):
        wanted = [key for model in models for key in _combinations(model, works, modes, precisions, shapes, batches)]
        if found == list(product(wanted, scales)):
            break
    else:
        raise NoCommand
    words = ["--batch", ",".join(map(str, batches))] if batches else []
    words += [] if "--mode" in lacks else ["--mode", ",".join(modes)]
    words += ["--precision", ",".join(precision for each in precisions for precision in each)]
    words += ["--across-precisions"] if together else []
    return models, [*words, *_binding(works, shapes)]


Key = tuple[str, object, int | None, Mode, tuple[Precision, ...]]


def _model(work: Work) -> str:
    return work.model if work.source is None else work.source.text


def _key(work: Work) -> Key:
    if work.source is None:
        return work.model, (), work.without_scale().batch, work.mode, work.precisions
    return work.source.text, work.source.shapes, work.source.batch, work.mode, work.precisions


def _scales(plan: Plan) -> Words:
    scales = tuple(dict.fromkeys(work.scale for work in plan.works if work.scale is not None))
    if not scales:
        return ["--threads", str(plan.threads)]
    threads = tuple(dict.fromkeys(each.threads for each in scales))
    ranks = tuple(dict.fromkeys(each.ranks for each in scales))
    hosts, scaling = max((each.hosts for each in scales), key=len), scales[0].scaling
    require_command(scales == tuple(Scale(each, count, scaling, hosts[:count]) for count in ranks for each in threads))
    words = ["--threads", ",".join(map(str, threads))]
    if max(ranks) > 1 or hosts or len(threads) == 1:
        words += ["--processes", ",".join(map(str, ranks))]
        words += ["--scaling", scaling] if max(ranks) > 1 else []
    return [*words, *(["--hosts", ",".join(hosts)] if hosts else [])]


def _batches(works: Iterable[Work]) -> tuple[int, ...]:
    """Those that were asked for, if any were."""
    asked = (work.without_scale().batch if work.source is None else work.source.batch for work in works)
    return tuple(dict.fromkeys(batch for batch in asked if batch is not None))


def _combinations(
    model: str,
    works: Sequence[Work],
    modes: Sequence[Mode],
    precisions: Sequence[tuple[Precision, ...]],
    shapes: Sequence[object],
    batches: tuple[int, ...],
) -> Iterator[Key]:
    if any(work.source is not None and work.source.text == model for work in works):
        for shape, batch, mode, precision in product(shapes, batches or (None,), modes, precisions):
            yield model, shape, batch, mode, precision
    else:
        for mode, precision, batch in product(modes, precisions, batches or (find(model).spec.default_batch,)):
            yield model, (), batch, mode, precision


def _binding(works: Sequence[Work], shapes: Sequence[tuple[tuple[str, tuple[int, ...]], ...]]) -> Words:
    """Of models of one's own, which share all of it but their shapes."""
    sources = [work.source for work in works if work.source]
    if not sources:
        return []
    first = sources[0]
    require_command(len({_bound(each) for each in sources}) == 1)
    words: Words = []
    for each in shapes:
        text = ",".join(f"{name}:[{','.join(map(str, sizes))}]" for name, sizes in each)
        require_command(shapes_in(text) == each)
        words += ["--shapes", text] if text else []
    require_command(all(shapes) or len(shapes) == 1)
    changing = () if first.mix is None else first.mix.names
    fixed = tuple((name, size) for name, size in first.dims if name not in changing)
    dims = ",".join(f"{name}={size}" for name, size in fixed)
    require_command(dims_in(dims) == fixed)
    words += ["--dims", dims] if dims else []
    words += ["--generate", first.answer_text] if first.generate else []
    for name, low, high in first.ranges:
        require_command(range_in(f"{name}:{low}..{high}") == (name, low, high))
        words += ["--range", f"{name}:{low}..{high}"]
    words += ["--reference", first.shown] if first.of_callables and not first.peer else []
    words += ["--inputs", first.inputs] if first.inputs else []
    words += ["--trust"] if first.trust else []
    words += ["--metric", ",".join(first.metrics), "--labels", first.labels] if first.metrics else []
    words += ["--groups", first.groups] if first.groups else []
    return words + (["--corrupt", ",".join(each.text for each in first.corruptions)] if first.corruptions else [])


def _bound(source: Source) -> tuple[object, ...]:
    dims = source.dims, source.mix, source.answer_text
    scored = source.metrics, source.labels, source.groups, source.corruptions
    return source.folder, dims, source.ranges, source.inputs, source.trust, *scored


def _training(plan: Plan) -> Words:
    """One optimizer, start and data set of all works; or each model's own, which need no option."""
    works = [work for work in plan.works if work.training is not None]
    trainings = {work.training for work in works}
    words: Words = []
    if len(trainings) == 1:
        [training] = trainings
        assert training is not None
        optimizer, schedule = training.optimizer.text, training.schedule.text
        require_command(optimizer_in(optimizer) == training.optimizer and schedule_in(schedule) == training.schedule)
        words += ["--optimizer", optimizer, "--schedule", schedule]
    for work in works if len(trainings) > 1 else ():
        require_command(work.source is None and find(work.model, work.sizes).spec.training == work.training)
    starts = {work.start for work in plan.works}
    require_command(len(starts) == 1)
    words += [word for start in starts if start for word in ("--start-from", f"{start.path}@sha256:{start.sha256}")]
    return words


def _after_the_blocks(plan: Plan) -> Words:
    words: Words = []
    if plan.count_allocations:
        words.append("--count-allocations")
    if plan.min_memory:
        words.append("--min-memory")
    if plan.max_batch:
        words += ["--max-batch", str(plan.max_batch), "--max-batch-budget", f"{number_word(plan.max_batch_budget_s)}s"]
    if plan.profile_processes:
        require_command(plan.profile_processes == PROFILE_PROCESSES)
        words.append("--profile")
    if plan.recompiled_on:
        words += ["--recompile", ",".join(plan.recompiled_on)]
    return words
