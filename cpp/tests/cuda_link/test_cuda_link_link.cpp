// The link to a device against the fake driver, on its virtual clock: what waits for what.

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::test;
using fairlap::cuda_link::CudaLink;
using fairlap::cuda_link::CudaLinkSettings;
using fairlap::feed::LinkFailed;
using fairlap::feed::SlotUse;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSlotBytes = 100'000;
constexpr std::int64_t kCopyNs = 1000 + 4000;  // the fake's latency, and 25 bytes a nanosecond

struct LinkAtWork : EngineAtWork {
  explicit LinkAtWork(std::size_t count = 3, const CudaLinkSettings& settings = {})
      : host(count, kSlotBytes), link(CudaLink::open(*driver, host.slots(), settings)) {}
  HostMemory host;
  std::unique_ptr<CudaLink> link;
};

TEST("a copy arrives whole on the consumer's stream, and no host thread waits for it") {
  const LinkAtWork at;
  at.link->send(1, kSlotBytes);
  CHECK_EQUAL(fake_cuda_now_ns(), 0);
  at.link->make_wait(at.stream, 1);
  std::vector<char> back(kSlotBytes);
  cuMemcpyDtoHAsync_v2(back.data(), device_slot(*at.link, 1), kSlotBytes, at.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 0);
  cuStreamSynchronize(at.s());
  CHECK(back == std::vector<char>(kSlotBytes, 'b'));
  CHECK_EQUAL(fake_cuda_now_ns(), 2 * kCopyNs);
}

TEST("the next copies run while the consumer works") {
  const LinkAtWork at;
  for (std::size_t slot = 0; slot < 3; ++slot) {
    at.link->send(slot, kSlotBytes);
    at.link->make_wait(at.stream, slot);
    fake_cuda_kernel(at.stream, "work", kCopyNs);
  }
  cuStreamSynchronize(at.s());
  CHECK_EQUAL(fake_cuda_now_ns(), 4 * kCopyNs);  // one after the other they would take six
}

TEST("consumers without streams can ask whether a batch has arrived") {
  const LinkAtWork at;
  at.link->send(0, kSlotBytes);
  CHECK(!at.link->has_arrived(0));
  fake_cuda_advance_host(kCopyNs);
  CHECK(at.link->has_arrived(0));
}

TEST("a slot is used again only after the work that was enqueued when it was released") {
  const LinkAtWork at;
  at.link->send(0, kSlotBytes);
  at.link->make_wait(at.stream, 0);
  fake_cuda_kernel(at.stream, "work", 1'000'000);
  at.link->given_back(0, false);
  fake_cuda_kernel(at.stream, "later work, not of this batch", 50'000'000);
  CHECK(at.link->use_of(0) == SlotUse::copied_from);
  fake_cuda_advance_host(kCopyNs);
  CHECK(at.link->use_of(0) == SlotUse::worked_on);
  wait_until_unused(*at.link, 0);
  CHECK_EQUAL(fake_cuda_now_ns(), kCopyNs + 1'000'000);
}

TEST("an unused batch is waited for until its copy is done") {
  const LinkAtWork at;
  at.link->send(0, kSlotBytes);
  at.link->given_back(0, false);
  wait_until_unused(*at.link, 0);
  CHECK_EQUAL(fake_cuda_now_ns(), kCopyNs);
}

TEST("every stream that used a batch is waited for, those named at the release too") {
  const LinkAtWork at;
  const std::uint64_t second = fake_cuda_create_stream(at.context, 1);
  const std::uint64_t third = fake_cuda_create_stream(at.context, 1);
  for (int round = 1; round <= 3; ++round) {
    at.link->send(0, kSlotBytes);
    at.link->make_wait(at.stream, 0);
    at.link->make_wait(at.stream, 0);
    at.link->make_wait(second, 0);
    at.link->will_be_used(third, 0);
    fake_cuda_kernel(second, "work", 10'000);
    fake_cuda_kernel(third, "work", 300'000);
    at.link->given_back(0, true);
    wait_until_unused(*at.link, 0);
    CHECK_EQUAL(fake_cuda_pending_work(third), 0);
    CHECK_EQUAL(fake_cuda_now_ns(), round * 300'000);
    CHECK_EQUAL(fake_cuda_outstanding("events"), 3 + 3 + 2);  // no more than the first round needed
  }
}

TEST("the default streams wait and are waited for under the numbers that DLPack has for them") {
  const LinkAtWork at;
  for (const std::uintptr_t stream : {STREAM_LEGACY, STREAM_PER_THREAD}) {
    at.link->send(0, kSlotBytes);
    at.link->make_wait(stream, 0);
    fake_cuda_kernel(stream, "work", 200'000);
    CHECK(fake_cuda_pending_work(0) > 0);
    at.link->given_back(0, false);
    wait_until_unused(*at.link, 0);
    CHECK_EQUAL(fake_cuda_pending_work(0), 0);
  }
}

TEST("a thread's default stream is waited for when another thread releases") {
  const LinkAtWork at;
  at.link->send(0, kSlotBytes);
  std::thread([&] {
    fake_cuda_make_current(at.context);
    at.link->make_wait(STREAM_PER_THREAD, 0);
    fake_cuda_kernel(STREAM_PER_THREAD, "work", 700'000);
  }).join();
  at.link->given_back(0, false);
  wait_until_unused(*at.link, 0);
  CHECK_EQUAL(fake_cuda_now_ns(), kCopyNs + 700'000);
}

TEST("unnamed use is waited for with the whole context, unless the release names every stream") {
  const LinkAtWork at;
  for (const bool all_named : {false, true}) {
    at.link->send(0, kSlotBytes);
    at.link->used_by_unknown(0);
    if (all_named) at.link->will_be_used(STREAM_LEGACY, 0);
    fake_cuda_kernel(at.stream, "work", 400'000);
    at.link->given_back(0, all_named);
    wait_until_unused(*at.link, 0);
    CHECK_EQUAL(fake_cuda_pending_work(at.stream), all_named ? 1 : 0);
  }
}

TEST("streams that are dead, of another context or none at all are refused in one line") {
  const LinkAtWork at;
  at.link->send(0, kSlotBytes);
  const std::uint64_t other = fake_cuda_create_context(0);
  const std::uint64_t theirs = fake_cuda_create_stream(other, 1);
  const std::uint64_t dead = fake_cuda_create_stream(at.context, 1);
  fake_cuda_destroy_stream(dead);
  const auto refused = [&](std::uintptr_t stream) {
    return refusal<LinkFailed>([&] { at.link->make_wait(stream, 0); });
  };
  CHECK(contains(refused(theirs), "belongs to another context"));
  CHECK(contains(refused(dead), "is dead or was never one"));
  CHECK(contains(refused(0xDEAD0), "is not a CUDA stream"));
  CHECK(contains(refusal<LinkFailed>([&] { at.link->will_be_used(dead, 0); }), "is dead"));
}

TEST("the current context is used, else the primary one, and none is ever made") {
  {
    EngineAtWork at;
    const HostMemory host(2, 4096);
    const std::uint64_t own = fake_cuda_create_context(0);
    fake_cuda_make_current(own);
    const auto link = CudaLink::open(*at.driver, host.slots(), {});
    CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 0);
    CHECK(refuses<LinkFailed>([&] { link->make_wait(at.stream, 0); }));
    fake_cuda_make_current(0);
    const HostMemory more(2, 4096);
    const auto primary = CudaLink::open(*at.driver, more.slots(), {});
    CHECK_EQUAL(fake_cuda_outstanding("primary_retains"), 1);
    primary->make_wait(at.stream, 0);
    CHECK_EQUAL(fake_cuda_current_context(), 0U);
  }
  fake_cuda_reset();
  cuInit(0);
  const auto driver = open_fake_driver();
  const HostMemory host(2, 4096);
  CHECK(contains(refusal<BadStream>([&] { CudaLink::open(*driver, host.slots(), {}); }),
                 "fairlap does not start it"));
  CHECK(contains(refusal<BadStream>([&] { CudaLink::open(*driver, host.slots(), {.device = 7}); }),
                 "no CUDA device 7"));
}

TEST("a concurrent capture of a graph, in any mode, is not disturbed") {
  for (const int mode : {0, 1, 2}) {
    LinkAtWork at;
    at.link->send(0, kSlotBytes);
    cuStreamBeginCapture_v2(at.s(), mode);
    fake_cuda_kernel(at.stream, "captured", 1000);
    std::thread([&] {
      wait_until_unused(*at.link, 0);
      at.link->send(0, kSlotBytes);
      at.link->given_back(0, false);
      at.link.reset();
    }).join();
    CUgraph graph = nullptr;
    CHECK_EQUAL(cuStreamEndCapture(at.s(), &graph), CUDA_SUCCESS);
    cuGraphDestroy(graph);
  }
}

TEST("nothing is allocated while batches go round, and nothing is left behind") {
  {
    const LinkAtWork at;
    fake_cuda_reset_call_counts();
    for (int round = 0; round < 50; ++round) {
      for (std::size_t slot = 0; slot < 3; ++slot) {
        wait_until_unused(*at.link, slot);
        at.link->send(slot, kSlotBytes);
        at.link->make_wait(at.stream, slot);
        fake_cuda_kernel(at.stream, "work", 1000);
        at.link->given_back(slot, false);
      }
    }
    for (const char* function : {"cuMemAlloc_v2", "cuMemHostRegister_v2", "cuEventCreate", "cuStreamCreate",
                                 "cuMemFree_v2", "cuCtxSynchronize"}) {
      CHECK_EQUAL(fake_cuda_call_count(function), 0);
    }
    CHECK_EQUAL(fake_cuda_call_count("cuMemcpyHtoDAsync_v2"), 150);
  }
  CHECK_EQUAL(left_behind(), 0);
}

TEST("a device that never ends its work does not keep the feeder from ending") {
  const EngineAtWork engine;
  std::uint32_t* const flag = new_flag();
  const HostMemory host(1, kSlotBytes);
  auto link = CudaLink::open(*engine.driver, host.slots(), {.patience = 20ms});
  link->send(0, kSlotBytes);
  link->make_wait(engine.stream, 0);
  cuStreamWaitValue32_v2(engine.s(), device_address(flag), 1, CU_STREAM_WAIT_VALUE_GEQ);
  link->given_back(0, false);
  link.reset();
  CHECK_EQUAL(fake_cuda_outstanding("device_allocations"), 1);  // left, since freeing would never return
  write_flag(flag, 1);
}

}  // namespace

TEST_MAIN()
