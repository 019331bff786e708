#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "fakes/nvml/waveform.hpp"
#include "telemetry/nvml/nvml_abi.hpp"

namespace fairlap::fakes {

// One device of the fake: what its sensors would read at a time.
class Board {
 public:
  explicit Board(int number);

  [[nodiscard]] unsigned int instant_power_mw(std::int64_t now_ns) const;
  [[nodiscard]] unsigned int average_power_mw(std::int64_t now_ns) const;
  [[nodiscard]] std::uint64_t energy_mj(std::int64_t now_ns) const;

  // Fills in value and type; false when the board has no such field.
  bool read_field(std::uint32_t field, std::int64_t now_ns, telemetry::nvmlFieldValue_t& out) const;

  struct Sensor {
    std::int64_t period_ns = 100'000'000;
    std::int64_t phase_ns = 0;
    std::int64_t window_ns = 25'000'000;
    std::int64_t average_ns = 1'000'000'000;
  };
  struct EnergyCounter {
    std::uint64_t start_mj = 0;
    std::int64_t period_ns = 100'000'000;
    std::uint64_t wrap_mj = 0;
  };
  struct Counter {
    int value_type = 0;
    std::uint64_t start = 0;
    std::uint64_t per_second = 0;
    std::uint64_t wrap = 0;
  };

  int number = 0;
  std::string name;
  std::string uuid;
  std::string pci_bus_id;
  Waveform power;
  Sensor sensor;
  EnergyCounter energy;
  std::map<std::string, std::uint64_t> readings;
  std::map<std::uint32_t, Counter> counters;
  bool lost = false;
  bool unplugged = false;
  bool mig = false;
  int instance_of = -1;  // of a MIG device with this number: found by its UUID, not listed

  [[nodiscard]] bool listed() const { return !unplugged && instance_of < 0; }

 private:
  [[nodiscard]] std::int64_t last_publication_ns(std::int64_t now_ns) const;
};

}  // namespace fairlap::fakes
