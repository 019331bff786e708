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
from .device_file import NOT_RUN, merge_into
from .kit import unpack_missing
from .machine import CACHE, KIT, PAGES, ROOT, WORK
from .page import list_runs, short_table, write_page
from .parts import TOTAL_S, parts_named
from .record import FINISHED, WITHOUT, Deadline, Json, read, write
from .running import GRACE_S, record_file, run_part

LEAST_S = 20.0  # a shorter run of a part measures nothing


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.proof", description=__doc__)
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
    given = parser.parse_args(arguments)
    try:
        parts = parts_named(given.parts)
    except ValueError as error:
        return _fail(str(error))
    if absent := machine.why_no_gpu():
        return _fail(f"no NVIDIA GPU: {absent}")
    everything = Deadline(given.total)
    os.environ[WITHOUT] = given.without
    kit = unpack_missing(given.kit.resolve(), _say)
    _prepare_environment([*([] if given.installed else [str(ROOT / "python")]), *kit])
    if not given.installed:
        try:
            build_module(_say)
        except CannotBuild as error:
            return _fail(str(error))
    work: Path = given.work.resolve()
    device = machine.device_name()
    folder = work / machine.file_name(device)
    file = given.to.resolve() / f"{machine.file_name(device)}.json"
    facts = machine.facts()
    for part in parts:
        if given.resume and _earlier_result(part.number, file, folder).get("status") == FINISHED:
            _say(f"part {part.number}, {part.title}: finished before")
            continue
        seconds = min(given.seconds or part.seconds, everything.left_s() - GRACE_S)
        if seconds < LEAST_S:
            _say(f"part {part.number}, {part.title}: no time left; run it with --parts {part.name}")
            continue
        _say(f"part {part.number}, {part.title}: up to {seconds:.0f} s")
        outcome = run_part(part, folder, seconds=seconds, resume=given.resume)
        _say(f"part {part.number}: {outcome['status']} {outcome['reason']}".rstrip()[:300])
        merge_into(file, device, facts, folder)
    document = merge_into(file, device, facts, folder)
    write_page(file)
    list_runs(file.parent)
    print(short_table(document))
    print(f"\n{file}\n{file.with_suffix('.md')}")
    ran = {part.number for part in parts}
    return 0 if all(each["status"] == FINISHED for each in document["parts"] if each["part"] in ran) else 1


def _earlier_result(number: int, file: Path, folder: Path) -> Json:
    """Return an earlier result of a part: this machine's, or one in the device's file from another machine."""
    here = read(record_file(folder, number))
    if here is not None:
        return here
    earlier: Json = next((part for part in (read(file) or {}).get("parts", ()) if part["part"] == number), {})
    if earlier.get("status", NOT_RUN) == NOT_RUN:
        return {}
    write(record_file(folder, number), earlier)
    return earlier


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
