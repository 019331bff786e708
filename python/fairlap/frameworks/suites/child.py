"""The process of a benchmark: ``python -m fairlap.frameworks.suites.child MODE OPTIONS-AS-JSON``.

``list`` and ``try`` reply once. ``run`` replies when the benchmark is set up and warmed up, and then with a sample for
each line that it reads. Replies are lines of JSON on a descriptor of their own, since benchmarks print.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from fairlap.frameworks.suites.imports_of_side import SideFirst, imports_from
from fairlap.frameworks.suites.process_memory import peak_bytes
from fairlap.frameworks.suites.tools import ASV, PYTEST, TORCH
from fairlap.frameworks.suites.torch_operators import folder_of, own_modules

_CACHE = "cache.pickle"  # in the current folder, which is a temporary one, as asv has it
_OURS = {"fairlap": ""}


class Child:
    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._suite, self._side, self._name = options["suite"], options["side"], options.get("name", "")
        self._replies = os.fdopen(options["replies"], "w", encoding="utf-8") if "replies" in options else None
        self._requests = int(options.get("requests", -1))
        folder, base = os.path.split(self._suite)
        self._tool = options["tool"]
        self._root = base.removesuffix(".py")
        self._own = {**self._own_modules(folder), **_OURS}
        self._side_first = SideFirst(self._side, self._own)
        self._side_first.install()
        if self._tool == TORCH:
            sys.path.append(folder_of(self._suite))  # files elsewhere may import what is beside them

    def _own_modules(self, folder: str) -> dict[str, str]:
        if self._tool == ASV:
            return {self._root: folder}
        if self._tool == TORCH:
            return own_modules(self._suite, self._options["root"] or self._suite, self._options["module"])
        return {"conftest": "", **_package_of(self._suite)}

    def reply(self, **fields: Any) -> None:
        assert self._replies is not None
        self._replies.write(json.dumps(fields) + "\n")
        self._replies.flush()

    def run_mode(self, mode: str) -> None:
        if mode == "cache":
            self._write_cache()
        elif mode == "list":
            {ASV: self._list_asv, PYTEST: self._list_pytest, TORCH: self._list_torch}[self._tool]()
        else:
            {ASV: self._run_asv, PYTEST: self._run_pytest, TORCH: self._run_torch}[self._tool](mode)

    def _list_asv(self) -> None:
        from fairlap.frameworks.suites.asv_benchmarks import benchmarks_in

        found, broken = [], []
        for each in benchmarks_in(self._root, only=self._options["module"]):
            if isinstance(each, tuple):
                broken.append({"name": each[0], "why": described(each[1])})
                continue
            try:
                names = [name for name, _ in each.cases()]
            except Exception as error:
                broken.append({"name": each.name, "why": f"its parameters: {described(error)}"})
                continue
            found += [{"name": name, "kind": each.kind, "module": each.module} for name in names]
        self.reply(found=found, broken=broken)

    def _case(self) -> Any:
        from fairlap.frameworks.suites.asv_benchmarks import Case, benchmarks_in

        for each in benchmarks_in(self._root, only=self._options["module"]):
            if isinstance(each, tuple):
                if each[0] in (self._name, self._options["module"].partition(".")[2]):
                    raise each[1]
                continue
            for name, params in each.cases():
                if name == self._name:
                    return Case(each, params, self._cached, self._side_first.places)
        raise LookupError("this version of the suite does not have it")

    def _run_asv(self, mode: str) -> None:
        from fairlap.frameworks.suites.asv_benchmarks import Skipped

        try:
            case = self._case()
            if mode == "try":
                case.try_once()
                self.reply(ok=True, from_side=self._from_side())
                return
            case.set_up()
            case.warm_up()
        except Skipped as error:
            self.reply(skipped=str(error))
            return
        self.reply(ok=True, kind=case.kind, unit=case.unit, timeout_s=case.timeout_s, from_side=self._from_side())
        self._serve(case.sample)
        case.tear_down()

    def _list_pytest(self) -> None:
        from fairlap.frameworks.suites.pytest_benchmarks import Session, run_pytest

        session = Session()
        run_pytest(self._suite, session, self._options["scratch"])
        self.reply(
            found=[{"name": name, "kind": "time", "module": file, "tags": tags} for name, file, tags in session.found],
            broken=[{"name": name, "why": why} for name, why in session.broken],
            root=session.root,
        )

    def _run_pytest(self, mode: str) -> None:
        from fairlap.frameworks.suites.pytest_benchmarks import Session, run_pytest
        from fairlap.frameworks.suites.timed_samples import TimedSamples

        def suspended(samples: TimedSamples, first: Callable[[], Any]) -> None:
            samples.warm_up(first)
            self.reply(ok=True, kind="time", unit="seconds", timeout_s=None, from_side=self._from_side())
            self._serve(samples.sample_ns)

        session = Session(self._name, suspended if mode == "run" else None)
        run_pytest(self._options["module"], session, self._options["scratch"], self._options["root"])
        if session.broken:
            self.reply(error=session.broken[0][1])
        elif session.outcome in ("skipped", "failed"):
            self.reply(**{"skipped" if session.outcome == "skipped" else "error": session.why})
        elif not session.used:
            self.reply(error="it was not found" if not session.outcome else "it did not use its fixture benchmark")
        elif mode == "try":
            self.reply(ok=True, from_side=self._from_side())

    def _list_torch(self) -> None:
        from fairlap.frameworks.suites.torch_operators import operators_in

        found, broken = [], []
        for each in operators_in(folder_of(self._suite), self._options["module"]):
            if isinstance(each, tuple):
                broken.append({"name": each[0], "why": described(each[1])})
            else:
                tags = [each.tag] if each.tag else []
                found.append({"name": each.name, "kind": "time", "module": each.module, "tags": tags})
        self.reply(found=found, broken=broken, root=self._options["root"])

    def _run_torch(self, mode: str) -> None:
        from fairlap.frameworks.suites.torch_operators import operator_named

        operator = operator_named(self._options["module"], self._name)
        if operator is None:
            raise LookupError("this version of the suite does not have it")
        samples = operator.samples()
        samples.warm_up(samples.before())
        self.reply(ok=True, kind="time", unit="seconds", timeout_s=None, from_side=self._from_side())
        if mode == "run":
            self._serve(samples.sample_ns)

    def _serve(self, sample: Callable[[], float]) -> None:
        for _ in self._asked():
            value = sample()
            self.reply(value=value, peak_bytes=peak_bytes())

    def _asked(self) -> Iterator[bytes]:
        while request := os.read(self._requests, 1):
            yield request

    def _from_side(self) -> bool:
        return not self._side or imports_from(self._side, self._own, self._suite)

    def _cached(self) -> Any:
        """Run ``setup_cache`` in a process of its own, whose memory is not this one's, and read what it returned."""
        words = [sys.executable, "-P", "-m", "fairlap.frameworks.suites.child", "cache"]
        kept = {name: value for name, value in self._options.items() if name not in ("replies", "requests")}
        done = subprocess.run([*words, json.dumps(kept)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"its setup_cache failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
        with open(_CACHE, "rb") as file:  # noqa: PTH123
            return pickle.load(file)

    def _write_cache(self) -> None:
        from fairlap.frameworks.suites.asv_benchmarks import benchmarks_in

        for each in benchmarks_in(self._root, only=self._options["module"]):
            if not isinstance(each, tuple) and self._name in [name for name, _ in each.cases()]:
                found = each.attribute("setup_cache", None)()
                with open(_CACHE, "wb") as file:  # noqa: PTH123
                    pickle.dump(found, file)
                return


def _package_of(suite: str) -> dict[str, str]:
    """Find the package that tests are in, which pytest finds by their place and which need not be that of the side."""
    folder, name = (suite if os.path.isdir(suite) else os.path.dirname(suite)), ""  # noqa: PTH112, PTH120
    while os.path.exists(os.path.join(folder, "__init__.py")):  # noqa: PTH110, PTH118
        folder, name = os.path.split(folder)
    return {name: ""} if name else {}


def described(error: BaseException) -> str:
    with suppress(Exception):
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return type(error).__name__


def main() -> None:
    child = Child(json.loads(sys.argv[2]))
    try:
        child.run_mode(sys.argv[1])
    except (Exception, SystemExit) as error:
        if sys.argv[1] == "cache":
            raise
        cause = error.__cause__ if type(error).__name__ == "CallFailed" and error.__cause__ else error
        child.reply(error=described(cause))
    sys.stdout.flush()
    os._exit(0)  # threads of a benchmark would keep it


if __name__ == "__main__":
    main()
