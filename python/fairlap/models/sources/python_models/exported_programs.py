"""Check an ExportedProgram before PyTorch reads it.

PyTorch evaluates the text of sizes, imports modules that a layout of inputs names, and writes names into Python code
that it runs. All that may be in the file is listed here; what is not needs trust.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError

_MOST_JSON_BYTES = 2**28
_MODEL, _INPUTS = "models/model.json", "data/sample_inputs/model.pt"
_WEIGHTS, _CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"
_MEMBERS = re.compile(
    rf"{re.escape(_MODEL)}|{re.escape(_INPUTS)}|{re.escape(_WEIGHTS)}|{re.escape(_CONSTANTS)}"
    r"|data/weights/weight_\d+|data/constants/tensor_\d+|archive_format|archive_version|byteorder"
    r"|\.data/(version|serialization_id)|extra/.*"
)

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*|", re.ASCII)  # what becomes a name in code; empty where an argument has none
_PATH = re.compile(r"[\w.\-:/@ +]*", re.ASCII)  # of weights and modules, which are quoted in code
_FREE = frozenset({"as_string", "as_strings", "torch_version", "guards_code", "metadata"})  # quoted, or never read
_PATHS = frozenset(
    {"fqn", "path_name", "parameter_name", "buffer_name", "tensor_constant_name", "user_input_name", "config"}
)
_MALFORMED = (RecursionError, AttributeError, TypeError, KeyError, ValueError)
_OBJECTS = ("as_custom_obj", "custom_obj")

_LAYOUTS = frozenset(
    {None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"}
    | {f"torch.fx.immutable_collections.immutable_{kind}" for kind in ("list", "dict")}
)

_OF_TRANSFORMERS = re.compile(r"transformers(\.[A-Za-z_]\w*)+", re.ASCII)  # its outputs, which are read as dicts

_OF_SIZES = frozenset([
    "eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "mul", "add", "sub", "floordiv", "mod", "pow", "truediv", "and_",
    "or_", "lshift", "rshift", "getitem",
])  # fmt: skip
_MATH = frozenset([
    "trunc", "ceil", "floor", "sqrt", "log", "log2", "exp", "pow", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh",
])  # fmt: skip
_GRAPHS = frozenset(["cond", "while_loop", "scan", "map_impl", "wrap_with_set_grad_enabled", "wrap_with_autocast"])
_ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.(\w+)", re.ASCII)
_COMPUTED = re.compile(r"(Tensor|int|float|bool|number|complex|Device|Generator|str|NoneType)$")
_TAKE_TEXT = frozenset([
    "approximate", "rounding_mode", "equation", "reduce", "side", "padding", "indexing", "ord", "pad_mode", "mode",
    "interpolation", "norm", "UPLO", "driver", "padding_side", "assert_msg",
])  # fmt: skip
_UNSAFE = re.compile(  # memory outside of a tensor, or an object of C++ behind one
    r"unsafe(?!_(view|index|split|chunk|masked))|prepack|^_(coalesced|debug|nested|print|reshape_alias|sparse|test)"
)

_NUMBERS = frozenset([
    "Integer", "Float", "Rational", "Symbol", "Add", "Mul", "Pow", "Mod", "Max", "Min", "Abs", "Eq", "Ne", "Lt", "Le",
    "Gt", "Ge", "And", "Or", "Not", "Equality", "Unequality", "StrictLessThan", "LessThan", "StrictGreaterThan",
    "GreaterThan", "FloorDiv", "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt",
    "CeilDiv", "FloatTrueDiv", "IntTrueDiv", "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt",
    "RoundToInt", "RoundDecimal", "ToFloat", "Identity", "PowByNatural", "FloatPow", "LShift", "RShift", "floor",
    "ceiling",
])  # fmt: skip
_POWERS = frozenset({"Pow", "PowByNatural", "FloatPow", "LShift", "RShift"})
_MOST_LETTERS, _MOST_POWER, _MOST_NUMBER = 10_000, 64, 2**63
_SYMBOL = re.compile(r"[a-z]+\d+", re.ASCII)
_DECIMAL = re.compile(r"-?[\d.]+(e[+-]?\d{1,3})?", re.ASCII)
_PLAIN = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Load, ast.keyword),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)


def require_harmless_program(file: Path) -> None:
    members, texts = _read(file)
    try:
        found = next(_suspicious(members, texts), "")
    except _MALFORMED as error:
        raise SourceError(f"{file.name} is damaged, or not an ExportedProgram: {described(error)}") from None
    if found:
        raise SourceError(
            f"{file.name} has {found}, which could run code or reach files; add --trust if you trust it",
            code="E_SOURCE_TRUST",
        )


def read_outputs_as_dicts(file: Path) -> None:
    """Register the classes of outputs that PyTorch lacks as dicts; nothing that the file names is imported.

    PyTorch knows the outputs of transformers only where that package made some, and another version of it may lack the
    class.
    """
    from torch.utils import _pytree

    _, texts = _read(file)
    try:
        names = {each["type"] for layout in _layouts(texts) for each in _containers(layout) if _is_output(each)}
    except _MALFORMED:
        return  # PyTorch will say so
    for name in sorted(names - set(_pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)):
        _register_dict(name)


def _register_dict(name: str) -> None:
    from torch.utils import _pytree

    kind = type(name.rpartition(".")[2], (dict,), {})
    _pytree.register_pytree_node(
        kind,
        lambda found: (list(found.values()), list(found)),
        lambda values, names: kind(zip(names, values, strict=True)),
        serialized_type_name=name,
    )


def _read(file: Path) -> tuple[list[str], dict[str, Any]]:
    """Read the members, and the JSON among them.

    PyTorch's own reader of archives does it, since two readers may see different members in the same bytes.
    """
    import torch

    try:
        archive = torch._C.PyTorchFileReader(str(file))
        members = archive.get_all_records()
        texts = {}
        for member in (_MODEL, _WEIGHTS, _CONSTANTS):
            if member in members:
                if archive.get_record_size(member) > _MOST_JSON_BYTES:
                    raise SourceError(f"{member} in {file.name} is too large to be read", code="E_SOURCE_SIZE")
                texts[member] = json.loads(archive.get_record(member))
    except SourceError:
        raise
    except Exception as error:  # of PyTorch and JSON
        raise SourceError(f"{file.name} is damaged, or not an ExportedProgram: {described(error)}") from None
    if _MODEL not in texts:
        raise SourceError(f"{file.name} is damaged, or not an ExportedProgram: it has no {_MODEL}")
    return members, texts


def _suspicious(members: list[str], texts: dict[str, Any]) -> Iterator[str]:
    yield from (f"the member {name!r:.80}" for name in members if not _MEMBERS.fullmatch(name))
    if len(set(members)) < len(members):
        yield "two members of the same name"
    for text in texts.values():
        yield from _in_json(text, "", _IDENTIFIER)


def _in_json(value: Any, key: str, names: re.Pattern[str]) -> Iterator[str]:
    """``names`` is what text may be that has no meaning of its own here."""
    if key in _FREE:
        return
    if isinstance(value, dict):
        yield from _in_object(value, names)
    elif isinstance(value, list):
        for each in value:
            yield from _in_json(each, key, names)
    elif isinstance(value, str):
        yield from _in_text(value, key, names)


def _in_object(value: dict[str, Any], names: re.Pattern[str]) -> Iterator[str]:
    for key, each in value.items():
        if (key in _OBJECTS and each is not None) or (key == "custom_obj_values" and each):
            yield "a custom object"
        if key == "use_pickle" and each is not False:
            yield "a pickle"
        if not names.fullmatch(key):
            yield f"the name {key!r:.80}"
        yield from _in_json(each, key, _PATH if key in _PATHS else _IDENTIFIER)


def _in_text(value: str, key: str, names: re.Pattern[str]) -> Iterator[str]:
    if key in ("target", "as_operator"):
        if not _computes(value):
            yield f"the operator {value!r:.80}"
    elif key == "expr_str":
        if not is_arithmetic(value):
            yield f"the size {value!r:.80}"
    elif key in ("in_spec", "out_spec"):
        yield from _in_layout(json.loads(value))
    elif not names.fullmatch(value):
        yield f"the name {value!r:.80}"


def _in_layout(layout: Any) -> Iterator[str]:
    """Of the nested inputs or outputs. Contexts of other types name modules to import."""
    for each in _containers(layout):
        if each["type"] not in _LAYOUTS and not _is_output(each):
            yield f"inputs or outputs of the type {each['type']!r:.80}"
        context = json.loads(each["context"] or "null")
        if not isinstance(context, list | None) or any(
            not isinstance(name, str | int) or not _PATH.fullmatch(str(name)) for name in context or ()
        ):
            yield f"inputs or outputs with the context {each['context']!r:.80}"


def _containers(layout: Any) -> Iterator[dict[str, Any]]:
    """And what is no container, whose type is null."""
    _, whole = layout
    found = [whole]
    while found:
        each = found.pop()
        yield each
        found += each["children_spec"]


def _is_output(container: dict[str, Any]) -> bool:
    """Of transformers: a name for each value, and nothing else."""
    if not isinstance(container["type"], str) or not _OF_TRANSFORMERS.fullmatch(container["type"]):
        return False
    names = json.loads(container["context"] or "null")
    return (
        isinstance(names, list)
        and len(set(map(str, names))) == len(container["children_spec"]) == len(names)
        and all(isinstance(name, str) and name.isidentifier() for name in names)
    )


def _layouts(value: Any) -> Iterator[Any]:
    """Of all inputs and outputs, wherever the JSON has them."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in ("in_spec", "out_spec") and isinstance(each, str):
            yield json.loads(each)
        else:
            yield from _layouts(each)


def _computes(target: str) -> bool:
    """Operators of PyTorch whose arguments are tensors, numbers, and text that is no file's name."""
    module, _, name = target.rpartition(".")
    if module == "_operator":
        return name in _OF_SIZES
    if module == "math":
        return name in _MATH
    if module == "torch":
        return re.fullmatch(r"_?sym_[a-z]+", name) is not None
    if module == "torch.ops.higher_order":
        return name in _GRAPHS
    found = _ATEN.fullmatch(target)
    return found is not None and not _UNSAFE.search(found[1]) and _takes_data_alone(*found.groups())


def _takes_data_alone(name: str, overload: str) -> bool:
    import torch

    operator = getattr(getattr(torch.ops.aten, name, None), overload, None)
    if not isinstance(operator, torch._ops.OpOverload):
        return False
    arguments = operator._schema.arguments
    kinds = [re.sub(r"Optional\[|List\[|\]", "", str(each.type)) for each in (*arguments, *operator._schema.returns)]
    texts = {each.name for each in arguments if "str" in str(each.type)}
    return all(map(_COMPUTED.fullmatch, kinds)) and texts <= _TAKE_TEXT


def is_arithmetic(text: str) -> bool:
    """Whole numbers, symbols and what is computed from them in a moment."""
    if len(text) > _MOST_LETTERS:
        return False
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    quoted = {
        id(each.args[0]): each.func.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.args
    }
    called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
    return all(_is_plain(each, quoted, called) for each in ast.walk(tree)) and _power_of(tree) <= _MOST_POWER


def _power_of(node: ast.AST) -> float:
    """Multiply exponents that are nested: 64 raised to 64 several times is a number that never ends."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _power_of(node.left) * _exponent(node.right)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _POWERS
        and len(node.args) == 2
    ):
        return _power_of(node.args[0]) * _exponent(node.args[1])
    return max(map(_power_of, ast.iter_child_nodes(node)), default=1.0)


def _exponent(node: ast.expr) -> float:
    """Read what ``_is_small`` accepts, without its sign; a power of less than two leaves a number's size."""
    while not isinstance(node, ast.Constant):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.args[0] if isinstance(node, ast.Call) else node
        if not isinstance(node, ast.Constant | ast.UnaryOp | ast.Call):
            return _MOST_POWER + 1.0
    return max(float(node.value), 1.0) if isinstance(node.value, int | float) else _MOST_POWER + 1.0


def _is_plain(node: ast.AST, quoted: dict[int, str], called: set[int]) -> bool:
    if isinstance(node, ast.Constant):
        return _is_plain_constant(node, quoted.get(id(node), ""))
    if isinstance(node, ast.Name):
        return id(node) in called or node.id in ("true", "false") or _SYMBOL.fullmatch(node.id) is not None
    if isinstance(node, ast.Call):
        known = isinstance(node.func, ast.Name) and node.func.id in _NUMBERS
        return known and (
            not isinstance(node.func, ast.Name)
            or node.func.id not in _POWERS
            or (len(node.args) == 2 and _is_small(node.args[1]))
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift | ast.RShift):
        return _is_small(node.right)
    return isinstance(node, _PLAIN)


def _is_plain_constant(node: ast.Constant, of: str) -> bool:
    if isinstance(node.value, str):
        pattern = {"Symbol": _SYMBOL, "Float": _DECIMAL, "Integer": _DECIMAL}.get(of)
        return pattern is not None and pattern.fullmatch(node.value) is not None
    return isinstance(node.value, bool | float) or (isinstance(node.value, int) and node.value <= _MOST_NUMBER)


def _is_small(node: ast.expr) -> bool:
    """Check for an exponent that can be computed: a number of at most two digits, plain or in ``Integer``."""
    if isinstance(node, ast.UnaryOp):
        return _is_small(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Integer":
        return len(node.args) == 1 and _is_small(node.args[0])
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value <= _MOST_POWER
