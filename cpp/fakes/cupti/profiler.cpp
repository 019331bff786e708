#include "fakes/cupti/profiler.hpp"

#include <cstring>
#include <string_view>
#include <vector>

namespace fairlap::fakes {

Profiler& profiler() {
  static auto* const the_profiler = new Profiler;  // never destroyed, as clients may outlive static objects
  return *the_profiler;
}

void collect(const fake_cuda_activity* activity, void* user) {
  auto& p = *static_cast<Profiler*>(user);
  const std::lock_guard lock(p.mutex);
  if (!p.enabled.contains(activity->kind)) return;
  if (p.to_drop > 0) {
    --p.to_drop;
    ++p.dropped;
    return;
  }
  p.records.push_back(*activity);
}

void announce(const fake_cuda_launch* launch, void* user) {
  auto& p = *static_cast<Profiler*>(user);
  cuda::CUpti_CallbackFunc on_call = nullptr;
  void* on_call_user = nullptr;
  {
    const std::lock_guard lock(p.mutex);
    if (!p.driver_calls) return;
    on_call = p.on_call;
    on_call_user = p.on_call_user;
  }
  const auto stream = reinterpret_cast<cuda::CUstream>(launch->stream);
  cuda::LaunchKernelPrefix kernel{};
  cuda::LaunchConfigPrefix config{};
  cuda::GraphLaunchPrefix graph{};
  kernel.hStream = config.hStream = graph.hStream = stream;
  const cuda::LaunchKernelExPrefix extended{.config = &config};
  const std::string_view function = launch->function;
  const void* parameters = &kernel;
  if (function.starts_with("cuLaunchKernelEx")) parameters = &extended;
  if (function.starts_with("cuGraphLaunch")) parameters = &graph;
  constexpr int kApiExit = 1;
  for (const int site : {cuda::CUPTI_API_ENTER, kApiExit}) {
    cuda::CallbackDataPrefix data{};
    data.callbackSite = site;
    data.functionName = launch->function;
    data.functionParams = parameters;
    data.context = reinterpret_cast<cuda::CUcontext>(launch->context);
    on_call(on_call_user, cuda::CUPTI_CB_DOMAIN_DRIVER_API, 0, &data);
  }
}

void deliver(Profiler& p) {
  while (true) {
    cuda::CUpti_BuffersCallbackRequestFunc request = nullptr;
    cuda::CUpti_BuffersCallbackCompleteFunc complete = nullptr;
    {
      const std::lock_guard lock(p.mutex);
      if (p.records.empty() || p.request == nullptr) return;
      request = p.request;
      complete = p.complete;
      ++p.buffers_out;
    }
    // The client's functions are called without the lock: they may call back.
    std::uint8_t* buffer = nullptr;
    std::size_t bytes = 0;
    std::size_t most_records = 0;
    request(&buffer, &bytes, &most_records);
    std::size_t used = 0;
    {
      const std::lock_guard lock(p.mutex);
      std::size_t written = 0;
      while (!p.records.empty()) {
        const fake_cuda_activity record = p.records.front();
        const std::size_t needed = record_bytes(p.version, record.kind);
        const bool full =
            buffer == nullptr || used + needed > bytes || (most_records != 0 && written == most_records);
        if (full && written > 0) break;
        p.records.pop_front();
        if (full) {  // a buffer too small for one record, or none at all
          ++p.dropped;
          continue;
        }
        std::memset(buffer + used, 0, needed);
        write_record(p, record, buffer + used);
        const bool is_kernel = record.kind == cuda::CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        if (is_kernel && p.spoil_in > 0 && --p.spoil_in == 0) spoil_record(p.spoiling, buffer + used);
        used += needed;
        ++written;
      }
      --p.buffers_out;
    }
    if (buffer != nullptr) complete(nullptr, 0, buffer, bytes, used);
  }
}

}  // namespace fairlap::fakes
