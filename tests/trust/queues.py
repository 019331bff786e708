"""Compare the latencies of a load with queueing theory: one server, Poisson arrivals, known service times.

python -m tests.trust.queues                      six queues, each in 16 processes, all at once: seven minutes
python -m tests.trust.queues --seconds 60         shorter: wider intervals

The server sleeps for a constant (M/D/1) or exponentially distributed time (M/M/1), 50 ms on average: many queues can
run at once, and the machine's own delays are small beside the services. Each replica is a process with its own seed;
the first part of each, in which the queue fills, is left out.

The mean and the p99 of the time from due to completed are compared with Pollaczek and Khinchine's formula and with the
exact quantile. A figure passes when it is within 5 % of theory, or theory is within its interval (95 %, from the
replicas). Lindley's recursion gives the same statistics for the very arrivals and services that were drawn, without an
error of sampling: measured latencies differ from it by what the machine adds. With the services as measured, that is
with sleeps that ended late, they differ from it by what issuing and handing over add. Exit status 1 if a figure fails.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from fairlap.engine.load import NativeService, run_load
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped,unused-ignore]

from .queue_theory import Kind, latency_quantile, mean_latency, variance_per_request, waits

KINDS: tuple[Kind, ...] = ("constant", "exponential")
LOADS = (0.3, 0.6, 0.9)
NAMES = {"constant": "M/D/1", "exponential": "M/M/1"}
SERVICE_NS = 50e6
TOLERATED = 0.05
_LEFT_OUT = 0.2  # of each replica
_MS = 1e6

Latencies = NDArray[np.float64]


def _poisson_arrivals_ns(gap_ns: float, end_ns: float, seed: int) -> NDArray[np.float64]:
    """When requests are due: their number is random too, as theory has it, where fairlap's loads have a fixed one."""
    random, expected = np.random.default_rng([seed, 0]), end_ns / gap_ns
    due_ns = np.cumsum(random.exponential(gap_ns, int(expected + 6 * expected**0.5) + 20))
    assert due_ns[-1] >= end_ns
    return due_ns[due_ns < end_ns]


@dataclass(frozen=True)
class Replica:
    """Latencies of the same requests: as measured, and as Lindley's recursion has them."""

    measured_ns: Latencies
    of_drawn_ns: Latencies  # from the drawn services
    of_taken_ns: Latencies  # from the services as they were measured


@dataclass(frozen=True)
class Figure:
    """A statistic of the latencies, in milliseconds."""

    name: str
    theory: float
    of_drawn: float
    of_taken: float
    measured: float
    half_width: float

    @property
    def passed(self) -> bool:
        return abs(self.measured - self.theory) <= max(TOLERATED * self.theory, self.half_width)


def replica(kind: Kind, load: float, seconds: float, seed: int) -> Replica:
    due_ns = _poisson_arrivals_ns(SERVICE_NS / load, seconds * 1e9, seed)
    server = NativeService(SERVICE_NS, kind, "sleeping", seed)
    result = run_load(due_ns, np.zeros(due_ns.size, np.uint32), [server], give_up_ns=seconds * 1e9)
    drawn_ns, taken_ns = server.length_ns(due_ns.size), result.completed_ns - result.started_ns
    counted = due_ns >= _LEFT_OUT * seconds * 1e9
    return Replica(
        measured_ns=result.latency_ns[counted],
        of_drawn_ns=(waits(due_ns, drawn_ns) + drawn_ns)[counted],
        of_taken_ns=(waits(due_ns, taken_ns) + taken_ns)[counted],
    )


def figures_of(kind: Kind, load: float, replicas: list[Replica]) -> list[Figure]:
    theory = (mean_latency(kind, load), latency_quantile(kind, load, 0.99))
    return [
        Figure(
            name=name,
            theory=expected * SERVICE_NS / _MS,
            of_drawn=statistic(np.concatenate([each.of_drawn_ns for each in replicas])),
            of_taken=statistic(np.concatenate([each.of_taken_ns for each in replicas])),
            measured=statistic(np.concatenate([each.measured_ns for each in replicas])),
            half_width=half_width([statistic(each.measured_ns) for each in replicas]),
        )
        for name, expected, statistic in zip(("mean", "p99"), theory, (_mean_ms, _p99_ms), strict=True)
    ]


def _mean_ms(values_ns: Latencies) -> float:
    return float(values_ns.mean()) / _MS


def _p99_ms(values_ns: Latencies) -> float:
    return float(np.quantile(values_ns, 0.99)) / _MS


def half_width(of_replicas: list[float]) -> float:
    count = len(of_replicas)
    return float(stats.t.ppf(0.975, count - 1) * np.std(of_replicas, ddof=1) / count**0.5)


def expected_error(kind: Kind, load: float, requests: int) -> float:
    """Compute the standard error that theory expects of the mean of so many requests, as a share of it."""
    return float((variance_per_request(kind, load) / requests) ** 0.5 / mean_latency(kind, load))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=400, help="of a replica")
    options.add_argument("--replicas", type=int, default=16)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    print(f"{os.cpu_count()} cores; load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
    columns = (
        "queue", "load", "requests", "expected error", "figure", "theory", "measured",
        "over theory", "over Lindley", "over Lindley, services as measured",
    )  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    failed = 0
    seeds = range(given.seed, given.seed + given.replicas)
    queues = [(kind, load) for kind in KINDS for load in LOADS]
    with ProcessPoolExecutor(len(queues) * len(seeds), multiprocessing.get_context("fork")) as pool:
        begun = {queue: [pool.submit(replica, *queue, given.seconds, seed) for seed in seeds] for queue in queues}
        for (kind, load), of_queue in begun.items():
            replicas = [each.result() for each in of_queue]
            for figure in figures_of(kind, load, replicas):
                failed += not figure.passed
                print(line(kind, load, sum(each.measured_ns.size for each in replicas), figure), flush=True)
    return 1 if failed else 0


def line(kind: Kind, load: float, requests: int, figure: Figure) -> str:
    cells = [
        NAMES[kind],
        f"{load:.0%}",
        f"{requests:,}",
        f"{expected_error(kind, load, requests):.1%}" if figure.name == "mean" else "",
        figure.name,
        f"{figure.theory:.1f} ms",
        f"{figure.measured:.1f} ± {figure.half_width:.1f} ms",
        f"{figure.measured / figure.theory - 1:+.1%}{'' if figure.passed else ' (failed)'}",
        f"{figure.measured / figure.of_drawn - 1:+.2%}",
        f"{figure.measured / figure.of_taken - 1:+.2%}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
