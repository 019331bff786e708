#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "fakes/fake_nvml.h"
#include "telemetry/nvml/nvml_source.hpp"
#include "telemetry/sampling/calibration.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/sampler_at_work.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::test;
using std::chrono::milliseconds;

namespace {

constexpr std::int64_t kMs = 1'000'000;

Reading reading_at(double at_ms, double value) {
  Reading reading;
  reading.time_ns = static_cast<std::int64_t>(at_ms * kMs);
  reading.value = value;
  return reading;
}

// A value that is new every `period_ms`, looked at every `look_ms`.
std::vector<Reading> published_every(double period_ms, double look_ms, double until_ms, auto value_of) {
  std::vector<Reading> readings;
  for (double t = 0.0; t <= until_ms; t += look_ms) {
    const double publication = std::floor(t / period_ms) * period_ms;
    readings.push_back(reading_at(t, value_of(publication)));
  }
  return readings;
}

// Runs and rests for times that are never the same: what repeats is explained by longer windows too.
bool runs(double at_ms) {
  if (at_ms < 0.0) return false;
  double begin_ms = 0.0;
  for (int turn = 0;; ++turn) {
    const double run_ms = 30.0 + 17.0 * (turn * 7 % 11);
    const double whole_ms = run_ms + 40.0 + 13.0 * (turn * 5 % 13);
    if (at_ms < begin_ms + whole_ms) return at_ms < begin_ms + run_ms;
    begin_ms += whole_ms;
  }
}

double load(double at_ms) { return runs(at_ms) ? 1.0 : 0.0; }

double mean_load(double to_ms, double window_ms) {
  double sum = 0.0;
  for (int i = 0; i < 1000; ++i) sum += load(to_ms - window_ms * (i + 0.5) / 1000.0);
  return sum / 1000.0;
}

std::vector<Reading> known_load(double until_ms) {
  std::vector<Reading> readings;
  for (double t = 0.0; t <= until_ms; t += 1.0) readings.push_back(reading_at(t, load(t)));
  return readings;
}

const FieldCalibration& of_field(const std::vector<FieldCalibration>& found, const Source& source,
                                 const std::string& name) {
  for (const FieldCalibration& each : found) {
    if (source.fields().at(each.field).name == name) return each;
  }
  throw Failure("nothing was found of " + name);
}

}  // namespace

TEST("a publication period is the distance between new values, also where some repeat the one before") {
  const auto climbing = [](double at_ms) { return at_ms; };
  const ObservedTime plain = publication_period(published_every(100.0, 1.0, 1000.0, climbing));
  CHECK_EQUAL(plain.unknown_because, "");
  CHECK_NEAR(plain.seconds, 0.1, 0.001);
  CHECK_NEAR(plain.resolution_s, 0.001, 1e-9);
  const auto every_third_repeats = [](double at_ms) { return std::floor(at_ms / 100.0 * 2.0 / 3.0 + 1e-9); };
  CHECK_NEAR(publication_period(published_every(100.0, 1.0, 2000.0, every_third_repeats)).seconds, 0.1,
             0.001);
}

TEST("a period that cannot be seen is unknown with the reason") {
  const auto still = [](double) { return 5.0; };
  CHECK(contains(publication_period(published_every(100.0, 1.0, 1000.0, still)).unknown_because,
                 "changed 0 times in 1000 ms"));
  const auto climbing = [](double at_ms) { return at_ms; };
  CHECK(
      contains(publication_period(published_every(1.0, 1.0, 100.0, climbing)).unknown_because, "every look"));
  CHECK(contains(publication_period({}).unknown_because, "fewer than twice"));
  CHECK(std::isnan(publication_period({}).seconds));
}

TEST("the window of a sensor is found from a load that is known, whatever its unit and offset") {
  for (const double window_ms : {25.0, 50.0, 100.0}) {
    const auto published = published_every(
        103.0, 1.0, 8000.0, [&](double t) { return 40'000.0 + 250'000.0 * mean_load(t, window_ms); });
    const ObservedTime window = averaging_window(published, known_load(8000.0));
    CHECK_EQUAL(window.unknown_because, "");
    CHECK_NEAR(window.seconds, window_ms / 1000.0, 2.0 * window.resolution_s);
  }
}

TEST("a window is unknown where nothing moved, nothing fits, or too little was watched") {
  const auto still = published_every(100.0, 1.0, 2000.0, [](double) { return 5.0; });
  CHECK(contains(averaging_window(still, known_load(2000.0)).unknown_because, "hardly changed"));
  std::uint32_t state = 1;
  const auto noise = published_every(100.0, 1.0, 6000.0, [&](double at_ms) {
    state = static_cast<std::uint32_t>(at_ms) * 2654435761U;
    return static_cast<double>(state >> 8U);
  });
  CHECK(contains(averaging_window(noise, known_load(6000.0)).unknown_because, "no average"));
  CHECK(contains(averaging_window({}, {}).unknown_because, "too few"));
  const auto turning = [](double at_ms) { return std::fmod(at_ms, 200.0) < 70.0 ? 1.0 : 0.0; };
  std::vector<Reading> turns;
  for (double t = 0.0; t <= 4000.0; t += 1.0) turns.push_back(reading_at(t, turning(t)));
  const auto published = published_every(23.0, 1.0, 4000.0, [&](double t) {
    double sum = 0.0;
    for (int i = 0; i < 100; ++i) sum += turning(t + 1000.0 - 0.5 * i);
    return sum;
  });
  CHECK(contains(averaging_window(published, turns).unknown_because, "repeats itself"));
}

// Whether this thread has to share its core, so that looks come too late to find a period of 20 ms.
bool looks_come_late() {
  constexpr double kOwnShare = 0.8;
  const auto began = std::chrono::steady_clock::now();
  const std::clock_t cpu_began = std::clock();
  std::chrono::duration<double> took{};
  while (took < milliseconds(300)) took = std::chrono::steady_clock::now() - began;
  return static_cast<double>(std::clock() - cpu_began) / CLOCKS_PER_SEC < kOwnShare * took.count();
}

TEST("each NVML field is called alone, and its cost, period and window are found") {
  fake_nvml_reset();
  fake_nvml_use_real_clock(1);
  fake_nvml_power_constant(0, 100'000);
  for (int ms = 0; ms < 6000; ++ms) {
    if (runs(ms) != runs(ms - 1) || ms == 0)
      fake_nvml_power_point(0, ms * kMs, runs(ms) ? 300'000 + ms : 100'000, 0);
  }
  fake_nvml_power_sensor(0, 20 * kMs, 0, 0, 100 * kMs);
  fake_nvml_set_cost("nvmlDeviceGetMemoryInfo", 300'000);
  const auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
  const auto found = calibrate(devices, engine_clock(), milliseconds(1200));
  fake_nvml_use_real_clock(0);
  const Source& device = *devices.front();
  std::size_t present = 0;
  for (const Field& field : device.fields()) present += field.present() ? 1U : 0U;
  CHECK_EQUAL(found.size(), present);
  const FieldCalibration& expensive = of_field(found, device, "memory_used_bytes");
  CHECK(expensive.call_ns >= 300'000.0);
  CHECK(expensive.worst_call_ns >= expensive.call_ns);
  CHECK(contains(expensive.period.unknown_because, "changed 0 times"));
  CHECK(contains(expensive.window.unknown_because, "a known load"));
  const FieldCalibration& power = of_field(found, device, "power_instant_w");
  CHECK(power.call_ns < 300'000.0);
  const FieldCalibration& average = of_field(found, device, "power_average_w");
  CHECK(average.period.known() || looks_come_late());
  if (average.period.known()) CHECK_NEAR(average.period.seconds, 0.02, 0.003);
  // Instant power is itself new every 20 ms only, and on a busy machine looks come late: then it is unknown.
  if (average.window.known()) CHECK_NEAR(average.window.seconds, 0.1, 0.03);
}

TEST("the fast lane takes a quarter of the shortest period that its sources publish at") {
  const auto sources = just(std::make_unique<Counting>());
  FieldCalibration fast;
  fast.period.seconds = 0.08;
  CHECK_EQUAL(fast_period_for(sources, std::vector{fast}, milliseconds(25)).count(), 20'000'000);
  FieldCalibration slow;
  slow.field = 1;
  slow.period.seconds = 0.004;
  fast.period.seconds = 0.0002;
  CHECK_EQUAL(fast_period_for(sources, std::vector{fast, slow}, milliseconds(25)).count(), 1'000'000);
  fast.period.unknown_because = "it stood still";
  CHECK_EQUAL(fast_period_for(sources, std::vector{fast, slow}, milliseconds(25)).count(), 25'000'000);
}

TEST("a sampler that was calibrated keeps the period that was found; one that runs refuses") {
  fake_nvml_reset();
  fake_nvml_use_real_clock(1);
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 0, 0, 0);
  fake_nvml_power_point(0, 100'000 * kMs, 10'000'000, 1);
  fake_nvml_power_sensor(0, 40 * kMs, 0, 0, 1000 * kMs);
  Sampler sampler(nvml_sources(FAIRLAP_FAKE_NVML), engine_clock(), SamplerSettings{});
  sampler.calibrate(milliseconds(400), false);
  CHECK_EQUAL(sampler.period().count(), 50'000'000);
  sampler.calibrate(milliseconds(400), true);
  fake_nvml_use_real_clock(0);
  const bool found = sampler.period().count() < 50'000'000;
  CHECK(found || looks_come_late());
  if (found) CHECK_NEAR(static_cast<double>(sampler.period().count()), 10e6, 3e6);
  sampler.start();
  bool refused = false;
  try {
    sampler.calibrate(milliseconds(1), true);
  } catch (const NotNow&) {
    refused = true;
  }
  CHECK(refused);
}

TEST_MAIN()
