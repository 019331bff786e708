#include "cuda/gate/gate_choice.hpp"

namespace fairlap::cuda {

GateChoice choose_gate(const BorrowedStream& stream, std::optional<GateKind> asked, const Kernels* kernels) {
  if (asked == GateKind::none) return {};
  std::string why_not;
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
