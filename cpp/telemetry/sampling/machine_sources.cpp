#include "telemetry/sampling/machine_sources.hpp"

#include "telemetry/energy/perf_energy.hpp"
#include "telemetry/energy/powercap.hpp"
#include "telemetry/files/control_group.hpp"
#include "telemetry/files/cpu_frequency.hpp"
#include "telemetry/files/pressure.hpp"
#include "telemetry/files/process_memory.hpp"
#include "telemetry/files/steal.hpp"
#include "telemetry/nvml/nvml_source.hpp"

namespace fairlap::telemetry {

std::vector<std::unique_ptr<Source>> machine_sources(const std::string& root,
                                                     const std::string& nvml_library) {
  std::vector<std::unique_ptr<Source>> sources = nvml_sources(nvml_library);
  sources.push_back(std::make_unique<Powercap>(root));
  // The same counters; reading them twice would add nothing.
  if (sources.back()->present())
    sources.push_back(
        std::make_unique<PerfEnergy>(PerfEnergy::NotNeeded{"powercap reports the same energy"}));
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
