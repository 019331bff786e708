#include <cmath>

#include "telemetry/energy/energy.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/readings.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

Reading broken(std::int64_t at_ms, ReadingState state) {
  Reading reading = reading_at(at_ms, std::nan(""));
  reading.state = state;
  return reading;
}

// A counter that is read every `poll_ms` and shows, in steps of 100 ms, the energy of a constant power.
std::vector<Reading> stepping(double watts, std::int64_t until_ms, std::int64_t poll_ms, double start_j,
                              double wraps_at_j) {
  std::vector<Reading> readings;
  for (std::int64_t t = 0; t <= until_ms; t += poll_ms) {
    double joules = start_j + watts * static_cast<double>(t / 100 * 100) / 1000.0;
    if (wraps_at_j > 0.0) joules = std::fmod(joules, wraps_at_j);
    readings.push_back(reading_at(t, joules));
  }
  return readings;
}

void check_unresolved(const RegionEnergy& energy, const std::string& reason) {
  CHECK(!energy.resolved());
  if (!contains(energy.unresolved_because, reason)) fail(__FILE__, __LINE__, energy.unresolved_because);
  CHECK(std::isnan(energy.joules));
}

}  // namespace

TEST("constant power integrates to power times time, exactly, with no width") {
  const std::vector<Reading> readings{reading_at(0, 80.0), reading_at(100, 80.0), reading_at(200, 80.0),
                                      reading_at(300, 80.0)};
  const RegionEnergy energy = energy_of_power(readings, between(50, 275), {});
  CHECK(energy.resolved());
  CHECK_NEAR(energy.joules, 80.0 * 0.225, 1e-9);
  CHECK_NEAR(energy.low_j, energy.high_j, 1e-9);
  CHECK_EQUAL(energy.readings, 2U);
}

TEST("a ramp integrates exactly between any two bounds, on readings and off them") {
  std::vector<Reading> readings;
  for (std::int64_t t = 0; t <= 1000; t += 50) readings.push_back(reading_at(t, static_cast<double>(t)));
  for (const auto& [begin_ms, end_ms] : {std::pair{100, 900}, std::pair{130, 870}, std::pair{101, 199}}) {
    const RegionEnergy energy = energy_of_power(readings, between(begin_ms, end_ms), {});
    const double exact_j = (end_ms * end_ms - begin_ms * begin_ms) / 2.0 / 1000.0;
    CHECK_NEAR(energy.joules, exact_j, 1e-9);
    CHECK(energy.low_j < exact_j && exact_j < energy.high_j);
  }
}

TEST("the interval holds any power that stays between its readings") {
  const std::vector<Reading> readings{reading_at(0, 100.0), reading_at(100, 300.0), reading_at(200, 100.0)};
  const RegionEnergy energy = energy_of_power(readings, between(0, 200), {});
  CHECK_NEAR(energy.joules, 40.0, 1e-9);
  CHECK_NEAR(energy.low_j, 20.0, 1e-9);
  CHECK_NEAR(energy.high_j, 60.0, 1e-9);
}

TEST("a sensor's gain and the age of its readings widen the interval and leave the value") {
  const std::vector<Reading> readings{reading_at(0, 100.0), reading_at(100, 200.0), reading_at(200, 200.0)};
  PowerSensor sensor;
  sensor.gain_share = 0.05;
  const RegionEnergy plain = energy_of_power(readings, between(0, 200), {});
  const RegionEnergy gain = energy_of_power(readings, between(0, 200), sensor);
  CHECK_NEAR(gain.low_j, plain.low_j * 0.95, 1e-9);
  CHECK_NEAR(gain.high_j, plain.high_j * 1.05, 1e-9);
  CHECK_EQUAL(gain.joules, plain.joules);
  sensor = {};
  sensor.stale_ns = 50 * kMs;
  const RegionEnergy stale = energy_of_power(readings, between(0, 200), sensor);
  CHECK_NEAR(stale.low_j, plain.low_j - 5.0, 1e-9);
  CHECK_NEAR(stale.high_j, plain.high_j + 5.0, 1e-9);
}

TEST("what the readings do not enclose is unresolved, never 0") {
  const std::vector<Reading> readings{reading_at(100, 50.0), reading_at(200, 50.0)};
  check_unresolved(energy_of_power({}, between(0, 1), {}), "no readings");
  check_unresolved(energy_of_power(readings, between(50, 150), {}), "after the start of the region");
  check_unresolved(energy_of_power(readings, between(150, 250), {}), "before the end of the region");
  check_unresolved(energy_of_power(readings, between(150, 150), {}), "no length");
  check_unresolved(energy_of_counter({}, between(0, 1), 0.0), "no readings");
  const std::vector<Reading> failed{broken(0, ReadingState::failed), broken(9, ReadingState::failed)};
  check_unresolved(energy_of_power(failed, between(1, 2), {}), "every reading failed");
}

TEST("a region without a reading inside is unresolved, with the range seen around it") {
  const std::vector<Reading> readings{reading_at(0, 50.0), reading_at(100, 150.0)};
  const RegionEnergy energy = energy_of_power(readings, between(40, 60), {});
  check_unresolved(energy, "too few readings: 0 inside");
  CHECK_NEAR(energy.low_j, 1.0, 1e-9);
  CHECK_NEAR(energy.high_j, 3.0, 1e-9);
}

TEST("a failed reading is dropped, and a gap that is too long makes the region unresolved") {
  const std::vector<Reading> readings{reading_at(0, 10.0), broken(100, ReadingState::failed),
                                      reading_at(200, 10.0), reading_at(300, 10.0)};
  PowerSensor sensor;
  sensor.longest_gap_ns = 250 * kMs;
  CHECK_NEAR(energy_of_power(readings, between(50, 250), sensor).joules, 2.0, 1e-9);
  sensor.longest_gap_ns = 150 * kMs;
  check_unresolved(energy_of_power(readings, between(50, 250), sensor), "a gap of 200 ms");
}

TEST("a source that is lost makes unresolved what ends later, and leaves what ended before") {
  const std::vector<Reading> readings{reading_at(0, 10.0), reading_at(100, 10.0), reading_at(200, 10.0),
                                      broken(300, ReadingState::source_lost)};
  CHECK_NEAR(energy_of_power(readings, between(50, 150), {}).joules, 1.0, 1e-9);
  check_unresolved(energy_of_power(readings, between(50, 350), {}), "was lost");
  check_unresolved(energy_of_counter(readings, between(50, 350), 0.0), "was lost");
}

TEST("a counter's difference is exact for constant power when it is read often") {
  const auto readings = stepping(200.0, 2000, 1, 17.0, 0.0);
  for (const auto& [begin_ms, end_ms] : {std::pair{300, 1500}, std::pair{333, 1477}, std::pair{250, 450}}) {
    const RegionEnergy energy = energy_of_counter(readings, between(begin_ms, end_ms), 0.0);
    const double exact_j = 200.0 * (end_ms - begin_ms) / 1000.0;
    CHECK_EQUAL(energy.unresolved_because, "");
    CHECK_NEAR(energy.joules, exact_j, 1e-9);
    CHECK(energy.low_j <= exact_j && exact_j <= energy.high_j);
    CHECK(energy.high_j - energy.low_j <= 2 * 200.0 * 0.1 + 1e-9);  // a step at each end
  }
}

TEST("however seldom a counter is read, its interval holds the truth") {
  for (const std::int64_t poll_ms : {1, 7, 30, 90, 130, 250}) {
    const auto readings = stepping(100.0, 6000, poll_ms, 0.0, 0.0);
    for (std::int64_t begin_ms = 500; begin_ms < 1500; begin_ms += 37) {
      for (const std::int64_t length_ms : {600, 1111, 3000}) {
        const RegionEnergy energy = energy_of_counter(readings, between(begin_ms, begin_ms + length_ms), 0.0);
        const double exact_j = 100.0 * static_cast<double>(length_ms) / 1000.0;
        CHECK(energy.low_j <= exact_j + 1e-9 && exact_j <= energy.high_j + 1e-9);
        CHECK(energy.resolved());
        CHECK(energy.joules >= energy.low_j && energy.joules <= energy.high_j);
      }
    }
  }
}

TEST("a counter may wrap, more than once") {
  const auto readings = stepping(200.0, 3000, 10, 40.0, 150.0);
  const RegionEnergy energy = energy_of_counter(readings, between(200, 2700), 150.0);
  CHECK_NEAR(energy.joules, 500.0, 1e-6);
}

TEST("a counter that goes backwards without a wrap was reset, and is unresolved") {
  auto readings = stepping(200.0, 1000, 10, 500.0, 0.0);
  for (std::size_t i = 50; i < readings.size(); ++i) readings[i].value -= 500.0;
  check_unresolved(energy_of_counter(readings, between(300, 800), 0.0), "went backwards");
}

TEST("a region shorter than a counter's step is unresolved, with what its steps still bound") {
  const auto readings = stepping(200.0, 1000, 10, 0.0, 0.0);
  const RegionEnergy energy = energy_of_counter(readings, between(420, 440), 0.0);
  check_unresolved(energy, "no step of the counter is wholly inside");
  CHECK_NEAR(energy.high_j, 20.0, 1e-9);
  CHECK_NEAR(energy.low_j, 0.0, 1e-9);
}

TEST("a counter without steps around the region is unresolved") {
  const auto readings = stepping(200.0, 1000, 10, 0.0, 0.0);
  check_unresolved(energy_of_counter(readings, between(20, 600), 0.0), "no step before the region");
  check_unresolved(energy_of_counter(readings, between(300, 1000), 0.0), "no step after the region");
}

TEST("readings out of order are refused, since they are not of one field") {
  bool refused = false;
  try {
    energy_of_power(std::vector<Reading>{reading_at(10, 1.0), reading_at(5, 1.0), reading_at(20, 1.0)},
                    between(11, 12), {});
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

TEST_MAIN()
