"""What the frameworks' profilers record, as times of operators. The recordings are of real calls, cut short."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairlap.frameworks.adapter_parts.profiles import (
    onnxruntime_profile,
    openvino_profile,
    tensorflow_profile,
    torch_profile,
)
from fairlap.frameworks.adapter_parts.profiles.jax_profile import spans_in
from fairlap.frameworks.adapter_parts.profiles.profiled_spans import (
    CALL,
    Span,
    hlo_operation,
    profiled_calls,
    self_times,
    write_chrome_trace,
)
from fairlap.frameworks.contract_parts.profiler import Spent


def test_the_self_times_of_nested_operators_add_up_to_the_time_of_the_outermost() -> None:
    spans = [
        Span("linear", 1, 0, 100),
        Span("t", 1, 5, 10),
        Span("transpose", 1, 7, 5),
        Span("addmm", 1, 20, 70),
        Span("copy_", 1, 30, 20),
    ]
    found = {span.name: own for span, own in self_times(spans)}
    assert found == {"linear": 20, "t": 5, "transpose": 5, "addmm": 50, "copy_": 20}
    assert sum(found.values()) == 100


def test_an_operator_counts_for_the_call_in_which_it_starts_and_between_calls_for_none() -> None:
    calls = [Span(CALL, 1, 200, 100), Span(CALL, 1, 0, 100)]
    operators = [Span("a", 1, 10, 20), Span("a", 1, 40, 20, 8.0), Span("gc", 1, 150, 10), Span("b", 1, 210, 30)]
    first, second = profiled_calls(calls, operators)
    assert first.operators == {"a": Spent(2, 40, 8.0)}
    assert second.operators == {"b": Spent(1, 30)}
    assert (first.wall_ns, second.wall_ns) == (100, 100)


def test_operators_that_run_in_parallel_count_on_every_thread() -> None:
    [call] = profiled_calls([Span(CALL, 1, 0, 100)], [Span("a", 2, 0, 90), Span("a", 3, 0, 90)])
    assert call.operators["a"].self_ns == 180


def test_a_trace_is_what_perfetto_opens(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    write_chrome_trace(file, [Span("a", "pool/7", 1500, 250), Span("b", "main", 2000, 100)], "some profiler")
    events = json.loads(file.read_bytes())["traceEvents"]
    durations = [(each["name"], each["ts"], each["dur"]) for each in events if each["ph"] == "X"]
    assert durations == [("a", 1.5, 0.25), ("b", 2.0, 0.1)]
    assert {each["args"]["name"] for each in events if each["ph"] == "M"} == {"some profiler", "pool/7", "main"}


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ("aten::_conv_depthwise2d", "aten::_conv_depthwise2d"),
        ("graph_1_cpp_fused_native_layer_norm_relu_0", "cpp_fused_native_layer_norm_relu"),
        ("Torch-Compiled Region: 0/1", "Torch-Compiled Region"),
        ("## Call CompiledFxGraph fry2nyrybetj2zhkk5chxuelam4fzkbp4l2adfzt6ocbqefi6ecy ##", "CompiledFxGraph"),
    ],
)
def test_the_name_of_a_compiled_kernel_is_the_same_after_another_compilation(event: str, name: str) -> None:
    assert torch_profile.operator_named(event) == name


@pytest.mark.parametrize(
    ("hlo", "name"),
    [
        ("ynn_fusion.1", "ynn_fusion"),
        ("%broadcast_add_fusion.12.clone", "broadcast_add_fusion"),
        ("MatMul_2.3", "MatMul"),
        ("dot", "dot"),
    ],
)
def test_the_name_of_an_operation_of_xla_is_the_same_after_another_compilation(hlo: str, name: str) -> None:
    assert hlo_operation(hlo) == name


ONNXRUNTIME = b"""[
{"cat": "Session", "tid": 7, "dur": 11276, "ts": 1141, "name": "session_initialization", "args": {}},
{"cat": "Node", "tid": 7, "dur": 372, "ts": 12622, "name": "mm_kernel_time",
 "args": {"op_name": "MatMul", "provider": "CPUExecutionProvider", "input_type_shape": [{"float": [64, 512]}]}},
{"cat": "Node", "tid": 7, "dur": 11, "ts": 12999, "name": "r_kernel_time", "args": {"op_name": "Relu"}},
{"cat": "Session", "tid": 7, "dur": 494, "ts": 12618, "name": "SequentialExecutor::Execute", "args": {}},
{"cat": "Session", "tid": 7, "dur": 515, "ts": 12603, "name": "model_run", "args": {}},
{"cat": "Node", "tid": 7, "dur": 221, "ts": 13388, "name": "mm_kernel_time", "args": {"op_name": "MatMul"}},
{"cat": "Node", "tid": 7, "dur": 9, "ts": 13613, "name": "r_kernel_time", "args": {"op_name": "Relu"}},
{"cat": "Session", "tid": 7, "dur": 270, "ts": 13380, "name": "model_run", "args": {}}
]"""


def test_the_profile_of_onnx_runtime_is_read_run_by_run() -> None:
    first, second = onnxruntime_profile.calls_in(ONNXRUNTIME)
    assert first.operators == {"MatMul": Spent(1, 372_000), "Relu": Spent(1, 11_000)}
    assert second.operators == {"MatMul": Spent(1, 221_000), "Relu": Spent(1, 9_000)}
    assert (first.wall_ns, second.wall_ns) == (515_000, 270_000)


def counter(node: str, kind: str, us: int, status: str = "EXECUTED") -> SimpleNamespace:
    name = SimpleNamespace(name=status)
    return SimpleNamespace(node_name=node, node_type=kind, real_time=timedelta(microseconds=us), status=name)


def test_the_first_calls_are_taken_out_of_the_averages_of_openvino() -> None:
    before = openvino_profile.averages_us([counter("mm", "FullyConnected", 8000)], ())
    after = openvino_profile.averages_us(
        [
            counter("mm", "FullyConnected", 1000),
            counter("m2", "FullyConnected", 10),
            counter("x", "Relu", 5, "NOT_RUN"),
        ],
        (),
    )
    # 2 calls of 8 ms, then 18 that bring the average of all 20 down to 1 ms.
    spent = openvino_profile.between(before, 2, after, 20)["FullyConnected"]
    assert spent.calls == 2
    assert spent.self_ns == pytest.approx(1e3 * ((1000 * 20 - 8000 * 2) / 18 + 10 * 20 / 18))


def test_a_node_of_openvino_that_takes_less_than_a_microsecond_is_listed_all_the_same() -> None:
    def operation(name: str, kernel: str) -> SimpleNamespace:
        return SimpleNamespace(get_friendly_name=lambda: name, get_rt_info=lambda: {"primitiveType": kernel})

    running = openvino_profile.running_nodes(
        [operation("in", "unknown_f32"), operation("mm", "brgemm_avx512_f32"), operation("m2", "gemm_mlas_f32")]
    )
    assert running == {"mm", "m2"}
    fused = counter("x", "Relu", 0, "NOT_RUN")
    before = [counter("mm", "FullyConnected", 40), counter("m2", "FullyConnected", 10), fused]
    after = [counter("mm", "FullyConnected", 20), counter("m2", "FullyConnected", 0, "NOT_RUN"), fused]
    read = [openvino_profile.averages_us(each, running) for each in (before, after)]
    spent = openvino_profile.between(read[0], 3, read[1], 203)
    assert set(spent) == {"FullyConnected"}
    assert spent["FullyConnected"].calls == 2
    assert spent["FullyConnected"].self_ns == pytest.approx(1e3 * (20 * 203 - 40 * 3) / 200)


def test_each_call_of_openvino_is_divided_as_all_of_them_together() -> None:
    quick, interrupted = openvino_profile.divided([100.0, 900.0], {"mm": Spent(1, 400.0)})
    assert quick.operators["mm"].self_ns == pytest.approx(80)
    assert interrupted.operators["mm"].self_ns == pytest.approx(720)


def test_the_operations_of_a_program_of_jax_are_separated_from_the_runtimes_own_events() -> None:
    def event(name: str, start_ns: float, duration_ns: float, **stats: object) -> SimpleNamespace:
        return SimpleNamespace(name=name, start_ns=start_ns, duration_ns=duration_ns, stats=list(stats.items()))

    line = SimpleNamespace(
        name="tf_XLAPjRtCpuClient/44",
        events=[
            event("ThreadpoolListener::StartRegion", 1006959, 0),
            event("ynn_fusion.1", 1013554, 2608618, hlo_op="ynn_fusion.1", hlo_module="jit__lambda"),
            event("end: ynn_fusion.1", 3619889, 1560),
        ],
    )
    plane, other = SimpleNamespace(name="/host:CPU", lines=[line]), SimpleNamespace(name="/host:metadata", lines=[line])
    found = list(spans_in(SimpleNamespace(planes=[other, plane])))
    assert [(span.name, span.duration_ns, is_operation) for span, is_operation in found] == [
        ("ynn_fusion", 2608618, True),
        ("end: ynn_fusion.1", 1560, False),
    ]


@pytest.mark.parametrize(
    ("event", "operation"),
    [
        ("EagerLocalExecute: MatMul", "MatMul"),
        ("EagerLocalExecute: __inference_step_13", ""),
        ("__inference_step_13:__inference_step_13", ""),
        ("matmul_1:_MklMatMul", "_MklMatMul"),
        ("block/layer_1/add:AddV2", "AddV2"),
        ("KernelAndDeviceFunc::Run", ""),
        ("ExecutorState::Process", ""),
        ("end: matmul.2", ""),
    ],
)
def test_the_events_of_tensorflow_that_are_operations_are_found_by_their_names(event: str, operation: str) -> None:
    assert tensorflow_profile.operation_named(event) == operation


def test_operations_are_those_of_the_operator_that_ran_them() -> None:
    outer = Span("aten::conv2d", 1, 0.0, 100.0, flops=1e6)
    middle = Span("aten::convolution", 1, 1.0, 98.0)
    inner = Span("aten::mkldnn_convolution", 1, 2.0, 90.0)
    copied = Span("aten::contiguous", 1, 93.0, 5.0)
    found = {span.name: span.flops for span, _ in self_times([outer, middle, inner, copied])}
    assert found == {
        "aten::conv2d": None,
        "aten::convolution": None,
        "aten::mkldnn_convolution": 1e6,
        "aten::contiguous": None,
    }
