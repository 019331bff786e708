"""``make gpu-proof``: measure every claim that needs a real NVIDIA GPU.

It changes no clock, power limit, MIG layout or persistence mode: the device is measured as found.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from . import machine
from .building import CannotBuild, build_module
from .calls import CALLS, END_S, LONGEST_S, OPTIONAL, Call, Piece, call_numbered
from .device_file import NOT_RUN, merge_into
from .kit import missing, unpack_missing
from .machine import CACHE, KIT, PAGES, ROOT, WORK
from .page import list_runs, short_table, write_page
from .parts import TOTAL_S, parts_named
from .picture import write_picture
from .record import FINISHED, INCOMPLETE, SOURCE, WITHOUT, Deadline, Json, read, undone_now, write
from .running import GRACE_S, record_file, run_part

LEAST_S = 20.0  # a shorter run of a part measures nothing


def main(arguments: Sequence[str] | None = None) -> int:
    given = _parsed(arguments)
    try:
        call = call_numbered(given.call) if given.call else None
        pieces = call.pieces if call else tuple(Piece(part.name, part.seconds) for part in parts_named(given.parts))
    except ValueError as error:
        return _fail(str(error))
    if absent := machine.why_no_gpu():
        return _fail(f"no NVIDIA GPU: {absent}")
    everything = Deadline(LONGEST_S if call else given.total)
    os.environ[WITHOUT] = ",".join(filter(None, (given.without, *(OPTIONAL if call else ()))))
    os.environ[SOURCE] = machine.source_hash()
    kit = unpack_missing(given.kit.resolve(), _say)
    if lacking := [name for name in missing(kit) if name != "pybind11"]:  # PyTorch has its headers too
        return _fail(f"{', '.join(lacking)} are missing; fetch them elsewhere: make gpu-proof-kit HAS=none")
    _prepare_environment([*([] if given.installed else [str(ROOT / "python")]), *kit])
    if not given.installed:
        try:
            build_module(_say)
        except CannotBuild as error:
            return _fail(str(error))
    return _Proof(given, call, everything).run(pieces)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.proof", description=__doc__)
    parser.add_argument(
        "--call", default="", metavar="1", help=f"one of {len(CALLS)} calls of nine minutes, which goes on from others"
    )
    parser.add_argument(
        "--parts", default="", metavar="truth,race", help="run only these parts; the others keep their results"
    )
    parser.add_argument("--resume", action="store_true", help="skip what is finished and continue the rest")
    parser.add_argument("--seconds", type=float, help="time limit of one part  [default: the part's own]")
    parser.add_argument("--total", type=float, default=TOTAL_S, help="time limit of all  [default: %(default).0f]")
    parser.add_argument(
        "--without", default="", metavar="jax,cupy", help="packages to do without; others that are missing are failures"
    )
    parser.add_argument("--kit", type=Path, default=KIT, help="folder that `make gpu-proof-kit` made")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for each part's file and log")
    parser.add_argument("--to", type=Path, default=PAGES, help="folder for the device's file and its page")
    parser.add_argument("--installed", action="store_true", help="use the installed fairlap; compile nothing")
    return parser.parse_args(arguments)


class _Proof:
    def __init__(self, given: argparse.Namespace, call: Call | None, everything: Deadline) -> None:
        self._seconds: float | None = given.seconds
        self._call, self._resume, self._everything = call, given.resume or call is not None, everything
        self._device = machine.device_name()
        self._folder: Path = given.work.resolve() / machine.file_name(self._device)
        self._file: Path = given.to.resolve() / f"{machine.file_name(self._device)}.json"
        self._facts = machine.facts()

    def run(self, pieces: Sequence[Piece]) -> int:
        for piece in pieces:
            self._take(piece)
        document = self._merge()
        if self._call is not None:
            picture = write_picture(document, self._call, self._file)
            document["pictures"] = sorted({*document.get("pictures", ()), picture.name})
            write(self._file, document)
        write_page(self._file)
        list_runs(self._file.parent)
        print(short_table(document))
        print(f"\n{self._file}\n{self._file.with_suffix('.md')}")
        ran = {piece.part.number for piece in pieces}
        undone = [reason for each in document["parts"] if each["part"] in ran for reason in _undone(each)]
        if self._call is not None:
            _say(f"call {self._call.number}: {'done' if not undone else f'{len(undone)} steps are not done'}")
        return 1 if undone else 0

    def _take(self, piece: Piece) -> None:
        part = piece.part
        before = self._earlier_result(part.number)
        if self._resume and before.get("status") == FINISHED:
            _say(f"part {part.number}, {part.title}: finished before")
            return
        end_s = END_S if self._call is not None else 0.0
        seconds = min(self._seconds or piece.seconds, self._everything.left_s() - GRACE_S - end_s)
        if seconds < LEAST_S:
            _say(f"part {part.number}, {part.title}: no time left; run it with --parts {part.name}")
            return
        _say(f"part {part.number}, {part.title}: up to {seconds:.0f} s")
        outcome = run_part(
            part, self._folder, seconds=seconds, resume=self._resume, only=piece.only, meanwhile=self._merge
        )
        _say(f"part {part.number}: {outcome['status']} {outcome['reason']}".rstrip()[:300])
        self._merge()

    def _merge(self) -> Json:
        return merge_into(self._file, self._device, self._facts, self._folder)

    def _earlier_result(self, number: int) -> Json:
        """Return an earlier result of a part: this machine's, or one in the device's file from another machine.

        One of other sources is forgotten, and the part is measured again.
        """
        own = record_file(self._folder, number)
        here = read(own)
        if here is not None and here.get("source", "") == os.environ[SOURCE]:
            return here
        own.unlink(missing_ok=True)
        earlier: Json = next((part for part in (read(self._file) or {}).get("parts", ()) if part["part"] == number), {})
        if earlier.get("status", NOT_RUN) == NOT_RUN or earlier.get("source", "") != os.environ[SOURCE]:
            return {}
        write(own, earlier)
        return earlier


def _undone(part: Json) -> list[str]:
    """List what this run should have done of a part and did not."""
    if part["status"] == FINISHED:
        return []
    left = undone_now(part)
    return left if part["status"] == INCOMPLETE else left or [part["reason"] or part["status"]]


def _prepare_environment(ours: list[str]) -> None:
    """Set up this process and its children. Races go to a separate store, not to the user's."""
    paths = [*ours, str(ROOT), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    CACHE.mkdir(parents=True, exist_ok=True)
    os.environ["FAIRLAP_STORE"] = str(CACHE / "runs.sqlite")
    os.environ.setdefault("XDG_CACHE_HOME", str(CACHE))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # frameworks share the device in some parts
    sys.path[:0] = [*ours, str(ROOT)]


def _say(line: str) -> None:
    print(f"gpu-proof: {line}", flush=True)


def _fail(why: str) -> int:
    print(f"gpu-proof: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
