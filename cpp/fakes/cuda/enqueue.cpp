#include "fakes/cuda/enqueue.hpp"

#include "fakes/cuda/capture.hpp"
#include "fakes/cuda/lookup.hpp"

namespace fairlap::fakes {

std::vector<OpPtr> order_of(World& w, const Stream& stream) {
  std::vector<OpPtr> before{stream.last()};
  const ContextPtr context = find_context(w, stream.context);
  if (!context) return before;
  before.push_back(context->barrier);
  if (stream.legacy) {
    // The legacy default stream waits for every blocking stream of its context ...
    for (const StreamPtr& other : streams_of(*context)) {
      if (!other->non_blocking) before.push_back(other->last());
    }
  } else if (!stream.non_blocking) {
    before.push_back(context->legacy->last());  // ... and every blocking stream waits for it.
  }
  return before;
}

std::vector<OpPtr> pending_of(World& w, Context& context) {
  std::vector<OpPtr> pending;
  for (const StreamPtr& stream : streams_of(context)) {
    if (pending_count(w, *stream) > 0) pending.push_back(stream->last());
  }
  std::erase_if(context.orphans, [&w](const OpPtr& op) { return w.timeline.done(op); });
  pending.insert(pending.end(), context.orphans.begin(), context.orphans.end());
  return pending;
}

OpPtr make_op(World& w, const Stream& stream, const Task& task, std::uint32_t graph_id,
              std::uint64_t graph_node) {
  auto op = std::make_shared<Op>();
  op->duration_ns = task.duration_ns;
  if (task.gate) op->gate = std::make_unique<Gate>(*task.gate);
  std::optional<fake_cuda_activity> activity = w.listener == nullptr ? std::nullopt : task.activity;
  if (activity) {
    const ContextPtr context = find_context(w, stream.context);
    activity->device = static_cast<std::uint32_t>(context->device);
    activity->context = context->id;
    activity->stream = stream.id;
    activity->correlation = ++w.last_correlation;
    activity->graph = graph_id;
    activity->graph_node = graph_node;
  }
  if (!task.effect && !activity) return op;
  op->at_end = [&w, effect = task.effect, activity](const Op& ended) mutable {
    if (effect) effect(ended);
    if (!activity || w.listener == nullptr) return;
    activity->start_ns = ended.start_ns;
    activity->end_ns = ended.end_ns;
    w.listener(&*activity, w.listener_user);
  };
  return op;
}

CUresult enqueue(World& w, Stream& stream, Task task, const std::vector<OpPtr>& after, OpPtr* made) {
  if (const CUresult forbidden = check_implicit_dependency(w, stream); forbidden != CUDA_SUCCESS)
    return forbidden;
  if (stream.capture) return capture_task(w, stream, std::move(task));
  pending_count(w, stream);
  const OpPtr op = make_op(w, stream, task, 0, 0);
  std::vector<OpPtr> before = order_of(w, stream);
  before.insert(before.end(), after.begin(), after.end());
  w.timeline.submit(op, before);
  stream.work.push_back(op);
  if (made != nullptr) *made = op;
  return CUDA_SUCCESS;
}

}  // namespace fairlap::fakes
