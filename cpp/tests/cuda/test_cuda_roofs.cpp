#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "cuda/device/device_facts.hpp"
#include "cuda/roofs/roof_trials.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::DeviceTrials;
using cuda::OwnStream;
using cuda::roof_kernels;
using cuda::RoofKernel;

namespace {

constexpr int kCapability = 90;  // of the fake device
constexpr std::size_t kMiB = std::size_t{1} << 20U;

bool are_all(const std::vector<double>& rates, double expected) {
  return !rates.empty() && std::all_of(rates.begin(), rates.end(), [expected](double rate) {
    return std::abs(rate / expected - 1.0) < 1e-5;
  });
}

std::set<std::string> types_of(int capability) {
  std::set<std::string> found;
  for (const char* type : {"fp32", "fp64", "tf32", "fp16", "bf16", "int8", "fp8", "fp4"}) {
    if (!roof_kernels(type, capability).empty()) found.emplace(type);
  }
  return found;
}

}  // namespace

// The fake counts the instructions in the code; what one computes is stated here, for each thread that issues
// it.
TEST("the roof of a device whose speed is known is that speed, for each unit") {
  struct Known {
    const char* number_type;
    int capability;
    const char* operation;
    double operations_of_a_thread;
  };
  constexpr Known kKnown[] = {
      {"fp32", 90, "fma.rn.f32", 2.0},
      {"fp32", 120, "fma.rn.f32x2", 4.0},
      {"fp64", 80, "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 2.0 * 8 * 8 * 4 / 32},
      {"fp16", 70, "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 4 * 2.0 * 8 * 8 * 4 / 32},
      {"fp16", 75, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 2.0 * 16 * 8 * 8 / 32},
      {"int8", 75, "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", 2.0 * 8 * 8 * 16 / 32},
      {"bf16", 86, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 2.0 * 16 * 8 * 16 / 32},
      {"fp8", 89, "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", 2.0 * 16 * 8 * 32 / 32},
      {"fp8", 90, "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3", 2.0 * 64 * 256 * 32 / 128},
      {"fp4", 120,
       "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
       2.0 * 16 * 8 * 64 / 32},
      {"tf32", 120, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 2.0 * 16 * 8 * 8 / 32},
      {"bf16", 90, "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", 2.0 * 64 * 256 * 16 / 128},
      {"int8", 90, "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8", 2.0 * 64 * 256 * 32 / 128},
      {"tf32", 100, "tcgen05.mma.cta_group::1.kind::tf32", 2.0 * 128 * 256 * 8},
      {"fp16", 100, "tcgen05.mma.cta_group::1.kind::f16", 2.0 * 128 * 256 * 16},
      {"bf16", 103, "tcgen05.mma.cta_group::1.kind::f16", 2.0 * 128 * 256 * 16},
      {"fp8", 110, "tcgen05.mma.cta_group::1.kind::f8f6f4", 2.0 * 128 * 256 * 32},
      {"int8", 100, "tcgen05.mma.cta_group::1.kind::i8", 2.0 * 128 * 256 * 32},
      {"int8", 103, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 2.0 * 16 * 8 * 32 / 32},
      {"fp4", 100, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", 2.0 * 128 * 256 * 64},
      {"fp4", 103, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", 2.0 * 128 * 256 * 96},
  };
  for (const Known& known : kKnown) {
    const EngineAtWork at_work;
    fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, known.capability / 10);
    fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, known.capability % 10);
    fake_cuda_set_instruction_rate("fma.rn.f32", 1e12);
    fake_cuda_set_instruction_rate("fma.rn.f64", 1e12);
    fake_cuda_set_instruction_rate("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", 7e12);
    fake_cuda_set_instruction_rate(known.operation, 7e12);
    const OwnStream stream(*at_work.driver, 0);
    DeviceTrials trials(stream, roof_kernels(known.number_type, known.capability));
    CHECK(are_all(trials.rates(0.02), 7e12 * known.operations_of_a_thread));
  }
}

TEST("of several kernels the fastest is used, whatever their order") {
  const EngineAtWork at_work;
  fake_cuda_set_instruction_rate("fma.rn.f64",
                                 4e12);  // 8e12 operations a second; of the products 6.4e13 and more
  fake_cuda_set_instruction_rate("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 1e11);
  fake_cuda_set_instruction_rate("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 1e11);
  const OwnStream stream(*at_work.driver, 0);
  std::vector<RoofKernel> kernels = roof_kernels("fp64", kCapability);
  CHECK_EQUAL(kernels.size(), 3U);
  for (int turn = 0; turn < 3; ++turn) {
    std::rotate(kernels.begin(), kernels.begin() + 1, kernels.end());
    DeviceTrials trials(stream, kernels);
    CHECK_EQUAL(trials.instructions(), "mma.m16n8k16.f64");
    CHECK(are_all(trials.rates(0.0), 1e11 * 2 * 16 * 8 * 16 / 32));
  }
}

TEST("small arrays have the bandwidth of the cache and large ones that of the memory") {
  const EngineAtWork at_work;
  fake_cuda_set_bandwidths(5e12, 2e12);
  const OwnStream stream(*at_work.driver, 0);
  CHECK(are_all(DeviceTrials(stream, 12 * kMiB).rates(0.02), 5e12));
  CHECK(are_all(DeviceTrials(stream, 800 * kMiB).rates(0.02), 2e12));
}

TEST("trials take about the time that was asked for, and a few where none was") {
  const EngineAtWork at_work;
  const OwnStream stream(*at_work.driver, 0);
  DeviceTrials trials(stream, roof_kernels("fp32", kCapability));
  const std::size_t trials_of_200_ms = trials.rates(0.2).size();
  CHECK(trials_of_200_ms >= 75 && trials_of_200_ms <= 110);
  CHECK(!trials.rates(0.0).empty());
}

TEST("which number types a device has kernels for follows from its capability") {
  for (const int capability : {70, 72})
    CHECK(types_of(capability) == std::set<std::string>({"fp32", "fp64", "fp16"}));
  CHECK(types_of(75) == std::set<std::string>({"fp32", "fp64", "fp16", "int8"}));
  std::set<std::string> all{"fp32", "fp64", "tf32", "fp16", "bf16", "int8"};
  for (const int capability : {80, 86, 87}) CHECK(types_of(capability) == all);
  all.insert("fp8");
  for (const int capability : {89, 90}) CHECK(types_of(capability) == all);
  all.insert("fp4");
  for (const int capability : {100, 103, 110, 120, 121}) CHECK(types_of(capability) == all);
  CHECK(types_of(101) == std::set<std::string>({"fp32", "fp64"}));  // no code for one architecture is for it
}

TEST("kernels that no device has run are those on tensor memory, and no others") {
  for (const RoofKernel& kernel : cuda::all_roof_kernels()) {
    CHECK_EQUAL(kernel.is_unproven, kernel.unit == cuda::ArithmeticUnit::tensor_memory);
    CHECK_EQUAL(kernel.is_unproven, std::string(kernel.operation).starts_with("tcgen05."));
  }
}

TEST("code for one architecture or family is for no other, so no device is given another's units") {
  for (const RoofKernel& kernel : cuda::all_roof_kernels()) {
    if (kernel.target.ends_with('a')) CHECK_EQUAL(kernel.least_capability, kernel.most_capability);
    if (kernel.target.ends_with('f')) CHECK_EQUAL(kernel.least_capability / 10, kernel.most_capability / 10);
  }
}

TEST("how many products a sum has follows from the shape in the instruction's name") {
  for (const RoofKernel& kernel : cuda::all_roof_kernels()) {
    const std::string named(kernel.instructions);
    const std::size_t shape = named.find(".m"), depth = named.find('k', shape);
    const bool is_product = kernel.unit != cuda::ArithmeticUnit::lanes;
    CHECK_EQUAL(kernel.depth(), is_product ? std::atoi(named.c_str() + depth + 1) : 1);
    if (is_product && kernel.unit != cuda::ArithmeticUnit::tensor_memory)
      CHECK(kernel.operation.find(named.substr(shape, named.find('.', depth) - shape)) != std::string::npos);
  }
}

TEST("numbers of products are exact in the words of sums") {
  for (const RoofKernel& kernel : cuda::all_roof_kernels()) {
    const std::uint32_t word = kernel.count(2048);
    if (kernel.number_type == "int8") {
      CHECK_EQUAL(word, 2048U);
    } else {
      CHECK_EQUAL(word, kernel.number_type == "fp64" ? 0x40a00000U : 0x45000000U);
    }
  }
}

TEST("a device on which sums are wrong has no roof of that type, with the reason, and others") {
  const EngineAtWork at_work;
  fake_cuda_set_wrong_sums("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16");
  {
    const OwnStream stream(*at_work.driver, 0);
    CHECK(refuses<cuda::Unavailable>([&] { DeviceTrials(stream, roof_kernels("bf16", kCapability)); }));
    for (const char* type : {"fp16", "fp32", "fp64", "int8"})
      CHECK(!DeviceTrials(stream, roof_kernels(type, kCapability)).rates(0.0).empty());
  }
  CHECK_EQUAL(outstanding_objects(), 0);
  CHECK_EQUAL(fake_cuda_outstanding("modules"), 0);
}

TEST("wrong sums of one of several kernels leave the type without a roof, on tensor memory too") {
  const EngineAtWork at_work;
  fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10);
  fake_cuda_set_device_attribute(0, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 3);
  fake_cuda_set_wrong_sums("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16");
  const OwnStream stream(*at_work.driver, 0);
  CHECK(refuses<cuda::Unavailable>([&] { DeviceTrials(stream, roof_kernels("fp4", 103)); }));
  CHECK(!DeviceTrials(stream, roof_kernels("fp8", 103)).rates(0.0).empty());
}

TEST("a kernel that cannot be loaded is a reason and leaves nothing behind") {
  const EngineAtWork at_work;
  {
    const OwnStream stream(*at_work.driver, 0);
    fake_cuda_set_jit(0);
    CHECK(refuses<cuda::Unavailable>([&] { DeviceTrials(stream, roof_kernels("bf16", kCapability)); }));
    fake_cuda_set_jit(1);
    fake_cuda_fail("cuModuleGetFunction", 1, CUDA_ERROR_NOT_FOUND);
    CHECK(refuses<cuda::Unavailable>([&] { DeviceTrials(stream, roof_kernels("bf16", kCapability)); }));
  }
  CHECK_EQUAL(outstanding_objects(), 0);
  CHECK_EQUAL(fake_cuda_outstanding("modules"), 0);
}

TEST("a device that breaks during a trial is an error and leaves nothing behind") {
  const EngineAtWork at_work;
  {
    const OwnStream stream(*at_work.driver, 0);
    DeviceTrials trials(stream, roof_kernels("fp32", kCapability));
    fake_cuda_fail("cuLaunchKernel", 3, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(refuses<cuda::CudaError>([&] { static_cast<void>(trials.rates(0.1)); }));
  }
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("arrays for which the device has no memory are an error, and what was taken is given back") {
  const EngineAtWork at_work;
  fake_cuda_set_device_memory(0, 100 * kMiB);
  {
    const OwnStream stream(*at_work.driver, 0);
    CHECK(refuses<cuda::CudaError>([&] { DeviceTrials(stream, 800 * kMiB); }));
  }
  CHECK_EQUAL(outstanding_objects(), 0);
}

TEST("the facts of a device are known without starting it, and one that is not there is refused") {
  const EngineAtWork at_work;
  fake_cuda_set_device_count(2);
  const cuda::DeviceFacts facts = cuda::facts_of(*at_work.driver, 1);
  CHECK_EQUAL(facts.name, "fairlap fake device 1");
  CHECK_EQUAL(facts.capability, 90);
  CHECK_EQUAL(facts.multiprocessors, 132);
  CHECK_EQUAL(facts.cache_bytes, 50 * kMiB);
  unsigned int flags = 0;
  int active = 1;
  CHECK_EQUAL(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
  CHECK_EQUAL(active, 0);
  CHECK(refuses<cuda::BadStream>([&] { static_cast<void>(cuda::facts_of(*at_work.driver, 2)); }));
}

TEST_MAIN()
