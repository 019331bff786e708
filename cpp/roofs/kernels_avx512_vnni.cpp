#include <immintrin.h>

#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

// Each 32-bit sum takes four products of an unsigned and a signed byte.
struct DotOfFours {
  using Vector = __m512i;
  static constexpr double kOperations = 2.0 * 64;

  __m512i left = _mm512_set1_epi8(1);
  __m512i right = _mm512_set1_epi8(1);

  static Vector start(int place) { return _mm512_set1_epi32(place); }
  void hide() { asm volatile("" : "+m"(left), "+m"(right)); }
  // Not the intrinsic: for it, GCC 12 copies each sum into another register and back, at half the rate.
  Vector operator()(Vector sum) const {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right));
    return sum;
  }
};

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "int8",
                     .instructions = "avx512_vnni",
                     .operations_per_round = kAccumulatorsIn32Registers * DotOfFours::kOperations,
                     .available = has_avx512_vnni,
                     .run = run_rounds<DotOfFours, kAccumulatorsIn32Registers>},
};

}  // namespace

constinit const KernelSet kAvx512VnniKernels{kArithmetic, {}};

}  // namespace fairlap::roofs
