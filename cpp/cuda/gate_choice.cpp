#include "cuda/gate_choice.hpp"

namespace fairlap::cuda {

GateChoice choose_gate(const BorrowedStream& stream, GateWish wish, const Kernels* kernels) {
  if (wish == GateWish::none) return {};
  std::string why_not;
  for (const GateKind kind : {GateKind::stream_wait, GateKind::spin}) {
    const bool wanted = wish == GateWish::automatic ||
                        (wish == GateWish::stream_wait && kind == GateKind::stream_wait) ||
                        (wish == GateWish::spin && kind == GateKind::spin);
    if (!wanted) continue;
    const GateProbe probe = probe_gate(stream, kind, kernels);
    if (probe.works) return {kind, why_not, probe.release_ns};
    if (!why_not.empty()) why_not += "; ";
    why_not += std::string(name_of(kind)) + ": " + probe.why_not;
  }
  if (wish == GateWish::automatic) return {GateKind::none, why_not, kNotMeasured};
  throw Unavailable("the gate that was asked for does not work here: " + why_not + ". Use gate='auto'.");
}

}  // namespace fairlap::cuda
