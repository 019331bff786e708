#include "fakes/cuda/costs.hpp"

namespace fairlap::fakes {

// The order of magnitude seen on real machines; tests that compute exact times set their own.
std::map<std::string, std::int64_t> default_costs_ns() {
  return {
      {"*", 100},
      {"cuInit", 1'000'000},
      {"cuModuleLoadData", 200'000},
      {"cuLaunchKernel", 2000},
      {"cuGraphLaunch", 5000},
      {"cuGraphInstantiateWithFlags", 50'000},
      {"cuEventRecord", 1200},
      {"cuEventQuery", 300},
      {"cuStreamQuery", 300},
      {"cuCtxRecordEvent", 2000},
      {"cuStreamWaitValue32_v2", 1500},
      {"cuStreamWriteValue32_v2", 1500},
      {"cuMemsetD32Async", 2000},
      {"cuMemcpyHtoDAsync_v2", 2000},
      {"cuMemcpyDtoHAsync_v2", 2000},
      {"cuMemcpyDtoDAsync_v2", 2000},
      {"cuMemcpyPeerAsync", 2000},
      {"cuMemAlloc_v2", 100'000},
      {"cuMemHostAlloc", 200'000},
      {"cuCtxSynchronize", 1000},
      {"cuStreamSynchronize", 1000},
      {"cuEventSynchronize", 1000},
  };
}

std::int64_t cost_ns(const std::map<std::string, std::int64_t>& costs, const std::string& function) {
  const auto own = costs.find(function);
  if (own != costs.end()) return own->second;
  const auto any = costs.find("*");
  return any == costs.end() ? 0 : any->second;
}

}  // namespace fairlap::fakes
