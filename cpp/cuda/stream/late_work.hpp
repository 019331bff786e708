#pragma once

#include <chrono>
#include <cstddef>

#include "cuda/gate/gate.hpp"
#include "cuda/sampling/sequence.hpp"
#include "cuda/stream/borrowed_stream.hpp"

namespace fairlap::cuda {

// Work that came onto the stream after its call had returned: some frameworks launch from a thread of their
// own. An event recorded at the return is then older than the work, and a span to it means nothing.
struct LateWork {
  SampleEnd end = SampleEnd::taken;
  bool held = true;  // false: the call did not return while the stream was held, so nothing is known
  std::size_t calls = 0;
  // The median over the calls of what the device did between the return and a while later: kernels of another
  // process may come in between in some.
  double usual_ns = 0.0;
};

// Holds the stream through each call and a while beyond, so that the two events after the call enclose
// exactly what came in between. The host's own delays cannot show in that.
LateWork look_for_late_work(const BorrowedStream& stream, Gate& gate, loop::Work& work, std::size_t looks,
                            std::chrono::nanoseconds limit);

}  // namespace fairlap::cuda
