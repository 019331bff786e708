#include "cuda/sampling/graph_replay.hpp"

#include "cuda/driver/current_context.hpp"

namespace fairlap::cuda {
namespace {

// Looking for Ctrl-C takes the interpreter lock, which would cost more than a replay.
constexpr unsigned int kReplaysPerLook = 64;

// All of them, before a capture is begun that could not be ended.
void require_graphs(const Driver& driver) {
  const auto require = [](const auto& function) {
    if (!function.present())
      throw Unavailable("CUDA graphs are not available here: " + function.absent_because());
  };
  require(driver.cuStreamBeginCapture);
  require(driver.cuStreamEndCapture);
  require(driver.cuGraphGetNodes);
  require(driver.cuGraphInstantiateWithFlags);
  require(driver.cuGraphUpload);
  require(driver.cuGraphLaunch);
  require(driver.cuGraphExecDestroy);
  require(driver.cuGraphDestroy);
}

std::string why_capture_failed(const Driver& driver, const char* function, CUresult code) {
  const std::string fault = capture_fault(code);
  if (fault.empty()) return driver.error(function, code).what();
  return "the callable cannot be captured as a CUDA graph: " + fault;
}

}  // namespace

GraphReplay::GraphReplay(const BorrowedStream& stream, loop::Work& captured)
    : stream_(stream), driver_(stream.driver()), captured_(captured) {
  if (!stream.known()) throw CaptureFailed("a graph is captured on a stream; hand one over");
  if (is_default_stream(reinterpret_cast<std::uintptr_t>(stream.handle()))) {
    throw CaptureFailed(
        "the default stream cannot be captured; run the work on another stream and hand that over");
  }
  require_graphs(driver_);
}

GraphReplay::~GraphReplay() {
  if (executable_ != nullptr) static_cast<void>(driver_.cuGraphExecDestroy.code_of(executable_));
  captured_.enter();
  static_cast<void>(captured_.drop());
  static_cast<void>(captured_.leave());
}

bool GraphReplay::capture() {
  {
    const CurrentContext current(driver_, stream_.context().handle());
    // Relaxed: the framework may allocate while it is captured, as its own captures let it.
    driver_.cuStreamBeginCapture(stream_.handle(), CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  captured_.enter();
  const bool fine = captured_.call();
  static_cast<void>(captured_.leave());

  const CurrentContext current(driver_, stream_.context().handle());
  CUgraph graph = nullptr;
  const CUresult ended = driver_.cuStreamEndCapture.code_of(stream_.handle(), &graph);
  if (!fine || ended != CUDA_SUCCESS) {
    if (graph != nullptr) static_cast<void>(driver_.cuGraphDestroy.code_of(graph));
    if (!fine) return false;
    throw CaptureFailed(why_capture_failed(driver_, "cuStreamEndCapture", ended));
  }
  try {
    instantiate(graph);
  } catch (...) {
    static_cast<void>(driver_.cuGraphDestroy.code_of(graph));
    throw;
  }
  static_cast<void>(driver_.cuGraphDestroy.code_of(graph));
  return true;
}

void GraphReplay::instantiate(CUgraph graph) {
  driver_.cuGraphGetNodes(graph, static_cast<CUgraphNode*>(nullptr), &nodes_);
  if (nodes_ == 0) {
    throw CaptureFailed("the callable put no work on " + stream_.name() +
                        "; hand over the stream that it really runs on");
  }
  driver_.cuGraphInstantiateWithFlags(&executable_, graph, 0ULL);
  driver_.cuGraphUpload(executable_, stream_.handle());
}

void GraphReplay::enter() noexcept {
  context_is_current_ = driver_.cuCtxPushCurrent.code_of(stream_.context().handle()) == CUDA_SUCCESS;
}

bool GraphReplay::leave() noexcept {
  CUcontext popped = nullptr;
  if (context_is_current_) static_cast<void>(driver_.cuCtxPopCurrent.code_of(&popped));
  context_is_current_ = false;
  return false;
}

bool GraphReplay::call() noexcept {
  const CUresult code = driver_.cuGraphLaunch.code_of(executable_, stream_.handle());
  if (code == CUDA_SUCCESS) [[likely]]
    return true;
  launch_error_ = code;
  return false;
}

bool GraphReplay::stop_requested() noexcept {
  if (++asked_ % kReplaysPerLook != 0) return false;
  captured_.enter();
  const bool asked = captured_.stop_requested();
  return captured_.leave() || asked;
}

}  // namespace fairlap::cuda
