"""Why a rank did not answer, as the last message of the conductor: which rank, on which host, and how it ended."""

from __future__ import annotations

import math
import re
import signal

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.worker.protocol import Failed, FailedCode
from fairlap.worker.ranks.launchers import NOT_SEEN, NOT_SEEN_LINE
from fairlap.worker.ranks.ranks import Connected, Launched, Ranks

E_RANK: FailedCode = "E_RANK"
E_HOST: FailedCode = "E_HOST"

_PORT_TAKEN = re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE)
_UNREACHABLE = 255  # the status of ssh where it cannot connect
_LAUNCHER_MAY_TAKE_S = 2.0  # to print how a rank ended
_MOST_DETAILS = 8192
_REPORT = re.compile(
    r"^.*torch/distributed/elastic/.*(closing signal|failed \(exitcode)"  # torchrun's
    r"|^-{20,}\n.*(noticed that process|detected that one or more|returned a non-zero)",  # mpirun's
    re.MULTILINE,
)
_ORDER = {"unsupported": 0, "out_of_memory": 1, "exception": 2}


def port_was_taken(ranks: Ranks) -> bool:
    """After Trouble: whether some rank or launcher found the port of the coordinator in use."""
    said = [rank.failed.message for rank in ranks.joined if rank.failed is not None]
    return any(_PORT_TAKEN.search(text) for text in (*said, *(each.text for each in ranks.launched)))


def after_trouble(ranks: Ranks, phase: str) -> Failed:
    ranks.hear_out(lambda: all(rank.is_over for rank in ranks.joined) and not ranks.missing())
    if ranks.in_order_of_loss:
        return _of_lost_rank(ranks, phase)
    if ranks.in_order_of_failure:
        return _of_failed(ranks)
    if stopped := ranks.stopped():
        text = f"{', '.join(rank.name for rank in stopped)}: stopped by a signal such as SIGSTOP, and did not continue"
        return Failed(phase, "exception", text, _prints(ranks), E_RANK)
    return _of_launcher(ranks, next(each for each in ranks.launched if _has_failed(each)), phase)


def after_deadline(ranks: Ranks, doing: str, within_s: float, expected_s: float = math.inf) -> Failed:
    missing = ranks.missing()
    if missing:
        hosts = {number: _host(ranks.launched_of(number)) for number in missing}
        named = ", ".join(f"rank {number} on {host}" for number, host in hosts.items())
        text = f"{named} did not start within {within_s:g} s"
    else:
        named = ", ".join(map(_with_phase, ranks.waiting_for()))
        text = f"{named} did not answer the request to {doing} within {within_s:.3g} s"
        text += f" (expected: {max(expected_s, 0.01):.2g} s)" if math.isfinite(expected_s) else ""
    return Failed(doing, "exception", text, _prints(ranks), E_RANK)


def _with_phase(rank: Connected) -> str:
    return rank.name if rank.phase == rank.requested else f"{rank.name} (in {rank.phase})"


def _prints(ranks: Ranks) -> str:
    return "\n".join(each.text for each in ranks.launched)[-_MOST_DETAILS:]


def _of_lost_rank(ranks: Ranks, phase: str) -> Failed:
    """Describe the first lost rank whose end is known.

    Others end because of it, and their connections may close before its own.
    """
    lost = [(rank, launched) for rank in ranks.in_order_of_loss if (launched := ranks.launched_of(rank.number))]

    def how_they_ended() -> list[tuple[Connected, Launched, str]]:
        return [(rank, launched, how) for rank, launched in lost if (how := how_it_ended(launched, rank.number))]

    ranks.hear_out(lambda: bool(how_they_ended()), _LAUNCHER_MAY_TAKE_S)
    for rank, launched, how in how_they_ended():
        return Failed(phase, "exception", f"{rank.name} {how}", launched.text[-_MOST_DETAILS:], E_RANK)
    for _, launched in lost:
        if _has_failed(launched):
            return _of_launcher(ranks, launched, phase)
    details = lost[0][1].text[-_MOST_DETAILS:] if lost else ""
    return Failed(phase, "exception", f"{ranks.in_order_of_loss[0].name} broke off its connection", details, E_RANK)


def how_it_ended(launched: Launched, number: int) -> str:
    """Empty while that is not known. A launcher of several ranks prints it."""
    if not launched.launch.is_rank:
        status = reported_ends(launched).get(number)
    else:
        status = launched.process.poll()
        if status is not None and status > 128 and not launched.launch.place.is_here:
            status = 128 - status
    return "" if status is None else described_status(status)


def reported_ends(launched: Launched) -> dict[int, int]:
    """Read the statuses of ranks by number, as torchrun or mpirun printed them, the first that failed first."""
    words = " ".join(launched.text.split())  # mpirun breaks lines within its sentences
    found: dict[int, int] = {}
    for status, local in re.findall(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+)", words):
        found.setdefault(launched.launch.first + int(local), int(status))
    for number, status in re.findall(r"rank : (\d+) \(local_rank: \d+\) exitcode : (-?\d+)", words):
        found.setdefault(int(number), int(status))
    for number, status in re.findall(r"process rank (\d+) with PID \d+ on .{1,300}? exited on signal (\d+)", words):
        found.setdefault(int(number), -int(status))
    for number, status in re.findall(r"Process name: \[\S*,(\d+)\] Exit code: (\d+)", words):
        found.setdefault(int(number), int(status))
    return found


def _has_failed(launched: Launched) -> bool:
    return launched.process.poll() not in (None, 0)


def described_status(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _of_failed(ranks: Ranks) -> Failed:
    """Describe the failure; what all ranks refuse is not one rank's.

    Otherwise it is the gravest, and of those the first: others fail because they can exchange nothing with it any more.
    """
    failed = ranks.in_order_of_failure
    messages = {rank.failed.message for rank in failed if rank.failed is not None}
    first = min(failed, key=lambda rank: _ORDER[rank.failed.kind] if rank.failed is not None else 9)
    found = first.failed
    assert found is not None
    if len(messages) == 1 and len(failed) == ranks.count:
        return found
    return Failed(found.phase, found.kind, f"{first.name}: {found.message}", found.traceback, found.code)


def _of_launcher(ranks: Ranks, launched: Launched, phase: str) -> Failed:
    """Describe a launcher that ended before it was asked to, or a first rank that ended before it joined."""
    launch, status = launched.launch, launched.process.poll() or 0
    details = launched.text[-_MOST_DETAILS:]
    host = launch.place.host
    if host and status == NOT_SEEN and NOT_SEEN_LINE in launched.text:
        file = launched.text.rpartition(NOT_SEEN_LINE)[2].strip()
        text = f"{host} does not find {file}: hosts must see the same files under the same paths"
        return Failed(phase, "exception", text, details, E_HOST)
    last = _last_line(_without_report(launched.text))
    if host and status == _UNREACHABLE:
        text = f"{host} cannot be reached: {last or 'the remote shell gave no reason'}"
        return Failed(phase, "exception", text, details, E_HOST)
    missing = [number for number in ranks.missing() if launch.has(number)]
    first, its_status = next(iter(reported_ends(launched).items()), (launch.first, status))
    if launch.is_rank or reported_ends(launched):
        text = f"rank {first} on {_host(launched)} {described_status(its_status)}"
        text += " before it joined" * (first in missing)
    else:
        starts = "starts" if missing else "had started"
        text = f"{launch.launcher}, which {starts} {quantity_text.count(launch.ranks, 'rank')} on {_host(launched)}, "
        text += described_status(status) + (f" before rank {missing[0]} joined" if missing else "")
    return Failed(phase, "exception", text + (f"; last output: {last}" if last else ""), details, E_RANK)


def _host(launched: Launched | None) -> str:
    if launched is None:
        return "an unknown host"
    return launched.launch.place.host or "this host"


def _without_report(text: str) -> str:
    """Keep what ranks, or a launcher that does not get that far, printed before the report of how ranks ended."""
    found = _REPORT.search(text)
    return text[: found.start()] if found else text


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]  # rules have none
    return shortened(lines[-1], 160) if lines else ""
