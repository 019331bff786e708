#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/launch.hpp"
#include "fakes/cuda/lookup.hpp"

// Graphs that were captured: counted, instantiated, launched as the ops of their nodes.
namespace fairlap::fakes {

FAKE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph hGraph, unsigned long long flags) {
  return entry("cuGraphInstantiateWithFlags", [&](World& w, Lock&) -> CUresult {
    constexpr unsigned long long kKnownFlags = 15;
    const auto graph = w.graphs.find(number(hGraph));
    if (out == nullptr || graph == w.graphs.end() || (flags & ~kKnownFlags) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    const Handle handle = w.new_handle();
    w.graph_execs[handle] = GraphExec{graph->second, nullptr};
    *out = pointer<CUgraphExec>(handle);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuGraphUpload(CUgraphExec hExec, CUstream hStream) {
  return entry("cuGraphUpload", [&](World& w, Lock&) -> CUresult {
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    return w.graph_execs.contains(number(hExec)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

FAKE_EXPORT CUresult cuGraphLaunch(CUgraphExec hExec, CUstream hStream) {
  return entry("cuGraphLaunch", [&](World& w, Lock&) -> CUresult {
    announce_launch(w, "cuGraphLaunch", number(hStream));
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    const auto found = w.graph_execs.find(number(hExec));
    if (found == w.graph_execs.end()) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult error = check_implicit_dependency(w, *stream); error != CUDA_SUCCESS) return error;
    if (stream->capture) return check_stream_call(*stream);  // child graphs are not modelled
    GraphExec& exec = found->second;
    std::vector<OpPtr> before = order_of(w, *stream);
    before.push_back(exec.last_launch);
    std::vector<OpPtr> ops;
    for (const GraphNode& node : exec.graph.nodes) {
      std::vector<OpPtr> after;
      for (const std::size_t index : node.after) after.push_back(ops[index]);
      ops.push_back(make_op(w, *stream, node.task, exec.graph.id, node.handle));
      w.timeline.submit(ops.back(), after.empty() ? before : after);
    }
    ops.insert(ops.end(), before.begin(), before.end());
    const auto end = std::make_shared<Op>();
    w.timeline.submit(end, ops);
    exec.last_launch = end;
    stream->work.push_back(end);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, std::size_t* count) {
  return entry("cuGraphGetNodes", [&](World& w, Lock&) -> CUresult {
    const auto graph = w.graphs.find(number(hGraph));
    if (graph == w.graphs.end() || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::vector<GraphNode>& own = graph->second.nodes;
    if (nodes != nullptr) {
      for (std::size_t i = 0; i < *count; ++i)
        nodes[i] = i < own.size() ? pointer<CUgraphNode>(own[i].handle) : nullptr;
    }
    if (nodes == nullptr || *count > own.size()) *count = own.size();
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return entry("cuGraphExecDestroy", [&](World& w, Lock&) -> CUresult {
    return w.graph_execs.erase(number(exec)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

FAKE_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  return entry("cuGraphDestroy", [&](World& w, Lock&) -> CUresult {
    return w.graphs.erase(number(graph)) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace fairlap::fakes
