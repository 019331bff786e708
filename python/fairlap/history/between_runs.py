"""Two runs compared: each contestant before and after, with what differs between the runs.

What the runs were fed is part of the work: other data, or another input pipeline, is other work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlap import verdict
from fairlap.data.datasets import DATA_HASH
from fairlap.machine.differences import comparable_facts
from fairlap.race.counted_blocks import why_not_claimed
from fairlap.race.run import Run
from fairlap.request.names import ContestantName, contestant_named
from fairlap.request.work import Conditions, Work
from fairlap.request.work_title import told_apart, work_title
from fairlap.scenarios.contract import Judged
from fairlap.scenarios.process_result import Period, ProcessResult, values_in_force
from fairlap.verdict import Change, Regression

DATA, PIPELINE, FEED = "data", "pipeline", "feed"
OF_FEEDING = frozenset({DATA_HASH, FEED})
"""Settings of a process that are reported here and not again among the others."""
_NOTHING = "nothing was fed"


def what_was_fed(
    before: Run, old: Sequence[ProcessResult], after: Run, new: Sequence[ProcessResult]
) -> tuple[dict[str, str], dict[str, str]]:
    """Compare what the processes of two runs were fed.

    What only one of two fed runs recorded is no difference. A contestant that was not fed has no pipeline to differ in.
    """
    data_before, data_after = ({DATA: run.plan.data or _NOTHING} for run in (before, after))
    if not (before.plan.data and after.plan.data):
        return data_before, data_after
    hashes = _all(old, DATA_HASH), _all(new, DATA_HASH)
    if all(hashes) and hashes[0] == hashes[1]:
        data_after[DATA] = data_before[DATA]  # the same samples, wherever they are stored
    elif all(hashes):
        data_before[DATA] += f" (hash {hashes[0]})"
        data_after[DATA] += f" (hash {hashes[1]})"
    pipelines = _all(old, FEED), _all(new, FEED)
    if all(pipelines):
        data_before[PIPELINE], data_after[PIPELINE] = pipelines
    return data_before, data_after


def _all(processes: Sequence[ProcessResult], setting: str) -> str:
    return " and ".join(values_in_force(processes, setting))


VERSION = "version"
_THE_QUESTION = frozenset({VERSION})
"""What is changed on purpose: a difference there is what the comparison is about."""
_MOST_LISTED = 3
NOT_CLAIMED = Regression(Change.NOT_COMPARABLE, None, None, None, None, 0.0, ())
"""Of figures that were measured while others had too much of the machine."""


@dataclass(frozen=True)
class Difference:
    """One contestant on one work under one kind of conditions, before and after."""

    work_id: str
    work: str  # its title, without what was fed
    data: tuple[str, str]  # what the calls were fed; empty where nothing was
    conditions: Conditions
    before: str  # the contestant as that run named it
    after: str
    versions: tuple[str, str]
    processes: tuple[int, int]
    medians_ns: tuple[float, float]
    regression: Regression
    why_no_verdict: str = ""  # with its code, where others had too much of the machine in one of the runs


@dataclass(frozen=True)
class RunsCompared:
    differences: tuple[Difference, ...]
    unmatched: tuple[str, ...]  # what only one of the runs holds, in words


def is_same_run(before: Run, after: Run) -> bool:
    """Whether these are one recording, however it was named: two runs never have all times in common."""
    if not before.processes or before.began_at != after.began_at or before.plan.seed != after.plan.seed:
        return False
    if [work.id for work in before.plan.works] != [work.id for work in after.plan.works]:
        return False
    return [each.timings for each in before.processes] == [each.timings for each in after.processes]


def compare_saved_runs(before: Run, after: Run, *, margin: float = 0.02) -> RunsCompared:
    """Compare what is in both runs, and name what only one of them holds."""
    unmatched: list[str] = []
    old, new = _groups(before), _groups(after)
    pairs = _pairs(list(old), list(new))
    found = [_difference(Matched(before, after, old[key], new[other], key.judged), margin) for key, other in pairs]
    matched_old, matched_new = {key for key, _ in pairs}, {other for _, other in pairs}
    lone_old, lone_new = _with_one_process(before), _with_one_process(after)
    titles = told_apart({work.id: _title(run, work) for run in (before, after) for work in run.plan.works})
    unmatched += [
        f"only before: {_told(key, before, titles)}" for key in old if key not in matched_old and key not in lone_new
    ]
    unmatched += [
        f"only after: {_told(key, after, titles)}" for key in new if key not in matched_new and key not in lone_old
    ]
    unmatched += [
        f"too few processes {when}, one where two are needed: {_told(key, run, titles)}"
        for when, run, lone in (("before", before, lone_old), ("after", after, lone_new))
        for key in lone
    ]
    others = [title for work in after.plan.works if titles[work.id] != (title := _title(after, work))]
    unmatched += [f"{label} is other work in either run, such as by what its file holds" for label in others]
    return RunsCompared(tuple(found), tuple(unmatched))


@dataclass(frozen=True)
class Matched:
    """The finished processes of one contestant on one work under one kind of conditions, in both runs."""

    before: Run
    after: Run
    old: Sequence[ProcessResult]
    new: Sequence[ProcessResult]
    judged: Judged

    @property
    def work(self) -> Work:
        return self.before.plan.work_with(self.old[0].work_id)

    @property
    def title(self) -> str:
        """Name the work for people, without what was fed."""
        return _title(self.after, self.after.plan.work_with(self.new[0].work_id))

    def why_not_claimed(self, period: Period | None = None) -> str:
        """Explain with a code why a ratio of the runs would be that of the load of others; empty where it is not.

        Of what was measured in the period, or else of the judged figure.
        """
        for when, run, own in (("before", self.before, self.old[0]), ("after", self.after, self.new[0])):
            key = own.work_id, own.conditions
            every = [each for each in run.processes if (each.work_id, each.conditions) == key]
            why, code = why_not_claimed(run.plan, run.plan.work_with(own.work_id), every, self.judged, period)
            if code:
                return f"{when}, {why} [{code}]"
        return ""

    def regression(
        self, old: Sequence[float], new: Sequence[float], *, alpha: float = verdict.ERROR_RATE, margin: float = 0.02
    ) -> Regression:
        """Compare figures of these processes, widened by what else differs between the runs."""
        machines = comparable_facts(self.before.machine, self.after.machine, self.after.plan.device)
        settings = _settings(self.old, self.new)
        fed = what_was_fed(self.before, self.old, self.after, self.new)
        return verdict.compare_runs(
            old,
            new,
            environment_before={**_environment(self.before, self.old, machines[0], settings[0]), **fed[0]},
            environment_after={**_environment(self.after, self.new, machines[1], settings[1]), **fed[1]},
            subject=_THE_QUESTION,
            alpha=alpha,
            margin=margin,
        )


def matched(before: Run, after: Run) -> list[Matched]:
    """Match contestants by name, else by framework, variant and options, so that a version may have changed."""
    old, new = _groups(before), _groups(after)
    pairs = _pairs(list(old), list(new))
    return [Matched(before, after, old[key], new[other], key.judged) for key, other in pairs]


@dataclass(frozen=True)
class _Key:
    work_id: str
    conditions: Conditions
    contestant: str
    judged: Judged  # different figures are never compared


def _told(key: _Key, run: Run, titles: Mapping[str, str]) -> str:
    quantity = f", by {key.judged.by}" if key.judged.is_named else ""
    work = work_title(titles[key.work_id], run.plan.data)
    return f"{key.contestant} on {work}, {key.conditions}{quantity}"


def _title(run: Run, work: Work) -> str:
    return work_title(work.label, "", (name.framework for name in run.plan.contestants))


def _groups(run: Run) -> dict[_Key, list[ProcessResult]]:
    """Group the finished processes of every contestant that may be ranked, where there are at least two."""
    return {key: processes for key, processes in _finished(run).items() if len(processes) > 1}


def _with_one_process(run: Run) -> list[_Key]:
    return [key for key, processes in _finished(run).items() if len(processes) == 1]


def _finished(run: Run) -> dict[_Key, list[ProcessResult]]:
    """Those that have the figure by which the contestant is judged, on its own."""
    groups: dict[tuple[str, Conditions, str], list[ProcessResult]] = {}
    for process in run.processes:
        groups.setdefault((process.work_id, process.conditions, process.contestant), []).append(process)
    found: dict[_Key, list[ProcessResult]] = {}
    for (work_id, conditions, contestant), every in groups.items():
        own = [each for each in every if each.finished]
        if not own or any(each.outcome == "disqualified" for each in every):
            continue
        judged = _judged(run, own)
        with_figure = [each for each in own if judged.read(each) is not None]
        if with_figure:
            found[_Key(work_id, conditions, contestant, judged)] = with_figure
    return found


def _judged(run: Run, processes: Sequence[ProcessResult]) -> Judged:
    name = processes[0].contestant
    work = run.plan.work_with(processes[0].work_id)
    return run.plan.scenario(work).judge(run.plan, work, {name: processes}, [name]).judged


def _pairs(old: Sequence[_Key], new: Sequence[_Key]) -> list[tuple[_Key, _Key]]:
    pairs = [(key, key) for key in old if key in new]
    left_old = [key for key in old if key not in new]
    left_new = [key for key in new if key not in old]
    without_version = {key: _without_version(key) for key in (*left_old, *left_new)}
    for key in left_old:
        same = [other for other in left_new if without_version[other] == without_version[key]]
        rivals = [other for other in left_old if without_version[other] == without_version[key]]
        if len(same) == 1 and len(rivals) == 1:
            pairs.append((key, same[0]))
    return pairs


def _without_version(key: _Key) -> tuple[str, str, str, ContestantName]:
    name = contestant_named(key.contestant)
    bare = ContestantName("", name.framework, "", name.variant, name.options, name.program)
    return key.work_id, key.conditions, key.judged.by, bare


def _difference(found: Matched, margin: float) -> Difference:
    old, new = found.old, found.new
    figures = [[found.judged.figure_ns(process) for process in processes] for processes in (old, new)]
    versions = [Counter(process.version for process in processes).most_common(1)[0][0] for processes in (old, new)]
    medians = [_middle(values) for values in figures]
    why_none = found.why_not_claimed()
    return Difference(
        work_id=old[0].work_id,
        work=found.title,
        data=(found.before.plan.data, found.after.plan.data),
        conditions=old[0].conditions,
        before=old[0].contestant,
        after=new[0].contestant,
        versions=(versions[0], versions[1]),
        processes=(len(old), len(new)),
        medians_ns=(medians[0], medians[1]),
        regression=NOT_CLAIMED if why_none else found.regression(figures[0], figures[1], margin=margin),
        why_no_verdict=why_none,
    )


def _middle(values: Sequence[float]) -> float:
    """As rows have it: of two in the middle, their geometric mean."""
    ordered = sorted(values)
    return math.sqrt(ordered[(len(ordered) - 1) // 2] * ordered[len(ordered) // 2])


def _settings(old: Sequence[ProcessResult], new: Sequence[ProcessResult]) -> tuple[dict[str, str], dict[str, str]]:
    """Compare the settings that were in force in the processes of either run.

    What varies from process to process in both is no difference between the runs, such as a count of what was found in
    a cache.
    """
    found = _in_force(old), _in_force(new)
    names = found[0].keys() | found[1].keys()
    varying = {name for name in names if all(len(values.get(name, ())) > 1 for values in found)}
    before, after = ({name: _listed(each) for name, each in own.items() if name not in varying} for own in found)
    return before, after


def _in_force(processes: Sequence[ProcessResult]) -> dict[str, list[str]]:
    """Every setting with all its values."""
    names = sorted({name for process in processes for name in process.in_force} - OF_FEEDING)
    return {name: sorted({process.in_force.get(name, "not recorded") for process in processes}) for name in names}


def _listed(values: Sequence[str]) -> str:
    return " and ".join(values) if len(values) <= _MOST_LISTED else f"{len(values)} different values"


def _environment(
    run: Run, processes: Sequence[ProcessResult], machine: Mapping[str, str], settings: Mapping[str, str]
) -> Mapping[str, str]:
    """Of the machine, of the plan, and of the settings in force."""
    quantity = next(iter(processes[0].timings))
    planned = {
        "threads": str(run.plan.threads_of(run.plan.work_with(processes[0].work_id))),
        "device": run.plan.device,
        "data seeds": ", ".join(map(str, run.plan.data_seeds)),
        "quantity": quantity,
        "fairlap": run.fairlap,
    }
    return {**machine, **settings, **planned, VERSION: processes[0].version}
