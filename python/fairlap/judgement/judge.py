"""Judge one change: build, test, race, and write the try into the ledger."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.judgement.judge_request import E_JUDGE, JudgeRequest, checked, folders, require_gain, share_of_gain
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import (
    BenchmarkOfTry,
    ChainBroken,
    LedgerFile,
    Side,
    SuiteOfTry,
    Try,
    held_ledger,
    kept_chain,
    level_of_share,
)
from fairlap.judgement.own_checks import why_not_built, why_tests_failed
from fairlap.judgement.race_of_sides import Question, planned, raced
from fairlap.judgement.regret import regret
from fairlap.machine.files.folder_hash import folder_hash
from fairlap.machine.race_lock.lock import one_race
from fairlap.race.planning.plan import Plan
from fairlap.race.progress import Progress, Silence
from fairlap.race.stopping import Ending
from fairlap.request.python_options import with_texts_for_paths
from fairlap.request.toml_file import from_python
from fairlap.suite.found_suites import FoundOptions, open_suite, suite_hash
from fairlap.verdict import ONE_SIDE

ProgressFor = Callable[[Plan, float | None], Progress]


def judge(
    base: str | Path | None = None,
    change: str | Path | None = None,
    *,
    call: str = "",
    command: str = "",
    suite: str | Path | None = None,
    gain: str | float | None = None,
    **options: Any,
) -> Judgement:
    """Keep, discard or undecided: race a change of code against its base.

    ``base`` and ``change`` are folders. Give ``call="package.module:function"``, imported from both, or ``command``,
    run in both; or ``suite``, a file whose benchmarks all race, or a folder of asv or pytest-benchmark. The change is
    kept if it is shown to be faster by more than ``gain``, such as ``"1%"``.

    Options: ``quantity``, of which it must need less in place of time, "cpu_time" or "memory_peak"; ``build``, a shell
    command that runs in both folders first; ``tests``, one that runs in the change and discards it when it fails;
    ``only``, names or regular expressions of benchmarks of the suite; ``ledger``, a file that spends one error rate
    over all changes that a search tries; ``confirm``, to race the last change that a ledger kept against the first
    base; ``budget`` such as ``"2m"``, or ``blocks``; ``threads``; ``seconds`` measured in each process; ``reported``
    and ``same_output``, of a command; ``inputs`` and ``reference``, of a callable, ``"module:function"`` of the current
    folder: what draws its arguments, and what answers right, by default the base; ``wait=False``, to be refused while
    another race uses the same cores; ``pass_env``, names of variables that both get although they look like secrets.
    """
    of_benchmark = {
        name: options.pop(name) for name in ("reported", "same_output", "inputs", "reference") if name in options
    }
    only = options.pop("only", ())
    given: Mapping[str, Any] = {
        **options,
        "only": (only,) if isinstance(only, str) else only,
        "base": base,
        "change": change,
        "benchmark": {"call": call, "command": command, **of_benchmark},
        "suite": suite,
        "gain": None if gain is None else share_of_gain(gain),
    }
    return judge_request(from_python(with_texts_for_paths(given), JudgeRequest, E_JUDGE))


def judge_request(
    request: JudgeRequest,
    progress_for: ProgressFor = lambda plan, longest_s: Silence(),
    notify: Callable[[str], None] = lambda line: None,
) -> Judgement:
    """As ``judge``, of a request that is parsed already, with progress."""
    request = checked(request)
    if request.ledger is None:
        base, change = folders(request)
        return _judged(request, base, change, progress_for, notify, None)
    with held_ledger(request.ledger) as file:
        request = _confirming(request, file) if request.confirm else request
        _require_one_quantity(file, request)
        base, change = folders(request)
        before = len(file.ledger.tries)
        found = _judged(request, base, change, progress_for, notify, file)
        number = len(file.ledger.tries) if len(file.ledger.tries) > before else None
        return msgspec.structs.replace(found, try_number=number, regret=regret(file.ledger))


def _confirming(request: JudgeRequest, file: LedgerFile) -> JudgeRequest:
    """Race what the ledger has at both ends of its chain of kept changes."""
    chain = kept_chain(file.ledger)
    if not chain:
        raise ChainBroken(f"{request.ledger} has no change that was kept, so there is nothing to confirm")
    first, last = chain[0], chain[-1]
    base, change = request.base or Path(first.base.folder), request.change or Path(last.change.folder)
    for option, folder, side in (("--base", base, first.base), ("--change", change, last.change)):
        if not folder.is_dir() or folder_hash(folder) != side.sha256:
            raise ChainBroken(
                f"{folder} is not what the ledger recorded of {side.folder}; give {option} a folder with that code"
            )
    suite: Path | None = None
    only: tuple[str, ...] = ()
    if last.suite:
        suite = Path(last.suite.file)
        if not suite.exists() or suite_hash(suite) != last.suite.sha256:
            raise ChainBroken(f"the suite {suite} has changed since the ledger's try {last.number}; restore it")
        only = tuple(f"^{re.escape(each.name)}$" for each in last.suite.benchmarks)
    request = msgspec.structs.replace(
        request, base=base, change=change, benchmark=last.benchmark, suite=suite, only=only, quantity=last.judged_by
    )
    require_gain(request)
    return request


def _require_one_quantity(file: LedgerFile, request: JudgeRequest) -> None:
    """Speedups of several quantities make no chain and no regret."""
    for each in file.ledger.tries:
        if each.judged_by != request.judged_by:
            raise InvalidRequest(
                f"{request.ledger} judges by {each.judged_by}, not by {request.judged_by}; start another ledger",
                code=E_JUDGE,
            )


def _judged(
    request: JudgeRequest,
    base: Path,
    change: Path,
    progress_for: ProgressFor,
    notify: Callable[[str], None],
    file: LedgerFile | None,
) -> Judgement:
    if request.build:
        notify(f"building: {request.build}")
        if (unbuilt := why_not_built(base, change, request.build, request.pass_env)) is not None:
            return msgspec.structs.replace(unbuilt, gain=request.least_gain, quantity=request.judged_by)
    if request.tests:
        notify(f"testing: {request.tests}")
        if (failed := why_tests_failed(change, request.tests, request.pass_env)) is not None:
            if file is not None:
                file.add(_ended(_new_try(request, base, change, None), failed))
            return msgspec.structs.replace(failed, gain=request.least_gain, quantity=request.judged_by)
    prepared = _prepared_race(request, base, change, progress_for, notify)
    share = file.ledger.next_share if file is not None else None
    level = ONE_SIDE if share is None else level_of_share(share)
    question = Question(request.least_gain, level, request.judged_by)
    with one_race(prepared.device, wait=request.wait, longest_s=prepared.longest_s, notify=notify):
        if file is None:
            return prepared.race(question)
        began = file.add(msgspec.structs.replace(_new_try(request, base, change, share), suite=prepared.suite))
        found = prepared.race(question)
        file.replace(_ended(began, found))
        return found


@dataclass(frozen=True)
class _PreparedRace:
    race: Callable[[Question], Judgement]
    device: str
    longest_s: float | None  # where that is known
    suite: SuiteOfTry | msgspec.UnsetType = msgspec.UNSET


def _prepared_race(
    request: JudgeRequest, base: Path, change: Path, progress_for: ProgressFor, notify: Callable[[str], None]
) -> _PreparedRace:
    """Plan the race of the benchmark, or of those of the suite."""
    budget_s = None if request.budget is None else float(request.budget)
    if request.suite is None:
        plan = planned(request, base, change, notify)
        return _PreparedRace(
            lambda question: raced(plan, question, budget_s, progress_for),
            plan.device,
            Ending(plan, budget_s=budget_s).longest_s,
        )
    from fairlap.judgement.race_of_suite import planned_suite, raced_suite

    options = FoundOptions(side=base, pass_env=request.pass_env)  # of the base, since a change may break benchmarks
    suite = open_suite(request.suite, options, notify)
    of_suite = planned_suite(suite, request, base, change, notify)
    tried = SuiteOfTry(file=str(request.suite.absolute()), sha256=suite.sha256)
    longest_s = of_suite.longest_s(budget_s)
    return _PreparedRace(
        lambda question: raced_suite(of_suite, question, budget_s, notify),
        of_suite.device,
        longest_s if math.isfinite(longest_s) else None,
        tried,
    )


def _new_try(request: JudgeRequest, base: Path, change: Path, share: int | None) -> Try:
    return Try(
        number=0,
        began_at=datetime.now(UTC).isoformat(timespec="seconds"),
        base=Side(str(base), folder_hash(base)),
        change=Side(str(change), folder_hash(change)),
        benchmark=request.benchmark,
        gain=request.least_gain,
        quantity=msgspec.UNSET if request.judged_by == "wall" else request.judged_by,
        share=share,
        level=0.0 if share is None else level_of_share(share),
        confirms=request.confirm,
    )


def _ended(began: Try, found: Judgement) -> Try:
    suite = began.suite
    if suite:
        benchmarks = tuple(
            BenchmarkOfTry(name=each.name, max_slowdown=each.max_slowdown, speedups=each.speedups)
            for each in found.benchmarks
        )
        suite = msgspec.structs.replace(suite, benchmarks=benchmarks)
    return msgspec.structs.replace(
        began,
        suite=suite,
        outcome=found.decision,
        reason=found.reason,
        speedup=found.speedup,
        speedups=found.speedups,
        ended_undecided=found.ended_undecided,
        e=found.e,
        p=found.p,
    )
