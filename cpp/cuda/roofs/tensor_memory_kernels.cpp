#include "cuda/roofs/roof_kernel_parts.hpp"

// Products of tcgen05, of 128 by 256, by one block. Both factors come from shared memory, 12 KiB for a
// product that takes at least 128 clocks on 10.0, of the 16 KiB that shared memory gives in this time. They
// have been assembled, and no device has run them.
namespace fairlap::cuda {
namespace {

constexpr int kRows = 128, kColumns = 256;

// Code for one architecture alone: those for a family lack int8, and scales by their older name. The versions
// of PTX are the first that have it.
struct Architecture {
  int capability;
  std::string_view ptx_version;
  std::string_view ptx_version_of_fp4;
  std::string_view target;
};
constexpr Architecture k100{100, "8.6", "8.7", "sm_100a"};
constexpr Architecture k103{103, "8.8", "8.8", "sm_103a"};
constexpr Architecture k110{110, "9.0", "9.0", "sm_110a"};

// As an instruction's descriptor has them, by the kind of the instruction.
constexpr std::uint32_t kSumsInFp32 = 1, kSumsInInt32 = 2;

struct Type {
  std::string_view number_type;
  std::string_view instructions;
  std::string_view operation;
  Filling factor;
  int depth;
  std::uint32_t format;
  std::uint32_t sums;
};

constexpr Type kTypes[] = {
    {"tf32", "tcgen05.m128n256k8.tf32", "tcgen05.mma.cta_group::1.kind::tf32", kFp32, 8, 2, kSumsInFp32},
    {"fp16", "tcgen05.m128n256k16.f16, sums in fp32", "tcgen05.mma.cta_group::1.kind::f16", kFp16, 16, 0,
     kSumsInFp32},
    {"bf16", "tcgen05.m128n256k16.bf16", "tcgen05.mma.cta_group::1.kind::f16", kBf16, 16, 1, kSumsInFp32},
    {"fp8", "tcgen05.m128n256k32.e4m3, sums in fp32", "tcgen05.mma.cta_group::1.kind::f8f6f4", kFp8, 32, 0,
     kSumsInFp32},
    {"int8", "tcgen05.m128n256k32.s8", "tcgen05.mma.cta_group::1.kind::i8", kInteger, 32, 1, kSumsInInt32},
};

constexpr std::uint32_t shape() { return kColumns / 8U << 17U | kRows / 16U << 24U; }

constexpr std::uint32_t product_of(const Type& type) {
  return type.sums << 4U | type.format << 7U | type.format << 10U | shape();
}

// The constant that descriptors of this generation have, behind the pattern of rows of 128 bytes.
constexpr std::uint64_t kTiles = kSwizzledTiles | std::uint64_t{1} << 46U;

constexpr RoofKernel kernel_of(const Type& type, const Architecture& architecture) {
  return {.number_type = type.number_type,
          .instructions = type.instructions,
          .least_capability = architecture.capability,
          .most_capability = architecture.capability,
          .ptx_version = architecture.ptx_version,
          .target = architecture.target,
          .unit = ArithmeticUnit::tensor_memory,
          .operation = type.operation,
          .accumulators = kColumns,
          .left = 0,
          .right = 0,
          .factor = type.factor,
          .operations = operations_of(kRows, kColumns, type.depth),
          .tile_layout = kTiles,
          .is_unproven = true,
          .product = product_of(type)};
}

// In blocks of sixteen with a scale each, which are one here.
constexpr Type kFp4InBlocks{"fp4",
                            "tcgen05.m128n256k64.e2m1, sums in fp32",
                            "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X",
                            kFp4,
                            64,
                            1,
                            0};

constexpr RoofKernel fp4_of(const Architecture& architecture) {
  RoofKernel kernel = kernel_of(kFp4InBlocks, architecture);
  kernel.ptx_version = architecture.ptx_version_of_fp4;
  kernel.scale = kScalesOfOne;
  return kernel;
}

// 10.3 also multiplies rows of 48 bytes, one and a half times as much in the time. A row that goes beyond its
// 128 bytes goes on where the descriptor says, by an address in place of a distance; the steps here do not.
// Their factors take 18 KiB, which is more than shared memory gives while they are multiplied: units that
// read one of them from elsewhere could be about a tenth faster.
constexpr RoofKernel deep_fp4() {
  RoofKernel kernel = fp4_of(k103);
  kernel.instructions = "tcgen05.m128n256k96.e2m1, sums in fp32";
  kernel.operation = "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16";
  kernel.operations = operations_of(kRows, kColumns, 96);
  kernel.row_bytes = 48;
  kernel.row_wraps = true;
  kernel.tile_layout = layout(0, 1024, 1) | std::uint64_t{1} << 46U | std::uint64_t{1} << 52U;
  kernel.product |= std::uint32_t{1} << 31U;
  return kernel;
}

}  // namespace

std::vector<RoofKernel> tensor_memory_kernels() {
  std::vector<RoofKernel> all;
  for (const Architecture& architecture : {k100, k103, k110}) {
    for (const Type& type : kTypes) {
      // 10.3 has no such products of int8.
      if (type.number_type != "int8" || architecture.capability != k103.capability)
        all.push_back(kernel_of(type, architecture));
    }
    all.push_back(fp4_of(architecture));
  }
  all.push_back(deep_fp4());
  return all;
}

}  // namespace fairlap::cuda
