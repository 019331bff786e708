#include "cuda/activity/stream_watch.hpp"

#include <optional>
#include <string_view>

namespace fairlap::cuda {
namespace {

// Calls whose names end so mean the thread's own default stream where others mean the legacy one.
constexpr std::string_view kPerThread = "_ptsz";

// The stream of a launch; empty for every other call.
std::optional<CUstream> stream_of_launch(std::string_view function, const void* parameters) {
  if (function == "cuLaunchKernel" || function == "cuLaunchCooperativeKernel") {
    return static_cast<const LaunchKernelPrefix*>(parameters)->hStream;
  }
  if (function == "cuLaunchKernelEx") {
    const auto* const config =
        static_cast<const LaunchConfigPrefix*>(static_cast<const LaunchKernelExPrefix*>(parameters)->config);
    if (config != nullptr) return config->hStream;
  }
  if (function == "cuGraphLaunch") return static_cast<const GraphLaunchPrefix*>(parameters)->hStream;
  return std::nullopt;
}

}  // namespace

StreamWatch::StreamWatch(const Cupti& cupti, const BorrowedContext& context)
    : cupti_(cupti), context_(context.handle()) {
  cupti.check("cuptiSubscribe", cupti.cuptiSubscribe(&subscriber_, &on_call, this));
  try {
    cupti.check("cuptiEnableDomain", cupti.cuptiEnableDomain(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API));
  } catch (...) {
    stop();
    throw;
  }
}

StreamWatch::~StreamWatch() { stop(); }

void StreamWatch::stop() noexcept {
  static_cast<void>(cupti_.cuptiEnableDomain(0, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API));
  static_cast<void>(cupti_.cuptiUnsubscribe(subscriber_));
}

std::map<std::uintptr_t, std::size_t> StreamWatch::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}

void StreamWatch::on_call(void* watch, int domain, std::uint32_t, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || data == nullptr) return;
  static_cast<StreamWatch*>(watch)->keep(*static_cast<const CallbackDataPrefix*>(data));
}

void StreamWatch::keep(const CallbackDataPrefix& data) {
  if (data.callbackSite != CUPTI_API_ENTER || data.context != context_ || data.functionName == nullptr)
    return;
  std::string_view function = data.functionName;
  const bool per_thread = function.ends_with(kPerThread);
  if (per_thread) function.remove_suffix(kPerThread.size());
  const std::optional<CUstream> stream = stream_of_launch(function, data.functionParams);
  if (!stream) return;
  auto address = reinterpret_cast<std::uintptr_t>(*stream);
  if (address == 0 && per_thread) address = STREAM_PER_THREAD;
  const std::lock_guard lock(mutex_);
  ++launches_[address];
}

}  // namespace fairlap::cuda
