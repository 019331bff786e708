#include "cuda/gate/guard.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

constexpr std::uint64_t kLongWorkNs = 300'000;
constexpr std::uint64_t kShortWorkNs = 50'000;
constexpr double kShortestBelieved = 0.9;  // of the long work
constexpr double kLongestBelieved = 10.0;
constexpr std::size_t kFilledBytes = std::size_t{32} * 1024 * 1024;
constexpr int kLongFills = 16;
constexpr auto kProbeLimit = std::chrono::seconds(2);
constexpr int kLooks = 9;

// A shorter tail of hidden work cannot be distinguished from the cost of looking.
constexpr double kSmallestTailNs = 5'000.0;
constexpr double kSmallestTailAfterWaitingNs = 20'000.0;

// Nor from what a framework enqueues behind its work to learn of its end. On an H100 JAX's context came to
// rest 8 to 35 us after its work: 97 of 100 samples were above the one, none above the other.
constexpr double kSmallestTailOfACompletionNs = 30'000.0;

void wait_for(const Driver& driver, CUevent event) {
  Patience patience(kProbeLimit);
  while (!is_done(driver, event)) {
    if (!patience.wait_a_little()) throw Unavailable("an event of the context was never done");
  }
}

// Work of known length for a private stream. The context must be current.
class KnownWork {
 public:
  KnownWork(const BorrowedContext& context, const Kernels* kernels)
      : driver_(context.driver()), kernels_(kernels) {
    if (kernels == nullptr) filled_ = std::make_unique<DeviceMemory>(context, kFilledBytes);
    const PrivateStream own(context);
    enqueue_short(own.handle());  // Loading a kernel at its first launch is not its time.
    if (kernels == nullptr) long_ns_ = timed_fills(context, own.handle());
    driver_.cuCtxSynchronize();
  }

  void enqueue_long(CUstream stream) const { enqueue(stream, kLongWorkNs, kLongFills); }
  void enqueue_short(CUstream stream) const { enqueue(stream, kShortWorkNs, 1); }
  [[nodiscard]] double long_ns() const noexcept { return long_ns_; }

 private:
  void enqueue(CUstream stream, std::uint64_t spin_ns, int fills) const {
    if (kernels_ != nullptr) return kernels_->launch_spin_ns(stream, spin_ns);
    for (int fill = 0; fill < fills; ++fill)
      driver_.cuMemsetD32Async(filled_->handle(), 0u, kFilledBytes / sizeof(std::uint32_t), stream);
  }

  double timed_fills(const BorrowedContext& context, CUstream stream) const {
    const Event start(context);
    const Event stop(context);
    driver_.cuEventRecord(start.handle(), stream);
    enqueue_long(stream);
    driver_.cuEventRecord(stop.handle(), stream);
    wait_for(driver_, stop.handle());
    return span_ns(driver_, start.handle(), stop.handle());
  }

  const Driver& driver_;
  const Kernels* kernels_;
  std::unique_ptr<const DeviceMemory> filled_;  // null where the device code spins
  double long_ns_ = static_cast<double>(kLongWorkNs);
};

std::string microseconds(double ns) { return std::to_string(std::lround(ns / 1000.0)) + " us"; }

}  // namespace

void record(const BorrowedStream& stream, bool by_context, CUevent event) {
  const Driver& driver = stream.driver();
  if (by_context) {
    driver.cuCtxRecordEvent(stream.context().handle(), event);
  } else {
    driver.cuEventRecord(event, stream.handle());
  }
}

void record_after_idle(const BorrowedStream& stream, bool by_context, CUevent event) {
  stream.driver().cuCtxSynchronize();
  record(stream, by_context, event);
}

ContextEvents probe_context_events(const BorrowedContext& context, const Kernels* kernels) {
  const Driver& driver = context.driver();
  if (!driver.cuCtxRecordEvent.present()) return {false, driver.cuCtxRecordEvent.absent_because()};
  try {
    const PrivateStream one(context);
    const PrivateStream two(context);
    const Event before(context);
    const Event after(context);
    const CurrentContext current(driver, context.handle());
    const KnownWork work(context, kernels);
    std::vector<double> idle;
    for (int look = 0; look < kLooks; ++look) {
      driver.cuCtxSynchronize();
      driver.cuCtxRecordEvent(context.handle(), before.handle());
      driver.cuCtxRecordEvent(context.handle(), after.handle());
      wait_for(driver, after.handle());
      idle.push_back(span_ns(driver, before.handle(), after.handle()));
    }
    // The long work is on each stream once, and is enqueued first once: an event with the time of the first
    // or the last stream, whichever way they are counted, is too early in one of the two.
    for (const bool long_first : {true, false}) {
      driver.cuCtxSynchronize();
      driver.cuCtxRecordEvent(context.handle(), before.handle());
      if (long_first) {
        work.enqueue_long(one.handle());
        work.enqueue_short(two.handle());
      } else {
        work.enqueue_short(one.handle());
        work.enqueue_long(two.handle());
      }
      driver.cuCtxRecordEvent(context.handle(), after.handle());
      wait_for(driver, after.handle());
      const double seen_ns = span_ns(driver, before.handle(), after.handle());
      if (seen_ns >= kShortestBelieved * work.long_ns() && seen_ns <= kLongestBelieved * work.long_ns())
        continue;
      return {false,
              "this driver's context-wide events do not time correctly: " + microseconds(work.long_ns()) +
                  " of work on one of two streams read as " + microseconds(seen_ns)};
    }
    return {true, "", median_of(idle)};
  } catch (const CudaError& error) {
    if (breaks_the_context(error.code())) throw;
    return {false, error.what()};
  } catch (const Unavailable& error) {
    return {false, error.what()};
  }
}

Guard calibrate_guard(const BorrowedStream& stream, GuardKind kind, bool by_context, bool with_completion) {
  if (kind == GuardKind::none) return {};
  const Driver& driver = stream.driver();
  const Event stop(stream.context());
  const Event after(stream.context());
  const CurrentContext current(driver, stream.context().handle());
  std::vector<double> looks;
  for (int look = 0; look < kLooks; ++look) {
    driver.cuCtxSynchronize();
    record(stream, by_context, stop.handle());
    if (kind == GuardKind::context_event) {
      driver.cuCtxRecordEvent(stream.context().handle(), after.handle());
    } else {
      wait_for(driver, stop.handle());
      record_after_idle(stream, by_context, after.handle());
    }
    wait_for(driver, after.handle());
    looks.push_back(std::max(0.0, span_ns(driver, stop.handle(), after.handle())));
  }
  const double smallest = kind == GuardKind::context_event ? kSmallestTailNs : kSmallestTailAfterWaitingNs;
  return {kind, 2.0 * median_of(looks) + (with_completion ? kSmallestTailOfACompletionNs : smallest)};
}

}  // namespace fairlap::cuda
