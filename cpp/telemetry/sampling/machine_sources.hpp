#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Everything that this machine may report, absent sources included. `root` is prepended to /proc and /sys,
// and `nvml_library` for the system's own when it is empty.
std::vector<std::unique_ptr<Source>> machine_sources(const std::string& root = "",
                                                     const std::string& nvml_library = "");

}  // namespace fairlap::telemetry
