"""PyTorch's operator benchmarks, which its folder ``benchmarks/operator_benchmark`` runs: configurations of a class.

When a file is imported, it registers a class with ``init`` and ``forward``, and the sizes that it is for. Each of them
is a benchmark of the forward pass, and of the backward pass where gradients are asked for. That folder is their home;
a file elsewhere imports what it needs from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fairlap.frameworks.suites.timed_samples import TimedSamples

REGISTERS = re.compile(rb"^\s*\w*\.?generate_pt_(gradient_)?tests?(_from_op_list)?\(", re.M)
OWN_FILES = ("operator_benchmark.py", "benchmark_core.py")
IN_A_CHECKOUT = os.path.join("benchmarks", "operator_benchmark")  # noqa: PTH118
_PASS = re.compile(r"_bwd(all|\d+)$")  # the end of a backward pass's name
_DEVICES = ("cuda", "mps", "xpu")  # a file names them beside "cpu"


@dataclass(frozen=True)
class Operator:
    """``test`` is PyTorch's own object, with its inputs drawn."""

    name: str  # as PyTorch has it, behind that of its module: pt.add_test.add_M1_N1_K1_cpu
    module: str
    tag: str
    test: Any

    def samples(self) -> TimedSamples:
        """Time calls of the operator alone, or backward passes of what was computed once before."""
        if not self.test.test_config.run_backward:
            return TimedSamples(lambda: self.test.op_bench.forward_impl)
        self.test.run_forward(num_runs=1, print_per_iter=False, cuda_sync=False)
        self.test._output_mean()
        return TimedSamples(lambda: self._backward)

    def _backward(self) -> None:
        self.test.mean.backward(retain_graph=True)


def home_of(path: str) -> str:
    """Find the folder of PyTorch's operator benchmarks that this file or folder is in; empty where it is in none."""
    return next((each for each in _folders_above(path) if _is_home(each)), "")


def home_for(path: str, places: Iterable[str]) -> str:
    """Find it for a file that is elsewhere: in a checkout of PyTorch around it, or as one of the ``places``."""
    around = (os.path.join(each, IN_A_CHECKOUT) for each in _folders_above(path))  # noqa: PTH118
    return next((os.path.abspath(each) for each in (*around, *places) if each and _is_home(each)), "")  # noqa: PTH100


def _is_home(folder: str) -> bool:
    return all(os.path.isfile(os.path.join(folder, name)) for name in OWN_FILES)  # noqa: PTH113, PTH118


def _folders_above(path: str) -> Iterator[str]:
    folder = folder_of(path)
    while True:
        yield folder
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return
        folder = above


def folder_of(suite: str) -> str:
    return suite if os.path.isdir(suite) else os.path.dirname(suite)  # noqa: PTH112, PTH120


def own_modules(suite: str, home: str, module: str) -> dict[str, str]:
    """Name the modules and packages of the home, which find each other by their bare names, and where each is.

    Of a suite elsewhere also those that have benchmarks, or the one that is given.
    """
    found = {name.removesuffix(".py"): home for name in os.listdir(home) if not name.startswith(("_", "."))}  # noqa: PTH208
    if suite != home:
        folder = folder_of(suite)
        found |= {each.partition(".")[0]: folder for each in ([module] if module else _modules(folder, ""))}
    return found


def operators_in(home: str, within: str) -> Iterator[Operator | tuple[str, Exception]]:
    """Build those of one module, or of all below a package, one after the other; and what fails, with the reason."""
    for module in _modules(home, within):
        try:
            registered = _registered_by(module)
        except (Exception, SystemExit) as error:
            yield module, error if isinstance(error, Exception) else ImportError(str(error))
            continue
        for configuration, others in _configurations(registered):
            yield from _built(module, configuration, others)


def operator_named(module: str, name: str) -> Operator | None:
    """Build this one, after what may have its name and no other. Raises what the first of those raised, where none has.

    What has been built says what its name is, so all others follow.
    """
    every = [(_may_be(name, *each), each) for each in _configurations(_registered_by(module))]
    failed = None
    for is_likely, each in sorted(every, key=lambda found: not found[0]):
        for built in _built(module, *each):
            if isinstance(built, Operator):
                if built.name == name:
                    return built
            elif failed is None and is_likely:
                failed = built[1]
    if failed is not None:
        raise failed
    return None


def _configurations(registered: Sequence[Any]) -> Iterator[tuple[Any, Sequence[Any]]]:
    for configurations, *others in registered:
        for configuration in configurations:
            if not any(value in _DEVICES for each in configuration for value in each.values()):
                yield configuration, others


def _may_be(name: str, configuration: Any, others: Sequence[Any]) -> bool:
    """Whether PyTorch would name it so: by its sizes in their order, and by which pass it is of."""
    given = {key: value for each in configuration for key, value in each.items() if key != "tags"}
    sizes = "_".join(
        ("" if key == "device" else key) + str(int(value) if isinstance(value, bool) else value)
        for key, value in given.items()
    )
    _operator, _case, backward, *function = others
    listed = function[0]["op_name"] if function and function[0] else ""
    of_pass = _PASS.search(name)
    start = name[: of_pass.start()] if of_pass else name
    wanted = f"{listed}_{sizes}".replace(" ", "")
    return bool(of_pass) == bool(backward) and start.endswith(wanted)


def _modules(home: str, within: str) -> Iterator[str]:
    for folder, names, files in os.walk(home):
        below = (os.path.join(folder, name) for name in names if not name.startswith((".", "_")))  # noqa: PTH118
        names[:] = sorted(os.path.basename(each) for each in below if not _is_home(each))  # noqa: PTH119
        for file in sorted(file for file in files if file.endswith(".py")):
            path = os.path.join(folder, file)  # noqa: PTH118
            name = os.path.relpath(path, home).removesuffix(".py").replace(os.sep, ".")
            if f"{name}.".startswith(f"{within}." if within else ""):
                with open(path, "rb") as read:  # noqa: PTH123
                    if REGISTERS.search(read.read()):
                        yield name


def _registered_by(module: str) -> Sequence[Any]:
    core = import_module("benchmark_core")
    core.BENCHMARK_TESTER.clear()  # of the modules before
    import_module(module)
    return tuple(core.BENCHMARK_TESTER)


def _built(module: str, configuration: Any, others: Sequence[Any]) -> Iterator[Operator | tuple[str, Exception]]:
    import torch

    core = import_module("benchmark_core")
    tag = next((str(each["tags"]) for each in configuration if "tags" in each), "")
    torch.manual_seed(0)
    try:
        for _, test in core._build_test([configuration], *others):
            yield Operator(f"{module}.{test.test_config.test_name}", module, tag, test)
    except Exception as error:
        given = "_".join(f"{key}{value}" for each in configuration for key, value in each.items() if key != "tags")
        yield f"{module}.{others[0].__name__}({given})", error
