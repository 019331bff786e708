#pragma once

namespace fairlap::telemetry {

class Sampler;

// Samplers that have a thread. When the process exits while some still run, they are stopped before the
// libraries that they call are taken down. A forked child has none, so its list is empty.
void enlist(Sampler& sampler);
void strike_off(const Sampler& sampler) noexcept;

}  // namespace fairlap::telemetry
