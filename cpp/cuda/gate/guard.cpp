#include "cuda/gate/guard.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

constexpr std::uint64_t kProbeWorkNs = 300'000;
constexpr double kShortestBelievedNs = 0.9 * static_cast<double>(kProbeWorkNs);
constexpr double kLongestBelievedNs = 10.0 * static_cast<double>(kProbeWorkNs);
constexpr auto kProbeLimit = std::chrono::seconds(2);
constexpr int kLooks = 9;

// A shorter tail of hidden work cannot be distinguished from the cost of looking.
constexpr double kSmallestTailNs = 5'000.0;
constexpr double kSmallestTailAfterWaitingNs = 20'000.0;

void wait_for(const Driver& driver, CUevent event) {
  Patience patience(kProbeLimit);
  while (!is_done(driver, event)) {
    if (!patience.wait_a_little()) throw Unavailable("an event of the context was never done");
  }
}

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
  if (kernels == nullptr) return {false, "the device code that would try them could not be loaded"};
  try {
    const PrivateStream busy(context);
    const Event before(context);
    const Event after(context);
    const CurrentContext current(driver, context.handle());
    kernels->launch_spin_ns(busy.handle(), 0);  // Loading a kernel at its first launch is not its time.
    std::vector<double> idle;
    for (int look = 0; look < kLooks; ++look) {
      driver.cuCtxSynchronize();
      driver.cuCtxRecordEvent(context.handle(), before.handle());
      driver.cuCtxRecordEvent(context.handle(), after.handle());
      wait_for(driver, after.handle());
      idle.push_back(span_ns(driver, before.handle(), after.handle()));
    }
    driver.cuCtxSynchronize();
    driver.cuCtxRecordEvent(context.handle(), before.handle());
    kernels->launch_spin_ns(busy.handle(), kProbeWorkNs);
    driver.cuCtxRecordEvent(context.handle(), after.handle());
    wait_for(driver, after.handle());
    const double seen_ns = span_ns(driver, before.handle(), after.handle());
    if (seen_ns < kShortestBelievedNs || seen_ns > kLongestBelievedNs) {
      return {false, "this driver's context-wide events do not time correctly: work of " +
                         std::to_string(kProbeWorkNs / 1000) + " us on another stream read as " +
                         std::to_string(seen_ns / 1000.0) + " us"};
    }
    return {true, "", median_of(idle)};
  } catch (const CudaError& error) {
    if (breaks_the_context(error.code())) throw;
    return {false, error.what()};
  } catch (const Unavailable& error) {
    return {false, error.what()};
  }
}

Guard calibrate_guard(const BorrowedStream& stream, GuardKind kind, bool by_context) {
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
  return {kind, 2.0 * median_of(looks) + smallest};
}

}  // namespace fairlap::cuda
