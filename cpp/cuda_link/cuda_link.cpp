#include "cuda_link/cuda_link.hpp"

#include <algorithm>
#include <utility>

#include "cuda/device/device_identity.hpp"
#include "cuda/driver/current_context.hpp"
#include "cuda/driver/relaxed_capture.hpp"
#include "cuda/gate/patience.hpp"
#include "cuda_link/host_node.hpp"
#include "cuda_link/link_failures.hpp"

namespace fairlap::cuda_link {
namespace {

using cuda::Driver;
using feed::SlotUse;

cuda::CUstream as_stream(std::uintptr_t number) { return reinterpret_cast<cuda::CUstream>(number); }

// In the framework's context, and without harm to a capture in progress.
class InContext {
 public:
  explicit InContext(const cuda::BorrowedContext& context)
      : relaxed_(context.driver()), current_(context.driver(), context.handle()) {}

 private:
  cuda::RelaxedCapture relaxed_;
  cuda::CurrentContext current_;
};

// The node that the slots are on after this; none where the device's is not known or they cannot be moved.
std::optional<int> near_device(const cuda::BorrowedContext& context, const feed::HostSlots& host,
                               const std::string& sys_folder) {
  const cuda::DeviceIdentity identity = cuda::identity_of(context.driver(), context.device());
  const std::optional<int> node = node_of_device(identity.pci_bus_id, sys_folder);
  if (!node || !move_to_node(host.memory, host.stride * host.count, *node)) return std::nullopt;
  return node_of_page(host.memory);
}

}  // namespace

CudaLink::Slot::Slot(const cuda::BorrowedContext& context) : copied(context, cuda::CU_EVENT_DISABLE_TIMING) {
  used.emplace_back(context, cuda::CU_EVENT_DISABLE_TIMING);
}

std::unique_ptr<CudaLink> CudaLink::open(const Driver& driver, const feed::HostSlots& host,
                                         const CudaLinkSettings& settings) {
  try {
    return std::unique_ptr<CudaLink>(
        new CudaLink(cuda::BorrowedContext::of_device(driver, settings.device), host, settings));
  } catch (const cuda::CudaError& error) {
    throw feed::LinkFailed(line_of(error));
  }
}

CudaLink::CudaLink(cuda::BorrowedContext context, const feed::HostSlots& host,
                   const CudaLinkSettings& settings)
    : host_(host),
      patience_(settings.patience),
      context_(std::move(context)),
      host_node_(near_device(context_, host, settings.sys_folder)),
      pinned_(context_, host.memory, host.stride * host.count),
      memory_(context_, host.stride * host.count),
      stream_(context_) {
  slots_.reserve(host.count);
  for (std::size_t slot = 0; slot < host.count; ++slot) slots_.emplace_back(context_);
}

CudaLink::~CudaLink() {
  if (is_at_rest(patience_)) return;
  stream_.abandon();
  memory_.abandon();
  pinned_.abandon();
}

// What cannot be asked any more counts as idle: where a context is broken or gone,
// nothing runs in it.
bool CudaLink::is_at_rest(std::chrono::nanoseconds patience) {
  cuda::Patience waiting(patience);
  for (Slot& slot : slots_) {
    try {
      while (use_seen(slot) != SlotUse::none) {
        if (!waiting.wait_a_little()) return false;
      }
    } catch (const std::exception&) {
      continue;
    }
  }
  return true;
}

feed::dlpack::Device CudaLink::device() const noexcept {
  return {feed::dlpack::kDeviceCuda, context_.device()};
}

void* CudaLink::memory(std::size_t slot) const noexcept {
  return reinterpret_cast<void*>(memory_.handle() + slot * host_.stride);
}

void CudaLink::time_copies(bool on) {
  or_link_failure([&] {
    const std::scoped_lock lock(timing_);
    if (!overlap_made_ && on) {
      overlap_made_ = std::make_unique<CopyOverlap>(context_, host_.count);
      overlap_ = overlap_made_.get();
    }
    if (overlap_made_) overlap_made_->turn(on);
  });
}

std::optional<feed::CopyTimes> CudaLink::copy_times() const noexcept {
  const CopyOverlap* const overlap = overlap_;
  return overlap == nullptr ? std::nullopt : std::optional(overlap->times());
}

SlotUse CudaLink::use_seen(Slot& slot) const {
  if (!slot.sent) return SlotUse::none;
  const Driver& driver = context_.driver();
  const InContext in_context(context_);
  if (!cuda::is_done(driver, slot.copied.handle())) return SlotUse::copied_from;
  for (std::size_t use = 0; use < slot.recorded; ++use) {
    if (!cuda::is_done(driver, slot.used[use].handle())) return SlotUse::worked_on;
  }
  return SlotUse::none;
}

SlotUse CudaLink::use_of(std::size_t index) {
  Slot& slot = slots_[index];
  if (slot.failure) std::rethrow_exception(slot.failure);
  return or_link_failure([&] {
    const SlotUse use = use_seen(slot);
    if (use != SlotUse::none) return use;
    if (slot.whole_context) {
      const InContext in_context(context_);
      context_.driver().cuCtxSynchronize();
    }
    if (slot.timed) {
      const InContext in_context(context_);
      overlap_.load()->settle(*slot.timed);
      slot.timed.reset();
    }
    slot.whole_context = slot.sent = false;
    slot.recorded = 0;
    return use;
  });
}

void CudaLink::send(std::size_t index, std::size_t bytes) {
  Slot& slot = slots_[index];
  or_link_failure([&] {
    const std::scoped_lock lock(sending_);
    const Driver& driver = context_.driver();
    const InContext in_context(context_);
    const std::size_t offset = index * host_.stride;
    CopyOverlap* const overlap = overlap_;
    const std::optional<std::uint64_t> timed =
        overlap == nullptr ? std::nullopt : overlap->copy_begins(stream_.handle());
    driver.cuMemcpyHtoDAsync(memory_.handle() + offset, host_.memory + offset, bytes, stream_.handle());
    if (timed) overlap->copy_ends(*timed, stream_.handle());
    slot.timed = timed;
    driver.cuEventRecord(slot.copied.handle(), stream_.handle());
    slot.sent = true;
  });
}

// A handle that is not a stream would crash the process, so each is looked at once. The frameworks' streams
// live as long as their contexts.
void CudaLink::check(std::uintptr_t stream) {
  if (cuda::is_default_stream(stream)) return;
  {
    const std::scoped_lock lock(using_);
    if (std::find(streams_seen_.begin(), streams_seen_.end(), stream) != streams_seen_.end()) return;
  }
  const auto borrowed = cuda::BorrowedStream::borrow(context_.driver(), stream, -1);
  if (borrowed.context().handle() != context_.handle()) {
    throw feed::LinkFailed(borrowed.name() +
                           " belongs to another context than the feeder's, which is that of "
                           "device " +
                           std::to_string(context_.device()) + "; hand over a stream of it");
  }
  const std::scoped_lock lock(using_);
  streams_seen_.push_back(stream);
}

std::optional<std::size_t> CudaLink::note_use(std::uintptr_t stream, Slot& slot) {
  const std::scoped_lock lock(using_);
  const Use use{stream, stream == cuda::STREAM_PER_THREAD ? std::this_thread::get_id() : std::thread::id()};
  const auto is_same = [&](const Use& other) {
    return other.stream == use.stream && other.thread == use.thread;
  };
  if (std::any_of(slot.uses.begin(), slot.uses.end(), is_same)) return std::nullopt;
  if (slot.used.size() == slot.uses.size()) slot.used.emplace_back(context_, cuda::CU_EVENT_DISABLE_TIMING);
  slot.uses.push_back(use);
  return slot.uses.size() - 1;
}

void CudaLink::make_wait(std::uintptr_t stream, std::size_t index) {
  Slot& slot = slots_[index];
  or_link_failure([&] {
    check(stream);
    {
      const InContext in_context(context_);
      context_.driver().cuStreamWaitEvent(as_stream(stream), slot.copied.handle(), 0U);
    }
    const std::optional<std::size_t> use = note_use(stream, slot);
    if (!slot.timed || !use) return;
    if (*use > 0) return overlap_.load()->has_other_work(*slot.timed);
    const InContext in_context(context_);
    overlap_.load()->work_begins(*slot.timed, as_stream(stream));
  });
}

void CudaLink::will_be_used(std::uintptr_t stream, std::size_t index) {
  or_link_failure([&] {
    check(stream);
    Slot& slot = slots_[index];
    if (note_use(stream, slot) && slot.timed) overlap_.load()->has_other_work(*slot.timed);
  });
}

void CudaLink::used_by_unknown(std::size_t index) noexcept {
  const std::scoped_lock lock(using_);
  Slot& slot = slots_[index];
  slot.unknown = true;
  if (slot.timed) overlap_.load()->has_other_work(*slot.timed);
}

bool CudaLink::has_arrived(std::size_t index) {
  return or_link_failure([&] {
    const InContext in_context(context_);
    return cuda::is_done(context_.driver(), slots_[index].copied.handle());
  });
}

void CudaLink::given_back(std::size_t index, bool all_named) noexcept {
  Slot& slot = slots_[index];
  slot.whole_context = slot.unknown && !all_named;
  try {
    or_link_failure([&] {
      if (slot.uses.empty()) return;
      const Driver& driver = context_.driver();
      const InContext in_context(context_);
      for (const Use& use : slot.uses) {
        if (use.thread != std::thread::id() && use.thread != std::this_thread::get_id()) {
          slot.whole_context = true;  // That thread's default stream cannot be named here.
          continue;
        }
        if (slot.timed && &use == &slot.uses.front())
          overlap_.load()->work_ends(*slot.timed, as_stream(use.stream));
        driver.cuEventRecord(slot.used[slot.recorded].handle(), as_stream(use.stream));
        ++slot.recorded;
      }
    });
  } catch (...) {
    slot.failure = std::current_exception();
  }
  slot.uses.clear();
  slot.unknown = false;
}

feed::MakeLink link_to_cuda(const CudaLinkSettings& settings) {
  const Driver& driver = Driver::of_this_process();
  return [&driver, settings](const feed::HostSlots& host) { return CudaLink::open(driver, host, settings); };
}

}  // namespace fairlap::cuda_link
