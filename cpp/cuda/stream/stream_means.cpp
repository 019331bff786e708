#include "cuda/stream/stream_means.hpp"

#include "cuda/gate/gate_choice.hpp"
#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

// Events and waits of a whole context end every capture in it, in whichever thread. A span on a known stream
// can do without them when no guard was asked for.
bool needs_whole_context(const BorrowedStream& stream, const StreamSettings& settings) {
  const bool by_stream = settings.method == Method::device_span || settings.method == Method::host_issue;
  return settings.guard || !by_stream || !stream.known();
}

}  // namespace

StreamMeans::StreamMeans(const BorrowedStream& stream, const StreamSettings& settings,
                         const clock::Clock& clock, bool with_completion, StreamRecord& record)
    : stream_(stream), settings_(settings), whole_context_(needs_whole_context(stream, settings)) {
  const RelaxedCapture relaxed(stream.driver());  // Nothing here is part of a capture.
  record.cupti_was_used = Cupti::was_used();
  wait_for_earlier_work();
  if (settings.method == Method::host_issue) return;
  load_kernels(record);
  const Kernels* const kernels = kernels_ ? &*kernels_ : nullptr;

  const ContextEvents events =
      whole_context_ ? probe_context_events(stream.context(), kernels) : ContextEvents{};
  context_events_ = events.usable;
  if (settings.method == Method::context_span && !events.usable) {
    throw Unavailable("context_span is not available here: " + events.why_not +
                      "; use method='device_span' with the work's stream, or method='kernel_sum'");
  }
  if (settings.method == Method::device_span) take_gate(kernels, record);
  if (settings.method != Method::kernel_sum) {
    const double release_ns = record.floor.gate_release_ns;
    record.floor = measure_device_floor(stream, gate_ ? &*gate_ : nullptr, kernels, clock);
    record.floor.gate_release_ns = release_ns;
    if (events.usable) record.floor.context_pair_ns = events.idle_span_ns;
    if (settings.guard) take_guards(events, with_completion);
  }
  if (settings.flush) {
    flush_.emplace(stream.context());
    record.flush_bytes = flush_->bytes();
  }
  record.cache_bytes = static_cast<std::size_t>(
      device_attribute(stream.driver(), stream.context().device(), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  if (settings.method == Method::kernel_sum) try_records(record);
}

// Work enqueued before the timing began belongs to no sample, and would make every probe wait.
void StreamMeans::wait_for_earlier_work() const {
  const Driver& driver = stream_.driver();
  const CurrentContext current(driver, stream_.context().handle());
  if (stream_.known()) {
    const Event last(stream_.context());
    driver.cuEventRecord(last.handle(), stream_.handle());
    Patience patience(nanoseconds_of(settings_.timeout_s));
    while (!is_done(driver, last.handle())) {
      if (patience.wait_a_little()) continue;
      throw Unavailable(stream_.name() + " is still busy with earlier work after " +
                        seconds_text(settings_.timeout_s) +
                        "; wait for that before timing, or raise timeout_s");
    }
  }
  if (whole_context_) driver.cuCtxSynchronize();
}

void StreamMeans::load_kernels(StreamRecord& record) {
  try {
    kernels_.emplace(stream_.context());
  } catch (const CudaError& error) {
    if (breaks_the_context(error.code())) throw;
    record.kernels_absent_because = error.what();
  }
}

void StreamMeans::take_gate(const Kernels* kernels, StreamRecord& record) {
  const GateChoice choice = choose_gate(stream_, settings_.gate, kernels);
  record.gate_because = choice.because;
  record.floor.gate_release_ns = choice.release_ns;
  if (choice.kind == GateKind::none) return;
  gate_.emplace(stream_.context(), choice.kind, kernels, nanoseconds_of(settings_.gate_timeout_s));
  record.gate = choice.kind;
}

void StreamMeans::take_guards(const ContextEvents& events, bool with_completion) {
  const bool by_context = settings_.method == Method::context_span;
  waiting_guard_ = calibrate_guard(stream_, GuardKind::context_sync, by_context, with_completion);
  guard_ = waiting_guard_;
  if (events.usable && !by_context)
    guard_ = calibrate_guard(stream_, GuardKind::context_event, false, with_completion);
}

// For a moment only, so that what forbids records is known before any work is done.
void StreamMeans::try_records(StreamRecord& record) {
  const Cupti& cupti = Cupti::of_this_process(settings_.cupti_places);
  record.cupti_version = cupti.version();
  record.cupti_path = cupti.path();
  trace_.emplace(cupti, stream_);
  trace_->start();
  if (kernels_) {
    measure_record_floor(stream_, *trace_, *kernels_, record.floor);
    marks_.emplace(stream_.context(), cupti, *kernels_);
  }
  trace_->stop();
}

void StreamMeans::begin_records(StreamRecord& record) {
  if (!trace_) return;
  trace_->start();
  record.trace_stream = trace_->stream_id();
}

DeviceSteps::Means StreamMeans::for_steps() noexcept {
  return {.gate = gate_ ? &*gate_ : nullptr,
          .flush = flush_ ? &*flush_ : nullptr,
          .trace = trace_ ? &*trace_ : nullptr,
          .marks = marks_ ? &*marks_ : nullptr,
          .context_events = context_events_,
          .whole_context = whole_context_,
          .patience = nanoseconds_of(settings_.timeout_s)};
}

void StreamMeans::abandon() noexcept {
  if (gate_) gate_->abandon();
  if (flush_) flush_->abandon();
  if (marks_) marks_->abandon();
  if (kernels_) kernels_->abandon();
}

}  // namespace fairlap::cuda
