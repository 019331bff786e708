"""Why a rank did not answer, as the last message of the conductor: which rank, on which host, and how it ended."""

from __future__ import annotations

import re
import signal
import time

from fairlap import quantity_text
from fairlap.errors import shortened
from fairlap.worker.protocol import Failed, FailedCode
from fairlap.worker.ranks.ranks import Connected, Launched, Ranks
from fairlap.worker.ranks.remote_shell import NOT_SEEN, NOT_SEEN_LINE

E_RANK: FailedCode = "E_RANK"
E_HOST: FailedCode = "E_HOST"

_PORT_TAKEN = re.compile(r"EADDRINUSE|address already in use", re.IGNORECASE)
_UNREACHABLE = 255  # the status of ssh where it cannot connect
_LAUNCHER_MAY_TAKE_S = 2.0  # to print how a rank ended
_MOST_DETAILS = 8192
_ORDER = {"unsupported": 0, "out_of_memory": 1, "exception": 2}


def port_was_taken(ranks: Ranks) -> bool:
    """After Trouble: whether some rank or launcher found the port of the coordinator in use."""
    said = [rank.failed.message for rank in ranks.joined if rank.failed is not None]
    return any(_PORT_TAKEN.search(text) for text in (*said, *(each.text for each in ranks.launched)))


def after_trouble(ranks: Ranks, phase: str) -> Failed:
    ranks.hear_out(lambda: all(rank.is_over for rank in ranks.joined) and not ranks.missing())
    if ranks.in_order_of_loss:
        return _of_lost_rank(ranks, ranks.in_order_of_loss[0], phase)
    if ranks.in_order_of_failure:
        return _of_failed(ranks)
    launched = next(each for each in ranks.launched if each.process.poll() not in (None, 0))
    return _of_launcher(launched, phase)


def after_deadline(ranks: Ranks, doing: str, within_s: float) -> Failed:
    missing = ranks.missing()
    if missing:
        hosts = {number: _host(ranks.launched_of(number)) for number in missing}
        named = ", ".join(f"rank {number} on {host}" for number, host in hosts.items())
        text = f"{named} did not start within {within_s:g} s"
    else:
        waiting = ranks.waiting_for()
        named = ", ".join(f"{rank.name} (in {rank.phase})" for rank in waiting)
        text = f"{named} did not finish to {doing} within {within_s:g} s"
    printed = "\n".join(each.text for each in ranks.launched)
    return Failed(doing, "exception", text, printed[-_MOST_DETAILS:], E_RANK)


def _of_lost_rank(ranks: Ranks, rank: Connected, phase: str) -> Failed:
    launched = ranks.launched_of(rank.number)
    how = ""
    if launched is not None and rank.hello is not None:
        pid = rank.hello.pid
        deadline_s = time.monotonic() + _LAUNCHER_MAY_TAKE_S
        ranks.hear_out(lambda: bool(how_it_ended(launched, pid)), max(0.0, deadline_s - time.monotonic()))
        how = how_it_ended(launched, pid)
    text = f"{rank.name} {how or 'broke off its connection'}"
    details = "" if launched is None else launched.text[-_MOST_DETAILS:]
    return Failed(phase, "exception", text, details, E_RANK)


def how_it_ended(launched: Launched, pid: int) -> str:
    """Empty while that is not known. A launcher of several ranks prints it."""
    if launched.launch.is_rank:
        status = launched.process.poll()
        if status is None:
            return ""
        return described_status(status - 128 if status > 128 and not launched.launch.place.is_here else status)
    for pattern in (
        rf"exitcode: (-?\d+)\)[^\n]*\(pid: {pid}\)",
        rf"exitcode\s*: (-?\d+) \(pid: {pid}\)",
    ):
        if found := re.search(pattern, launched.text):
            return described_status(int(found[1]))
    if found := re.search(r"exited on signal (\d+)", launched.text):
        return described_status(-int(found[1]))
    if found := re.search(r"Exit code:\s*(\d+)", launched.text):
        return described_status(int(found[1]))
    return ""


def described_status(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _of_failed(ranks: Ranks) -> Failed:
    """What all of them refuse is not one rank's. Otherwise the gravest, and of those the first: others fail because
    they can exchange nothing with it any more."""
    failed = ranks.in_order_of_failure
    messages = {rank.failed.message for rank in failed if rank.failed is not None}
    first = min(failed, key=lambda rank: _ORDER[rank.failed.kind] if rank.failed is not None else 9)
    found = first.failed
    assert found is not None
    if len(messages) == 1 and len(failed) == ranks.count:
        return found
    return Failed(found.phase, found.kind, f"{first.name}: {found.message}", found.traceback, found.code)


def _of_launcher(launched: Launched, phase: str) -> Failed:
    """It ended before its ranks joined."""
    launch, status = launched.launch, launched.process.poll() or 0
    last = _last_line(launched.text)
    host = launch.place.host
    if host and status == NOT_SEEN and NOT_SEEN_LINE in launched.text:
        file = launched.text.rpartition(NOT_SEEN_LINE)[2].strip()
        text = f"{host} does not find {file}: hosts must see the same files under the same paths"
        return Failed(phase, "exception", text, launched.text[-_MOST_DETAILS:], E_HOST)
    if host and status == _UNREACHABLE:
        text = f"{host} cannot be reached: {last or 'the remote shell gave no reason'}"
        return Failed(phase, "exception", text, launched.text[-_MOST_DETAILS:], E_HOST)
    who = (
        f"rank {launch.first} on {_host(launched)}"
        if launch.is_rank
        else f"what starts {quantity_text.count(launch.ranks, 'rank')} on {_host(launched)}"
    )
    text = f"{who} {described_status(status)} before it joined" + (f"; last output: {last}" if last else "")
    return Failed(phase, "exception", text, launched.text[-_MOST_DETAILS:], E_RANK)


def _host(launched: Launched | None) -> str:
    if launched is None:
        return "an unknown host"
    return launched.launch.place.host or "this host"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]  # rules have none
    return shortened(lines[-1], 160) if lines else ""
