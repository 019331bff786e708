// How much of the copies' time is behind work, where copies and work have the lengths that a test plants.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>

#include "cuda_link/copy_overlap.hpp"
#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"

using namespace fairlap::test;
using fairlap::cuda_link::CudaLink;
using fairlap::cuda_link::OverlapSum;
using fairlap::feed::CopyTimes;

namespace {

constexpr std::size_t kSlotBytes = 100'000;
constexpr std::int64_t kCopyNs = 5000;  // 20 bytes a nanosecond
constexpr int kBatches = 200;

struct TimedLink : EngineAtWork {
  explicit TimedLink(std::size_t slots)
      : host(slots, kSlotBytes), link(CudaLink::open(*driver, host.slots(), {})) {
    fake_cuda_set_link(20e9, 20e9, 0);
    link->time_copies(true);
  }

  void send() {
    const std::size_t slot = sent++ % host.slots().count;
    wait_until_unused(*link, slot);
    link->send(slot, kSlotBytes);
  }
  // The oldest batch that was sent and not taken; the work is enqueued and not waited for, as by frameworks.
  void work(std::int64_t work_ns) {
    const std::size_t slot = taken++ % host.slots().count;
    link->make_wait(stream, slot);
    fake_cuda_kernel(stream, "work", work_ns);
    link->given_back(slot, false);
  }
  [[nodiscard]] CopyTimes times() const { return link->copy_times().value(); }
  [[nodiscard]] double hidden_share() const { return times().hidden_ns / times().copied_ns; }

  HostMemory host;
  std::unique_ptr<CudaLink> link;
  std::size_t sent = 0;
  std::size_t taken = 0;
};

CopyTimes times_of(std::size_t slots, std::int64_t work_ns) {
  TimedLink at(slots);
  for (int batch = 0; batch < kBatches; ++batch) {
    at.send();
    at.work(work_ns);
  }
  return at.times();
}

bool is_near(double value, double expected) { return std::abs(value - expected) < 1e-6; }

TEST("a copy is hidden as far as work covers it, however many pieces that comes in") {
  OverlapSum sum(4);
  const auto add = [&](double copy_from, double copy_to, double work_from, double work_to) {
    sum.add({copy_from, copy_to}, {work_from, work_to});
  };
  add(0, 10, 10, 30);   // of these four some work before them is not known
  add(10, 20, 25, 40);  // beside the one before
  add(20, 30, 60, 70);
  add(30, 40, 60, 90);
  CHECK_EQUAL(sum.copies(), 0U);
  add(36, 66, 200, 210);  // 36 to 40 of the second's work, and from 60 on that of two at once
  CHECK_EQUAL(sum.copies(), 1U);
  CHECK_NEAR(sum.copied_ns(), 30.0, 1e-9);
  CHECK_NEAR(sum.hidden_ns(), 4.0 + 6.0, 1e-9);
  add(66, 80, 210, 220);
  CHECK_NEAR(sum.hidden_ns(), 10.0 + 14.0, 1e-9);
  sum.begin_again();
  for (int copy = 0; copy < 4; ++copy) add(300 + copy, 301 + copy, 300, 400);
  CHECK_EQUAL(sum.copies(), 2U);
}

TEST("with one slot nothing is hidden, since each copy waits for the work on the last one") {
  const CopyTimes times = times_of(1, 20'000);
  CHECK_EQUAL(times.copies, kBatches - 3U);  // the first two, and the one whose slot was not filled again
  CHECK_NEAR(times.copied_ns, (kBatches - 3) * static_cast<double>(kCopyNs), 1.0);  // a driver gives floats
  CHECK(is_near(times.hidden_ns, 0.0));
}

TEST("behind work that takes as long or longer all of it is hidden") {
  for (const std::int64_t work_ns : {kCopyNs, 4 * kCopyNs}) {
    const CopyTimes times = times_of(3, work_ns);
    CHECK(times.copies > kBatches - 10U);
    CHECK(is_near(times.hidden_ns, times.copied_ns));
  }
}

TEST("behind work of half its length half of it is hidden, and of a tenth a tenth") {
  for (const std::int64_t work_ns : {kCopyNs / 2, kCopyNs / 10}) {
    const CopyTimes times = times_of(3, work_ns);
    CHECK(times.copies > kBatches - 10U);
    CHECK(is_near(times.hidden_ns / times.copied_ns, static_cast<double>(work_ns) / kCopyNs));
  }
}

// The host is late with the work, which the copy of the next batch does not wait for.
TEST("of a copy that starts before the work only what is beside it is hidden") {
  for (const std::int64_t late_ns : {1000, 2500, 5000, 9000}) {
    TimedLink at(2);
    at.send();
    for (int batch = 0; batch < kBatches; ++batch) {
      cuCtxSynchronize();
      at.send();
      fake_cuda_advance_host(late_ns);
      at.work(50'000);
    }
    CHECK_EQUAL(at.times().lost, 0U);
    CHECK(at.times().copies > kBatches - 10U);
    CHECK(is_near(at.hidden_share(), std::max(0.0, 1.0 - static_cast<double>(late_ns) / kCopyNs)));
  }
}

TEST("the share does not depend on how long the host rests between batches, or runs before") {
  TimedLink at(2);
  fake_cuda_advance_host(3'600'000'000'000);
  at.send();
  for (int batch = 0; batch < 50; ++batch) {
    fake_cuda_advance_host(40'000'123);
    at.send();
    fake_cuda_advance_host(2000);
    at.work(50'000);
  }
  CHECK(at.times().copies > 40U);
  CHECK(std::abs(at.hidden_share() - 0.6) < 0.005);  // a driver's times are floats: 4 ns over 40 ms
}

TEST(
    "batches of which not all work is on one named stream are left out, and the next ones until all is "
    "known") {
  TimedLink at(2);
  const std::uint64_t second = fake_cuda_create_stream(at.context, 1);
  for (int batch = 0; batch < 30; ++batch) {
    at.send();
    if (batch == 9) at.link->make_wait(second, at.taken % 2);
    if (batch == 17) at.link->used_by_unknown(at.taken % 2);
    at.work(20'000);
  }
  CHECK_EQUAL(at.times().without_stream, 2U);
  CHECK_EQUAL(at.times().copies, 28U - 4U - 5 * 2U);  // two are not settled, and four follow each break
  CHECK(is_near(at.hidden_share(), 1.0));
}

// Threads that fill slots at once may send the later batch first.
TEST("batches that are sent in another order than they are taken count the same") {
  TimedLink at(4);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t slot = 0; slot < 4; ++slot) wait_until_unused(*at.link, slot);
    for (const std::size_t slot : {1U, 0U, 3U, 2U}) at.link->send(slot, kSlotBytes);
    for (int batch = 0; batch < 4; ++batch) at.work(kCopyNs / 2);
  }
  CHECK_EQUAL(at.times().lost, 0U);
  CHECK_EQUAL(at.times().copies, 50 * 4 - 8U - 4U);
  CHECK(is_near(at.hidden_share(), 0.25));  // the works on two batches run beside the third of four copies
}

TEST("while a batch is held and many others pass, nothing is guessed") {
  TimedLink at(2);
  at.link->send(0, kSlotBytes);
  at.link->make_wait(at.stream, 0);
  const auto pass = [&](std::size_t slot) {
    wait_until_unused(*at.link, slot);
    at.link->send(slot, kSlotBytes);
    at.link->make_wait(at.stream, slot);
    fake_cuda_kernel(at.stream, "work", 20'000);
    at.link->given_back(slot, false);
  };
  for (int batch = 0; batch < 60; ++batch) pass(1);
  CHECK(at.times().lost > 50U);
  CHECK_EQUAL(at.times().copies, 0U);
  at.link->given_back(0, false);
  for (int batch = 0; batch < 40; ++batch) pass(static_cast<std::size_t>(batch % 2));
  CHECK(at.times().copies > 20U);
  CHECK(is_near(at.hidden_share(), 1.0));
}

TEST("an event that fails is a copy lost, and the feeder goes on") {
  TimedLink at(2);
  for (int batch = 0; batch < 20; ++batch) {
    if (batch == 10) fake_cuda_fail("cuEventElapsedTime", 1, CUDA_ERROR_INVALID_HANDLE);
    at.send();
    at.work(20'000);
  }
  CHECK_EQUAL(at.times().lost, 1U);
  CHECK(is_near(at.hidden_share(), 1.0));
}

TEST("turned off and on again it leaves out what it has not seen in between") {
  TimedLink at(2);
  const auto go_on = [&](int batches, std::int64_t work_ns) {
    for (int batch = 0; batch < batches; ++batch) {
      at.send();
      at.work(work_ns);
    }
  };
  go_on(20, kCopyNs / 2);
  at.link->time_copies(false);
  go_on(20, 10 * kCopyNs);
  const std::uint64_t copies = at.times().copies;
  CHECK_EQUAL(copies, 16U);
  go_on(20, 10 * kCopyNs);
  CHECK_EQUAL(at.times().copies, copies);
  at.link->time_copies(true);
  go_on(20, kCopyNs / 2);
  CHECK_EQUAL(at.times().copies, copies + 14U);
  CHECK(at.hidden_share() >= 0.5 && at.hidden_share() < 0.6);
}

TEST("nothing is timed unless it was asked for, and then four events a batch that are made before") {
  TimedLink at(2);
  const auto records = [&](bool on) {
    at.link->time_copies(on);
    at.send();
    at.work(1000);
    fake_cuda_reset_call_counts();
    for (int batch = 0; batch < 50; ++batch) {
      at.send();
      at.work(1000);
    }
    CHECK_EQUAL(fake_cuda_call_count("cuEventCreate"), 0);
    return fake_cuda_call_count("cuEventRecord");
  };
  CHECK_EQUAL(records(true), 50 * (2 + 4));
  CHECK_EQUAL(records(false), 50 * 2);
  CHECK(!CudaLink::open(*at.driver, HostMemory(1, kSlotBytes).slots(), {})->copy_times());
}

TEST("a link that timed copies leaves nothing behind") {
  {
    TimedLink at(2);
    at.send();
    at.work(1000);
  }
  CHECK_EQUAL(left_behind(), 0);
}

}  // namespace

TEST_MAIN()
