"""A folder like PyTorch's ``benchmarks/operator_benchmark``: what a file of benchmarks there needs, and such a file.

Its files are of our own; names and calls are those by which PyTorch's find each other.
"""

from __future__ import annotations

from pathlib import Path

_FRONT = """
from benchmark_core import BENCHMARK_TESTER, TorchBenchmarkBase


def config_list(attr_names, attrs, tags, cross_product_configs):
    [(key, values)] = cross_product_configs.items()
    return [
        [*({name: each} for name, each in zip(attr_names, own)), {key: value}, {"tags": tags[0]}]
        for own in attrs
        for value in values
    ]


def generate_pt_test(configs, op):
    BENCHMARK_TESTER.append((configs, op, None, False))


def generate_pt_gradient_test(configs, op):
    BENCHMARK_TESTER.append((configs, op, None, True))
"""
_CORE = """
from collections import namedtuple

import torch

Config = namedtuple("Config", "test_name input_config tag run_backward")
BENCHMARK_TESTER = []


class TorchBenchmarkBase(torch.nn.Module):
    def auto_set(self):
        return self.backward

    def forward_impl(self):
        return self.forward(*self.inputs.values())


class Test:
    def __init__(self, op, config):
        self.op_bench, self.test_config = op, config

    def run_forward(self, num_runs, print_per_iter, cuda_sync):
        for _ in range(num_runs):
            self.output = self.op_bench.forward_impl()

    def _output_mean(self):
        self.mean = self.output.mean()


def _build_test(configs, kind, _case, backward, op_name_function=None):
    for config in configs:
        given = {key: value for each in config for key, value in each.items() if key != "tags"}
        op = kind()
        op.backward = backward
        op.init(**given)
        name = "_".join(f"{'' if key == 'device' else key}{value}" for key, value in given.items())
        yield "id", Test(op, Config(f"{op.name}_{name}{'_bwdall' * backward}", "", config[-1]["tags"], backward))
"""
_ADD = """
import hot
import operator_benchmark as op_bench
import torch

configs = op_bench.config_list(
    attr_names=["M"], attrs=[[4], [0]], tags=["short"], cross_product_configs={"device": ["cpu", "cuda", "mps"]}
)


class Add(op_bench.TorchBenchmarkBase):
    def init(self, M, device):
        if not M:
            raise ValueError("M must be above 0")
        self.name = "add"
        self.inputs = {"one": torch.ones(M, device=device, requires_grad=self.auto_set())}

    def forward(self, one):
        hot.solve(30_000)
        return one + one


op_bench.generate_pt_test(configs, Add)
op_bench.generate_pt_gradient_test(configs, Add)
"""

_MANY = """
import beside
import operator_benchmark as op_bench
import torch

configs = op_bench.config_list(
    attr_names=["M"],
    attrs=[[8 * beside.ONE], [1], [18], [28]],
    tags=["short"],
    cross_product_configs={{"device": ["cpu"]}},
)


class Many(op_bench.TorchBenchmarkBase):
    def init(self, M, device):
        with open({built!r}, "a") as file:
            file.write(f"{{M}}\\n")
        if M == 1:
            raise ValueError("M must be above 1")
        self.name = "many"
        self.inputs = {{"one": torch.ones(M, device=device, requires_grad=self.auto_set())}}

    def forward(self, one):
        return one + one


op_bench.generate_pt_test(configs, Many)
op_bench.generate_pt_gradient_test(configs, Many)
"""


def file_of_operators(file: Path, built: Path) -> None:
    """Benchmarks elsewhere, of a module beside them. What they build they write into ``built``."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(_MANY.format(built=str(built)), encoding="utf-8")
    (file.parent / "beside.py").write_text("ONE = 1\n", encoding="utf-8")


def operators_folder(place: Path) -> Path:
    """Benchmarks of the project ``hot``, in ``place``/operators/pt/add_test.py."""
    home = place / "operators"
    (home / "pt").mkdir(parents=True)
    (home / "operator_benchmark.py").write_text(_FRONT, encoding="utf-8")
    (home / "benchmark_core.py").write_text(_CORE, encoding="utf-8")
    (home / "pt" / "add_test.py").write_text(_ADD, encoding="utf-8")
    (home / "pt" / "absent_test.py").write_text("import not_there\n\ngenerate_pt_test()\n", encoding="utf-8")
    (home / "pt" / "configs.py").write_text("import not_there\n", encoding="utf-8")  # which registers nothing
    return home
