"""Names of kernels, as a profile of a GPU shows them."""

from __future__ import annotations

import pytest
from fairlap.scenarios.untimed.device_profile import kernel_named
from fairlap.scenarios.untimed.profile import kind_of


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
