#pragma once

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {

// Puts a task on a stream: on the timeline, or into the graph that the stream is capturing. `after` is
// work of other streams it has to wait for; `made` receives the op when the task really runs.
CUresult enqueue(World& w, Stream& stream, Task task, const std::vector<OpPtr>& after = {},
                 OpPtr* made = nullptr);

// Makes the op of a task and hooks its effect and its activity record.
OpPtr make_op(World& w, const Stream& stream, const Task& task, std::uint32_t graph_id,
              std::uint64_t graph_node);

// What work put on `stream` now has to wait for: the stream itself, the default stream's rules, the context's
// barrier.
std::vector<OpPtr> order_of(World& w, const Stream& stream);

// All work of a context that has been enqueued and not ended.
std::vector<OpPtr> pending_of(World& w, Context& context);

}  // namespace fairlap::fakes
