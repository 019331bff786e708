"""PyTorch's operator benchmarks, which its folder ``benchmarks/operator_benchmark`` runs: configurations of a class.

When a file is imported, it registers a class with ``init`` and ``forward``, and the sizes that it is for. Each of them
is a benchmark of the forward pass, and of the backward pass where gradients are asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from fairlap.frameworks.suites.timed_samples import TimedSamples

REGISTERS = re.compile(rb"^\s*\w*\.?generate_pt_(gradient_)?tests?(_from_op_list)?\(", re.M)
_OWN_FILES = ("operator_benchmark.py", "benchmark_core.py")
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
    folder = path if os.path.isdir(path) else os.path.dirname(path)  # noqa: PTH112, PTH120
    while True:
        if all(os.path.isfile(os.path.join(folder, name)) for name in _OWN_FILES):  # noqa: PTH113, PTH118
            return folder
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return ""
        folder = above


def own_modules(home: str) -> dict[str, str]:
    """Name the modules and packages of the folder, which find each other by their bare names."""
    return {name.removesuffix(".py"): home for name in os.listdir(home) if not name.startswith(("_", "."))}  # noqa: PTH208


def operators_in(home: str, within: str) -> Iterator[Operator | tuple[str, Exception]]:
    """Build those of one module, or of all below a package, one after the other; and what fails, with the reason."""
    for module in _modules(home, within):
        try:
            registered = _registered_by(module)
        except (Exception, SystemExit) as error:
            yield module, error if isinstance(error, Exception) else ImportError(str(error))
            continue
        for configurations, *others in registered:
            for configuration in configurations:
                if any(value in _DEVICES for each in configuration for value in each.values()):
                    continue
                yield from _built(module, configuration, others)


def _modules(home: str, within: str) -> Iterator[str]:
    for folder, names, files in os.walk(home):
        names[:] = sorted(name for name in names if not name.startswith((".", "_")))
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
