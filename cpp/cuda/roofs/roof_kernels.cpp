#include <algorithm>
#include <bit>
#include <limits>

#include "cuda/roofs/roof_kernel_parts.hpp"

namespace fairlap::cuda {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();
// Devices of 10.x and 11.x multiply matrices by instructions on a memory of their own, with kernels in
// tensor_memory_kernels.cpp; later devices are not known. From 10.3 on, products of fp64 are emulated.
constexpr int kAda = 89, kLastOfAmpereAndAda = kAda;
constexpr int kHopper = 90;
constexpr int kBlackwellWithoutInt8 = 103;  // in its tensor memory
constexpr int kFirstOfSmallBlackwell = 120, kLastOfSmallBlackwell = 129;

constexpr RoofKernel kLanesFp32{.number_type = "fp32",
                                .instructions = "fma.f32",
                                .least_capability = 70,
                                .most_capability = kAny,
                                .ptx_version = "6.3",
                                .target = "sm_70",
                                .operation = "fma.rn.f32",
                                .sum = kFp32,
                                .factor = kFp32,
                                .operations = 2.0};
constexpr RoofKernel kLanesFp32Pairs{.number_type = "fp32",
                                     .instructions = "fma.f32x2",
                                     .least_capability = 100,
                                     .most_capability = kAny,
                                     .ptx_version = "8.6",
                                     .target = "sm_100",
                                     .operation = "fma.rn.f32x2",
                                     .bits_of_a_register = 64,
                                     .sum = kFp32,
                                     .factor = kFp32,
                                     .operations = 4.0};
constexpr RoofKernel kLanesFp64{.number_type = "fp64",
                                .instructions = "fma.f64",
                                .least_capability = 70,
                                .most_capability = kAny,
                                .ptx_version = "6.3",
                                .target = "sm_70",
                                .operation = "fma.rn.f64",
                                .bits_of_a_register = 64,
                                .sum = kFp64,
                                .factor = kFp64,
                                .operations = 2.0};
constexpr RoofKernel kWarpFp64{.number_type = "fp64",
                               .instructions = "mma.m8n8k4.f64",
                               .least_capability = 80,
                               .most_capability = 100,
                               .ptx_version = "7.0",
                               .target = "sm_80",
                               .unit = ArithmeticUnit::warp,
                               .operation = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                               .bits_of_a_register = 64,
                               .accumulators = 2,
                               .sum = kFp64,
                               .factor = kFp64,
                               .operations = operations_of(8, 8, 4)};
constexpr RoofKernel kWarpFp64Large{.number_type = "fp64",
                                    .instructions = "mma.m16n8k16.f64",
                                    .least_capability = kHopper,
                                    .most_capability = kHopper,
                                    .ptx_version = "7.8",
                                    .target = "sm_90",
                                    .unit = ArithmeticUnit::warp,
                                    .operation = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
                                    .bits_of_a_register = 64,
                                    .accumulators = 4,
                                    .left = 8,
                                    .right = 4,
                                    .sum = kFp64,
                                    .factor = kFp64,
                                    .operations = operations_of(16, 8, 16)};

// Of a warp's four groups of eight threads, each multiplies its own matrices.
constexpr RoofKernel kVoltaFp16{.number_type = "fp16",
                                .instructions = "mma.m8n8k4.f16, sums in fp32",
                                .least_capability = 70,
                                .most_capability = 72,
                                .ptx_version = "6.4",
                                .target = "sm_70",
                                .unit = ArithmeticUnit::warp,
                                .operation = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
                                .accumulators = 8,
                                .left = 2,
                                .right = 2,
                                .sum = kFp32,
                                .factor = kFp16,
                                .operations = 4 * operations_of(8, 8, 4)};

constexpr RoofKernel turing(std::string_view number_type, std::string_view instructions,
                            std::string_view operation, int accumulators, int left, Filling sum,
                            Filling factor, double operations) {
  return {.number_type = number_type,
          .instructions = instructions,
          .least_capability = 75,
          .most_capability = 79,
          .ptx_version = "6.5",
          .target = "sm_75",
          .unit = ArithmeticUnit::warp,
          .operation = operation,
          .accumulators = accumulators,
          .left = left,
          .right = 1,
          .sum = sum,
          .factor = factor,
          .operations = operations};
}

constexpr RoofKernel ampere(std::string_view number_type, std::string_view instructions,
                            std::string_view operation, Filling sum, Filling factor, double operations) {
  return {.number_type = number_type,
          .instructions = instructions,
          .least_capability = 80,
          .most_capability = kLastOfAmpereAndAda,
          .ptx_version = "7.0",
          .target = "sm_80",
          .unit = ArithmeticUnit::warp,
          .operation = operation,
          .accumulators = 4,
          .left = 4,
          .right = 2,
          .sum = sum,
          .factor = factor,
          .operations = operations};
}

constexpr RoofKernel hopper(std::string_view number_type, std::string_view instructions,
                            std::string_view operation, Filling factor, int depth, const char* ending,
                            std::uint64_t tiles) {
  return {.number_type = number_type,
          .instructions = instructions,
          .least_capability = kHopper,
          .most_capability = kHopper,
          .ptx_version = "8.0",
          .target = "sm_90a",
          .unit = ArithmeticUnit::warpgroup,
          .operation = operation,
          .accumulators = 128,
          .left = 0,
          .right = 0,
          .factor = factor,
          .operations = operations_of(64, 256, depth),
          .ending = ending,
          .tile_layout = tiles};
}

constexpr RoofKernel between(RoofKernel kernel, int least_capability, int most_capability) {
  kernel.least_capability = least_capability;
  kernel.most_capability = most_capability;
  return kernel;
}

constexpr RoofKernel small_blackwell(const RoofKernel& kernel) {
  return between(kernel, kFirstOfSmallBlackwell, kLastOfSmallBlackwell);
}

void add_of_ampere(std::vector<RoofKernel>& all) {
  for (const RoofKernel& kernel :
       {ampere("tf32", "mma.m16n8k8.tf32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", kFp32, kFp32,
               operations_of(16, 8, 8)),
        ampere("fp16", "mma.m16n8k16.f16, sums in fp32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
               kFp32, kFp16, operations_of(16, 8, 16)),
        ampere("bf16", "mma.m16n8k16.bf16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", kFp32,
               kBf16, operations_of(16, 8, 16)),
        ampere("int8", "mma.m16n8k32.s8", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", kInteger,
               kInteger, operations_of(16, 8, 32))}) {
    all.push_back(kernel);
    all.push_back(small_blackwell(kernel));
    if (kernel.number_type == "int8")
      all.push_back(between(kernel, kBlackwellWithoutInt8, kBlackwellWithoutInt8));
  }
}

// Products of fp8 began with Ada.
void add_of_ada(std::vector<RoofKernel>& all) {
  RoofKernel kernel =
      ampere("fp8", "mma.m16n8k32.e4m3, sums in fp32", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
             kFp32, kFp8, operations_of(16, 8, 32));
  kernel.least_capability = kAda;
  kernel.ptx_version = "8.4";
  kernel.target = "sm_89";
  all.push_back(kernel);
  all.push_back(small_blackwell(kernel));
}

// In blocks of sixteen with a scale each, which are one here. Devices of one family have these products.
void add_of_small_blackwell(std::vector<RoofKernel>& all) {
  RoofKernel kernel = ampere("fp4", "mma.m16n8k64.e2m1, sums in fp32",
                             "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32."
                             "e2m1.e2m1.f32.ue4m3",
                             kFp32, kFp4, operations_of(16, 8, 64));
  kernel.ptx_version = "8.8";
  kernel.target = "sm_120f";
  kernel.ending = ", %scale, {0, 0}, %scale, {0, 0}";
  kernel.scale = kScalesOfOne;
  all.push_back(small_blackwell(kernel));
}

struct HopperType {
  std::string_view number_type;
  std::string_view plain;
  std::string_view swizzled;
  std::string_view operation;
  Filling factor;
  int depth;
  const char* ending;
};

constexpr HopperType kHopperTypes[] = {
    {"tf32", "wgmma.m64n256k8.tf32", "wgmma.m64n256k8.tf32, swizzled",
     "wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32", kFp32, 8, ", 1, 1"},
    {"fp16", "wgmma.m64n256k16.f16, sums in fp32", "wgmma.m64n256k16.f16, sums in fp32, swizzled",
     "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", kFp16, 16, ", 1, 1, 0, 0"},
    {"bf16", "wgmma.m64n256k16.bf16", "wgmma.m64n256k16.bf16, swizzled",
     "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", kBf16, 16, ", 1, 1, 0, 0"},
    {"fp8", "wgmma.m64n256k32.e4m3, sums in fp32", "wgmma.m64n256k32.e4m3, sums in fp32, swizzled",
     "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", kFp8, 32, ", 1, 1"},
    {"int8", "wgmma.m64n256k32.s8", "wgmma.m64n256k32.s8, swizzled",
     "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8", kInteger, 32, ""},
};

}  // namespace

std::vector<RoofKernel> all_roof_kernels() {
  std::vector<RoofKernel> all{kLanesFp32, kLanesFp32Pairs, kLanesFp64, kWarpFp64, kWarpFp64Large, kVoltaFp16};
  all.push_back(turing("fp16", "mma.m16n8k8.f16, sums in fp32",
                       "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 4, 2, kFp32, kFp16,
                       operations_of(16, 8, 8)));
  all.push_back(turing("int8", "mma.m8n8k16.s8", "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", 2, 1,
                       kInteger, kInteger, operations_of(8, 8, 16)));
  add_of_ampere(all);
  add_of_ada(all);
  add_of_small_blackwell(all);
  for (const HopperType& type : kHopperTypes) {
    all.push_back(hopper(type.number_type, type.plain, type.operation, type.factor, type.depth, type.ending,
                         kPlainTiles));
    all.push_back(hopper(type.number_type, type.swizzled, type.operation, type.factor, type.depth,
                         type.ending, kSwizzledTiles));
  }
  for (const RoofKernel& kernel : tensor_memory_kernels()) all.push_back(kernel);
  return all;
}

std::vector<RoofKernel> roof_kernels(std::string_view number_type, int capability) {
  std::vector<RoofKernel> found = all_roof_kernels();
  std::erase_if(found, [&](const RoofKernel& kernel) {
    return kernel.number_type != number_type || capability < kernel.least_capability ||
           capability > kernel.most_capability;
  });
  return found;
}

unsigned int RoofKernel::threads_of_a_block() const noexcept {
  return unit == ArithmeticUnit::warpgroup || unit == ArithmeticUnit::tensor_memory ? 128 : 256;
}

// All of them fit onto a multiprocessor at the same time, so that none begins when others have ended. The
// large products of fp64 need so many registers that one block fits: they run in two turns, of the same
// length. Of two blocks that want all of a tensor memory one would wait for the other.
unsigned int RoofKernel::blocks_of_a_multiprocessor() const noexcept {
  if (unit == ArithmeticUnit::tensor_memory) return 1;
  return unit == ArithmeticUnit::lanes ? 4 : 2;
}

int RoofKernel::chains() const noexcept {
  constexpr int kWordsOfSums = 32;
  if (unit == ArithmeticUnit::warpgroup) return 1;  // its sums fill the registers, and its steps overlap
  if (unit == ArithmeticUnit::tensor_memory) return scale == 0 ? 2 : 1;  // as many as fill it beside scales
  return unit == ArithmeticUnit::lanes ? 16 : kWordsOfSums / (accumulators * bits_of_a_register / 32);
}

int RoofKernel::repetitions() const noexcept { return 16; }

int RoofKernel::sums() const noexcept { return chains() * accumulators; }

int RoofKernel::depth() const noexcept {
  if (unit == ArithmeticUnit::lanes) return 1;
  const int threads = unit == ArithmeticUnit::warp ? 32 : 128;
  return static_cast<int>(operations) / (2 * accumulators * threads);
}

std::uint32_t RoofKernel::one() const noexcept {
  if (number_type == "fp64") return 0x3ff00000;
  if (number_type == "fp16") return 0x3c003c00;
  if (number_type == "bf16") return 0x3f803f80;
  if (number_type == "fp8") return 0x38383838;
  if (number_type == "fp4") return 0x22222222;
  if (number_type == "int8") return 0x01010101;
  return std::bit_cast<std::uint32_t>(1.0F);
}

std::uint32_t RoofKernel::count(std::uint32_t ones) const noexcept {
  if (number_type == "int8") return ones;
  if (number_type == "fp64")
    return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(static_cast<double>(ones)) >> 32U);
  return std::bit_cast<std::uint32_t>(static_cast<float>(ones));
}

double RoofKernel::operations_of_a_round() const noexcept {
  constexpr int kThreadsOfAnInstruction[] = {1, 32, 128, 128};
  const int at_a_time =
      static_cast<int>(threads_of_a_block()) / kThreadsOfAnInstruction[static_cast<std::size_t>(unit)];
  return operations * (at_a_time * chains() * repetitions());
}

}  // namespace fairlap::cuda
