"""What ``fairlap judge`` is asked: two folders, what races in them, and what a change must be to be kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.units import Seconds, Share

E_JUDGE = "E_JUDGE"
Quantity = Literal["wall", "cpu_time", "memory_peak"]
SearchedQuantity = Quantity | Literal["time_to_first", "compile_time"]
"""By which a history is searched, too: from the start of a process to its first answer, and its compilation."""
_LEAST_GAINS: Mapping[str, float] = {"memory_peak": 0.01}
"""Where 0 will not do: a peak may not vary at all, and then a page more shows in every block, whatever put it there."""


class Benchmark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What races in both folders: a callable or a program."""

    call: str = ""  # MODULE:CALLABLE
    command: str = ""
    reported: str = ""  # FORMAT[:NAME] of the command's own report, by which it then races
    inputs: str = ""  # MODULE:CALLABLE of the current folder, which draws the arguments of the call
    reference: str = ""  # of the current folder, which answers right; the base's callable by default
    same_output: bool = False  # a command that prints something else than the base answers wrong


class JudgeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change and its base, or, to confirm, those at both ends of the kept changes of a ledger."""

    base: Path | None = None
    change: Path | None = None
    benchmark: Benchmark = Benchmark()
    suite: Path | None = None  # whose benchmarks race instead
    only: tuple[str, ...] = ()  # of the suite: names or regular expressions
    build: str = ""
    tests: str = ""
    gain: float | None = None  # the default of the quantity
    quantity: Quantity | None = None  # which decides; wall where none is named
    ledger: Path | None = None
    confirm: bool = False
    budget: Seconds | None = None
    blocks: Annotated[int, msgspec.Meta(ge=1)] | None = None
    threads: int | None = None
    seconds: Seconds | None = None
    pass_env: tuple[str, ...] = ()
    wait: bool = True  # while another race uses the same cores; an error otherwise

    @property
    def judged_by(self) -> Quantity:
        return self.quantity or "wall"

    @property
    def least_gain(self) -> float:
        return least_gain_of(self.judged_by) if self.gain is None else self.gain


def least_gain_of(quantity: SearchedQuantity) -> float:
    """Return the default gain, as a share."""
    return _LEAST_GAINS.get(quantity, 0.0)


def checked(request: JudgeRequest) -> JudgeRequest:
    """Refuse what cannot be judged, before anything runs."""
    benchmark = request.benchmark
    given = sum((bool(benchmark.call), bool(benchmark.command), request.suite is not None))
    if request.confirm:
        _require_confirmable(request, given)
        return request
    if request.base is None or request.change is None:
        raise InvalidRequest("name both folders, with --base and --change", code=E_JUDGE)
    if given != 1:
        raise InvalidRequest("give one of --call, --command and --suite", code=E_JUDGE)
    if request.suite is not None and benchmark != Benchmark():
        raise InvalidRequest(
            "--suite takes --inputs, --reference, --reported and --same-output from its file; leave them out",
            code=E_JUDGE,
        )
    if request.only and request.suite is None:
        raise InvalidRequest("--only chooses benchmarks of a --suite; name one", code=E_JUDGE)
    require_fitting(benchmark, request.judged_by, E_JUDGE)
    require_gain(request)
    return request


def _require_confirmable(request: JudgeRequest, given: int) -> None:
    if request.ledger is None:
        raise InvalidRequest("--confirm races what a ledger kept; name it with --ledger", code=E_JUDGE)
    if given or request.only:
        raise InvalidRequest("--confirm races what the ledger has; name no benchmark", code=E_JUDGE)
    if request.quantity is not None:
        raise InvalidRequest("--confirm judges by the quantity of the ledger; leave --quantity out", code=E_JUDGE)


def require_fitting(benchmark: Benchmark, quantity: SearchedQuantity, code: str) -> None:
    """Refuse options that are for another kind of benchmark."""
    if benchmark.call and (benchmark.reported or benchmark.same_output):
        raise InvalidRequest("--reported and --same-output are for --command", code=code)
    if benchmark.command and (benchmark.inputs or benchmark.reference):
        raise InvalidRequest("--inputs and --reference are for --call", code=code)
    if benchmark.reported and quantity != "wall":
        raise InvalidRequest("a command that races by --reported is judged by that time alone", code=code)
    if benchmark.command and quantity in ("time_to_first", "compile_time"):
        raise InvalidRequest(f"a command has no {quantity}; give another --quantity", code=code)


def require_gain(request: JudgeRequest) -> None:
    if request.judged_by in _LEAST_GAINS and not request.least_gain:
        raise InvalidRequest(
            f"{request.judged_by} takes a gain above 0: sides may differ by a page in every block, whatever their code "
            "does; give --gain 1%",
            code=E_JUDGE,
        )


def share_of_gain(text: str | float) -> float:
    """Read a share; 0 asks for any gain at all."""
    is_none = isinstance(text, str | float | int) and str(text).strip().removesuffix("%") in ("0", "0.0")
    return 0.0 if is_none else float(Share(text))


def folders(request: JudgeRequest) -> tuple[Path, Path]:
    """Both as absolute paths, which are folders and not the same one."""
    found = []
    for option, folder in (("--base", request.base), ("--change", request.change)):
        if folder is None or not folder.is_dir():
            raise InvalidRequest(f"{option}: {folder} is not a folder", code=E_JUDGE)
        found.append(folder.absolute())
    base, change = found
    if base.resolve() == change.resolve():
        raise InvalidRequest(f"--base and --change are the same folder, {base}", code=E_JUDGE)
    return base, change
