"""Profiles from recorded calls, and the kinds of operators and kernels."""

from __future__ import annotations

import pytest
from fairlap.frameworks.contract_parts.profiler import ProfiledCall, Spent
from fairlap.scenarios.untimed.device_profile import kernel_named
from fairlap.scenarios.untimed.profile import kind_of, profile_of


def test_a_profile_has_the_medians_of_the_faster_half_of_its_calls_and_the_longest_operator_first() -> None:
    calls = [
        ProfiledCall(100.0 + number, {"mm": Spent(2, 60.0 + number, 1e6), "relu": Spent(1, 20.0)})
        for number in range(5)
    ]
    interrupted = [ProfiledCall(9000.0, {"mm": Spent(2, 60.0, 1e6), "relu": Spent(1, 8900.0)})] * 5
    profile = profile_of("some profiler", [*interrupted, *calls], 90.0)
    assert (profile.profiler, profile.calls, profile.call_ns, profile.plain_call_ns) == ("some profiler", 10, 102, 90)
    assert [(each.name, each.kind, each.calls, each.self_ns, each.flops) for each in profile.operators] == [
        ("mm", "matmul", 2.0, 62.0, 1e6),
        ("relu", "elementwise", 1.0, 20.0, None),
    ]
    assert profile.operators_ns == 82


def test_what_fewer_than_half_of_the_calls_ran_is_left_out() -> None:
    calls = [ProfiledCall(10.0, {"mm": Spent(1, 5.0)})] * 3 + [ProfiledCall(10.0, {"cleanup": Spent(1, 5.0)})]
    assert {each.name for each in profile_of("p", calls, 1.0).operators} == {"mm"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::addmm", "matmul"),
        ("aten::mm", "matmul"),
        ("mkl::_mkl_linear", "matmul"),
        ("_MklNativeFusedMatMul", "matmul"),
        ("Gemm", "matmul"),
        ("FullyConnected", "matmul"),
        ("dot", "matmul"),
        ("aten::mkldnn_convolution", "convolution"),
        ("FusedConv", "convolution"),
        ("aten::native_layer_norm", "normalisation"),
        ("LayerNormalization", "normalisation"),
        ("MVN", "normalisation"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"),
        ("broadcast_add_fusion", "fused"),
        ("cpp_fused_native_layer_norm_relu", "fused"),
        ("wrapped_reduce-window", "reduction"),
        ("MaxPool", "pooling"),
        ("aten::embedding", "indexing"),
        ("aten::copy_", "copy"),
        ("aten::t", "copy"),
        ("Reorder", "copy"),
        ("aten::clamp_min", "elementwise"),
        ("Gelu", "elementwise"),
        ("TorchDynamo Cache Lookup", "dispatch"),
        ("zorp", ""),
    ],
)
def test_the_kind_of_an_operator_follows_from_its_name_in_any_framework(name: str, kind: str) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize(
    ("record", "name", "kind"),
    [
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn", "matmul"),
        ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu", "fused"),
        ("loop_add_fusion_12_3", "loop_add_fusion", "fused"),
        ("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "cutlass_80_simt_sgemm_128x64_8x5_nn_align1", "matmul"),
        (
            "void at::native::(anonymous namespace)::softmax_warp<float, 10, (bool)0>(float*, int, bool (*)(int))",
            "at::native::(anonymous namespace)::softmax_warp<float, 10, (bool)0>",
            "softmax",
        ),
        ("layer_norm(float const*)", "layer_norm", "normalisation"),
        ("memset", "memset", "copy"),
        ("memcpy DtoH", "memcpy DtoH", "copy"),
        ("odd)", "odd)", ""),
        ("", "", ""),
    ],
)
def test_a_kernel_goes_by_its_name_without_arguments_and_compilers_numbers(record: str, name: str, kind: str) -> None:
    assert (kernel_named(record), kind_of(name)) == (name, kind)
