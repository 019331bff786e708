#pragma once

#include <limits>

#include "clock/clock.hpp"
#include "cuda/activity/activity_trace.hpp"
#include "cuda/driver/kernels.hpp"
#include "cuda/gate/gate.hpp"

namespace fairlap::cuda {

constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

// What events on one stream of one device can and cannot resolve, found by recording them. NaN: could not be
// measured.
struct DeviceFloor {
  double event_quantum_ns = kNotMeasured;  // smallest step between spans of many different lengths
  double empty_pair_ns = kNotMeasured;     // median span of two events with nothing between them
  double record_cost_ns = kNotMeasured;    // host, median time of recording one event
  double launch_cost_ns = kNotMeasured;    // host, median time of launching one empty kernel
  double gate_release_ns = kNotMeasured;   // host, from opening the gate to seeing the stream run
  double timer_step_ns = kNotMeasured;     // step of the device's own timer, %globaltimer
  double context_pair_ns = kNotMeasured;   // as empty_pair_ns, with events of the whole context
  double record_step_ns = kNotMeasured;    // smallest step among the times in activity records
  double empty_kernel_ns = kNotMeasured;   // median length of an empty kernel in activity records
};

// `gate` and `kernels` may be null, as far as they work here.
DeviceFloor measure_device_floor(const BorrowedStream& stream, Gate* gate, const Kernels* kernels,
                                 const clock::Clock& clock);

// The last two: what activity records can resolve.
void measure_record_floor(const BorrowedStream& stream, ActivityTrace& trace, const Kernels& kernels,
                          DeviceFloor& floor);

}  // namespace fairlap::cuda
