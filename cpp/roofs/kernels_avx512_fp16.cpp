#include <immintrin.h>

#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

// Sums of float16, as its instructions have them; libraries that keep sums in fp32 are slower.
struct Fp16 {
  using Vector = __m512i;
  static constexpr double kOperations = 2.0 * 32;

  // One half and one: sums approach 2, so that no value becomes denormal or infinite.
  __m512i factor = _mm512_set1_epi16(0x3800);
  __m512i addend = _mm512_set1_epi16(0x3c00);

  static Vector start(int) { return _mm512_set1_epi16(0x3c00); }
  void hide() { asm volatile("" : "+m"(factor), "+m"(addend)); }
  // Not the intrinsic, which compilers before GCC 12 and Clang 14 lack.
  Vector operator()(Vector sum) const {
    asm("vfmadd213ph %2, %1, %0" : "+v"(sum) : "v"(factor), "v"(addend));
    return sum;
  }
};

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "fp16",
                     .instructions = "avx512_fp16",
                     .operations_per_round = kAccumulatorsIn32Registers * Fp16::kOperations,
                     .available = has_avx512_fp16,
                     .run = run_rounds<Fp16, kAccumulatorsIn32Registers>},
};

}  // namespace

constinit const KernelSet kAvx512Fp16Kernels{kArithmetic, {}};

}  // namespace fairlap::roofs
