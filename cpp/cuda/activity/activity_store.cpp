#include "cuda/activity/activity_store.hpp"

#include <algorithm>
#include <utility>

namespace fairlap::cuda {

ActivityStore& ActivityStore::of_this_process() {
  static ActivityStore* const store = new ActivityStore();
  return *store;
}

ActivityStore::ActivityStore() {
  for (std::size_t made = 0; made < kBuffersReady; ++made) {
    buffers_.push_back(std::make_unique<Buffer>());
    free_.push_back(buffers_.back()->bytes);
  }
}

void ActivityStore::begin(const Cupti& cupti, std::uint32_t context_id) {
  const std::lock_guard lock(mutex_);
  cupti_ = &cupti;
  context_id_ = context_id;
  records_.clear();
  losses_.clear();
}

void ActivityStore::end() {
  const std::lock_guard lock(mutex_);
  cupti_ = nullptr;
}

std::vector<Activity> ActivityStore::take(std::vector<Loss>& losses) {
  const std::lock_guard lock(mutex_);
  losses = std::exchange(losses_, {});
  std::vector<Activity> taken;
  taken.reserve(records_.capacity());
  taken.swap(records_);
  return taken;
}

void ActivityStore::on_buffer_wanted(std::uint8_t** buffer, std::size_t* bytes,
                                     std::size_t* records_at_most) {
  *buffer = of_this_process().lend();
  *bytes = *buffer == nullptr ? 0 : kBufferBytes;
  *records_at_most = 0;
}

void ActivityStore::on_buffer_full(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid_bytes) {
  if (buffer != nullptr) of_this_process().read(buffer, valid_bytes);
}

std::uint8_t* ActivityStore::lend() {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && buffers_.size() < kBuffersAtMost) {
    buffers_.push_back(std::make_unique<Buffer>());
    free_.push_back(buffers_.back()->bytes);
  }
  if (free_.empty()) return nullptr;  // CUPTI counts what it must drop for that.
  std::uint8_t* const lent = free_.back();
  free_.pop_back();
  return lent;
}

void ActivityStore::read(std::uint8_t* buffer, std::size_t valid_bytes) {
  const std::lock_guard lock(mutex_);
  free_.push_back(buffer);
  if (cupti_ == nullptr || valid_bytes == 0) return;
  last_ns_ = 0;
  bounded_ = losses_.size();
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  while ((result = cupti_->cuptiActivityGetNextRecord(buffer, valid_bytes, &record)) == CUPTI_SUCCESS)
    keep(*record);
  // A record that was never written ends the reading; what lies behind it in the buffer is lost too.
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) lose_after_last();
}

// Samples run one after another and the context is idle between them, so records lie in a buffer in the order
// of their samples: what is missing ran between the complete records around it.
void ActivityStore::lose_after_last() { losses_.push_back({.after_ns = last_ns_}); }

void ActivityStore::keep(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const ActivityKernelPrefix&>(record);
      if (kernel.contextId == context_id_) {
        keep(ActivityKind::kernel, kernel.start, kernel.end, kernel.streamId, kernel.name);
      }
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const ActivityMemcpyPrefix&>(record);
      if (copy.contextId == context_id_)
        keep(ActivityKind::copy, copy.start, copy.end, copy.streamId, nullptr, copy.copyKind);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const auto& copy = reinterpret_cast<const ActivityPeerCopyPrefix&>(record);
      if (copy.contextId == context_id_)
        keep(ActivityKind::copy, copy.start, copy.end, copy.streamId, nullptr, copy.copyKind);
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& fill = reinterpret_cast<const ActivityMemsetPrefix&>(record);
      if (fill.contextId == context_id_)
        keep(ActivityKind::fill, fill.start, fill.end, fill.streamId, nullptr);
      return;
    }
    default:
      return;
  }
}

void ActivityStore::keep(ActivityKind kind, std::uint64_t start, std::uint64_t end, std::uint32_t stream,
                         const char* name, std::uint8_t copy_kind) {
  // CUPTI writes 0 for times that it could not take.
  if (start == 0) return lose_after_last();
  for (; bounded_ < losses_.size(); ++bounded_)
    losses_[bounded_].before_ns = std::min(losses_[bounded_].before_ns, start);
  if (end < start || records_.size() >= kRecordsAtMost) {
    losses_.push_back({.after_ns = start, .before_ns = start});
    return;
  }
  last_ns_ = end;
  const std::string* kept_name = name == nullptr ? nullptr : &*names_.emplace(name).first;
  records_.push_back({.start_ns = start,
                      .end_ns = end,
                      .name = kept_name,
                      .stream = stream,
                      .kind = kind,
                      .copy_kind = copy_kind});
}

}  // namespace fairlap::cuda
