// Energy of power whose course is known exactly, through the sources and the ring, on the fake's own clock.

#include <cmath>

#include "fakes/fake_nvml.h"
#include "telemetry/energy/energy.hpp"
#include "telemetry/energy/powercap.hpp"
#include "telemetry/energy/repeated_energy.hpp"
#include "telemetry/nvml/nvml_source.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;

// What sources report while the fake's clock runs, collected now and then, as a sampler's readings are.
class OnTheFakesClock {
 public:
  explicit OnTheFakesClock(std::size_t room = 4096) : ring_(room), taken_(room) {}

  void run(std::vector<std::unique_ptr<Source>>& sources, std::int64_t length_ns, std::int64_t every_ns,
           int slow_every = 4) {
    const std::int64_t end_ns = fake_nvml_now_ns() + length_ns;
    for (int round = 0; fake_nvml_now_ns() < end_ns; ++round) {
      read(sources, Lane::fast);
      if (round % slow_every == 0) read(sources, Lane::slow);
      if (round % 50 == 49) collect();
      fake_nvml_advance(every_ns);
    }
    read(sources, Lane::fast);
    read(sources, Lane::slow);
    collect();
  }

  [[nodiscard]] std::vector<Reading> of(const std::vector<std::unique_ptr<Source>>& sources,
                                        std::uint32_t source, const std::string& name) const {
    std::uint32_t field = 0;
    while (sources.at(source)->fields().at(field).name != name) ++field;
    return readings_of(readings_, source, field);
  }
  [[nodiscard]] const std::vector<Reading>& all() const { return readings_; }
  [[nodiscard]] std::uint64_t overflowed() const { return ring_.overflowed(); }

 private:
  void read(std::vector<std::unique_ptr<Source>>& sources, Lane lane) {
    const std::int64_t now_ns = fake_nvml_now_ns();
    Recorder recorder(ring_, fairlap::clock::Clock::named("monotonic_raw"));
    for (std::uint32_t s = 0; s < sources.size(); ++s) {
      recorder.speak_for(s);
      sources[s]->read(lane, recorder);
    }
    times_.resize(readings_.size() + ring_.size(), now_ns);
  }
  void collect() {
    const std::size_t count = ring_.take(taken_);
    for (std::size_t i = 0; i < count; ++i) {
      taken_[i].time_ns = times_.at(readings_.size());
      readings_.push_back(taken_[i]);
    }
  }

  Ring ring_;
  std::vector<Reading> taken_;
  std::vector<Reading> readings_;
  std::vector<std::int64_t> times_;  // of each reading, in order
};

// A sensor without delay: new at every look, of this very moment.
void perfect_sensor(int device) { fake_nvml_power_sensor(device, 1, 0, 0, kSecond); }

}  // namespace

TEST("the integrals of a constant, a ramp and a saw are exact") {
  fake_nvml_reset();
  fake_nvml_set_device_count(3);
  fake_nvml_power_constant(0, 250'000);
  fake_nvml_power_constant(1, 100'000);
  fake_nvml_power_point(1, 0, 100'000, 0);
  fake_nvml_power_point(1, 10 * kSecond, 400'000, 1);
  fake_nvml_power_constant(2, 50'000);
  for (int tooth = 0; tooth < 10; ++tooth) {
    fake_nvml_power_point(2, tooth * kSecond, 50'000, tooth == 0 ? 0 : 1);
    fake_nvml_power_point(2, tooth * kSecond + 500 * kMs, 350'000, 1);
  }
  for (int i = 0; i < 3; ++i) perfect_sensor(i);
  auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
  OnTheFakesClock clock;
  clock.run(devices, 9 * kSecond, 25 * kMs);
  const Region region{2 * kSecond, 8 * kSecond};
  // Power is reported in whole milliwatts.
  const double exact_j[] = {250.0 * 6.0, (160.0 + 340.0) / 2.0 * 6.0, 200.0 * 6.0};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto power = clock.of(devices, i, "power_instant_w");
    const RegionEnergy energy = energy_of_power(power, region, {});
    CHECK_EQUAL(energy.unresolved_because, "");
    CHECK_NEAR(energy.joules, exact_j[i], 0.0006 * region.seconds());
    const RegionEnergy counted = energy_of_counter(clock.of(devices, i, "energy_j"), region, 0.0);
    CHECK(counted.low_j <= exact_j[i] && exact_j[i] <= counted.high_j);
    CHECK_NEAR(counted.joules, energy.joules, 0.02 * energy.joules);
  }
}

TEST("a square wave's integral is wrong by no more than its interval allows, at any phase of the sensor") {
  for (const std::int64_t phase_ms : {0, 17, 55, 83}) {
    fake_nvml_reset();
    fake_nvml_power_constant(0, 60'000);
    for (int turn = 0; turn < 20; ++turn) {
      fake_nvml_power_point(0, turn * 700 * kMs, 300'000, 0);
      fake_nvml_power_point(0, turn * 700 * kMs + 400 * kMs, 60'000, 0);
    }
    fake_nvml_power_sensor(0, 100 * kMs, phase_ms * kMs, 25 * kMs, kSecond);
    auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
    OnTheFakesClock clock;
    clock.run(devices, 8 * kSecond, 25 * kMs);
    PowerSensor sensor;
    sensor.stale_ns = 125 * kMs;
    const Region region{700 * kMs, 7000 * kMs};  // nine whole turns
    const double exact_j = 9 * (300.0 * 0.4 + 60.0 * 0.3);
    const RegionEnergy energy = energy_of_power(clock.of(devices, 0, "power_instant_w"), region, sensor);
    CHECK_EQUAL(energy.unresolved_because, "");
    CHECK(energy.low_j <= exact_j && exact_j <= energy.high_j);
    const RegionEnergy counted = energy_of_counter(clock.of(devices, 0, "energy_j"), region, 0.0);
    CHECK(counted.low_j <= exact_j && exact_j <= counted.high_j);
  }
}

TEST("what a counter sees between ticks is bounded by how often it is looked at") {
  fake_nvml_reset();
  fake_nvml_power_constant(0, 180'000);
  for (const std::int64_t look_ms : {5, 20, 25}) {
    auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
    const std::int64_t begin_ns = fake_nvml_now_ns();
    OnTheFakesClock clock;
    clock.run(devices, 4 * kSecond, look_ms * kMs, 1);
    const Region region{begin_ns + 330 * kMs, begin_ns + 3330 * kMs};
    const TickedPower power = power_between_ticks(clock.of(devices, 0, "energy_j"), region, 0.0);
    CHECK_EQUAL(power.unresolved_because, "");
    CHECK(std::abs(power.watts - 180.0) <= 180.0 * power.uncertainty_share);
    CHECK(power.uncertainty_share <= static_cast<double>(look_ms) / 2'700.0);
  }
}

TEST("counters that wrap, of a device and of a package, give the energy over the wrap") {
  fake_nvml_reset();
  const FileTree tree;
  const std::string zone = "sys/class/powercap/intel-rapl:0/";
  tree.write(zone + "name", "package-0\n");
  tree.write(zone + "max_energy_range_uj", "99999999\n");  // it wraps at 100 J
  tree.write(zone + "energy_uj", "0\n");
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<Powercap>(tree.root()));
  OnTheFakesClock clock;
  for (int ms = 0; ms < 6000; ms += 10) {  // 70 W, from 63 J on
    tree.write(zone + "energy_uj", std::to_string((63'000'000 + ms * 70'000LL) % 100'000'000) + "\n");
    clock.run(sources, 1, 10 * kMs);
  }
  const auto counter = clock.of(sources, 0, "intel-rapl:0 package-0 energy_j");
  const Region region{kSecond, 5 * kSecond};
  const RegionEnergy energy = energy_of_counter(counter, region, sources[0]->fields()[0].wraps_at);
  CHECK_EQUAL(energy.unresolved_because, "");
  CHECK_NEAR(energy.joules, 280.0, 0.01);
}

TEST("at 1 kHz for a minute, every reading arrives and every publication is caught") {
  fake_nvml_reset();
  fake_nvml_power_constant(0, 0);
  fake_nvml_power_point(0, 0, 0, 0);
  fake_nvml_power_point(0, 1000 * kSecond, 10'000'000, 1);  // a watt more with each publication
  fake_nvml_power_sensor(0, 100 * kMs, 0, 0, kSecond);
  auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
  OnTheFakesClock clock;
  clock.run(devices, 60 * kSecond, kMs, 100);
  CHECK_EQUAL(clock.overflowed(), 0U);
  const auto power = clock.of(devices, 0, "power_instant_w");
  CHECK_EQUAL(power.size(), 60'001U);
  CHECK_EQUAL(clock.of(devices, 0, "energy_j").size(), 601U);
  for (std::size_t i = 0; i < power.size(); ++i) {
    CHECK_EQUAL(power[i].time_ns, static_cast<std::int64_t>(i) * kMs);
    CHECK_NEAR(power[i].value, static_cast<double>(i / 100), 1e-9);
  }
}

TEST("of eight devices one is lost and one unplugged in the middle, and the other six are whole") {
  fake_nvml_reset();
  fake_nvml_set_device_count(8);
  for (int i = 0; i < 8; ++i) {
    fake_nvml_power_constant(i, 100'000.0 + 10'000.0 * i);
    perfect_sensor(i);
  }
  auto devices = nvml_sources(FAIRLAP_FAKE_NVML);
  OnTheFakesClock clock;
  clock.run(devices, 3 * kSecond, 25 * kMs);
  fake_nvml_lose_gpu(2);
  fake_nvml_unplug(5);
  clock.run(devices, 3 * kSecond, 25 * kMs);
  CHECK_EQUAL(clock.overflowed(), 0U);
  const Region whole{kSecond, 5 * kSecond};
  const Region before{kSecond, 2 * kSecond};
  for (std::uint32_t i = 0; i < 8; ++i) {
    const auto power = clock.of(devices, i, "power_instant_w");
    const double watts = 100.0 + 10.0 * i;
    CHECK_NEAR(energy_of_power(power, before, {}).joules, watts, 1e-6);
    const RegionEnergy energy = energy_of_power(power, whole, {});
    if (i == 2 || i == 5) {
      CHECK(contains(energy.unresolved_because, "was lost"));
      CHECK(std::isnan(energy.joules));
    } else {
      CHECK_NEAR(energy.joules, 4.0 * watts, 1e-6);
    }
  }
}

TEST_MAIN()
