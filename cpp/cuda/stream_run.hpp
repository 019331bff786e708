#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clock/clock.hpp"
#include "cuda/attribution.hpp"
#include "cuda/device_floor.hpp"
#include "cuda/gate.hpp"
#include "cuda/sample_table.hpp"
#include "cuda/sequence.hpp"
#include "loop/work.hpp"

namespace fairlap::cuda {

enum class GateWish { automatic, stream_wait, spin, none };

// What the caller asked for. A zero means "not asked"; whatever is reached first stops the run.
struct StreamPlan {
  Method method = Method::device_span;
  std::size_t samples = 0;
  double seconds = 0.0;
  double target_half_width = 0.0;
  std::uint64_t calls_per_sample = 0;  // 0: as many as quantum_share asks for
  double quantum_share = 0.01;         // the event quantum is at most this share of a sample
  bool find_warm_up = true;            // else exactly warm_up_calls
  std::uint64_t warm_up_calls = 0;
  bool flush = false;
  GateWish gate = GateWish::automatic;
  bool graph = false;
  bool guard = true;
  double timeout_s = 60.0;      // for the device to finish one sample
  double gate_timeout_s = 0.5;  // for the call to return while the stream is held
  std::size_t slots = 4;        // samples in flight at most
  std::vector<std::string> cupti_places;
};

enum class StreamStop { samples, seconds, target, full, interrupt, raised, timeout, gate, cuda_error };

const char* name_of(StreamStop stop) noexcept;

// What a method measures; the one that it is named after is the headline.
std::vector<Quantity> quantities_of(Method method);
Quantity headline_of(Method method);

// Everything one run left behind. Arrays are handed to Python as they lie in the table.
struct StreamRecord {
  std::unique_ptr<SampleTable> table;
  std::string error;  // what the device or the gate had to say when it stopped the run
  double elapsed_ns = 0.0;
  std::uint64_t calls_per_sample = 1;
  std::size_t halvings = 0;  // of the calls per sample, because the gate timed out
  std::size_t slots = 1;
  std::size_t graph_nodes = 0;

  std::uint64_t warm_up_calls = 0;
  double warm_up_elapsed_ns = 0.0;
  double first_call_ns = 0.0;

  std::string stream;
  std::string gate_because;  // why this gate and not a better one; empty when there is nothing to say
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

  StreamStop stopped_by = StreamStop::samples;
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
                                             const clock::Clock& clock, const StreamPlan& plan);

}  // namespace fairlap::cuda
