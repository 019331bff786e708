// Trials of copies against the fake driver, whose links have the rates that a test plants.

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "cuda_link/copy_trials.hpp"
#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::test;
using fairlap::cuda::CudaError;
using fairlap::cuda::OwnStream;
using fairlap::cuda_link::CopyTrials;
using fairlap::cuda_link::CopyWay;

namespace {

bool are_all(const std::vector<double>& rates, double expected, double within = 1e-5) {
  return !rates.empty() && std::all_of(rates.begin(), rates.end(),
                                       [=](double rate) { return std::abs(rate / expected - 1.0) < within; });
}

struct Machine : EngineAtWork {
  Machine() {
    fake_cuda_set_device_count(2);
    fake_cuda_set_link(55.6e9, 40e9, 0);
  }
};

std::vector<double> rates_of(const OwnStream& stream, CopyWay way) {
  CopyTrials trials(stream, way);
  return trials.rates(0.02);
}

std::int64_t all_left_behind() { return left_behind() + fake_cuda_outstanding("peer_accesses"); }

TEST("copies to and from a device have the rate of its link in their direction") {
  const Machine machine;
  const OwnStream stream(*machine.driver, 0);
  CHECK(are_all(rates_of(stream, CopyWay::to_device), 55.6e9));
  CHECK(are_all(rates_of(stream, CopyWay::from_device), 40e9));
}

TEST("both ways at once have both rates together, until the slower has ended") {
  const Machine machine;
  const OwnStream stream(*machine.driver, 0);
  CHECK(are_all(rates_of(stream, CopyWay::both), 2 * 40e9));
  fake_cuda_set_link(30e9, 30e9, 0);
  CHECK(are_all(rates_of(stream, CopyWay::both), 60e9));
}

TEST("what a copy takes before it moves is a small part of a trial, on fast links and on slow ones") {
  const Machine machine;
  const OwnStream stream(*machine.driver, 0);
  for (const double rate : {2e9, 12e9, 55.6e9, 110e9}) {
    fake_cuda_set_link(rate, rate, 1500);
    const std::vector<double> rates = rates_of(stream, CopyWay::to_device);
    CHECK(are_all(rates, rate, 0.006));
    CHECK(std::all_of(rates.begin(), rates.end(), [rate](double found) { return found < rate; }));
  }
}

TEST("work of the framework on its own stream is not part of a trial") {
  const Machine machine;
  const OwnStream stream(*machine.driver, 0);
  fake_cuda_kernel(machine.stream, "work", 3'000'000'000);
  CHECK(are_all(rates_of(stream, CopyWay::to_device), 55.6e9));
}

TEST("copies between devices go directly where the driver gives access, each way at its own rate") {
  const Machine machine;
  fake_cuda_set_peer_link(0, 1, 370e9);
  fake_cuda_set_peer_link(1, 0, 180e9);
  const OwnStream one(*machine.driver, 0);
  const OwnStream other(*machine.driver, 1);
  CopyTrials there(one, other);
  CopyTrials back(other, one);
  CHECK(there.is_direct() && back.is_direct());
  CHECK(are_all(there.rates(0.02), 370e9));
  CHECK(are_all(back.rates(0.02), 180e9));
}

TEST("without access they go through the host, over both links") {
  const Machine machine;
  fake_cuda_set_link(50e9, 25e9, 0);
  const OwnStream one(*machine.driver, 0);
  const OwnStream other(*machine.driver, 1);
  CopyTrials trials(one, other);
  CHECK(!trials.is_direct());
  CHECK(are_all(trials.rates(0.02), 1.0 / (1.0 / 50e9 + 1.0 / 25e9)));
}

TEST("memory, events and access are given back, but for access that a framework had taken") {
  const Machine machine;
  fake_cuda_set_peer_link(0, 1, 370e9);
  const std::uint64_t theirs = fake_cuda_activate_primary_context(1);
  CHECK_EQUAL(cuCtxEnablePeerAccess(reinterpret_cast<CUcontext>(theirs), 0), CUDA_SUCCESS);
  {
    const OwnStream one(*machine.driver, 0);
    const OwnStream other(*machine.driver, 1);
    CHECK(are_all(rates_of(one, CopyWay::both), 80e9));
    CopyTrials trials(one, other);
    CHECK(!trials.rates(0.0).empty());
    CHECK_EQUAL(fake_cuda_outstanding("peer_accesses"), 2);
  }
  CHECK_EQUAL(all_left_behind(), 1);
  CHECK_EQUAL(cuCtxDisablePeerAccess(reinterpret_cast<CUcontext>(theirs)), CUDA_SUCCESS);
}

TEST("nothing is allocated between trials") {
  const Machine machine;
  const OwnStream stream(*machine.driver, 0);
  CopyTrials trials(stream, CopyWay::both);
  static_cast<void>(trials.rates(0.0));
  fake_cuda_reset_call_counts();
  static_cast<void>(trials.rates(0.2));
  for (const char* function : {"cuMemAlloc_v2", "cuMemHostRegister_v2", "cuEventCreate", "cuStreamCreate"})
    CHECK_EQUAL(fake_cuda_call_count(function), 0);
  CHECK(fake_cuda_call_count("cuMemcpyHtoDAsync_v2") > 100);
}

TEST("a driver that fails leaves nothing behind, wherever it does") {
  for (const char* function : {"cuMemHostRegister_v2", "cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2",
                               "cuEventCreate", "cuEventElapsedTime"}) {
    const Machine machine;
    {
      const OwnStream stream(*machine.driver, 0);
      fake_cuda_fail(function, 2, CUDA_ERROR_OUT_OF_MEMORY);
      CHECK(refuses<CudaError>([&] { rates_of(stream, CopyWay::both); }));
    }
    CHECK_EQUAL(all_left_behind(), 0);
  }
}

}  // namespace

TEST_MAIN()
