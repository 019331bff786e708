#include "cuda/stream/stream_warm_up.hpp"

#include <algorithm>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/sampling/calls_per_sample.hpp"
#include "cuda/stream/late_work.hpp"
#include "loop/steadiness.hpp"

namespace fairlap::cuda {
namespace {

constexpr double kDocumentedQuantumNs = 500.0;  // where no step could be seen
constexpr std::uint64_t kFirstSamples = 3;
constexpr std::size_t kWindowSamples = 8;
constexpr std::size_t kWindowsAtMost = 64;
constexpr double kLongestNs = 2e9;
constexpr double kSteadyWithin = 0.02;
constexpr std::size_t kChoosingSamples = 5;

// A busy host delays its own looks now and then, which is no property of the call.
constexpr std::uint64_t kFurtherLooks = 8;
constexpr double kHiddenShare = 1.0 / 3.0;

// An empty kernel takes longer than this; two events with nothing between them differ by less.
constexpr std::size_t kLooksForLateWork = 5;
constexpr double kShortestLateWorkNs = 500.0;
constexpr double kQuantaOfLateWork = 4.0;

constexpr const char* kDidNotReturn =
    "the call did not return while the stream was held; it waits for the device, or launches more than the "
    "driver's queue holds";

}  // namespace

double StreamWarmUp::quantum_ns() const noexcept {
  const double quantum = record_.floor.event_quantum_ns;
  return quantum > 0.0 ? quantum : kDocumentedQuantumNs;
}

StreamWarmUp::Batch StreamWarmUp::take(loop::Work& work, std::size_t samples, const SampleShape& shape,
                                       const Guard& guard) {
  SampleTable table(samples, quantities_of(settings_.method));
  steps_.begin(table, shape, guard);
  Sequence sequence(steps_, work, clock_, shape);
  Batch batch;
  const std::uint64_t begun = clock_.start();
  // One timed-out gate is as informative as many, and each costs its whole limit.
  const auto gate_held = [&table] { return table.count(Invalid::gate_timed_out) == 0; };
  for (std::size_t sample = 0; sample < samples && batch.end == SampleEnd::taken && gate_held(); ++sample) {
    batch.end = sequence.take_one();
  }
  if (batch.end == SampleEnd::taken) batch.end = sequence.drain();
  if (batch.end == SampleEnd::taken) steps_.attribute_records();
  sample_period_ns_ =
      clock_.ns_of(clock_.finish() - begun) / static_cast<double>(std::max<std::size_t>(1, table.size()));
  record_.warm_up_calls += table.size() * shape.calls_per_sample;

  std::vector<double> valid;
  for (const double value : table.column(headline_of(settings_.method))) {
    if (!std::isnan(value)) valid.push_back(value * static_cast<double>(shape.calls_per_sample));
  }
  batch.median_ns = median_of(std::move(valid));
  batch.valid = table.valid();
  batch.gate_timeouts = table.count(Invalid::gate_timed_out);
  batch.hidden = table.count(Invalid::hidden_work);
  record_.longest_tail_ns = std::max(record_.longest_tail_ns, steps_.longest_tail_ns());
  return batch;
}

void StreamWarmUp::give_up_gate(SampleShape& shape, const std::string& because) {
  if (settings_.gate) {
    throw Unavailable("the gate that was asked for cannot be used: " + because +
                      ". Use gate='none' or gate='auto'.");
  }
  shape.gate = false;
  record_.gate = GateKind::none;
  record_.gate_because = because;
}

void StreamWarmUp::give_up_gate_if_timed_out(const Batch& batch, SampleShape& shape) {
  if (batch.gate_timeouts == 0 || !shape.gate) return;
  give_up_gate(shape, kDidNotReturn);
}

SampleEnd StreamWarmUp::first_calls(loop::Work& work, SampleShape& shape) {
  SampleShape first = shape;
  first.gate = false;
  first.guard = means_.waiting_guard().kind;
  first.slots = 1;
  if (first.method == Method::kernel_sum) first.method = Method::host_issue;  // There are no records yet.
  const std::uint64_t begun = clock_.start();
  const Batch coldest = take(work, 1, first, means_.waiting_guard());
  record_.first_call_ns = clock_.ns_of(clock_.finish() - begun);
  if (coldest.end != SampleEnd::taken) return coldest.end;
  const std::uint64_t wanted =
      finds_warm_up() ? kFirstSamples : std::min(kFirstSamples, settings_.warm_up_calls);
  if (wanted <= 1) return SampleEnd::taken;
  if (const SampleEnd end = look_for_hidden_work(work, wanted - 1, first); end != SampleEnd::taken)
    return end;
  if (const SampleEnd end = refuse_late_work(work, shape); end != SampleEnd::taken) return end;
  if (!hides_work_) return SampleEnd::taken;
  means_.wait_after_each_sample();
  shape.guard = means_.guard().kind;
  if (shape.gate) {
    give_up_gate(shape,
                 "the call leaves work running on other streams, which a gate would let run ahead unseen");
  }
  return SampleEnd::taken;
}

SampleEnd StreamWarmUp::look_for_hidden_work(loop::Work& work, std::uint64_t samples,
                                             const SampleShape& waited) {
  const Batch looked = take(work, samples, waited, means_.waiting_guard());
  if (looked.end != SampleEnd::taken || looked.hidden == 0) return looked.end;
  const Batch further = take(work, kFurtherLooks, waited, means_.waiting_guard());
  const auto hidden = static_cast<double>(looked.hidden + further.hidden);
  hides_work_ = hidden >= kHiddenShare * static_cast<double>(samples + kFurtherLooks);
  return further.end;
}

SampleEnd StreamWarmUp::refuse_late_work(loop::Work& work, SampleShape& shape) {
  Gate* const gate = means_.gate();
  if (gate == nullptr || !shape.gate || !settings_.guard || settings_.graph) return SampleEnd::taken;
  const std::uint64_t left =
      settings_.warm_up_calls - std::min(settings_.warm_up_calls, record_.warm_up_calls);
  const std::size_t looks =
      finds_warm_up() ? kLooksForLateWork : std::min<std::size_t>(kLooksForLateWork, left);
  const auto limit = std::chrono::nanoseconds(static_cast<std::int64_t>(settings_.timeout_s * 1e9));
  const LateWork late = look_for_late_work(stream_, *gate, work, looks, limit);
  record_.warm_up_calls += late.calls;
  if (late.end != SampleEnd::taken) return late.end;
  if (!late.held) {
    give_up_gate(shape, kDidNotReturn);
    return SampleEnd::taken;
  }
  const double allowed_ns =
      record_.floor.empty_pair_ns + std::max(kShortestLateWorkNs, kQuantaOfLateWork * quantum_ns());
  if (late.usual_ns <= allowed_ns) return SampleEnd::taken;
  throw Unavailable("device_span is not available here: the call returns before its work is on " +
                    stream_.name() +
                    ", as where a framework launches from a thread of its own, so an event at its return is "
                    "older than the work; use method='context_span' with done=, or method='kernel_sum'");
}

SampleEnd StreamWarmUp::settle(loop::Work& work, SampleShape& shape) {
  while (!finds_warm_up() && record_.warm_up_calls < settings_.warm_up_calls) {
    const std::size_t left = settings_.warm_up_calls - record_.warm_up_calls;
    const Batch batch = take(work, std::min(left, kWindowSamples), shape, means_.guard());
    if (batch.end != SampleEnd::taken) return batch.end;
    give_up_gate_if_timed_out(batch, shape);
  }
  if (!finds_warm_up()) return SampleEnd::taken;
  loop::Steadiness steadiness(kSteadyWithin, quantum_ns());
  const std::uint64_t begun = clock_.start();
  for (std::size_t window = 0; window < kWindowsAtMost; ++window) {
    const Batch batch = take(work, kWindowSamples, shape, means_.guard());
    if (batch.end != SampleEnd::taken) return batch.end;
    give_up_gate_if_timed_out(batch, shape);
    steadiness.add_window(batch.median_ns);
    record_.warm_up_settled = steadiness.settled();
    if (record_.warm_up_settled || clock_.ns_of(clock_.finish() - begun) > kLongestNs) break;
  }
  return SampleEnd::taken;
}

SampleEnd StreamWarmUp::choose_calls(loop::Work& work, SampleShape& shape) {
  SampleEnd end = SampleEnd::taken;
  const auto span_of = [&](std::uint64_t calls) -> std::optional<double> {
    SampleShape tried = shape;
    tried.calls_per_sample = calls;
    const Batch batch = take(work, kChoosingSamples, tried, means_.guard());
    end = batch.end;
    if (end != SampleEnd::taken) return std::nullopt;
    if (batch.gate_timeouts > 0) ++record_.halvings;
    const bool is_known = batch.gate_timeouts == 0 && batch.valid > 0;
    return is_known ? std::optional(batch.median_ns) : std::nullopt;
  };
  shape.calls_per_sample = find_calls_per_sample(quantum_ns(), settings_.quantum_share, span_of);
  return end;
}

}  // namespace fairlap::cuda
