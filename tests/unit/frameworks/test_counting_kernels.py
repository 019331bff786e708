"""Operations and kernels are counted in the texts that compilers write."""

from __future__ import annotations

import pytest
from fairlap.frameworks.adapter_parts.compilation import hlo_text, torch_compilation

STABLE_HLO = """module @jit_forward {
  func.func public @main(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32>) {
    %cst = stablehlo.constant dense<5.0e-01> : tensor<f32>
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : tensor<8x4xf32>
    %1 = chlo.erfc %0 : tensor<8x4xf32> -> tensor<8x4xf32>
    %2 = call @twice(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = call @twice(%2) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %4 = "stablehlo.gather"(%3) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
  func.func private @twice(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8x4xf32>
    %1 = call @once(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
  func.func private @once(%arg0: tensor<8x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.negate %arg0 : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
"""

HLO = """HloModule jit_forward, is_scheduled=true

%fused_computation (param_0: f32[8,256]) -> f32[8,10] {
  %param_0 = f32[8,256]{1,0} parameter(0)
  ROOT %dot.0 = f32[8,10]{1,0} dot(%param_0, %param_0), lhs_contracting_dims={1}
}

ENTRY %main.5 (a: f32[8,4], b: f32[4]) -> (f32[8,4], f32[4]) {
  %a = f32[8,4]{1,0} parameter(0), metadata={op_name="params[\\'first.bias\\']"}
  %b = f32[4]{0} parameter(1)
  %constant.46 = f32[] constant(0)
  %fusion.2 = f32[8,4]{1,0} fusion(%a, %b), kind=kCustom, calls=%fused_computation
  %copy-start = (f32[8,4]{1,0}, f32[8,4]{1,0}, u32[]) copy-start(%fusion.2)
  %copy-done = f32[8,4]{1,0} copy-done(%copy-start)
  %custom-call.1 = (f32[8,4]{1,0}, s8[16]{0}) custom-call(%copy-done), custom_call_target="__cublas$gemm"
  %get-tuple-element = f32[8,4]{1,0} get-tuple-element(%custom-call.1), index=0
  %bitcast = f32[8,4]{1,0} bitcast(%get-tuple-element)
  ROOT %tuple = (f32[8,4]{1,0}, f32[4]{0}) tuple(%bitcast, %b)
}
"""

INDUCTOR = """
cpp_fused_gelu_0 = async_compile.cpp_pybinding(['float*'], r\'\'\'
extern "C" void kernel(float* in_out_ptr0)
{
    cpp_fused_gelu_0(in_out_ptr0);
}
\'\'\')

class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg1_1, (256, ), (1, ), 'input')
        buf0 = empty_strided_cpu((8, 256), (256, 1), torch.float32)
        # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
        extern_kernels.addmm(arg1_1, arg0_1, reinterpret_tensor(arg0_1, (4, 2), (1, 4), 0), out=buf0)
        buf1 = torch.ops.mkldnn._convolution_pointwise.default(buf0, arg0_1)
        cpp_fused_gelu_0(buf1)
        triton_poi_fused_add_1.run(buf1, 8, stream=stream0)
        del buf0
        return (buf1, )

runner = Runner(partitions=[])

def benchmark_compiled_module(args):
    extern_kernels.addmm(args)
"""


def test_a_function_of_a_lowered_program_counts_as_often_as_it_is_called_and_constants_do_not() -> None:
    assert hlo_text.operations_in(STABLE_HLO) == 3 + 2 * (1 + 1)


def test_of_a_compiled_module_the_instructions_of_its_entry_that_do_work_count() -> None:
    assert hlo_text.kernels_in(HLO) == 3


def test_of_inductors_code_the_calls_of_kernels_and_libraries_count_and_not_their_sources() -> None:
    assert torch_compilation.kernels_in(INDUCTOR) == 4


@pytest.mark.parametrize("count", [hlo_text.operations_in, hlo_text.kernels_in, torch_compilation.kernels_in])
def test_a_text_of_another_kind_has_none(count: object) -> None:
    assert callable(count)
    assert count("no program\n") == 0


def test_a_break_is_reported_by_its_first_line_and_its_explanation() -> None:
    reason = "Call to `print`\n  Explanation: Dynamo does not trace it.\n  Hint: leave it out.\n\n more"
    assert torch_compilation.break_in_short(reason) == "Call to `print`: Dynamo does not trace it."
    assert torch_compilation.break_in_short("just this") == "just this"
