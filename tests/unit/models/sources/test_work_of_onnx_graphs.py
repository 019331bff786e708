"""The multiplications of a graph are those that PyTorch's own counter and a sum by hand find; others are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fairlap.models.sources.onnx_graphs.work import CountedWork, counted_work

onnx = pytest.importorskip("onnx", reason="`make test` installs it and runs this")
FLOAT, INT64, BOOL = 1, 7, 9
Sizes = Mapping[str, tuple[int, ...]]


def values(sizes: Sizes, kind: int = FLOAT) -> list[Any]:
    return [onnx.helper.make_tensor_value_info(name, kind, shape) for name, shape in sizes.items()]


def graph_of(nodes: list[Any], inputs: Sizes, weights: Sizes, constants: tuple[Any, ...] = ()) -> Any:
    held = [
        onnx.helper.make_tensor(name, FLOAT, shape, bytes(4 * _size(shape)), raw=True)
        for name, shape in weights.items()
    ]
    outputs = [onnx.helper.make_tensor_value_info(nodes[-1].output[0], FLOAT, None)]
    return onnx.helper.make_graph(nodes, "g", values(inputs), outputs, [*held, *constants])


def counted(nodes: list[Any], inputs: Sizes, weights: Sizes, constants: tuple[Any, ...] = ()) -> CountedWork:
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("theirs", 1)]
    return counted_work(onnx.helper.make_model(graph_of(nodes, inputs, weights, constants), opset_imports=opsets))


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for each in shape:
        size *= each
    return size


def node(kind: str, inputs: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, inputs.split(), ["out"], **attributes)


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("directions", [1, 2])
def test_every_step_of_a_recurrence_multiplies_both_of_its_matrices(kind: str, gates: int, directions: int) -> None:
    weights = {"w": (directions, gates * 5, 7), "r": (directions, gates * 5, 5)}
    direction = "bidirectional" if directions == 2 else "forward"
    found = counted([node(kind, "x w r", hidden_size=5, direction=direction)], {"x": (11, 2, 7)}, weights)
    assert found == CountedWork(11 * 2 * directions * gates * 5 * (7 + 5))


def test_a_transposed_convolution_multiplies_each_input_with_its_kernels() -> None:
    weights = {"w": (4, 3, 5, 5)}
    found = counted([node("ConvTranspose", "x w", strides=[2, 2], group=2)], {"x": (2, 4, 8, 8)}, weights)
    assert found == CountedWork(2 * 4 * 8 * 8 * 3 * 25)


@pytest.mark.parametrize(
    ("equation", "left", "right", "products"),
    [
        ("ij,jk->ik", (2, 3), (3, 5), 30),
        ("bhid,bhjd->bhij", (2, 3, 4, 5), (2, 3, 6, 5), 720),
        ("ij,jk", (2, 3), (3, 5), 30),
        ("ijl,jk->ik", (2, 3, 7), (3, 5), 30),  # l is added up first
    ],
)
def test_an_einsum_multiplies_once_for_each_combination_of_its_labels(
    equation: str, left: tuple[int, ...], right: tuple[int, ...], products: int
) -> None:
    assert counted([node("Einsum", "x w", equation=equation)], {"x": left}, {"w": right}) == CountedWork(products)


def body_of(kind: str) -> Any:
    """Make a product of 2 x 3 with 3 x 3, as a body of a loop or of a scan."""
    product = onnx.helper.make_node("MatMul", ["state", "w"], ["next"])
    same = onnx.helper.make_node("Identity", ["go"], ["going"])
    state, after = values({"state": (2, 3), "next": (2, 3)})
    if kind == "Scan":
        scanned, out = values({"item": (4,), "each": (4,)})
        nodes = [product, onnx.helper.make_node("Identity", ["item"], ["each"])]
        return onnx.helper.make_graph(nodes, "body", [state, scanned], [after, out])
    number = values({"number": ()}, INT64)
    go, going = values({"go": (), "going": ()}, BOOL)
    return onnx.helper.make_graph([product, same], "body", [*number, go, state], [going, after])


def test_a_loop_of_known_length_counts_its_body_as_often_and_one_of_unknown_length_is_named() -> None:
    trips = onnx.helper.make_tensor("trips", INT64, [], [6])
    loop = onnx.helper.make_node("Loop", ["trips", "", "x"], ["out"], body=body_of("Loop"))
    assert counted([loop], {"x": (2, 3)}, {"w": (3, 3)}, (trips,)) == CountedWork(6 * 18)
    loop = onnx.helper.make_node("Loop", ["", "", "x"], ["out"], body=body_of("Loop"))
    assert counted([loop], {"x": (2, 3)}, {"w": (3, 3)}) == CountedWork(0, ("Loop of unknown length",))


def test_a_loop_may_go_on_by_a_constant_and_one_that_may_end_early_is_named() -> None:
    trips = onnx.helper.make_tensor("trips", INT64, [], [6])
    body = body_of("Loop")
    true = onnx.helper.make_tensor("true", BOOL, [], [True])
    body.node[1].CopyFrom(onnx.helper.make_node("Constant", [], ["going"], value=true))
    loop = onnx.helper.make_node("Loop", ["trips", "", "x"], ["out"], body=body)
    assert counted([loop], {"x": (2, 3)}, {"w": (3, 3)}, (trips,)) == CountedWork(6 * 18)
    body.node[1].CopyFrom(onnx.helper.make_node("Not", ["go"], ["going"]))
    loop = onnx.helper.make_node("Loop", ["trips", "", "x"], ["out"], body=body)
    assert counted([loop], {"x": (2, 3)}, {"w": (3, 3)}, (trips,)) == CountedWork(0, ("Loop of unknown length",))


def test_the_functions_of_a_model_are_counted_where_they_are_called() -> None:
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("own", 1)]
    product = onnx.helper.make_node("MatMul", ["a", "b"], ["c"])
    function = onnx.helper.make_function("own", "Product", ["a", "b"], ["c"], [product], opsets[:1])
    call = onnx.helper.make_node("Product", ["x", "w"], ["out"], domain="own")
    graph = graph_of([call], {"x": (2, 3)}, {"w": (3, 5)})
    model = onnx.helper.make_model(graph, functions=[function], opset_imports=opsets)
    assert counted_work(model) == CountedWork(30)


def test_a_scan_counts_its_body_for_each_item() -> None:
    scan = onnx.helper.make_node("Scan", ["x", "s"], ["out", "all"], body=body_of("Scan"), num_scan_inputs=1)
    assert counted([scan], {"x": (2, 3), "s": (9, 4)}, {"w": (3, 3)}) == CountedWork(9 * 18)


@pytest.mark.parametrize(("sizes", "expected"), [((3, 3), CountedWork(18)), ((3, 5), None)])
def test_branches_of_the_same_work_are_counted_and_others_are_named(
    sizes: tuple[int, int], expected: CountedWork | None
) -> None:
    def branch(weight: str, size: int) -> Any:
        product = onnx.helper.make_node("MatMul", ["x", weight], [f"by_{weight}"])
        return onnx.helper.make_graph([product], weight, [], values({f"by_{weight}": (2, size)}))

    choice = onnx.helper.make_tensor("choice", BOOL, [], [True])
    branches = {"then_branch": branch("w", sizes[0]), "else_branch": branch("v", sizes[1])}
    found = counted(
        [node("If", "choice", **branches)], {"x": (2, 3)}, {"w": (3, sizes[0]), "v": (3, sizes[1])}, (choice,)
    )
    assert found == (expected or CountedWork(0, ("If with branches of different work",)))


def test_operators_that_are_not_counted_are_named() -> None:
    theirs = onnx.helper.make_node("Fused", ["x"], ["y"], domain="theirs")
    dft = onnx.helper.make_node("DFT", ["z"], ["f"], axis=1)
    product = node("MatMul", "x w")
    found = counted([theirs, dft, product], {"x": (2, 3), "z": (1, 8, 2)}, {"w": (3, 5)})
    assert found == CountedWork(30, ("DFT", "theirs::Fused"))


def test_pytorch_counts_as_many() -> None:
    torch = pytest.importorskip("torch", reason="`make test` installs it and runs this")
    from torch.utils.flop_counter import FlopCounterMode

    x, w = torch.ones(2, 4, 8, 8), torch.ones(4, 6, 5, 5)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.conv_transpose2d(x, w, stride=2)
        torch.nn.functional.conv2d(x, torch.ones(6, 4, 3, 3))
        torch.einsum("bcij,dcjk->bdik", x, torch.ones(5, 4, 8, 7))
        cell = torch.nn.LSTMCell(7, 5)
        for _ in range(11):
            cell(torch.ones(2, 7))
    graphs = (
        counted([node("ConvTranspose", "x w", strides=[2, 2])], {"x": (2, 4, 8, 8)}, {"w": (4, 6, 5, 5)}),
        counted([node("Conv", "x w")], {"x": (2, 4, 8, 8)}, {"w": (6, 4, 3, 3)}),
        counted([node("Einsum", "x w", equation="bcij,dcjk->bdik")], {"x": (2, 4, 8, 8)}, {"w": (5, 4, 8, 7)}),
        counted([node("LSTM", "x w r", hidden_size=5)], {"x": (11, 2, 7)}, {"w": (1, 20, 7), "r": (1, 20, 5)}),
    )
    assert counter.get_total_flops() == 2 * sum(each.multiplications for each in graphs)
