#include <immintrin.h>

#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

// Each float of the sum takes the products of two pairs of bfloat16 numbers.
struct DotOfPairs {
  using Vector = __m512;
  static constexpr double kOperations = 2.0 * 32;

  __m512i left = _mm512_set1_epi16(0x3f80);  // ones
  __m512i right = _mm512_setzero_si512();

  static Vector start(int place) { return _mm512_set1_ps(static_cast<float>(place)); }
  void hide() { asm volatile("" : "+m"(left), "+m"(right)); }
  Vector operator()(Vector sum) const {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right));
  }
};

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "bf16",
                     .instructions = "avx512_bf16",
                     .operations_per_round = kAccumulatorsIn32Registers * DotOfPairs::kOperations,
                     .available = has_avx512_bf16,
                     .run = run_rounds<DotOfPairs, kAccumulatorsIn32Registers>},
};

}  // namespace

constinit const KernelSet kAvx512Bf16Kernels{kArithmetic, {}};

}  // namespace fairlap::roofs
