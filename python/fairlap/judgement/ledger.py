"""The ledger of a search: every change that was tried, and the one error rate that all of them share.

At 5 % each, five hundred changes that make no difference leave about eight false winners. Here the tries spend one
5 %, however many there are: try k has the share 1 / ((k + 1) ln(k + 1)^2) of it, up to a constant, and these add up to
one. So the chance that a search keeps any change that is not faster is at most 5 %, whatever depends on what. Of the
rules that were simulated it has the most power: as much as k^-1.6 over five hundred tries and more after them; k^-2
spends too early (docs/how-to/judge-changes-in-a-loop.md has figures). Rules that adapt to earlier p values would gain
about one block, and hold only where the tries are independent.

A share is spent when the race begins, before anything is known of it, so a try that dies has spent its own. A change
that fails its tests is not raced, and spends none.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from fairlap.errors import FairlapError, InvalidRequest, reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT
from fairlap.judgement.judge_request import Benchmark, Quantity
from fairlap.judgement.judgement import Reason
from fairlap.machine.files.atomic_files import write_output
from fairlap.machine.files.regular_file import content_of
from fairlap.printed_document import PrintedDocument

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ERROR_RATE = 0.05
E_LEDGER = "E_LEDGER"
_SUM_OF_SHARES = 2.1098  # of all k; rounded up
_Speedup = Annotated[float, msgspec.Meta(gt=0)]

Outcome = Literal["begun", "keep", "discard", "undecided"]


def level_of_share(number: int) -> float:
    """Compute what the try with this number, from 1, may spend of the error rate."""
    return ERROR_RATE / (_SUM_OF_SHARES * (number + 1) * math.log(number + 1) ** 2)


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class Side(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    sha256: str


class BenchmarkOfTry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    max_slowdown: float
    speedups: tuple[_Speedup, ...]


class SuiteOfTry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    file: str
    sha256: str
    benchmarks: Annotated[tuple[BenchmarkOfTry, ...], _about("Empty where nothing was compared.")] = ()


class Try(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One change that was judged. One that is still "begun" died, and has spent its share."""

    number: int
    began_at: Annotated[str, _about("In UTC, ISO 8601.")]
    base: Side
    change: Side
    benchmark: Benchmark
    suite: Annotated[SuiteOfTry | msgspec.UnsetType, _about("Whose benchmarks raced, in place of `benchmark`.")] = (
        msgspec.UNSET  # not written, so that the hash of a ledger without suites stays
    )
    gain: float
    share: Annotated[int | None, _about("Which share of the error rate it spent; null where nothing was raced.")]
    level: Annotated[float, _about("How much that is: the chance of keeping it although it is not faster.")]
    quantity: Annotated[Quantity | msgspec.UnsetType, _about("What decided, unless it was wall.")] = msgspec.UNSET
    confirms: Annotated[bool, _about("It raced the last kept change against the first base.")] = False
    outcome: Outcome = "begun"
    reason: Reason | None = None
    speedup: float | None = None
    speedups: Annotated[tuple[_Speedup, ...], _about("Of each block, by which it was decided.")] = ()
    ended_undecided: Annotated[bool, _about("The race ended by its budget or its last block.")] = False
    e: Annotated[float | None, _about("The largest bet against the change being no faster.")] = None
    p: Annotated[float | None, _about("One-sided, where the race ended undecided.")] = None

    @property
    def judged_by(self) -> Quantity:
        return "wall" if self.quantity is msgspec.UNSET else self.quantity

    @property
    def log_speedups(self) -> npt.NDArray[np.float64]:
        import numpy as np

        found: npt.NDArray[np.float64] = np.log(np.asarray(self.speedups, dtype=float))
        return found


class Ledger(PrintedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="fairlap.ledger/1"):
    """The file. ``sha256`` is that of the tries, so that a file that was damaged or edited is noticed."""

    error_rate: float = ERROR_RATE
    tries: tuple[Try, ...] = ()
    sha256: str = ""

    @property
    def next_share(self) -> int:
        return 1 + sum(each.share is not None for each in self.tries)


class LedgerFile:
    """The ledger while one process holds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.ledger = read_ledger(path)

    def add(self, new: Try) -> Try:
        """Write it down with the next number."""
        new = msgspec.structs.replace(new, number=len(self.ledger.tries) + 1)
        self._write((*self.ledger.tries, new))
        return new

    def replace(self, ended: Try) -> None:
        """Write how a try has ended; it is the last one."""
        self._write((*self.ledger.tries[:-1], ended))

    def _write(self, tries: tuple[Try, ...]) -> None:
        ledger = Ledger(tries=tries, sha256=_hash_of(tries))
        write_output(self._path, msgspec.json.format(msgspec.json.encode(ledger), indent=1) + b"\n")
        self.ledger = ledger


@contextmanager
def held_ledger(path: Path) -> Iterator[LedgerFile]:
    """Lock the ledger, through a file next to it, which the kernel frees however the process ends."""
    if not path.name:
        raise InvalidRequest(f"the ledger {str(path)!r} is not the name of a file", code="E_FILE")
    lock = path.with_name(f".{path.name}.lock")
    try:
        file = lock.open("w")
    except OSError as error:
        raise InvalidRequest(f"cannot lock {path}: {reason_of(error)}", code="E_FILE") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidRequest(
                f"another judge is using {path}; judge one change after the other", code="E_LEDGER_IN_USE"
            ) from None
        except OSError as error:  # some network file systems have no locks, and two judges would spend one share twice
            raise InvalidRequest(
                f"{path} cannot be locked: {reason_of(error)}; keep it on a local disk", code="E_LEDGER_IN_USE"
            ) from None
        yield LedgerFile(path)


def read_ledger(path: Path) -> Ledger:
    """Read a ledger, empty where there is no file, and refuse what fairlap cannot have written."""
    try:
        content = content_of(path)
    except FileNotFoundError:
        return Ledger()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {reason_of(error)}", code="E_FILE") from None
    try:
        if "schema" not in msgspec.json.decode(content, type=dict):
            raise msgspec.ValidationError("it names no schema")
        found = msgspec.json.decode(content, type=Ledger)
    except NOT_THE_DOCUMENT as error:
        raise InvalidRequest(f"{path} is not a ledger: {error}", code=E_LEDGER) from None
    if why := _inconsistency(found):
        raise InvalidRequest(f"{path} was damaged or edited: {why}; start a new ledger", code=E_LEDGER)
    return found


def _inconsistency(ledger: Ledger) -> str:
    """Why no search can have written it; empty where one can."""
    if ledger.error_rate != ERROR_RATE:
        return f"its error rate is {ledger.error_rate:g}, not {ERROR_RATE:g}"
    shares = 0
    for place, each in enumerate(ledger.tries, 1):
        if each.number != place:
            return f"try {each.number} is in place {place}"
        shares += each.share is not None
        if each.share not in (None, shares):
            return f"try {place} has share {each.share}, not {shares}"
        level = 0.0 if each.share is None else level_of_share(each.share)
        if not math.isclose(each.level, level):
            return f"try {place} has level {each.level:.3g}, and its share is {level:.3g}"
        if each.outcome != "begun" and each.outcome != _outcome_of(each):
            return f"try {place} says {each.outcome}, which does not follow from its figures"
    if ledger.sha256 != _hash_of(ledger.tries):
        return "its hash is not that of its tries"
    return ""


def _outcome_of(each: Try) -> Outcome:
    """Decide again by what is recorded."""
    from fairlap.verdict import decision_after

    if each.speedups and each.share is not None and each.suite and each.suite.benchmarks:
        return _outcome_over_suite(each, each.suite)
    if each.speedups and each.share is not None:
        return decision_after(each.log_speedups, each.gain, each.level, ended=each.ended_undecided)
    return "undecided" if each.reason in ("busy_machine", "not_comparable") else "discard"


def _outcome_over_suite(each: Try, suite: SuiteOfTry) -> Outcome:
    """Decide again by all benchmarks; speedups that are not their geometric mean fit no outcome of a race."""
    import numpy as np

    from fairlap.verdict import decision_over_suite, mean_log_speedups

    logs = {own.name: np.log(np.asarray(own.speedups, dtype=float)) for own in suite.benchmarks}
    if any(own.size != len(each.speedups) for own in logs.values()):
        return "begun"
    if not np.allclose(mean_log_speedups(logs), each.log_speedups):
        return "begun"
    bounds = {own.name: own.max_slowdown for own in suite.benchmarks}
    return decision_over_suite(logs, bounds, each.gain, each.level, ended=each.ended_undecided)


def _hash_of(tries: tuple[Try, ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(tries)).hexdigest() if tries else ""


class ChainBroken(FairlapError):
    """The kept changes do not build on each other, or a folder is not what was judged."""

    code = "E_LEDGER_CHAIN"


def kept_chain(ledger: Ledger) -> tuple[Try, ...]:
    """List the changes that were kept, each of which builds on the one before."""
    kept = tuple(each for each in ledger.tries if each.outcome == "keep" and not each.confirms)
    for before, after in pairwise(kept):
        if after.base.sha256 != before.change.sha256:
            raise ChainBroken(f"kept try {after.number} was not raced against the code of kept try {before.number}")
    return kept
