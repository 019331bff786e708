"""The part of the proof on roofs and profiles: on the fakes, and in PyTorch on the CPU.

On the fakes, figures of known products are in place of PyTorch's; on the CPU, it is the products themselves.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cuda_on_fakes import Machine, on_fakes
from gpu.proof.driver import MIB, PrimaryContext, device_copy_bytes_per_s
from gpu.proof.parts import lt_products, roof_products, roofs
from gpu.proof.record import Deadline, NotHere, PartRecord, read

BF16 = b"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"


def content_of(record: PartRecord, path: Path) -> dict[str, Any]:
    record.end()
    content = read(path)
    assert content is not None
    return content


def taken(products: list[dict[str, Any]] | Exception, copied: float, *, pinned_back: float = 44.0) -> dict[str, Any]:
    """All steps on a device of 60 Top/s in fp32, 1 Pop/s in bf16 and 3 TB/s, and 55 and 45 GB/s over its link."""
    machine = Machine()
    machine.cuda.fake_cuda_set_instruction_rate.argtypes = (ctypes.c_char_p, ctypes.c_double)
    machine.cuda.fake_cuda_set_instruction_rate(b"fma.rn.f32", 30e12)
    machine.cuda.fake_cuda_set_instruction_rate(BF16, 1e15 / 4096)
    machine.cuda.fake_cuda_set_link.argtypes = (ctypes.c_double, ctypes.c_double, ctypes.c_int64)
    machine.cuda.fake_cuda_set_link(55e9, 45e9, 0)

    def collect(_module: str, *, limit_s: float, each: Callable[[dict[str, Any]], None]) -> None:
        assert limit_s > 0
        if isinstance(products, Exception):
            raise products
        for figures in products:
            each(figures)

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(roofs, "run_and_collect", collect)
        patch.setattr(roofs, "device_copy_bytes_per_s", lambda *_: copied)
        patch.setattr(roofs, "rates_gb_per_s", lambda *_, pinned, back: [pinned_back if back else 54.0] * 3)
        patch.setattr(roofs, "SECONDS", 0.02)
        path = Path(folder) / "part.json"
        record = PartRecord(path, 7, "made up")
        roofs.run(record, Deadline(600))
        return content_of(record, path)


def product(number_type: str, operations_per_s: float | None, by: str = roof_products.PYTORCH) -> dict[str, Any]:
    return {"number_type": number_type, "size": 8192, "by": by, "operations_per_s": operations_per_s, "note": ""}


@pytest.mark.slow
@on_fakes
def test_every_step_is_taken_and_each_figure_is_compared_with_its_own() -> None:
    content = taken([product("fp32", 50e12), product("fp32", 40e12), product("bf16", 0.8e15)], 2.7e12)
    assert content["status"] == "finished", content["reason"]
    goals = {goal["goal"].partition(":")[0]: goal for goal in content["goals"]}
    assert goals["fp32"]["figure"] == pytest.approx(60 / 50, rel=1e-3)
    assert goals["bf16"]["figure"] == pytest.approx(1 / 0.8, rel=1e-3)
    assert goals["memory"]["figure"] == pytest.approx(3 / 2.7, rel=1e-3)
    assert [goals[name]["reached"] for name in ("fp32", "bf16", "memory")] == [True] * 3
    assert goals["int8"]["reached"] is None
    assert goals["host to device"]["figure"] == pytest.approx(55 / 54, rel=1e-3)
    assert goals["device to host"]["figure"] == pytest.approx(45 / 44, rel=1e-3)
    assert [goals[way]["reached"] for way in roofs.PINNED_WAYS] == [True, True]
    assert [row["way"] for row in content["tables"]["links"]] == [*roofs.PINNED_WAYS, "both ways at once"]
    profile = next(goal for goal in content["goals"] if "profile" in goal["goal"])
    assert profile["reached"] is True
    [row] = content["tables"]["kernels of a profile"]
    assert row["kernel_sum_ns"] == row["spun_ns"] == pytest.approx(row["device_span_ns"], abs=32)
    assert (row["lost"], row["kernels_of_a_call"]) == (0, "3")


@on_fakes
def test_a_roof_below_a_product_and_a_bandwidth_or_a_link_below_a_copy_are_goals_that_were_missed() -> None:
    content = taken([product("fp32", 70e12)], 3.5e12, pinned_back=47.0)
    goals = {goal["goal"].partition(":")[0]: goal["reached"] for goal in content["goals"]}
    assert (goals["fp32"], goals["memory"]) == (False, False)
    assert (goals["host to device"], goals["device to host"]) == (True, False)


@on_fakes
def test_a_roof_is_compared_with_the_fastest_product_of_either_library() -> None:
    slow, fast = product("fp32", 25e12), product("fp32", 50e12, roof_products.LT)
    goal = next(goal for goal in taken([slow, fast, slow], 2.7e12)["goals"] if goal["goal"].startswith("fp32"))
    assert goal["figure"] == pytest.approx(60 / 50, rel=1e-3)
    assert roof_products.LT in goal["why"]


class LtLibrary:
    """In place of cuBLASLt: it takes what the header declares, and lists three algorithms, one of which it lacks."""

    def __init__(self, refused: str = "") -> None:
        self.calls: list[str] = []
        self.attributes: dict[str, tuple[int, int]] = {}
        self.products: list[tuple[int, int]] = []
        self._refused = refused

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = name.removeprefix("cublasLt")

        def called(*arguments: Any) -> int:
            self.calls.append(function)
            if function == self._refused:
                return 15  # CUBLAS_STATUS_NOT_SUPPORTED
            if function.endswith("SetAttribute"):
                _, attribute, value, size = arguments
                self.attributes[function] = attribute, value._obj.value
                assert size.value == ctypes.sizeof(value._obj)
            if function == "MatmulAlgoGetHeuristic":
                found, count = arguments[8], arguments[9]._obj
                count.value = 3
                for number in range(3):
                    found[number].state, found[number].workspace_bytes = (0, 15, 0)[number], number
                    found[number].algo[0] = number
            if function == "Matmul":
                self.products.append((arguments[12]._obj[0], arguments[14].value))
            return 0

        return called


@pytest.mark.skipif(find_spec("torch") is None, reason="`make test` installs frameworks and runs this")
def test_cublaslt_may_take_a_workspace_and_each_algorithm_that_it_has_is_a_product() -> None:
    """Sizes and numbers are those of cublasLt.h of CUDA 12.5: 64 bytes of an algorithm, then workspace and state."""
    import torch

    assert ctypes.sizeof(lt_products.Heuristic) == 96
    assert lt_products.Heuristic.workspace_bytes.offset == 64
    library = LtLibrary()
    for call in lt_products.products(torch, library, 32, "cpu"):
        call()
    assert library.products == [(0, 0), (2, 2)]
    assert library.attributes["MatmulPreferenceSetAttribute"] == (1, lt_products.WORKSPACE_BYTES)
    assert library.attributes["MatmulDescSetAttribute"] == (3, 1)
    with pytest.raises(lt_products.Refused, match="MatrixLayoutCreate"):
        list(lt_products.products(torch, LtLibrary("MatrixLayoutCreate"), 32, "cpu"))


@on_fakes
def test_without_pytorch_the_rest_is_measured_and_the_part_says_so() -> None:
    content = taken(NotHere("torch is not installed", "torch"), 2.7e12)
    assert content["status"] == "failed"
    assert "torch" in content["reason"]
    assert {"roofs", "copies", "kernels of a profile"} <= content["tables"].keys()


@on_fakes
def test_copies_on_the_device_are_made_and_their_memory_is_given_back() -> None:
    Machine()
    context = PrimaryContext()
    before = context.free_bytes()
    assert device_copy_bytes_per_s(context, 64 * MIB) > 0
    assert context.free_bytes() == before


@pytest.mark.skipif(find_spec("torch") is None, reason="`make test` installs frameworks and runs this")
def test_every_product_runs_in_pytorch() -> None:
    import torch

    names = []
    for name, call in roof_products.products(torch, 32, "cpu"):
        assert call().shape == (32, 32)
        names.append(name)
    assert set(names) == {"fp32", "tf32", "fp16", "bf16", "fp64", "fp8", "int8"}
