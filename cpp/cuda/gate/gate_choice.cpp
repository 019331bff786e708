#include "cuda/gate/gate_choice.hpp"

#include <cstdlib>

#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

constexpr const char* kLaunchBlocking = "CUDA_LAUNCH_BLOCKING";
constexpr std::uint64_t kSpinNs = 1'000'000;  // no host is kept from asking for so long, three times in a row
constexpr int kTries = 3;
constexpr auto kSpinLimit = std::chrono::seconds(2);

// Whether work that takes the device a millisecond is done each time its launch returns.
bool launches_wait(const BorrowedStream& stream, const Kernels& kernels) {
  const Driver& driver = stream.driver();
  const PrivateStream own(stream.context());
  const Event done(stream.context());
  const CurrentContext current(driver, stream.context().handle());
  int waited = 0;
  while (waited < kTries) {
    kernels.launch_spin_ns(own.handle(), kSpinNs);
    driver.cuEventRecord(done.handle(), own.handle());
    if (!is_done(driver, done.handle())) break;
    ++waited;
  }
  Patience patience(kSpinLimit);
  while (!is_done(driver, done.handle()) && patience.wait_a_little()) {
  }
  return waited == kTries;
}

}  // namespace

std::string why_launches_wait(const BorrowedStream& stream, const Kernels* kernels) {
  const char* const set = std::getenv(kLaunchBlocking);
  if (set != nullptr && *set != '\0' && std::string(set) != "0") {
    return std::string(kLaunchBlocking) + " is set, so every launch waits for its kernel";
  }
  if (kernels == nullptr) return "";
  try {
    const bool waits = launches_wait(stream, *kernels);
    return waits ? "every launch waits for its kernel, as under a debugger or a checker" : "";
  } catch (const CudaError& error) {
    if (breaks_the_context(error.code())) throw;
    return "";  // The gates are tried, and give their own reasons.
  }
}

GateChoice choose_gate(const BorrowedStream& stream, std::optional<GateKind> asked, const Kernels* kernels) {
  if (asked == GateKind::none) return {};
  std::string why_not = why_launches_wait(stream, kernels);
  if (!why_not.empty()) {
    if (!asked) return {.because = why_not};
    throw Unavailable("the requested gate cannot be used: " + why_not + "; use gate='auto'");
  }
  for (const GateKind kind : {GateKind::stream_wait, GateKind::spin}) {
    if (asked && *asked != kind) continue;
    const GateProbe probe = probe_gate(stream, kind, kernels);
    if (probe.works) return {.kind = kind, .because = why_not, .release_ns = probe.release_ns};
    if (!why_not.empty()) why_not += "; ";
    why_not += std::string(kind == GateKind::spin ? "spin: " : "stream_wait: ") + probe.why_not;
  }
  if (!asked) return {.because = why_not};
  throw Unavailable("the requested gate does not work here: " + why_not + "; use gate='auto'");
}

}  // namespace fairlap::cuda
