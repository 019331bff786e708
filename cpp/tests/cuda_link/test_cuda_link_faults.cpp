// Every call of the driver that the link makes, failing: one line of explanation, and nothing left behind.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feed/staging.hpp"
#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::test;
using namespace fairlap::feed;
using fairlap::cuda_link::CudaLink;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSlotBytes = 4096;

struct Failure {
  const char* function;
  int error;
  const char* message;
};

TEST("a call that fails while a feeder is made is reported in one line, and nothing is left behind") {
  const std::vector<Failure> failures{
      {"cuCtxGetCurrent", CUDA_ERROR_UNKNOWN,
       "cuCtxGetCurrent failed: CUDA_ERROR_UNKNOWN; the device's context"},
      {"cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY,
       "cuMemHostRegister failed: CUDA_ERROR_OUT_OF_MEMORY; ask for fewer slots or a smaller batch"},
      {"cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY,
       "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY; ask for fewer slots or a smaller batch"},
      {"cuStreamCreate", CUDA_ERROR_OUT_OF_MEMORY, "cuStreamCreate failed: CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY, "cuEventCreate failed: CUDA_ERROR_OUT_OF_MEMORY"},
      {"cuCtxPushCurrent_v2", CUDA_ERROR_INVALID_CONTEXT,
       "the framework's context is gone: create a new feeder"},
  };
  for (const Failure& failure : failures) {
    const EngineAtWork engine;
    const HostMemory host(2, kSlotBytes);
    fake_cuda_fail(failure.function, 1, failure.error);
    const std::string message =
        refusal<LinkFailed>([&] { CudaLink::open(*engine.driver, host.slots(), {.device = 0}); });
    CHECK(contains(message, failure.message));
    CHECK(!contains(message, "\n"));
    CHECK_EQUAL(left_behind(), 0);
  }
}

TEST("each event of a feeder that cannot be created is reported, from the first to the last") {
  for (int nth = 1; nth <= 4; ++nth) {
    const EngineAtWork engine;
    const HostMemory host(2, kSlotBytes);
    fake_cuda_fail("cuEventCreate", nth, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(refuses<LinkFailed>([&] { CudaLink::open(*engine.driver, host.slots(), {}); }));
    CHECK_EQUAL(left_behind(), 0);
  }
}

// Given back whatever becomes of it, as a batch in Python is.
struct Held {
  Staging& staging;
  Ticket ticket;
  ~Held() { staging.lending()->give_back(ticket); }
};

struct FeederAtWork : EngineAtWork {
  FeederAtWork() : data(std::size_t{64} * 512) {
    StagingSettings settings;
    settings.order.batch = 8;
    settings.order.epochs = 0;
    settings.slots = 2;
    settings.link = [this](const HostSlots& host) { return CudaLink::open(*driver, host, {.device = 0}); };
    staging =
        std::make_unique<Staging>(source_in_memory(data.data(), {ElementType::uint8, {512}, 64}), settings);
  }
  // Uses batches as they come, until one cannot be had.
  std::string final_message() {
    return message_of([&] {
      for (int batch = 0; batch < 1000; ++batch) {
        const Held got{*staging, staging->next(10s).ticket};
        dlpack::Managed* const lent = staging->lending()->lend(got.ticket, stream);
        fake_cuda_kernel(stream, "work", 1000);
        lent->deleter(lent);
      }
    });
  }
  std::vector<std::byte> data;
  std::unique_ptr<Staging> staging;
};

TEST("a call that fails while batches go round is reported in place of a batch, and nothing is left behind") {
  const std::vector<Failure> failures{
      {"cuMemcpyHtoDAsync_v2", CUDA_ERROR_INVALID_VALUE,
       "cuMemcpyHtoDAsync failed: CUDA_ERROR_INVALID_VALUE"},
      {"cuEventRecord", CUDA_ERROR_INVALID_HANDLE,
       "cuEventRecord failed: CUDA_ERROR_INVALID_HANDLE; a stream must live until the batches used on it are "
       "released"},
      {"cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS,
       "cuEventQuery failed: CUDA_ERROR_ILLEGAL_ADDRESS; the device's context cannot be used any more"},
  };
  for (const Failure& failure : failures) {
    FeederAtWork at;
    const Ticket first = at.staging->next(10s).ticket;
    const Ticket second = at.staging->next(10s).ticket;  // both slots are with us, so that no thread calls
    fake_cuda_fail(failure.function, 1, failure.error);
    at.staging->lending()->give_back(first);
    at.staging->lending()->give_back(second);
    const std::string message = at.final_message();
    CHECK(contains(message, "could not be fed: "));
    CHECK(contains(message, failure.message));
    CHECK(!contains(message, "\n"));
    CHECK(at.staging->close().empty());
    at.staging.reset();
    CHECK_EQUAL(left_behind(), 0);
  }
}

TEST("work on a batch that cannot be waited for fails the slot's next batch, never spoils it") {
  FeederAtWork at;
  const Ticket first = at.staging->next(10s).ticket;
  const Ticket second = at.staging->next(10s).ticket;
  dlpack::Managed* const lent = at.staging->lending()->lend(first, at.stream);
  fake_cuda_fail("cuEventRecord", 1, CUDA_ERROR_INVALID_HANDLE);
  lent->deleter(lent);
  at.staging->lending()->give_back(first);
  CHECK(contains(at.final_message(), "batch 2 could not be fed: cuEventRecord failed"));
  at.staging->lending()->give_back(second);
}

TEST("a stream that cannot be made to wait is reported to the consumer, who still has the batch") {
  const FeederAtWork at;
  const Ticket ticket = at.staging->next(10s).ticket;
  fake_cuda_fail("cuStreamWaitEvent", 1, CUDA_ERROR_INVALID_VALUE);
  const std::string message = refusal<LinkFailed>([&] { at.staging->lending()->lend(ticket, at.stream); });
  CHECK_EQUAL(message, std::string("cuStreamWaitEvent failed: CUDA_ERROR_INVALID_VALUE"));
  dlpack::Managed* const lent = at.staging->lending()->lend(ticket, at.stream);
  lent->deleter(lent);
  at.staging->lending()->give_back(ticket);
  CHECK(!at.staging->lending()->is_current(ticket));
}

TEST("a device that is lost ends the feeding with a line, and the feeder can be dropped") {
  FeederAtWork at;
  const Ticket held = at.staging->next(10s).ticket;
  fake_cuda_poison(CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(contains(at.final_message(),
                 "CUDA_ERROR_ILLEGAL_ADDRESS; the device's context cannot be used any more"));
  at.staging->lending()->give_back(held);
  at.staging.reset();
}

TEST("a context that its framework destroyed ends the feeding with a line") {
  FeederAtWork at;
  const Ticket held = at.staging->next(10s).ticket;
  at.staging->lending()->give_back(at.staging->next(10s).ticket);
  at.staging->lending()->give_back(held);
  fake_cuda_deactivate_primary_context(0);
  const std::string message = refusal<BatchFailed>([&] {
    for (int batch = 0; batch < 1000; ++batch) at.staging->lending()->give_back(at.staging->next(10s).ticket);
  });
  CHECK(contains(message, "the framework's context is gone: create a new feeder"));
}

}  // namespace

TEST_MAIN()
