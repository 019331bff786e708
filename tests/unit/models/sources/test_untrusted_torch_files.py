"""PyTorch's files reach nothing and run nothing without trust, whatever is in them."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.kinds.torch_files import load_program
from fairlap.models.sources.python_models.exported_programs import is_arithmetic, require_harmless_program
from fairlap.request.fields.source import shapes_in
from hostile_files import changed_program, plain_program, program_of_code, script_that_writes
from onnx_files import opened, source_of

torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")

OS_SYSTEM = "__import__('os').system('touch {target}')"


def refusal(file: Path, tmp_path: Path, **bindings: Any) -> str:
    with pytest.raises(FairlapError) as refused:
        opened(source_of(file, **bindings), tmp_path)
    return refused.value.code


def graph_of(program: dict[str, Any]) -> dict[str, Any]:
    graph: dict[str, Any] = program["graph_module"]["graph"]
    return graph


def test_the_text_of_a_size_is_not_evaluated(tmp_path: Path) -> None:
    target = tmp_path / "target"
    file = program_of_code(tmp_path / "evil.pt2", OS_SYSTEM.format(target=target))
    assert refusal(file, tmp_path) == "E_SOURCE_TRUST"
    assert not target.exists()


@pytest.mark.parametrize(
    "text",
    [
        "Symbol('s31', positive=True, integer=True)",
        "FloorDiv(Add(Symbol('s0', integer=True), Integer(-1)), Integer(2))",
        "(s0 + 1)//2 * Max(1, u3)",
        "Mod(Pow(s0, 2), 4)",
        "Float('0.5', precision=53)",
        "Eq(s0, 3)",
    ],
)
def test_sizes_are_arithmetic_on_symbols(text: str) -> None:
    assert is_arithmetic(text)


@pytest.mark.parametrize(
    "text",
    [
        "open('x', 'w')",
        "().__class__",
        "s0.func",
        "[s0][0]",
        "lambda: s0",
        "Symbol('__import__(1)')",
        "Symbol(name='x y')",
        "Symbol('s0', integer='import os')",
        "Max(*[1])",
        "getattr(s0, 'x')",
        "'text'",
        "f'{s0}'",
        "(s0 := 3)",
        "Lambda(s0, s0)",
        "9**9**9",
        "Pow(9, Pow(9, 9))",
        "Pow(base=9, exp=99999999)",
        "((9**64)**64)**64",
        "Pow(Pow(Pow(Integer(9), Integer(64)), Integer(64)), Integer(64))",
        "PowByNatural(s0**8 + 1, 9)",
        "1 << 99999999",
        "factorial(99999999)",
        "s0 if s0 else s0",
        "eval",
        "x" * 100_000,
        "(" * 5000 + "1" + ")" * 5000,
        "",
    ],
)
def test_any_other_text_is_not(text: str) -> None:
    assert not is_arithmetic(text)


@pytest.mark.parametrize(
    "target",
    [
        "torch.ops.aten.from_file.default",
        "torch.ops.aten.save.default",
        "torch.ops.aten.set_.source_Storage",
        "torch.ops.aten._sparse_coo_tensor_unsafe.default",
        "torch.ops.aten.linear.default.__call__",
        "torch.ops.aten.__class__.__call__",
        "torch.ops.load_library",
        "torch.ops.higher_order.triton_kernel_wrapper_mutation",
        "torch.load",
        "torch.hub.load",
        "torch.serialization.os.system",
        "torch.sym_max.__globals__",
        "_operator.methodcaller",
        "_operator.call",
        "math.sys",
        "#executorch:op",
        "os.system",
    ],
)
def test_an_operator_is_one_that_computes(tmp_path: Path, target: str) -> None:
    def change(program: dict[str, Any]) -> None:
        graph_of(program)["nodes"][0]["target"] = target

    assert refusal(changed_program(tmp_path / "evil.pt2", change), tmp_path) == "E_SOURCE_TRUST"


def test_a_name_is_not_written_into_code(tmp_path: Path) -> None:
    """PyTorch writes the names of nodes into the text of a function."""
    target = tmp_path / "target"
    name = f"linear = 1; __import__('os').system('touch {target}'); x"

    def change(program: dict[str, Any]) -> None:
        graph = graph_of(program)
        graph["nodes"][0]["name"] = name
        graph["nodes"][0]["outputs"][0]["as_tensor"]["name"] = name
        graph["outputs"][0]["as_tensor"]["name"] = name
        graph["tensor_values"][name] = graph["tensor_values"].pop("linear")
        program["graph_module"]["signature"]["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = name

    assert refusal(changed_program(tmp_path / "evil.pt2", change), tmp_path) == "E_SOURCE_TRUST"
    assert not target.exists()


@pytest.mark.parametrize(
    "layout",
    [
        '[1, {"type": "builtins.dict", "context": "{\\"__enum__\\": true, \\"fqn\\": \\"this:s\\"}",'
        ' "children_spec": []}]',
        '[1, {"type": "collections.defaultdict", "context": "{}", "children_spec": []}]',
        '[1, {"type": "builtins.dict", "context": "[{\\"__enum__\\": true}]", "children_spec": []}]',
    ],
)
def test_a_layout_of_inputs_imports_nothing(tmp_path: Path, layout: str) -> None:
    def change(program: dict[str, Any]) -> None:
        program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = layout

    assert refusal(changed_program(tmp_path / "evil.pt2", change), tmp_path) == "E_SOURCE_TRUST"


@pytest.mark.slow
def test_outputs_of_transformers_are_read_as_dicts_and_not_imported(tmp_path: Path) -> None:
    """A name of a class that does not exist, or that would run code when it is imported."""
    name = "transformers.there_is_no_such_module.Output"

    def layout(context: str) -> str:
        leaf = '{"type": null, "context": null, "children_spec": []}'
        return f'[1, {{"type": "{name}", "context": {json.dumps(context)}, "children_spec": [{leaf}]}}]'

    def changed(context: str) -> Path:
        def change(program: dict[str, Any]) -> None:
            program["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = layout(context)

        return changed_program(tmp_path / "changed.pt2", change)

    _, found = opened(source_of(changed('["logits"]')), tmp_path)
    assert [output.name for output in found.spec.outputs] == ["logits"]
    assert not any(module.startswith("transformers.there_is") for module in sys.modules)
    for context in ('["logits", "more"]', "[1]", "null", '{"logits": 1}', '["a.b"]', "[]"):
        assert refusal(changed(context), tmp_path) == "E_SOURCE_TRUST"


@pytest.mark.slow_but("code.so", "custom_obj")
@pytest.mark.parametrize(
    "member",
    ["data/constants/opaque_obj_0", "data/constants/custom_obj_0", "data/aotinductor/model/code.so", "models/2.json"],
)
def test_members_with_objects_or_machine_code_are_refused(tmp_path: Path, member: str) -> None:
    file = changed_program(tmp_path / "evil.pt2", lambda _: None, **{member: pickle.dumps(print)})
    assert refusal(file, tmp_path) == "E_SOURCE_TRUST"


def test_custom_objects_are_refused(tmp_path: Path) -> None:
    def change(program: dict[str, Any]) -> None:
        graph_of(program)["custom_obj_values"] = {"own": {"name": "own", "class_fqn": "torch.classes.evil"}}

    assert refusal(changed_program(tmp_path / "evil.pt2", change), tmp_path) == "E_SOURCE_TRUST"


def test_the_code_of_guards_does_not_run(tmp_path: Path) -> None:
    target = tmp_path / "target"

    def change(program: dict[str, Any]) -> None:
        program["guards_code"] = [OS_SYSTEM.format(target=target)]

    opened(source_of(changed_program(tmp_path / "guarded.pt2", change)), tmp_path)
    assert not target.exists()


def test_an_older_format_is_not_read_where_this_one_fails(tmp_path: Path) -> None:
    file = plain_program(tmp_path / "old.pt2")
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("version", "8.20")
    with pytest.raises(FairlapError) as refused:
        load_program(file, trust=False)
    assert refused.value.code in ("E_SOURCE", "E_SOURCE_TRUST")


@pytest.mark.slow
def test_what_real_modules_need_is_read(tmp_path: Path) -> None:
    """Free sizes, branches, nested keyword inputs, names that are no identifiers, recurrent layers."""
    nn, free = torch.nn, torch.export.Dim("batch", min=4, max=64)

    class Shapes(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any, y: Any) -> Any:
            joined = torch.cat([x.repeat(2, 1)[: x.shape[0] + 1], y])
            return {"joined": joined, "product": (torch.einsum("ij,kj->ik", x, y),)}

    class Branch(torch.nn.Module):  # type: ignore[name-defined, misc]
        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                doubled = x * 2
            return torch.cond(doubled.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

    class Named(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"a-b": nn.Linear(4, 4)})
            self.register_buffer("places", torch.arange(4))

        def forward(self, x: Any, *, given: Any) -> Any:
            return self.parts["a-b"](x) + given["a key"] + self.places

    x = torch.randn(6, 4)
    picture = nn.Sequential(nn.Conv2d(3, 4, 3, padding="same"), nn.Upsample(scale_factor=2, mode="bilinear"))
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    for number, (module, inputs, named, sizes) in enumerate(
        [
            (Shapes(), (x, x), None, ({0: free}, {0: free})),
            (Branch(), (x,), None, None),
            (Named(), (x,), {"given": {"a key": x}}, None),
            (nn.LSTM(4, 8), (torch.randn(2, 5, 4),), None, None),
            (picture, (torch.randn(2, 3, 9, 9),), None, ({0: torch.export.Dim.AUTO, 2: torch.export.Dim.AUTO},)),
            (nn.TransformerEncoder(layer, 2), (torch.randn(2, 5, 16),), None, None),
        ]
    ):
        file = tmp_path / f"{number}.pt2"
        torch.export.save(torch.export.export(module.eval(), inputs, named, dynamic_shapes=sizes), file)
        require_harmless_program(file)
        found = load_program(file, trust=False).module(check_guards=False)(*inputs, **(named or {}))
        assert type(found) is type(module(*inputs, **(named or {})))


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "m.jit", "m.torchscript"])
def test_torchscript_needs_trust(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    file = script_that_writes(tmp_path / name, target)
    assert refusal(file, tmp_path, shapes=shapes_in("x:2x8")) == "E_SOURCE_TRUST"
    assert not target.exists()
