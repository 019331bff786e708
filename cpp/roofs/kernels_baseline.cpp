#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/triad_loop.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace fairlap::roofs {
namespace {

constexpr int kVectorBytes = 16;

#if defined(__aarch64__)
// NEON adds products to the register of the sum. In the form of MultiplyAdd, whose sum is a factor, each
// instruction would need a move. The sums grow until a quarter is too little to change them.
struct Fp32 {
  using Vector = float32x4_t;
  static constexpr double kOperations = 2.0 * 4;

  Vector left = vdupq_n_f32(0.5F);
  Vector right = vdupq_n_f32(0.5F);

  static Vector start(int place) { return vdupq_n_f32(static_cast<float>(place)); }
  void hide() { asm volatile("" : "+m"(left), "+m"(right)); }
  Vector operator()(Vector sum) const { return vfmaq_f32(sum, left, right); }
};
struct Fp64 {
  using Vector = float64x2_t;
  static constexpr double kOperations = 2.0 * 2;

  Vector left = vdupq_n_f64(0.5);
  Vector right = vdupq_n_f64(0.5);

  static Vector start(int place) { return vdupq_n_f64(place); }
  void hide() { asm volatile("" : "+m"(left), "+m"(right)); }
  Vector operator()(Vector sum) const { return vfmaq_f64(sum, left, right); }
};
#else
using Fp32 = MultiplyAdd<float, kVectorBytes>;
using Fp64 = MultiplyAdd<double, kVectorBytes>;
#endif

bool always() { return true; }

#if defined(__SSE2__)
constexpr int kAccumulators = kAccumulatorsIn16Registers;
constexpr std::string_view kInstructions = "sse2";

struct StreamingStore {
  static void store(double* to, __m128d value) { _mm_stream_pd(to, value); }
  static void finish() { _mm_sfence(); }
};
#else
constexpr int kAccumulators = kAccumulatorsIn32Registers;
#if defined(__aarch64__)
constexpr std::string_view kInstructions = "neon";
#else
constexpr std::string_view kInstructions = "vectors of 16 bytes";
#endif
#endif

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "fp32",
                     .instructions = kInstructions,
                     .operations_per_round = kAccumulators * Fp32::kOperations,
                     .available = always,
                     .run = run_rounds<Fp32, kAccumulators>},
    ArithmeticKernel{.number_type = "fp64",
                     .instructions = kInstructions,
                     .operations_per_round = kAccumulators * Fp64::kOperations,
                     .available = always,
                     .run = run_rounds<Fp64, kAccumulators>},
};

constexpr std::array kTriad{
    TriadKernel{.instructions = kInstructions,
                .available = always,
                .run = run_triad<kVectorBytes, OrdinaryStore<kVectorBytes>>},
#if defined(__SSE2__)
    TriadKernel{.instructions = "sse2, non-temporal stores",
                .bypasses_caches = true,
                .available = always,
                .run = run_triad<kVectorBytes, StreamingStore>},
#endif
};

}  // namespace

constinit const KernelSet kBaselineKernels{kArithmetic, kTriad};

}  // namespace fairlap::roofs
