#include "cuda/activity/call_recorder.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "cuda/driver/current_context.hpp"

namespace fairlap::cuda {
namespace {

// By CUPTI's number: between host, device and arrays, in words that other profilers use.
constexpr std::array<const char*, 11> kCopies = {"memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA",
                                                 "memcpy AtoH", "memcpy AtoA", "memcpy AtoD", "memcpy DtoA",
                                                 "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : name;
}

}  // namespace

CallRecorder::CallRecorder(const Driver& driver, const Cupti& cupti, int device)
    : stream_(BorrowedStream::borrow(driver, std::nullopt, device)), trace_(cupti, stream_) {
  settle();
  trace_.start();
}

void CallRecorder::begin() { begin_ns_ = trace_.now_ns(); }

RecordedCall CallRecorder::end() {
  RecordedCall call{.begin_ns = begin_ns_, .end_ns = trace_.now_ns(), .activities = {}};
  settle();
  ActivityTrace::Taken taken = trace_.take();
  call.activities = std::move(taken.activities);
  call.is_complete = taken.losses.empty();
  std::sort(call.activities.begin(), call.activities.end(),
            [](const Activity& a, const Activity& b) { return a.start_ns < b.start_ns; });
  return call;
}

void CallRecorder::settle() const {
  const CurrentContext current(stream_.driver(), stream_.context().handle());
  stream_.driver().cuCtxSynchronize();
}

std::string readable_name(const Activity& activity) {
  switch (activity.kind) {
    case ActivityKind::copy:
      return kCopies[activity.copy_kind < kCopies.size() ? activity.copy_kind : 0];
    case ActivityKind::fill:
      return "memset";
    case ActivityKind::kernel:
      break;
  }
  return activity.name == nullptr ? "" : demangled(*activity.name);
}

}  // namespace fairlap::cuda
