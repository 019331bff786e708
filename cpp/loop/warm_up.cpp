#include "loop/warm_up.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <span>

#include "loop/robust_interval.hpp"
#include "loop/steadiness.hpp"

namespace fairlap::loop {
namespace {

constexpr std::size_t kWindowSamples = 65'536;  // 5 ms of the shortest calls
constexpr double kWindowNs = 5e6;
constexpr double kSteadyWithin = 0.02;
constexpr std::size_t kChoosingSamples = 5;
constexpr double kSurprising = 2.0;  // times as long as what is known
constexpr std::uint64_t kMostCallsPerSample = std::uint64_t{1} << 24U;

// Writing to the pages of the largest window takes a millisecond, as long as a short run itself.
std::size_t places_for(const Settings& settings) {
  if (settings.warm_up == WarmUpKind::found) return kWindowSamples;
  return std::clamp<std::uint64_t>(settings.warm_up_calls, kChoosingSamples, kWindowSamples);
}

class WarmUp {
 public:
  WarmUp(SliceTaker& taker, const clock::Clock& clock, const Settings& settings)
      : taker_(taker),
        clock_(clock),
        settings_(settings),
        places_(places_for(settings)),
        memory_(3 * places_ * sizeof(std::uint64_t)),
        wall_(memory_.as<std::uint64_t>().first(places_)),
        host_issue_(memory_.as<std::uint64_t>().subspan(places_, places_)),
        scratch_(memory_.as<double>().last(places_)) {
    out_.done.kind = settings.warm_up;
    out_.calls_per_sample = std::max<std::uint64_t>(1, settings.calls_per_sample);
  }

  WarmedUp run() {
    if (settings_.warm_up == WarmUpKind::none) return out_;
    const std::uint64_t begin = clock_.start();
    out_.done.first_call_ns = window(1, 1, 0.0);
    if (settings_.warm_up == WarmUpKind::calls) run_given_calls();
    if (settings_.warm_up == WarmUpKind::found) run_until_settled();
    if (settings_.calls_per_sample == 0) choose_calls_per_sample();
    out_.done.elapsed_ns = clock_.ns_of(clock_.finish() - begin);
    return out_;
  }

 private:
  [[nodiscard]] bool uninterrupted() const { return out_.why == Interruption::none; }

  // Takes samples and returns their median, in nanoseconds of one whole sample.
  double window(std::size_t samples, std::uint64_t calls_per_sample, double length_ns) {
    const Slice slice{.wall_ticks = wall_.data(),
                      .host_issue_ticks = host_issue_.data(),
                      .room = samples,
                      .calls_per_sample = calls_per_sample,
                      .length_ticks = clock_.ticks_of(length_ns)};
    const SliceEnd end = taker_.take(slice);
    out_.why = end.why;
    out_.done.calls += end.taken * calls_per_sample;
    if (end.taken == 0) return 0.0;
    out_.sample_period_ns = clock_.ns_of(end.last_ticks - end.first_ticks) / static_cast<double>(end.taken);
    std::transform(wall_.begin(), wall_.begin() + static_cast<std::ptrdiff_t>(end.taken), scratch_.begin(),
                   [this](std::uint64_t ticks) { return clock_.ns_of(ticks); });
    const double sample_ns = quantile_in_place(scratch_.first(end.taken), 0.5);
    shortest_call_ns_ = std::min(shortest_call_ns_, sample_ns / static_cast<double>(calls_per_sample));
    return sample_ns;
  }

  void run_given_calls() {
    while (uninterrupted() && out_.done.calls < settings_.warm_up_calls) {
      const std::uint64_t left = settings_.warm_up_calls - out_.done.calls;
      const std::uint64_t calls_each = std::min(left, out_.calls_per_sample);
      const auto samples = static_cast<std::size_t>(std::min<std::uint64_t>(places_, left / calls_each));
      window(samples, calls_each, kWindowNs);
    }
    out_.done.settled = uninterrupted();
  }

  void run_until_settled() {
    Steadiness steadiness(kSteadyWithin, clock_.floor().quantum_ns);
    const std::uint64_t begin = clock_.start();
    const std::uint64_t longest = clock_.ticks_of(settings_.warm_up_max_seconds * 1e9);
    // A window that cannot fit any more is not begun, so that a slow call is not warmed up for long.
    const auto fits = [&] {
      return clock_.finish() - begin + clock_.ticks_of(out_.sample_period_ns) < longest;
    };
    while (uninterrupted() && !steadiness.settled() && fits()) {
      steadiness.add_window(window(places_, out_.calls_per_sample, kWindowNs));
    }
    out_.done.settled = steadiness.settled();
  }

  // Of one sample of as many calls. One that lost its core for longer than a window may last is the only one
  // of its window and would pass for long enough, so where it took much longer than calls did before it is
  // taken again.
  double sample_ns(std::uint64_t calls_per_sample) {
    const double known_ns = shortest_call_ns_ * static_cast<double>(calls_per_sample);
    const double first_ns = window(kChoosingSamples, calls_per_sample, kWindowNs);
    if (first_ns <= kSurprising * known_ns || !uninterrupted()) return first_ns;
    return std::min(first_ns, window(kChoosingSamples, calls_per_sample, kWindowNs));
  }

  // Powers of two, so that the same work gets the same number on the same machine nearly always.
  void choose_calls_per_sample() {
    const double wanted_ns =
        settings_.floor_multiple * (clock_.floor().quantum_ns + clock_.floor().overhead_ns);
    while (uninterrupted()) {
      const double found_ns = sample_ns(out_.calls_per_sample) - clock_.floor().bias_ns;
      if (found_ns >= wanted_ns || out_.calls_per_sample >= kMostCallsPerSample) return;
      const double short_by = wanted_ns / std::max(found_ns, clock_.floor().quantum_ns);
      const auto factor = static_cast<std::uint64_t>(std::clamp(short_by, 2.0, 16.0));
      out_.calls_per_sample *= std::bit_ceil(factor);
    }
  }

  SliceTaker& taker_;
  const clock::Clock& clock_;
  const Settings& settings_;
  std::size_t places_;  // samples in a window
  PrefaultedMemory memory_;
  std::span<std::uint64_t> wall_;
  std::span<std::uint64_t> host_issue_;
  std::span<double> scratch_;
  double shortest_call_ns_ = std::numeric_limits<double>::infinity();  // by the medians of windows
  WarmedUp out_;
};

}  // namespace

WarmedUp warm_up(SliceTaker& taker, const clock::Clock& clock, const Settings& settings) {
  return WarmUp(taker, clock, settings).run();
}

}  // namespace fairlap::loop
