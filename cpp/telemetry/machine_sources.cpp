#include "telemetry/machine_sources.hpp"

#include "telemetry/control_group.hpp"
#include "telemetry/cpu_frequency.hpp"
#include "telemetry/nvml_source.hpp"
#include "telemetry/perf_energy.hpp"
#include "telemetry/powercap.hpp"
#include "telemetry/pressure.hpp"
#include "telemetry/process_memory.hpp"
#include "telemetry/steal.hpp"

namespace fairlap::telemetry {

std::vector<std::unique_ptr<Source>> machine_sources(const std::string& root,
                                                     const std::string& nvml_library) {
  std::vector<std::unique_ptr<Source>> sources = nvml_sources(nvml_library);
  sources.push_back(std::make_unique<Powercap>(root));
  // The same counters; reading them twice would tell nothing new.
  if (sources.back()->present())
    sources.push_back(std::make_unique<PerfEnergy>(PerfEnergy::NotNeeded{"powercap tells the same energy"}));
  else
    sources.push_back(std::make_unique<PerfEnergy>(root));
  sources.push_back(std::make_unique<ProcessMemory>(root));
  sources.push_back(std::make_unique<ControlGroup>(root));
  sources.push_back(std::make_unique<CpuFrequency>(root));
  sources.push_back(std::make_unique<Steal>(root));
  sources.push_back(std::make_unique<Pressure>(root));
  return sources;
}

}  // namespace fairlap::telemetry
