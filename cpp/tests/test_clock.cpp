#include <algorithm>
#include <cstdint>
#include <vector>

#include "clock/clock.hpp"
#include "tests/check.hpp"

using namespace fairlap::clock;

TEST("a counter that steps by 24.45 scaled ticks has a quantum of about 24.45") {
  std::vector<std::uint64_t> readings;
  for (int step = 2; step < 30; ++step) {
    for (int times = 0; times < 10; ++times)
      readings.push_back(static_cast<std::uint64_t>(24.45 * step + 0.1 * (times % 5)));
  }
  std::sort(readings.begin(), readings.end());
  CHECK_NEAR(quantum_of(readings), 24.45, 0.6);
}

TEST("a counter seen on every tick has a quantum of one tick") {
  std::vector<std::uint64_t> readings;
  for (std::uint64_t value = 50; value < 150; ++value) readings.insert(readings.end(), 8, value);
  CHECK_EQUAL(quantum_of(readings), 1.0);
}

TEST("readings seen once or twice do not count as steps") {
  std::vector<std::uint64_t> readings;
  for (std::uint64_t value = 40; value < 400; value += 20) readings.insert(readings.end(), 50, value);
  readings.push_back(407);
  readings.push_back(9001);
  CHECK_EQUAL(quantum_of(readings), 20.0);
}

TEST("the midmean ignores the outer halves") {
  CHECK_EQUAL(midmean_of({0, 10, 20, 30, 40, 50, 60, 1'000'000}), 35.0);
  CHECK_EQUAL(midmean_of({}), 0.0);
}

TEST("a counter that runs 200 ppm fast is reported as such") {
  const Calibration calibration{0.5, 0.0, {}};
  const CrossCheck check = cross_check(calibration, {0, 0, 0}, {2'000'400, 1'000'000, 0});
  CHECK_NEAR(check.drift_ppm, 200.0, 1e-6);
}

TEST("a counter that went backwards shows as a drift of a million parts and more") {
  const Calibration calibration{1.0, 0.0, {}};
  const CrossCheck check = cross_check(calibration, {1'000'000, 0, 0}, {500'000, 1'000'000, 0});
  CHECK(check.drift_ppm < -1e6);
}

TEST("what the brackets leave open is the resolution of the drift") {
  const Calibration calibration{1.0, 5.0, {}};
  const CrossCheck check = cross_check(calibration, {0, 0, 100}, {1'000'000, 1'000'000, 100});
  CHECK_NEAR(check.resolution_ppm, 105.0, 1e-9);
}

TEST("both sources of this machine never go backwards and agree with the OS clock") {
  for (const char* name : {name_of(Source::timestamp_counter).data(), "monotonic_raw"}) {
    const Clock& clock = Clock::named(name);
    std::uint64_t last = clock.start();
    for (int i = 0; i < 100'000; ++i) {
      const std::uint64_t now = clock.finish();
      CHECK(now >= last);
      last = now;
    }
    const CrossCheck check = clock.drift_since_calibration();
    CHECK(std::abs(check.drift_ppm) < 500.0 + 2 * check.resolution_ppm);
  }
}

TEST("a floor has a positive quantum, overhead and bias") {
  const Floor& floor = Clock::best().floor();
  CHECK(floor.quantum_ns > 0.0);
  CHECK(floor.overhead_ns > 0.0);
  CHECK(floor.bias_ns > 0.0);
  CHECK(floor.bias_ns < 10'000.0);
}

TEST("an unknown source is refused by name") {
  try {
    Clock::named("sundial");
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).find("sundial") != std::string::npos);
    return;
  }
  CHECK(!"a source named sundial was accepted");
}

TEST_MAIN()
