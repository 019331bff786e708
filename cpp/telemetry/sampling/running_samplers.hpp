#pragma once

#include <memory>
#include <mutex>

namespace fairlap::telemetry {

class Sampler;

// Starting and stopping one sampler, by its owner or at the end of the process. It outlives the
// sampler, so that the second caller finds nothing to stop instead of something destroyed.
struct SamplerControl {
  std::mutex mutex;
  Sampler* sampler = nullptr;  // null once it is destroyed
};

// Samplers that have a thread. When the process exits while some still run, they are stopped before the
// libraries that they call are taken down. A forked child has none, so its list is empty.
void enlist(const std::shared_ptr<SamplerControl>& control);
void strike_off(const SamplerControl& control) noexcept;

}  // namespace fairlap::telemetry
