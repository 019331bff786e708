#include <immintrin.h>

#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

// Each 32-bit sum takes four products of an unsigned and a signed byte.
struct DotOfFours {
  using Vector = __m256i;
  static constexpr double kOperations = 2.0 * 32;

  __m256i left = _mm256_set1_epi8(1);
  __m256i right = _mm256_set1_epi8(1);

  static Vector start(int place) { return _mm256_set1_epi32(place); }
  void hide() { asm volatile("" : "+m"(left), "+m"(right)); }
  // Not the intrinsic: for it, GCC 12 copies each sum into another register and back, at half the rate.
  Vector operator()(Vector sum) const {
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(left), "x"(right));
    return sum;
  }
};

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "int8",
                     .instructions = "avx_vnni",
                     .operations_per_round = kAccumulatorsIn16Registers * DotOfFours::kOperations,
                     .available = has_avx_vnni,
                     .run = run_rounds<DotOfFours, kAccumulatorsIn16Registers>},
};

}  // namespace

constinit const KernelSet kAvxVnniKernels{kArithmetic, {}};

}  // namespace fairlap::roofs
