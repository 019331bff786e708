#include "cuda/device/device_floor.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/driver/device_code.hpp"
#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

constexpr std::size_t kPairs = 48;
constexpr std::uint64_t kCyclesPerStep = 53;  // so that spans do not all fall on one step of the timer
constexpr std::uint32_t kTimerReadings = 64;
constexpr auto kFloorLimit = std::chrono::seconds(5);

class Probe {
 public:
  Probe(const BorrowedStream& stream, Gate* gate, const Kernels* kernels, const clock::Clock& clock)
      : stream_(stream),
        driver_(stream.driver()),
        gate_(gate),
        kernels_(kernels),
        clock_(clock),
        current_(driver_, stream.context().handle()) {
    for (std::size_t made = 0; made < 2 * kPairs; ++made) events_.emplace_back(stream.context());
  }

  void empty_pairs(DeviceFloor& floor) {
    std::vector<double> costs;
    behind_gate([&] {
      for (const Event& event : events_) costs.push_back(timed([&] { record(event); }));
    });
    floor.empty_pair_ns = median_of(pair_spans());
    floor.record_cost_ns = median_of(costs);
  }

  void quantum(DeviceFloor& floor) {
    behind_gate([&] {
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        record(events_[2 * pair]);
        if (kernels_ != nullptr) kernels_->launch_spin_cycles(stream_.handle(), pair * kCyclesPerStep);
        record(events_[2 * pair + 1]);
      }
    });
    if (const double step = smallest_step_of(pair_spans()); step > 0.0) floor.event_quantum_ns = step;
  }

  void launches(DeviceFloor& floor) {
    std::vector<double> costs;
    kernels_->launch_empty(stream_.handle());  // The first launch of a kernel also loads it.
    kernels_->launch_spin_cycles(stream_.handle(), 0);
    settle();
    behind_gate([&] {
      for (std::size_t launch = 0; launch < kPairs; ++launch) {
        costs.push_back(timed([&] { kernels_->launch_empty(stream_.handle()); }));
      }
    });
    floor.launch_cost_ns = median_of(costs);
  }

  void timer_step(DeviceFloor& floor) {
    const MappedMemory readings(stream_.context(), kTimerReadings * sizeof(std::uint64_t));
    kernels_->launch_timer_steps(stream_.handle(), readings.on_device(), kTimerReadings);
    settle();
    const auto* const seen = static_cast<const volatile std::uint64_t*>(readings.handle());
    for (std::uint32_t reading = 1; reading < kTimerReadings; ++reading) {
      const auto step = static_cast<double>(seen[reading] - seen[reading - 1]);
      if (!(step >= floor.timer_step_ns)) floor.timer_step_ns = step;
    }
  }

 private:
  template <class Enqueue>
  void behind_gate(Enqueue&& enqueue) {
    if (gate_ == nullptr) {
      enqueue();
    } else {
      gate_->close(stream_.handle());
      try {
        enqueue();
      } catch (...) {
        static_cast<void>(gate_->open());
        throw;
      }
      static_cast<void>(gate_->open());
    }
    settle();
  }

  template <class Act>
  double timed(Act&& act) {
    const std::uint64_t before = clock_.start();
    act();
    return clock_.ns_of(clock_.finish() - before);
  }

  void record(const Event& event) { driver_.cuEventRecord(event.handle(), stream_.handle()); }

  void settle() {
    const Event end(stream_.context());
    record(end);
    Patience patience(kFloorLimit);
    while (!is_done(driver_, end.handle())) {
      if (!patience.wait_a_little()) throw Unavailable("the stream is busy and does not come to rest");
    }
  }

  std::vector<double> pair_spans() {
    std::vector<double> spans;
    spans.reserve(kPairs);
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      spans.push_back(span_ns(driver_, events_[2 * pair].handle(), events_[2 * pair + 1].handle()));
    }
    return spans;
  }

  const BorrowedStream& stream_;
  const Driver& driver_;
  Gate* gate_;
  const Kernels* kernels_;
  const clock::Clock& clock_;
  CurrentContext current_;
  std::vector<Event> events_;
};

}  // namespace

DeviceFloor measure_device_floor(const BorrowedStream& stream, Gate* gate, const Kernels* kernels,
                                 const clock::Clock& clock) {
  DeviceFloor floor;
  Probe probe(stream, gate, kernels, clock);
  if (kernels != nullptr) probe.launches(floor);
  probe.empty_pairs(floor);
  probe.quantum(floor);
  if (kernels != nullptr) probe.timer_step(floor);
  return floor;
}

void measure_record_floor(const BorrowedStream& stream, ActivityTrace& trace, const Kernels& kernels,
                          DeviceFloor& floor) {
  const Driver& driver = stream.driver();
  const PrivateStream own(stream.context());
  {
    const CurrentContext current(driver, stream.context().handle());
    kernels.launch_empty(own.handle());
    driver.cuCtxSynchronize();
    static_cast<void>(trace.take());  // The first launch of a kernel also loads it.
    for (std::size_t launch = 0; launch < kPairs; ++launch) {
      kernels.launch_empty(own.handle());
      kernels.launch_spin_cycles(own.handle(), launch * kCyclesPerStep);
    }
    driver.cuCtxSynchronize();
  }
  std::vector<double> empty;
  std::vector<double> all;
  for (const Activity& activity : trace.take().activities) {
    const auto length_ns = static_cast<double>(activity.end_ns - activity.start_ns);
    all.push_back(length_ns);
    if (activity.name != nullptr && *activity.name == kEmptyKernel) empty.push_back(length_ns);
  }
  if (!empty.empty()) floor.empty_kernel_ns = median_of(empty);
  if (const double step = smallest_step_of(all); step > 0.0) floor.record_step_ns = step;
}

}  // namespace fairlap::cuda
