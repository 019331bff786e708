#include <immintrin.h>

#include <array>

#include "roofs/accumulators.hpp"
#include "roofs/kernel_sets.hpp"
#include "roofs/triad_loop.hpp"
#include "roofs/x86_features.hpp"

namespace fairlap::roofs {
namespace {

constexpr int kVectorBytes = 32;
constexpr int kAccumulators = kAccumulatorsIn16Registers;
using Fp32 = MultiplyAdd<float, kVectorBytes>;
using Fp64 = MultiplyAdd<double, kVectorBytes>;

struct StreamingStore {
  static void store(double* to, __m256d value) { _mm256_stream_pd(to, value); }
  static void finish() { _mm_sfence(); }
};

constexpr std::array kArithmetic{
    ArithmeticKernel{.number_type = "fp32",
                     .instructions = "avx2 and fma",
                     .operations_per_round = kAccumulators * Fp32::kOperations,
                     .available = has_avx2_and_fma,
                     .run = run_rounds<Fp32, kAccumulators>},
    ArithmeticKernel{.number_type = "fp64",
                     .instructions = "avx2 and fma",
                     .operations_per_round = kAccumulators * Fp64::kOperations,
                     .available = has_avx2_and_fma,
                     .run = run_rounds<Fp64, kAccumulators>},
};

constexpr std::array kTriad{
    TriadKernel{.instructions = "avx2 and fma",
                .available = has_avx2_and_fma,
                .run = run_triad<kVectorBytes, OrdinaryStore<kVectorBytes>>},
    TriadKernel{.instructions = "avx2 and fma, non-temporal stores",
                .bypasses_caches = true,
                .available = has_avx2_and_fma,
                .run = run_triad<kVectorBytes, StreamingStore>},
};

}  // namespace

constinit const KernelSet kAvx2Kernels{kArithmetic, kTriad};

}  // namespace fairlap::roofs
