#include <atomic>
#include <chrono>
#include <thread>

#include "cuda/gate/gate.hpp"
#include "cuda/gate/gate_choice.hpp"
#include "tests/check.hpp"
#include "tests/cuda/cuda_at_work.hpp"

using namespace fairlap;
using namespace fairlap::test;
using cuda::BorrowedContext;
using cuda::Gate;
using cuda::GateKind;
using std::chrono::milliseconds;

namespace {

struct Gated : EngineAtWork {
  BorrowedContext borrowed = BorrowedContext::of_device(*driver, 0);
  cuda::BorrowedStream own = cuda::BorrowedStream::borrow(*driver, stream, 0);
  cuda::Kernels kernels{borrowed};
};

}  // namespace

TEST("a closed gate holds the stream and an open one lets it go, time after time") {
  for (const GateKind kind : {GateKind::stream_wait, GateKind::spin}) {
    const Gated at_work;
    Gate gate(at_work.borrowed, kind, &at_work.kernels, milliseconds(5000));
    for (int round = 0; round < 5; ++round) {
      gate.close(at_work.s());
      fake_cuda_kernel(at_work.stream, "work", 100);
      CHECK(fake_cuda_pending_work(at_work.stream) > 0);
      CHECK(gate.open());
      CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
      CHECK_EQUAL(fake_cuda_pending_work(at_work.stream), 0);
    }
  }
}

TEST("the watchdog opens a gate whose owner is stuck, and reports it") {
  for (const GateKind kind : {GateKind::stream_wait, GateKind::spin}) {
    const Gated at_work;
    bool is_next_open = false;
    for (milliseconds timeout(40); !is_next_open && timeout < milliseconds(8000); timeout *= 4) {
      Gate gate(at_work.borrowed, kind, &at_work.kernels, timeout);
      gate.close(at_work.s());
      const auto begun = std::chrono::steady_clock::now();
      CHECK_EQUAL(cuStreamSynchronize(at_work.s()), CUDA_SUCCESS);
      CHECK(std::chrono::steady_clock::now() - begun >= timeout - milliseconds(5));
      CHECK(!gate.open());
      gate.close(
          at_work.s());  // The next one is not touched by it, unless a busy machine stalls for its time.
      is_next_open = gate.open();
    }
    CHECK(is_next_open);
  }
}

TEST("a gate that goes out of use closed lets its stream go") {
  const Gated at_work;
  {
    Gate gate(at_work.borrowed, GateKind::stream_wait, nullptr, milliseconds(5000));
    gate.close(at_work.s());
  }
  CHECK_EQUAL(fake_cuda_pending_work(at_work.stream), 0);
}

TEST("the watchdog counts each gate's own time") {
  std::atomic<std::uint32_t> released{0};
  cuda::Watchdog watchdog([&](std::uint32_t ticket) { released = ticket; }, milliseconds(1000));
  for (std::uint32_t ticket = 1; ticket <= 30; ++ticket) {
    watchdog.arm(ticket);
    std::this_thread::sleep_for(milliseconds(40));
    watchdog.disarm();
  }
  CHECK_EQUAL(released.load(), 0U);
  watchdog.arm(31);
  while (released.load() != 31U) std::this_thread::sleep_for(milliseconds(1));
  CHECK(watchdog.released(31));
}

TEST("a probe distinguishes a gate that works from one that is refused and one that does not hold") {
  const Gated at_work;
  CHECK(cuda::probe_gate(at_work.own, GateKind::stream_wait, nullptr).works);
  CHECK(cuda::probe_gate(at_work.own, GateKind::spin, &at_work.kernels).works);
  CHECK(contains(cuda::probe_gate(at_work.own, GateKind::spin, nullptr).why_not, "device code"));
  fake_cuda_set_stream_waits(1);
  CHECK(contains(cuda::probe_gate(at_work.own, GateKind::stream_wait, nullptr).why_not, "NOT_SUPPORTED"));
  fake_cuda_set_stream_waits(2);
  CHECK(contains(cuda::probe_gate(at_work.own, GateKind::stream_wait, nullptr).why_not, "does not hold"));
}

TEST(
    "a driver without stream waits gets the spinning gate, one without device code gets none, each with its "
    "reason") {
  const Gated at_work;
  fake_cuda_hide_function("cuStreamWaitValue32");
  const auto older = open_fake_driver();
  const auto stream = cuda::BorrowedStream::borrow(*older, at_work.stream, 0);
  const cuda::Kernels kernels(stream.context());
  const auto spinning = cuda::choose_gate(stream, std::nullopt, &kernels);
  CHECK(spinning.kind == GateKind::spin);
  CHECK(contains(spinning.because, "CUDA 11.7"));
  const auto none = cuda::choose_gate(stream, std::nullopt, nullptr);
  CHECK(none.kind == GateKind::none);
  CHECK(contains(none.because, "CUDA 11.7") && contains(none.because, "device code"));
  fake_cuda_reset();
}

TEST("a default stream's gate is tried on that stream itself") {
  const Gated at_work;
  for (const std::uintptr_t address : {0, 1, 2}) {
    const auto stream = cuda::BorrowedStream::borrow(*at_work.driver, address, 0);
    CHECK(cuda::probe_gate(stream, GateKind::stream_wait, nullptr).works);
  }
}

TEST("where every launch waits for its kernel there is no gate, and the reason is found at once") {
  for (const bool by_variable : {true, false}) {
    const Gated at_work;
    fake_cuda_set_launches_block(1);
    if (by_variable) setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    const auto begun = std::chrono::steady_clock::now();
    const auto choice = cuda::choose_gate(at_work.own, std::nullopt, &at_work.kernels);
    CHECK(std::chrono::steady_clock::now() - begun < milliseconds(1000));  // no watchdog had to open a gate
    CHECK(choice.kind == GateKind::none);
    CHECK(contains(choice.because, by_variable ? "CUDA_LAUNCH_BLOCKING" : "debugger"));
    CHECK(contains(message_of([&] { cuda::choose_gate(at_work.own, GateKind::spin, &at_work.kernels); }),
                   "every launch waits"));
    ScriptedWork work(kernel_of(at_work.stream, 4000));
    const auto record = time_it(at_work, work, quick_settings(5));
    CHECK_EQUAL(record->table->count(cuda::Invalid::gate_timed_out), 0U);
    CHECK(record->gate == GateKind::none);
    CHECK(all_equal(record->table->column(cuda::Quantity::device_span_ns), 4000));
    unsetenv("CUDA_LAUNCH_BLOCKING");
  }
}

TEST("CUDA_LAUNCH_BLOCKING=0 is no reason") {
  const Gated at_work;
  setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  CHECK_EQUAL(cuda::why_launches_wait(at_work.own, &at_work.kernels), std::string());
  unsetenv("CUDA_LAUNCH_BLOCKING");
}

TEST_MAIN()
