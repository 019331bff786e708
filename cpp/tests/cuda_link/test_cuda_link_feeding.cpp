// The whole feeder over the fake driver: threads, slots, copies, consumers and their streams.

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "feed/staging.hpp"
#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::test;
using namespace fairlap::feed;
using fairlap::cuda_link::CudaLink;
using fairlap::cuda_link::CudaLinkSettings;
using namespace std::chrono_literals;

namespace {

// Sample i is the number i, over and over.
struct Numbers {
  explicit Numbers(std::size_t samples) : all(samples * kPerSample) {
    for (std::size_t at = 0; at < all.size(); ++at) all[at] = static_cast<std::int64_t>(at / kPerSample);
  }
  static constexpr std::size_t kPerSample = 64;
  std::vector<std::int64_t> all;
};

struct FeederAtWork : EngineAtWork {
  FeederAtWork(std::size_t samples, std::size_t slots, std::size_t threads, std::uint64_t epochs = 1)
      : numbers(samples) {
    fake_cuda_set_cost("cuEventQuery", 20'000);  // time passes while the feeder's threads look
    StagingSettings settings;
    settings.order.batch = 8;
    settings.order.epochs = epochs;
    settings.slots = slots;
    settings.threads = threads;
    settings.link = [this](const HostSlots& host) {
      return CudaLink::open(*driver, host, CudaLinkSettings{.device = 0, .patience = 5s});
    };
    const auto* const data = reinterpret_cast<const std::byte*>(numbers.all.data());
    staging = std::make_unique<Staging>(
        source_in_memory(data, {ElementType::int64, {Numbers::kPerSample}, samples}), settings);
  }
  Numbers numbers;
  std::unique_ptr<Staging> staging;
};

std::size_t bytes_of(const dlpack::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]) * sizeof(std::int64_t);
}

// What a model does: it enqueues its work on the batch, releases the batch at once and continues.
std::vector<std::int64_t> worked_through(FeederAtWork& at, std::int64_t work_ns) {
  std::vector<std::int64_t> out(at.numbers.all.size());
  std::size_t seen = 0;
  for (Staging::Delivered got = at.staging->next(10s); got.is_batch; got = at.staging->next(10s)) {
    dlpack::ManagedVersioned* const lent = at.staging->lending()->lend_versioned(got.ticket, at.stream);
    at.staging->lending()->give_back(got.ticket);
    fake_cuda_kernel(at.stream, "work", work_ns);
    cuMemcpyDtoHAsync_v2(out.data() + seen, reinterpret_cast<CUdeviceptr>(lent->tensor.data),
                         bytes_of(lent->tensor), at.s());
    seen += bytes_of(lent->tensor) / sizeof(std::int64_t);
    lent->deleter(lent);
  }
  cuStreamSynchronize(at.s());
  return out;
}

TEST(
    "batches reach a consumer that lags behind whole and in order, however many threads and slots there "
    "are") {
  for (const std::size_t threads : {1U, 3U}) {
    for (const std::size_t slots : {1U, 2U, 4U}) {
      FeederAtWork at(203, slots, threads);
      CHECK(worked_through(at, 50'000) == at.numbers.all);
      CHECK_EQUAL(at.staging->stalls().batches, 26U);
      at.staging.reset();
      CHECK_EQUAL(left_behind(), 0);
    }
  }
}

TEST("a lent tensor names its device") {
  const FeederAtWork at(16, 2, 1);
  const Staging::Delivered got = at.staging->next(10s);
  dlpack::Managed* const lent = at.staging->lending()->lend(got.ticket, at.stream);
  CHECK(lent->tensor.device == (dlpack::Device{dlpack::kDeviceCuda, 0}));
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(lent->tensor.data) % 256, 0U);
  lent->deleter(lent);
  at.staging->lending()->give_back(got.ticket);
}

TEST("a feeder can be stopped while the device keeps every slot") {
  FeederAtWork at(80, 2, 2, 0);
  std::uint32_t* const flag = new_flag();
  for (int batch = 0; batch < 2; ++batch) {
    const Staging::Delivered got = at.staging->next(10s);
    dlpack::Managed* const lent = at.staging->lending()->lend(got.ticket, at.stream);
    cuStreamWaitValue32_v2(at.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
    lent->deleter(lent);
    at.staging->lending()->give_back(got.ticket);
  }
  CHECK(refuses<FeederStopped>([&] { at.staging->next(10s, [] { return false; }); }));
  CHECK(at.staging->close().empty());
  write_flag(flag, 1);
  at.staging.reset();
  cuMemFreeHost(flag);
  CHECK_EQUAL(left_behind(), 0);
}

TEST("a batch outlives its feeder on the device, and the last one ends the link") {
  FeederAtWork at(80, 3, 1);
  const Staging::Delivered first = at.staging->next(10s);
  dlpack::Managed* const lent = at.staging->lending()->lend(first.ticket, at.stream);
  at.staging->lending()->give_back(first.ticket);
  CHECK(at.staging->close() == std::vector<std::uint64_t>{0});
  at.staging.reset();
  CHECK_EQUAL(fake_cuda_outstanding("device_allocations"), 1);
  std::vector<std::int64_t> back(8 * Numbers::kPerSample);
  cuMemcpyDtoHAsync_v2(back.data(), reinterpret_cast<CUdeviceptr>(lent->tensor.data), back.size() * 8,
                       at.s());
  lent->deleter(lent);
  cuStreamSynchronize(at.s());
  CHECK(back == std::vector<std::int64_t>(at.numbers.all.begin(), at.numbers.all.begin() + 512));
  CHECK_EQUAL(left_behind(), 0);
}

}  // namespace

TEST_MAIN()
