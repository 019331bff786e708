"""Small faults, one at a time: what a slip of the hand could have written instead."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_Apply = Callable[[ast.AST], None]
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "mean": "sum",
    "median": "mean",
    "low": "high",
    "high": "low",
    "first": "second",
    "second": "first",
    "argmax": "argmin",
    "argmin": "argmax",
    "p_above": "p_below",
    "p_below": "p_above",
    "left": "right",
    "right": "left",
}


@dataclass(frozen=True)
class Mutant:
    """A changed source, and where and how it differs."""

    line: int
    change: str
    source: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every mutant of one module, in the order of its lines as the tree is walked."""
    tree = ast.parse(source)
    count = len(list(ast.walk(tree)))
    quiet = _outside_of_behaviour(tree)
    for index in range(count):
        original = list(ast.walk(tree))[index]
        if index in quiet:
            continue
        for change, apply in _changes(original):
            mutated = copy.deepcopy(tree)
            apply(list(ast.walk(mutated))[index])
            changed = ast.unparse(ast.fix_missing_locations(mutated))
            yield Mutant(getattr(original, "lineno", 0), change, changed)


def _outside_of_behaviour(tree: ast.AST) -> set[int]:
    """Annotations, docstrings, messages of errors and imports: changing them is not a fault of judgement."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            parts += [node.returns, *(a.annotation for a in [*node.args.args, *node.args.kwonlyargs])]
            parts += node.decorator_list
        elif isinstance(node, ast.ClassDef):
            parts += node.decorator_list
        elif isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            parts.append(node)
        for part in parts:
            if part is not None:
                skipped |= {id(inner) for inner in ast.walk(part)}
    return {index for index, node in enumerate(ast.walk(tree)) if id(node) in skipped}


def _changes(node: ast.AST) -> list[tuple[str, _Apply]]:
    if isinstance(node, ast.Compare):
        return [
            (f"{type(op).__name__} to {_COMPARISONS[type(op)].__name__}", _SetComparison(place))
            for place, op in enumerate(node.ops)
            if type(op) in _COMPARISONS
        ]
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        return [(f"{type(node.op).__name__} to {_OPERATORS[type(node.op)].__name__}", _set_operator)]
    if isinstance(node, ast.BoolOp):
        return [("and for or" if isinstance(node.op, ast.Or) else "or for and", _swap_bool)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        return [(f"drop {type(node.op).__name__}", _drop_unary)]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [("flip the flag", _flip)]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [("number + 1", _add_one)]
    if isinstance(node, ast.Constant) and node.value in _NAMES:
        return [(f"{node.value!r} to {_NAMES[str(node.value)]!r}", _rename)]
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name in _NAMES and isinstance(node.ctx, ast.Load):
            return [(f"{name} to {_NAMES[name]}", _rename)]
    if isinstance(node, ast.IfExp):
        return [("swap the branches", _swap_branches)]
    if isinstance(node, ast.If):
        return [("condition is always false", _never)]
    return []


class _SetComparison:
    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[self.place] = _COMPARISONS[type(node.ops[self.place])]()


def _set_operator(node: ast.AST) -> None:
    assert isinstance(node, ast.BinOp | ast.AugAssign)
    node.op = _OPERATORS[type(node.op)]()


def _swap_bool(node: ast.AST) -> None:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()


def _drop_unary(node: ast.AST) -> None:
    assert isinstance(node, ast.UnaryOp)
    node.op = ast.UAdd()
    if isinstance(node.operand, ast.Compare | ast.Call | ast.Name):
        # Unary plus is not defined for flags, so a dropped negation becomes a product with one.
        node.operand = ast.BinOp(node.operand, ast.Mult(), ast.Constant(1))


def _flip(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    node.value = not node.value


def _add_one(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int | float)
    node.value = node.value + 1


def _rename(node: ast.AST) -> None:
    if isinstance(node, ast.Name):
        node.id = _NAMES[node.id]
    elif isinstance(node, ast.Attribute):
        node.attr = _NAMES[node.attr]
    elif isinstance(node, ast.Constant):
        node.value = _NAMES[str(node.value)]


def _swap_branches(node: ast.AST) -> None:
    assert isinstance(node, ast.IfExp)
    node.body, node.orelse = node.orelse, node.body


def _never(node: ast.AST) -> None:
    assert isinstance(node, ast.If)
    node.test = ast.Constant(False)
