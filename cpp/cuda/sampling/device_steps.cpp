#include "cuda/sampling/device_steps.hpp"

#include <algorithm>

#include "cuda/activity/spans.hpp"
#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

// Reading records costs more than a sample, so it is done for many at once.
constexpr std::size_t kRowsPerReading = 256;
constexpr auto kAskToStopEvery = std::chrono::milliseconds(50);

}  // namespace

DeviceSteps::DeviceSteps(const BorrowedStream& stream, loop::Work& work, const clock::Clock& clock,
                         const Means& means, std::size_t slots)
    : stream_(stream),
      driver_(stream.driver()),
      work_(work),
      clock_(clock),
      means_(means),
      idle_(stream.context()) {
  slots_.reserve(slots);
  for (std::size_t made = 0; made < slots; ++made) slots_.emplace_back(stream.context());
  windows_.reserve(kRowsPerReading);
}

void DeviceSteps::begin(SampleTable& table, const SampleShape& shape, const Guard& guard) {
  table_ = &table;
  shape_ = shape;
  guard_ = guard;
  longest_tail_ns_ = 0.0;
  windows_.clear();
  trace_summary_ = {};
  lost_records_ = 0;
}

void DeviceSteps::reset_persisting_lines() {
  const CurrentContext current(driver_, stream_.context().handle());
  driver_.cuCtxResetPersistingL2Cache();
}

void DeviceSteps::flush_cache() {
  const CurrentContext current(driver_, stream_.context().handle());
  means_.flush->enqueue(stream_.handle());
}

void DeviceSteps::close_gate() {
  const CurrentContext current(driver_, stream_.context().handle());
  means_.gate->close(stream_.handle());
}

void DeviceSteps::open_gate(std::size_t slot) noexcept { slots_[slot].held = means_.gate->open(); }

void DeviceSteps::record_start(std::size_t slot) {
  Slot& here = slots_[slot];
  here.held = true;
  here.hidden = false;
  here.host_delay_ns = 0.0;
  const CurrentContext current(driver_, stream_.context().handle());
  record(stream_, by_context(), here.start.handle());
}

void DeviceSteps::record_stop(std::size_t slot) {
  const CurrentContext current(driver_, stream_.context().handle());
  slots_[slot].stopping = SteadyClock::now();
  record(stream_, by_context(), slots_[slot].stop.handle());
}

void DeviceSteps::record_guard(std::size_t slot) {
  Slot& here = slots_[slot];
  const CurrentContext current(driver_, stream_.context().handle());
  driver_.cuCtxRecordEvent(stream_.context().handle(), here.guard.handle());
  // Behind a gate both events are queued before either can happen.
  if (!shape_.gate)
    here.host_delay_ns = std::chrono::duration<double, std::nano>(SteadyClock::now() - here.stopping).count();
}

void DeviceSteps::begin_records(std::size_t slot) {
  if (means_.marks != nullptr) means_.marks->set();
  slots_[slot].window.begin_ns = means_.trace->now_ns();
}

void DeviceSteps::end_records(std::size_t slot) {
  slots_[slot].window.end_ns = means_.trace->now_ns();
  if (means_.marks != nullptr) means_.marks->set();
}

CUevent DeviceSteps::last_event_of(const Slot& slot) const noexcept {
  return guard_.kind == GuardKind::context_event ? slot.guard.handle() : slot.stop.handle();
}

// The driver wants a current context for this, and the calling thread may have none: JAX, TensorFlow and ONNX
// Runtime make theirs current on their own threads.
double DeviceSteps::span_between(const Event& start, const Event& stop) const {
  const CurrentContext current(driver_, stream_.context().handle());
  return span_ns(driver_, start.handle(), stop.handle());
}

// Asking about an event ends a capture that another thread began in the global mode, unless this thread
// relaxes.
bool DeviceSteps::has_happened(CUevent event) const {
  if (means_.whole_context) return is_done(driver_, event);  // Such captures have ended already.
  const RelaxedCapture relaxed(driver_);
  return is_done(driver_, event);
}

bool DeviceSteps::is_finished(std::size_t slot) { return has_happened(last_event_of(slots_[slot])); }

SampleEnd DeviceSteps::wait_for(std::size_t slot) {
  Slot& here = slots_[slot];
  if (guard_.kind == GuardKind::context_event) return wait_for_event(here.guard.handle(), nullptr);
  return wait_for_event(here.stop.handle(), &here.host_delay_ns);
}

SampleEnd DeviceSteps::wait_until_idle() {
  const CurrentContext current(driver_, stream_.context().handle());
  // The driver's own wait cannot be given up, so we first wait with an event as far as events reach.
  if (means_.context_events || stream_.known()) {
    record(stream_, means_.context_events, idle_.handle());
    if (const SampleEnd end = wait_for_event(idle_.handle(), nullptr); end != SampleEnd::taken) return end;
  }
  if (means_.whole_context) driver_.cuCtxSynchronize();
  return SampleEnd::taken;
}

SampleEnd DeviceSteps::wait_for_event(CUevent event, double* noticed_within_ns) {
  Patience patience(means_.patience);
  auto asked_at = std::chrono::nanoseconds(0);
  auto last_look = SteadyClock::now();
  while (!has_happened(event)) {
    last_look = SteadyClock::now();
    if (!patience.wait_a_little()) return SampleEnd::out_of_patience;
    if (const auto waited = patience.waited(); waited - asked_at > kAskToStopEvery) {
      asked_at = waited;
      if (asked_to_stop()) return SampleEnd::interrupted;
    }
  }
  if (noticed_within_ns != nullptr) {
    *noticed_within_ns = std::chrono::duration<double, std::nano>(SteadyClock::now() - last_look).count();
  }
  return SampleEnd::taken;
}

bool DeviceSteps::asked_to_stop() {
  work_.enter();
  const bool asked = work_.stop_requested();
  return work_.leave() || asked;
}

void DeviceSteps::look_for_hidden_work(std::size_t slot) {
  Slot& here = slots_[slot];
  if (guard_.kind == GuardKind::context_sync) {
    const CurrentContext current(driver_, stream_.context().handle());
    record_after_idle(stream_, by_context(), here.guard.handle());
    static_cast<void>(wait_for_event(here.guard.handle(), nullptr));
  }
  const double tail_ns = span_between(here.stop, here.guard);
  here.hidden = tail_ns > guard_.allowed_ns + here.host_delay_ns;
  if (here.hidden) longest_tail_ns_ = std::max(longest_tail_ns_, tail_ns);
}

void DeviceSteps::store(std::size_t slot, const HostStamps& stamps) {
  const Slot& here = slots_[slot];
  const auto calls = static_cast<double>(shape_.calls_per_sample);
  const std::size_t row = table_->add_row();
  table_->set_started(row, clock_.ns_of(stamps.started - clock_.calibration().origin.ticks));
  const double issue_ns = clock_.ns_of(stamps.issued - stamps.started) - clock_.floor().bias_ns;
  table_->set(row, Quantity::host_issue_ns, issue_ns / calls);
  if (shape_.method == Method::device_span || shape_.method == Method::context_span) {
    const double device_ns = span_between(here.start, here.stop);
    table_->set(row, by_context() ? Quantity::context_span_ns : Quantity::device_span_ns, device_ns / calls);
    if (!here.held) table_->invalidate(row, Invalid::gate_timed_out);
    if (here.hidden) table_->invalidate(row, Invalid::hidden_work);
    if (device_ns < 0.0) table_->invalidate(row, Invalid::span_backwards);
  }
  if (shape_.method == Method::kernel_sum) {
    windows_.push_back(here.window);
    if (windows_.size() == kRowsPerReading) attribute_records();
  }
}

void DeviceSteps::attribute_records() {
  if (windows_.empty()) return;
  ActivityTrace::Taken taken = means_.trace->take();
  if (means_.marks != nullptr) means_.marks->place(taken.activities, windows_);
  const std::vector<TracedSample> samples = attribute(taken.activities, windows_, trace_summary_);
  const auto calls = static_cast<double>(shape_.calls_per_sample);
  const std::size_t first_row = table_->size() - windows_.size();
  for (std::size_t sample = 0; sample < samples.size(); ++sample) {
    const TracedSample& traced = samples[sample];
    const std::size_t row = first_row + sample;
    table_->set(row, Quantity::kernel_sum_ns, traced.kernel_sum_ns / calls);
    table_->set(row, Quantity::busy_ns, traced.busy_ns / calls);
    table_->set(row, Quantity::gap_ns, traced.gap_ns / calls);
    table_->set(row, Quantity::copy_sum_ns, traced.copy_sum_ns / calls);
    if (is_any_lost_in(windows_[sample], taken.losses)) table_->invalidate(row, Invalid::records_dropped);
    if (traced.kernels + traced.copies == 0) table_->invalidate(row, Invalid::no_activity);
  }
  for (const Loss& loss : taken.losses) lost_records_ += loss.records;
  windows_.clear();
}

}  // namespace fairlap::cuda
