#include "cuda/stream/stream_run.hpp"

#include <algorithm>
#include <utility>

#include "cuda/gate/patience.hpp"
#include "cuda/sampling/graph_replay.hpp"
#include "cuda/sampling/rotating_work.hpp"
#include "cuda/stream/stream_means.hpp"
#include "cuda/stream/stream_warm_up.hpp"
#include "loop/robust_interval.hpp"

namespace fairlap::cuda {
namespace {

using loop::StopReason;

constexpr std::size_t kTimeoutsInARow = 3;
constexpr std::size_t kSamplesAtMost = std::size_t{4} * 1024 * 1024;
constexpr std::uint64_t kCallsInFlightAtMost = 512;

// One run, phase by phase. Members are in the order of their making; what refers to another comes after it.
class StreamRun {
 public:
  StreamRun(BorrowedStream stream, const std::vector<loop::Work*>& works, const clock::Clock& clock,
            const StreamSettings& settings)
      : stream_(std::move(stream)),
        driver_(stream_.driver()),
        clock_(clock),
        settings_(settings),
        captured_(works),
        rotating_(works),
        record_(std::make_unique<StreamRecord>()) {
    work_ = works.size() == 1 ? works.front() : &rotating_;
    record_->table = std::make_unique<SampleTable>(0, quantities_of(settings_.method));
  }

  std::unique_ptr<StreamRecord> run() {
    refuse_a_capturing_stream();
    means_ = std::make_unique<StreamMeans>(stream_, settings_, clock_, work_->has_completion(), *record_);
    shape_ = {.method = settings_.method,
              .flush = settings_.flush,
              .gate = means_->has_gate(),
              .guard = means_->guard().kind,
              .slots = std::clamp<std::size_t>(settings_.slots, 1, Sequence::kSlotsAtMost)};
    steps_ =
        std::make_unique<DeviceSteps>(stream_, *captured_.front(), clock_, means_->for_steps(), shape_.slots);
    if (!ended_by(warm_up())) sample();
    describe();
    return std::move(record_);
  }

 private:
  void refuse_a_capturing_stream() {
    if (!stream_.known()) return;
    const CurrentContext current(driver_, stream_.context().handle());
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    driver_.cuStreamIsCapturing(stream_.handle(), &status);
    if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
      throw BadStream(stream_.name() + " is capturing a CUDA graph; end the capture before timing on it");
    }
  }

  // Everything before the first sample is kept.
  SampleEnd warm_up() {
    const bool any = settings_.warm_up == loop::WarmUpKind::found || settings_.warm_up_calls > 0;
    const bool by_events =
        settings_.method == Method::device_span || settings_.method == Method::context_span;
    StreamWarmUp warming(settings_, stream_, clock_, *means_, *steps_, *record_);
    const std::uint64_t begun = clock_.start();
    SampleEnd end = SampleEnd::taken;
    // Nothing can be captured at its first call: frameworks load, compile and allocate then.
    if (any || settings_.graph) end = warming.first_calls(*work_, shape_);
    if (end == SampleEnd::taken) look_for_persisting_lines();
    // Before a graph is made: its nodes are recorded only when CUPTI sees it being made.
    if (end == SampleEnd::taken) means_->begin_records(*record_);
    if (end == SampleEnd::taken && settings_.graph) end = capture();
    if (end == SampleEnd::taken && any) end = warming.settle(*work_, shape_);
    shape_.calls_per_sample = std::max<std::uint64_t>(1, settings_.calls_per_sample);
    // Flushed once and called twice, the second call would find a warm cache.
    const bool cold_once = settings_.flush || shape_.resets_persisting;
    const bool choose = settings_.calls_per_sample == 0 && any && by_events && !cold_once;
    if (end == SampleEnd::taken && choose) end = warming.choose_calls(*work_, shape_);
    record_->warm_up_elapsed_ns = clock_.ns_of(clock_.finish() - begun);
    sample_period_ns_ = warming.sample_period_ns();
    return end;
  }

  // After the first calls, in which a framework may set a part of the cache aside.
  void look_for_persisting_lines() {
    const bool cold = settings_.flush || captured_.size() > 1;
    shape_.resets_persisting =
        cold && settings_.method != Method::host_issue && lines_can_persist(stream_.context());
    record_->persisting_lines_reset = shape_.resets_persisting;
    if (!shape_.resets_persisting || settings_.calls_per_sample <= 1) return;
    throw Unavailable(
        "a part of the L2 cache is set aside for lines that persist, so only the first call of a sample "
        "finds it "
        "cold; use calls_per_sample=1");
  }

  SampleEnd capture() {
    std::vector<loop::Work*> replayed;
    for (loop::Work* const work : captured_) {
      replays_.push_back(std::make_unique<GraphReplay>(stream_, *work));
      if (!replays_.back()->capture()) return SampleEnd::raised;
      record_->graph_nodes += replays_.back()->nodes();
      replayed.push_back(replays_.back().get());
    }
    rotating_replays_.emplace(replayed);
    work_ = replayed.size() == 1 ? replayed.front() : &*rotating_replays_;
    return SampleEnd::taken;
  }

  [[nodiscard]] std::size_t capacity() const {
    if (settings_.stop.samples > 0) return std::min(settings_.stop.samples, kSamplesAtMost);
    const double expected = sample_period_ns_ > 0.0 ? settings_.stop.seconds * 1e9 / sample_period_ns_ : 1e5;
    return static_cast<std::size_t>(std::clamp(2.0 * expected, 64.0, static_cast<double>(kSamplesAtMost)));
  }

  void sample() {
    record_->table = std::make_unique<SampleTable>(capacity(), quantities_of(settings_.method));
    // More would fill the driver's queue, and the host would wait for room inside its own samples.
    shape_.slots = std::clamp<std::size_t>(kCallsInFlightAtMost / shape_.calls_per_sample, 1, shape_.slots);
    steps_->begin(*record_->table, shape_, means_->guard());
    sequence_ = std::make_unique<Sequence>(*steps_, *work_, clock_, shape_);
    scratch_.resize(loop::batch_scratch_size(record_->table->capacity()));
    const std::uint64_t begun = clock_.start();
    try {
      take_samples(begun);
      if (may_drain_) static_cast<void>(ended_by(sequence_->drain()));
      if (may_drain_) steps_->attribute_records();
    } catch (const std::exception& error) {
      record_->stopped_by = StopReason::cuda_error;
      record_->error = error.what();
      keep_what_is_done();
    }
    record_->elapsed_ns = clock_.ns_of(clock_.finish() - begun);
    record_->longest_tail_ns = std::max(record_->longest_tail_ns, steps_->longest_tail_ns());
  }

  void take_samples(std::uint64_t begun) {
    const SampleTable& table = *record_->table;
    loop::StopCheck check(settings_.stop, table.capacity());
    const auto elapsed_s = [this, begun] { return clock_.ns_of(clock_.finish() - begun) / 1e9; };
    const auto interval = [this, &table] {
      return loop::interval_of_median(table.column(headline_of(settings_.method)), scratch_);
    };
    while (!ended_by(sequence_->take_one()) && !gate_keeps_timing_out()) {
      const std::size_t taken = table.size() + sequence_->in_flight();
      const auto reached = check.reached(taken, table.size(), elapsed_s, interval);
      if (!reached) continue;
      record_->stopped_by = *reached;
      return;
    }
  }

  // A call that waits now and then, or a queue that several calls outgrow: with half the calls it may do.
  bool gate_keeps_timing_out() {
    SampleTable& table = *record_->table;
    const std::size_t timeouts = table.count(Invalid::gate_timed_out);
    if (table.valid() > valid_before_) timeouts_in_a_row_ = 0;
    valid_before_ = table.valid();
    if (timeouts == timeouts_before_) return false;
    timeouts_in_a_row_ += timeouts - timeouts_before_;
    timeouts_before_ = timeouts;
    if (shape_.calls_per_sample > 1) {
      if (ended_by(sequence_->drain())) return true;
      table.invalidate_rows_before(table.size(), Invalid::calls_were_reduced);
      timeouts_before_ = table.count(Invalid::gate_timed_out);
      valid_before_ = timeouts_in_a_row_ = 0;
      shape_.calls_per_sample /= 2;
      ++record_->halvings;
      steps_->begin(table, shape_, means_->guard());
      sequence_ = std::make_unique<Sequence>(*steps_, *work_, clock_, shape_);
      return false;
    }
    if (timeouts_in_a_row_ < kTimeoutsInARow) return false;
    record_->stopped_by = StopReason::gate;
    record_->error = "the call did not return while the stream was held, " + std::to_string(kTimeoutsInARow) +
                     " times in a row: it waits for the device. Use gate='none'.";
    return true;
  }

  // Whether the run ends with this, and why.
  bool ended_by(SampleEnd end) {
    switch (end) {
      case SampleEnd::taken:
        return false;
      case SampleEnd::stop_requested:
        record_->stopped_by = StopReason::interrupt;
        return true;
      case SampleEnd::raised:
        record_->stopped_by = StopReason::raised;
        if (const CUresult code = replay_error(); code != CUDA_SUCCESS) {
          record_->stopped_by = StopReason::cuda_error;
          record_->error = driver_.error("cuGraphLaunch", code).what();
        }
        return true;
      case SampleEnd::interrupted:
        record_->stopped_by = StopReason::interrupt;
        abandon();
        return true;
      case SampleEnd::out_of_patience:
        record_->stopped_by = StopReason::timeout;
        record_->error =
            "the device did not finish its work within " + seconds_text(settings_.timeout_s) +
            "; it may hang: check it with nvidia-smi, or raise timeout_s if the work takes that long";
        abandon();
        return true;
    }
    return true;
  }

  [[nodiscard]] CUresult replay_error() const {
    for (const auto& replay : replays_) {
      if (replay->launch_error() != CUDA_SUCCESS) return replay->launch_error();
    }
    return CUDA_SUCCESS;
  }

  // After an error some samples in flight may still be whole.
  void keep_what_is_done() noexcept {
    try {
      static_cast<void>(sequence_->drain());
      steps_->attribute_records();
    } catch (const std::exception& second) {
      if (record_->error.empty()) record_->error = second.what();  // The first error is the cause.
    }
  }

  void abandon() noexcept {
    may_drain_ = false;
    means_->abandon();
  }

  void describe() {
    record_->calls_per_sample = shape_.calls_per_sample;
    record_->device = stream_.context().device();
    record_->stream = stream_.name();
    record_->guard = means_->guard().kind;
    record_->guard_allowed_ns = means_->guard().allowed_ns;
    record_->slots = shape_.slots;
    record_->trace = steps_->trace_summary();
    record_->lost_records = steps_->lost_records();
  }

  BorrowedStream stream_;
  const Driver& driver_;
  const clock::Clock& clock_;
  const StreamSettings& settings_;
  std::vector<loop::Work*> captured_;
  RotatingWork rotating_;
  std::unique_ptr<StreamRecord> record_;
  loop::Work* work_ = nullptr;

  std::unique_ptr<StreamMeans> means_;
  std::vector<std::unique_ptr<GraphReplay>> replays_;
  std::optional<RotatingWork> rotating_replays_;
  SampleShape shape_;
  std::unique_ptr<DeviceSteps> steps_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<double> scratch_;
  double sample_period_ns_ = 0.0;
  std::size_t timeouts_before_ = 0;
  std::size_t timeouts_in_a_row_ = 0;
  std::size_t valid_before_ = 0;
  bool may_drain_ = true;
};

}  // namespace

std::vector<Quantity> quantities_of(Method method) {
  switch (method) {
    case Method::device_span:
      return {Quantity::host_issue_ns, Quantity::device_span_ns};
    case Method::context_span:
      return {Quantity::host_issue_ns, Quantity::context_span_ns};
    case Method::kernel_sum:
      return {Quantity::host_issue_ns, Quantity::kernel_sum_ns, Quantity::busy_ns, Quantity::gap_ns,
              Quantity::copy_sum_ns};
    case Method::host_issue:
      break;
  }
  return {Quantity::host_issue_ns};
}

Quantity headline_of(Method method) {
  const std::vector<Quantity> all = quantities_of(method);
  return all.size() > 1 ? all[1] : all[0];
}

std::unique_ptr<StreamRecord> time_on_stream(const Driver& driver, std::optional<std::uintptr_t> stream,
                                             int device, const std::vector<loop::Work*>& works,
                                             const clock::Clock& clock, const StreamSettings& settings) {
  return StreamRun(BorrowedStream::borrow(driver, stream, device), works, clock, settings).run();
}

}  // namespace fairlap::cuda
