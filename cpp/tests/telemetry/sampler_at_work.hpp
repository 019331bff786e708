#pragma once

// What tests of the sampler's thread share.

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "telemetry/sampling/sampler.hpp"
#include "tests/check.hpp"

namespace fairlap::test {

using namespace fairlap::telemetry;

// Gives the numbers 0, 1, 2, ... in each lane, so that a lost or doubled reading shows.
class Counting final : public Source {
 public:
  explicit Counting(bool fast = true) : Source("counting") {
    if (fast)
      add({.name = "fast_count", .kind = FieldKind::counter, .lane = Lane::fast, .absent_because = ""});
    else
      add({.name = "fast_count",
           .kind = FieldKind::counter,
           .lane = Lane::fast,
           .absent_because = "not wanted"});
    add({.name = "slow_count", .kind = FieldKind::counter, .lane = Lane::slow, .absent_because = ""});
    conclude();
  }
  void read(Lane lane, Recorder& recorder) noexcept override {
    const std::uint32_t field = lane == Lane::fast ? 0 : 1;
    if (lane == Lane::rare || !fields()[field].present()) return;
    const Moment when = recorder.timed([] {});
    recorder.put(when, field, counts_[field]++);
  }

 private:
  std::array<double, 2> counts_{};
};

inline std::vector<std::unique_ptr<Source>> just(std::unique_ptr<Source> source) {
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::move(source));
  return sources;
}

inline const clock::Clock& engine_clock() { return clock::Clock::best(); }

inline SamplerSettings every(std::chrono::milliseconds fast, std::chrono::milliseconds slow) {
  SamplerSettings settings;
  settings.fast_period = fast;
  settings.slow_period = slow;
  settings.rare_period = std::max(settings.rare_period, settings.slow_period);
  settings.most_call_share = 1.0;  // these periods are short; what is tested is their keeping
  return settings;
}

// However long this machine lets the sampler's thread wait.
template <typename Happened>
void wait_until(const Happened& happened) {
  while (!happened()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline std::vector<Reading> collected(Sampler& sampler) {
  std::vector<Reading> readings;
  sampler.collect(readings);
  return readings;
}

// The readings of one field; also proves that none is missing and that time runs forward.
inline std::vector<Reading> in_a_row(const std::vector<Reading>& all, std::uint32_t field) {
  std::vector<Reading> own;
  for (const Reading& reading : all) {
    if (reading.field != field) continue;
    CHECK_EQUAL(reading.value, static_cast<double>(own.size()));
    if (!own.empty()) CHECK(reading.time_ns >= own.back().time_ns);
    own.push_back(reading);
  }
  return own;
}

}  // namespace fairlap::test
