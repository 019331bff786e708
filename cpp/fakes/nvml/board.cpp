#include "fakes/nvml/board.hpp"

#include <cmath>
#include <cstdio>

namespace fairlap::fakes {

using namespace fairlap::telemetry;  // boards speak in NVML's own types

Board::Board(int board_number) : number(board_number) {
  char text[64];
  name = "fairlap fake board " + std::to_string(number);
  std::snprintf(text, sizeof text, "GPU-00000000-0000-0000-0000-%012d", number);
  uuid = text;
  std::snprintf(text, sizeof text, "00000000:%02X:00.0", static_cast<unsigned>(number) + 1U);
  pci_bus_id = text;
  power.set_constant(100'000.0);
  readings = {{"graphics_mhz", 1980},
              {"sm_mhz", 1980},
              {"mem_mhz", 2619},
              {"max_graphics_mhz", 1980},
              {"max_sm_mhz", 1980},
              {"max_mem_mhz", 2619},
              {"temperature_c", 40},
              {"throttle_reasons", 0},
              {"memory_total", std::uint64_t{16} << 30},
              {"memory_used", std::uint64_t{1} << 30},
              {"pcie_tx_kb_s", 0},
              {"pcie_rx_kb_s", 0},
              {"utilisation_gpu", 0},
              {"utilisation_memory", 0},
              {"power_limit_mw", 700'000}};
}

std::int64_t Board::last_publication_ns(std::int64_t now_ns) const {
  const std::int64_t since_phase_ns = now_ns - sensor.phase_ns;
  std::int64_t steps = since_phase_ns / sensor.period_ns;
  if (since_phase_ns % sensor.period_ns < 0) --steps;
  return sensor.phase_ns + steps * sensor.period_ns;
}

unsigned int Board::instant_power_mw(std::int64_t now_ns) const {
  return static_cast<unsigned int>(std::lround(power.mean(last_publication_ns(now_ns), sensor.window_ns)));
}

unsigned int Board::average_power_mw(std::int64_t now_ns) const {
  return static_cast<unsigned int>(std::lround(power.mean(last_publication_ns(now_ns), sensor.average_ns)));
}

std::uint64_t Board::energy_mj(std::int64_t now_ns) const {
  const std::int64_t step_ns = now_ns / energy.period_ns * energy.period_ns;
  const auto counted = static_cast<std::uint64_t>(power.energy_mj(0, step_ns) + 1e-6);  // whole millijoules
  const std::uint64_t total = energy.start_mj + counted;
  return energy.wrap_mj == 0 ? total : total % energy.wrap_mj;
}

bool Board::read_field(std::uint32_t field, std::int64_t now_ns, nvmlFieldValue_t& out) const {
  std::uint64_t value = 0;
  int type = NVML_VALUE_TYPE_UNSIGNED_INT;
  if (const auto counter = counters.find(field); counter != counters.end()) {
    const Counter& own = counter->second;
    const double grown = static_cast<double>(own.per_second) * static_cast<double>(now_ns) / 1e9;
    value = own.start + static_cast<std::uint64_t>(grown);
    if (own.wrap != 0) value %= own.wrap;
    type = own.value_type;
  } else if (field == NVML_FI_DEV_POWER_INSTANT) {
    value = instant_power_mw(now_ns);
  } else if (field == NVML_FI_DEV_POWER_AVERAGE) {
    value = average_power_mw(now_ns);
  } else if (field == NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION || field == NVML_FI_DEV_ENERGY) {
    value = energy_mj(now_ns);
    type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
  } else {
    return false;
  }
  out.valueType = type;
  out.value.ullVal = 0;
  switch (type) {
    case NVML_VALUE_TYPE_DOUBLE:
      out.value.dVal = static_cast<double>(value);
      break;
    case NVML_VALUE_TYPE_UNSIGNED_INT:
      out.value.uiVal = static_cast<unsigned int>(value);
      break;
    default:
      out.value.ullVal = value;
      break;
  }
  return true;
}

}  // namespace fairlap::fakes
