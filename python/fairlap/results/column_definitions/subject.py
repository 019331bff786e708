"""Which run, work and contestant a row is about, and what became of it."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec

from fairlap.request.work import Conditions, Mode, Precision
from fairlap.results.column_definitions.about import Gauge, about
from fairlap.results.column_definitions.estimate import Estimate
from fairlap.scenarios.contract import Better, Unit
from fairlap.scenarios.process_result import Outcome

_run = partial(about, group="run")
_work = partial(about, group="work")
_contestant = partial(about, group="contestant")
_outcome = partial(about, group="outcome")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    run: Annotated[str, _run("The run's id, as `fairlap runs` lists it.")]
    recorded_at: Annotated[str, _run("When the run began, in UTC, ISO 8601.")]
    fairlap: Annotated[str, _run("The version of fairlap that measured.")]
    machine: Annotated[str, _run("Fingerprint of the hardware and the operating system.")]
    environment: Annotated[str, _run("Fingerprint of all that is installed and set around the contestant.")]

    work_id: Annotated[str, _work("The same for the same work, on whatever machine and in whatever run.")]
    workload: Annotated[str, _work("The model.")]
    mode: Annotated[Mode, _work("Inference, or the loss and its gradients.")]
    precision: Annotated[Precision, _work("The precision that was asked of it.")]
    ranked_precisions: Annotated[list[Precision], _work("The precisions whose contestants are ranked with each other.")]
    batch: Annotated[int, _work("Items in one call.")]
    threads: Annotated[int, _work("Threads that every contestant was asked to use; `settings` has what it uses.")]
    ranks: Annotated[int, _work("Processes that shared each step or batch; each had these threads.")]
    hosts: Annotated[list[str], _work("Hosts that the ranks were spread over; none for this machine alone.")]
    scale: Annotated[str, _work("Threads, ranks and hosts in words, if the work was raced at several scales.")]
    scaling: Annotated[
        str, _work("Strong: the ranks shared one batch. Weak: each had one, and `batch` is the sum. Empty for one.")
    ]
    device: Annotated[str, _work("Where the work ran.")]
    data: Annotated[str, _work("What the calls were fed: synthetic, or a path; empty when their inputs stayed.")]
    train_on: Annotated[
        str, _work("The data it learns, and the share of the items; empty when no score was to be reached.")
    ]
    train_on_hash: Annotated[str, _work("Hash of all items of this data; empty without any.")]
    conditions: Annotated[
        Conditions, _work("Controlled: the same memory behaviour for all, cores bound. As found: untouched.")
    ]
    turns: Annotated[
        str, _work("How contestants shared the machine: in rounds of short turns, or one after the other.")
    ]
    works_in_process: Annotated[
        int, _work("Works that a process did one after the other, at most; 1 where each had its own processes.")
    ]
    data_seeds: Annotated[list[int], _work("Seeds that drew the weights and inputs of its processes.")]

    contestant: Annotated[str, _contestant("The contestant as it was named.")]
    framework: Annotated[str, _contestant("Its framework, or the program that speaks the worker protocol.")]
    version: Annotated[str | None, _contestant("The version that the framework reports.")]
    variant: Annotated[str, _contestant("The variant, such as compile; empty for the plain one.")]
    division: Annotated[
        Literal["default", "best"],
        _contestant("Default: as it was named. Best: a search before the race chose its settings."),
    ]
    found_settings: Annotated[
        dict[str, str], _contestant("Settings that the search chose instead of the default; empty without.")
    ]
    settings: Annotated[dict[str, str], _contestant("Settings in force, read back from the framework.")]
    origin: Annotated[
        dict[str, str],
        _contestant(
            "Where the package came from that was installed for it: a release, wheel, folder or commit with its hash, "
            "the flags of its build, and the Python, or the image with its id; empty for what was installed already."
        ),
    ]
    route: Annotated[
        str, _contestant("How a model that is not written for the framework got into it; empty where it is.")
    ]

    outcome: Annotated[Outcome, _outcome("What became of it; the worst of its processes decides.")]
    code: Annotated[str, _outcome("The code of what went wrong, such as E_CRASH; empty when nothing did.")]
    message: Annotated[str, _outcome("What went wrong, in words; empty when nothing did.")]
    place: Annotated[str | None, _outcome("Its place among the ranked; ties share one, as 2=.")]
    judged: Annotated[
        Estimate | None,
        _outcome(
            "What it is ranked by, in `judged_unit`: the figure of its verdict, tables, charts and history.",
            unit="see judged_unit",
            gauge=Gauge("judged", "", "What it is ranked by, in its unit.", also=("judged_by", "judged_unit")),
        ),
    ]
    judged_by: Annotated[str, _outcome("What that is, such as `median time of a call` or `largest rate`.")]
    judged_unit: Annotated[Unit, _outcome("The unit of `judged`.")]
    judged_better: Annotated[Better, _outcome("Whether the lower or the higher figure is better.")]
