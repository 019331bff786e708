#include "telemetry/sampling/machine_sources.hpp"

#include "telemetry/energy/perf_energy.hpp"
#include "telemetry/energy/powercap.hpp"
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
  return sources;
}

}  // namespace fairlap::telemetry
