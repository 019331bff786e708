#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clock/clock.hpp"
#include "cuda/activity/attribution.hpp"
#include "cuda/device/device_floor.hpp"
#include "cuda/gate/gate.hpp"
#include "cuda/sampling/sample_table.hpp"
#include "cuda/sampling/sequence.hpp"
#include "loop/steadiness.hpp"
#include "loop/stop_rule.hpp"
#include "loop/work.hpp"

namespace fairlap::cuda {

struct StreamSettings {
  Method method = Method::device_span;
  loop::StopRule stop;
  std::uint64_t calls_per_sample = 0;  // 0: as many as quantum_share asks for
  double quantum_share = 0.01;         // the event quantum is at most this share of a sample
  loop::WarmUpKind warm_up = loop::WarmUpKind::found;
  std::uint64_t warm_up_calls = 0;
  bool flush = false;
  std::optional<GateKind> gate;  // none given: the best that works
  bool graph = false;
  bool guard = true;
  double timeout_s = 60.0;      // for the device to finish one sample
  double gate_timeout_s = 0.5;  // for the call to return while the stream is held
  std::size_t slots = 4;        // samples in flight at most
  std::vector<std::string> cupti_places;
};

// What a method measures; the one that it is named after is the headline.
std::vector<Quantity> quantities_of(Method method);
Quantity headline_of(Method method);

// The result of one run. Python sees the arrays of the table without a copy.
struct StreamRecord {
  std::unique_ptr<SampleTable> table;
  std::string error;  // of the device or the gate, when it stopped the run
  double elapsed_ns = 0.0;
  std::uint64_t calls_per_sample = 1;
  std::size_t halvings = 0;  // of the calls per sample, because the gate timed out
  std::size_t slots = 1;
  std::size_t graph_nodes = 0;

  std::uint64_t warm_up_calls = 0;
  double warm_up_elapsed_ns = 0.0;
  double first_call_ns = 0.0;

  std::string stream;
  std::string gate_because;  // why this gate and not a better one; empty when it is the best
  std::string kernels_absent_because;
  double guard_allowed_ns = 0.0;
  double longest_tail_ns = 0.0;
  std::size_t cache_bytes = 0;  // the device's L2
  std::size_t flush_bytes = 0;
  DeviceFloor floor;

  TraceSummary trace;
  std::size_t lost_records = 0;
  std::string cupti_path;
  std::optional<std::uint32_t> trace_stream;  // CUPTI's number of the stream handed over
  std::uint32_t cupti_version = 0;

  loop::StopReason stopped_by = loop::StopReason::samples;
  int device = -1;
  GateKind gate = GateKind::none;
  GuardKind guard = GuardKind::none;
  bool warm_up_settled = false;
  bool persisting_lines_reset = false;
  bool cupti_was_used = false;  // earlier in this process, by us
};

// Times the works on the stream, in turn when there are several. Throws only while nothing has been sampled
// yet and the request itself cannot be met; once there are samples, what went wrong is part of the record.
std::unique_ptr<StreamRecord> time_on_stream(const Driver& driver, std::optional<std::uintptr_t> stream,
                                             int device, const std::vector<loop::Work*>& works,
                                             const clock::Clock& clock, const StreamSettings& settings);

}  // namespace fairlap::cuda
