#include <cmath>

#include "telemetry/energy/repeated_energy.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/readings.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

// A counter of a constant power that ticks every 100 ms, `phase_ms` after the full ones, looked at every few
// ms.
std::vector<Reading> ticking(double watts, std::int64_t until_ms, std::int64_t look_ms,
                             std::int64_t phase_ms = 0, double wraps_at_j = 0.0) {
  std::vector<Reading> readings;
  for (std::int64_t t = 0; t <= until_ms; t += look_ms) {
    double joules = watts * static_cast<double>((t + 100 - phase_ms) / 100 * 100 + phase_ms) / 1000.0;
    if (wraps_at_j > 0.0) joules = std::fmod(joules, wraps_at_j);
    readings.push_back(reading_at(t, joules));
  }
  return readings;
}

std::vector<Reading> steady(double watts, std::int64_t until_ms) {
  std::vector<Reading> readings;
  for (std::int64_t t = 0; t <= until_ms; t += 25) readings.push_back(reading_at(t, watts));
  return readings;
}

const std::vector<Trial> kTrials{
    {between(1000, 3000), 400}, {between(3530, 5530), 400}, {between(6010, 8010), 400}};

}  // namespace

TEST("power between ticks is as exact as the ticks are seen, at any phase of the region and of the counter") {
  for (const std::int64_t look_ms : {1, 10, 25}) {
    for (const std::int64_t phase_ms : {0, 30, 77}) {
      const auto counter = ticking(200.0, 4000, look_ms, phase_ms);
      for (std::int64_t begin_ms = 500; begin_ms < 640; begin_ms += 7) {
        const Region region = between(begin_ms, begin_ms + 2000);
        const TickedPower power = power_between_ticks(counter, region, 0.0);
        CHECK_EQUAL(power.unresolved_because, "");
        CHECK(power.ticks.begin_ns >= region.begin_ns && power.ticks.end_ns <= region.end_ns);
        CHECK(power.ticks.seconds() >= 1.7);  // at most a tick and a look are lost at each end
        CHECK(std::abs(power.watts / 200.0 - 1.0) <= power.uncertainty_share + 1e-12);
        CHECK(power.uncertainty_share <= static_cast<double>(look_ms) / 1000.0 / (1.7 - 0.025) + 1e-12);
      }
    }
  }
}

TEST("the energy of a repeat is within its bound, and the bound has every part") {
  PowerSensor sensor;
  sensor.gain_share = 0.05;
  const auto counter = ticking(200.0, 9000, 10);
  const RepeatedEnergy energy = repeated_energy(kTrials, counter, 0.0, steady(200.0, 9000), sensor);
  CHECK_EQUAL(energy.unresolved_because, "");
  CHECK_NEAR(energy.seconds, 6.0, 1e-9);
  CHECK(energy.low_j <= 1.0 && 1.0 <= energy.high_j);  // 200 W for 2 s, 400 times
  CHECK_NEAR(energy.joules, 1.0, energy.alignment_share + energy.spread_share);
  CHECK(energy.alignment_share > 0.0 && energy.alignment_share < 0.01);
  CHECK_NEAR((energy.high_j - energy.low_j) / 2.0 / energy.joules,
             energy.alignment_share + energy.spread_share + energy.disagreement_share + 0.05, 1e-9);
}

TEST("trials that differ, and a counter that the integral contradicts, widen the bound") {
  std::vector<Reading> counter = ticking(200.0, 9000, 10);
  for (Reading& reading : counter) {
    if (reading.time_ns > 6000 * kMs)
      reading.value += (static_cast<double>(reading.time_ns) / 1e9 - 6.0) * 40.0;
  }
  const RepeatedEnergy spread = repeated_energy(kTrials, counter, 0.0, {}, {});
  CHECK_EQUAL(spread.unresolved_because, "");
  CHECK_NEAR(spread.joules, (1.0 + 1.0 + 1.2) / 3.0, 0.01);
  CHECK_NEAR(spread.spread_share, 4.303 * 0.11547 / std::sqrt(3.0) / 1.0667, 0.02);
  CHECK(std::isnan(spread.disagreement_share));
  const RepeatedEnergy contradicted =
      repeated_energy(kTrials, ticking(200.0, 9000, 10), 0.0, steady(220.0, 9000), {});
  CHECK_NEAR(contradicted.disagreement_share, 0.1, 0.01);
  CHECK(contradicted.high_j >= 1.1);
}

TEST("work that is too short, a single trial, too few ticks and a counter that was reset are unresolved") {
  const auto counter = ticking(200.0, 9000, 10);
  const auto reason = [&](const std::vector<Trial>& trials, const std::vector<Reading>& counted) {
    const RepeatedEnergy energy = repeated_energy(trials, counted, 0.0, {}, {});
    CHECK(!energy.resolved());
    CHECK(std::isnan(energy.joules) && std::isnan(energy.low_j));
    return energy.unresolved_because;
  };
  CHECK(contains(reason({{between(500, 2500), 9}, {between(3000, 5000), 9}}, counter), "less than 5 s"));
  CHECK(contains(reason({{between(500, 6500), 9}}, counter), "one trial"));
  CHECK(contains(reason({{between(500, 650), 9}, {between(1000, 8000), 9}}, counter), "fewer than twice"));
  CHECK(contains(reason({{between(500, 4000), 0}, {between(4500, 8000), 9}}, counter), "repeated nothing"));
  CHECK(contains(reason({}, counter), "less than 5 s"));
  CHECK(contains(reason(kTrials, {}), "no readings"));
  auto reset = counter;
  for (std::size_t i = reset.size() / 2; i < reset.size(); ++i) reset[i].value -= 700.0;
  CHECK(contains(reason(kTrials, reset), "went backwards"));
  auto lost = counter;
  lost[200].state = ReadingState::source_lost;
  CHECK(contains(reason(kTrials, lost), "was lost"));
}

TEST("a counter may wrap between and inside trials") {
  const RepeatedEnergy energy = repeated_energy(kTrials, ticking(200.0, 9000, 10, 0, 170.0), 170.0, {}, {});
  CHECK_EQUAL(energy.unresolved_because, "");
  CHECK(energy.low_j <= 1.0 && 1.0 <= energy.high_j);
}

TEST("a region that may lie between two windows of the sensor is unresolved, with the range around it") {
  const std::vector<Reading> power{reading_at(0, 50.0), reading_at(25, 50.0), reading_at(50, 90.0),
                                   reading_at(75, 90.0), reading_at(200, 90.0)};
  PowerSensor sensor;
  sensor.period_ns = 100 * kMs;
  sensor.window_ns = 25 * kMs;
  const RegionEnergy between_windows = energy_of_power(power, between(20, 80), sensor);
  CHECK(contains(between_windows.unresolved_because, "may have seen none of it"));
  CHECK(std::isnan(between_windows.joules));
  CHECK(between_windows.low_j >= 3.0 && between_windows.high_j <= 5.4);
  CHECK(energy_of_power(power, between(20, 95), sensor).resolved());
}

TEST_MAIN()
