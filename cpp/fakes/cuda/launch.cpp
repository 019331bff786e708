#include "fakes/cuda/launch.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "cuda/driver/device_code.hpp"
#include "cuda/roofs/roof_kernel.hpp"
#include "fakes/cuda/blocking.hpp"
#include "fakes/cuda/enqueue.hpp"
#include "fakes/cuda/lookup.hpp"
#include "fakes/cuda/memory.hpp"

// Launches. fairlap's own kernels act as device_code.hpp and roof_kernel.hpp define them; all others just
// take time.
namespace fairlap::fakes {
namespace {

constexpr std::int64_t kDefaultKernelNs = 1000;

// Of dynamic shared memory, as cuda.h and the programming guide's table for 9.0 have it: what every launch
// may use, and what one may that has asked for it.
constexpr unsigned int kSharedBytes = 48U << 10U;
constexpr int kMostSharedBytes = 227 << 10;

template <class T>
T parameter(void** parameters, std::size_t index) {
  T value;
  std::memcpy(&value, parameters[index], sizeof value);
  return value;
}

template <class T>
T* memory_at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

CUresult spin_gate(World& w, Task& task, void** parameters) {
  const auto flag = parameter<std::uint64_t>(parameters, 0);
  const auto ticket = parameter<std::uint32_t>(parameters, 1);
  const auto bound_ns = parameter<std::uint64_t>(parameters, 2);
  if (memory_used(w, flag, 2 * sizeof(std::uint32_t)) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  auto gate = std::make_shared<Gate>();
  gate->word = memory_at<const std::uint32_t>(flag);
  gate->open = [ticket](std::uint32_t seen) { return static_cast<std::int32_t>(seen - ticket) >= 0; };
  gate->give_up_after_ns = static_cast<std::int64_t>(bound_ns);
  task.gate = gate;
  task.effect = [flag, ticket](const Op& ended) {
    if (ended.gate->gave_up) __atomic_store_n(memory_at<std::uint32_t>(flag) + 1, ticket, __ATOMIC_RELEASE);
  };
  return CUDA_SUCCESS;
}

using Counter = std::function<std::uint64_t(std::int64_t)>;  // what it shows at a time

Counter globaltimer(const World& w) {
  return [step_ns = w.globaltimer_step_ns](std::int64_t time_ns) {
    return static_cast<std::uint64_t>(time_ns / step_ns * step_ns);
  };
}

double cycles_per_ns(World& w, const Stream& stream) {
  const auto device = static_cast<std::size_t>(find_context(w, stream.context)->device);
  return w.devices[device].attributes[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] / 1e6;
}

Counter clock64(World& w, const Stream& stream) {
  return [rate = cycles_per_ns(w, stream)](std::int64_t time_ns) {
    return static_cast<std::uint64_t>(static_cast<double>(time_ns) * rate);
  };
}

// Spins for a length and leaves the first and the last reading of the counter that it spun on.
CUresult spin(World& w, Task& task, std::uint64_t stamps, std::int64_t duration_ns, Counter counter) {
  if (stamps != 0 && memory_used(w, stamps, 2 * sizeof(std::uint64_t)) == nullptr)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  task.duration_ns = duration_ns;
  if (stamps == 0) return CUDA_SUCCESS;
  task.effect = [stamps, read = std::move(counter)](const Op& ended) {
    auto* out = memory_at<std::uint64_t>(stamps);
    out[0] = read(ended.start_ns);
    out[1] = read(ended.end_ns);
  };
  return CUDA_SUCCESS;
}

CUresult clock_rate(World& w, const Stream& stream, Task& task, void** parameters) {
  const auto readings = parameter<std::uint64_t>(parameters, 1);
  if (memory_used(w, readings, 4 * sizeof(std::uint64_t)) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  const auto asked_ns = static_cast<std::int64_t>(parameter<std::uint64_t>(parameters, 0));
  const std::int64_t step_ns = w.globaltimer_step_ns;
  const std::int64_t length_ns = (asked_ns + step_ns - 1) / step_ns * step_ns;
  task.duration_ns = length_ns + step_ns;
  task.effect = [readings, length_ns, timer = globaltimer(w), cycles = clock64(w, stream)](const Op& ended) {
    const auto last_ns = static_cast<std::int64_t>(timer(ended.end_ns));
    auto* out = memory_at<std::uint64_t>(readings);
    for (const std::int64_t time_ns : {last_ns - length_ns, last_ns}) {
      *out++ = timer(time_ns);
      *out++ = cycles(time_ns);
    }
  };
  return CUDA_SUCCESS;
}

CUresult timer_steps(World& w, Task& task, void** parameters) {
  const auto readings = parameter<std::uint64_t>(parameters, 0);
  const auto count = parameter<std::uint32_t>(parameters, 1);
  if (memory_used(w, readings, count * sizeof(std::uint64_t)) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  const std::int64_t step_ns = w.globaltimer_step_ns;
  task.duration_ns = static_cast<std::int64_t>(count) * step_ns;
  task.effect = [readings, count, step_ns](const Op& ended) {
    auto* out = memory_at<std::uint64_t>(readings);
    for (std::uint32_t i = 0; i < count; ++i) {
      out[i] = static_cast<std::uint64_t>((ended.start_ns / step_ns + i + 1) * step_ns);
    }
  };
  return CUDA_SUCCESS;
}

// As long as its instructions take at the device's rates; those without a rate of their own that compute
// nothing, such as a branch, take no time.
// One thread of a block issues those on tensor memory.
CUresult arithmetic(World& w, Task& task, const Round& round, double blocks, double threads_of_a_block,
                    void** parameters) {
  constexpr double kUsualRate = 1e13;
  if (memory_used(w, parameter<std::uint64_t>(parameters, 2), sizeof(std::uint32_t)) == nullptr)
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  double round_s = 0.0;
  for (const auto& [operation, times] : round) {
    const auto own = w.instruction_rates.find(operation);
    const bool is_of_a_block = operation.starts_with("tcgen05.mma");
    const bool computes = is_of_a_block || operation.starts_with("fma.") || operation.starts_with("mma.") ||
                          operation.starts_with("wgmma.mma_async");
    const double issued = static_cast<double>(times) * blocks * (is_of_a_block ? 1.0 : threads_of_a_block);
    if (own != w.instruction_rates.end()) {
      round_s += issued / own->second;
    } else if (computes) {
      round_s += issued / kUsualRate;
    }
  }
  task.duration_ns = static_cast<std::int64_t>(1e9 * round_s * parameter<std::uint32_t>(parameters, 0));
  return CUDA_SUCCESS;
}

// A check of a roof finds all sums right, unless a test has said otherwise.
CUresult check_sums(World& w, Task& task, const Round& round, std::uint32_t all, void** parameters) {
  const auto out = parameter<std::uint64_t>(parameters, 2);
  if (memory_used(w, out, sizeof(std::uint32_t[2])) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  const bool are_wrong = std::any_of(round.begin(), round.end(), [&](const auto& each) {
    return w.operations_with_wrong_sums.contains(each.first);
  });
  task.effect = [out, all, are_wrong](const Op&) {
    auto* found = memory_at<std::uint32_t>(out);
    if (are_wrong) found[0] += all;
    found[1] += all;
  };
  return CUDA_SUCCESS;
}

CUresult triad(World& w, const Device& device, Task& task, void** parameters) {
  constexpr std::uint64_t kVectorBytes = 16;
  const std::uint64_t array_bytes = kVectorBytes * parameter<std::uint32_t>(parameters, 3);
  for (const std::size_t array : {0, 1, 2}) {
    if (memory_used(w, parameter<std::uint64_t>(parameters, array), array_bytes) == nullptr)
      return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const auto cache = device.attributes.find(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  const bool fits = cache != device.attributes.end() &&
                    3 * array_bytes <= static_cast<std::uint64_t>(std::max(0, cache->second));
  const double bytes = 3.0 * static_cast<double>(array_bytes) * parameter<std::uint32_t>(parameters, 4);
  task.duration_ns =
      static_cast<std::int64_t>(1e9 * bytes / (fits ? w.cache_bytes_per_s : w.memory_bytes_per_s));
  return CUDA_SUCCESS;
}

// A kernel of another process runs for a while before this one goes on.
CUresult longest_pause(World& w, Task& task, void** parameters) {
  constexpr std::int64_t kTurnNs = 2'000'000;
  const auto longest = parameter<std::uint64_t>(parameters, 1);
  if (memory_used(w, longest, sizeof(std::uint64_t)) == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
  const std::int64_t pause_ns = busy_others() > 0 ? kTurnNs : w.globaltimer_step_ns;
  task.duration_ns = static_cast<std::int64_t>(parameter<std::uint64_t>(parameters, 0)) + pause_ns;
  task.effect = [longest, pause_ns](const Op&) {
    *memory_at<std::uint64_t>(longest) = static_cast<std::uint64_t>(pause_ns);
  };
  return CUDA_SUCCESS;
}

CUresult make_task(World& w, const Stream& stream, std::string_view name, void** parameters, Task& task) {
  if (name == kSpinGateKernel) return spin_gate(w, task, parameters);
  if (name == kSpinNsKernel) {
    const auto ns = static_cast<std::int64_t>(parameter<std::uint64_t>(parameters, 0));
    return spin(w, task, parameter<std::uint64_t>(parameters, 1), ns, globaltimer(w));
  }
  if (name == kSpinCyclesKernel) {
    const auto cycles = static_cast<double>(parameter<std::uint64_t>(parameters, 0));
    const auto ns = static_cast<std::int64_t>(cycles / cycles_per_ns(w, stream));
    return spin(w, task, parameter<std::uint64_t>(parameters, 1), ns, clock64(w, stream));
  }
  if (name == kClockRateKernel) return clock_rate(w, stream, task, parameters);
  if (name == kTimerStepsKernel) return timer_steps(w, task, parameters);
  if (name == kLongestPauseKernel) return longest_pause(w, task, parameters);
  if (name == kTriadRoofEntry) {
    const auto device = static_cast<std::size_t>(find_context(w, stream.context)->device);
    return triad(w, w.devices[device], task, parameters);
  }
  const auto known = w.kernel_durations_ns.find(std::string(name));
  task.duration_ns = known == w.kernel_durations_ns.end() ? kDefaultKernelNs : known->second;
  return CUDA_SUCCESS;
}

}  // namespace

Task kernel_task(const char* name, std::int64_t duration_ns) {
  Task task;
  task.duration_ns = duration_ns;
  task.activity = fake_cuda_activity{};
  task.activity->kind = 10;
  task.activity->name = name;
  return task;
}

void announce_launch(World& w, const char* function, Handle stream) {
  if (w.launch_listener == nullptr) return;
  const ContextPtr context = current_context(w);
  const fake_cuda_launch launch{function, stream, context ? context->handle : 0};
  w.launch_listener(&launch, w.launch_listener_user);
}

FAKE_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return entry("cuFuncSetAttribute", [&](World& w, Lock&) -> CUresult {
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!w.functions.contains(number(function))) {
      note_use(w, number(function));
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const bool is_known = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    if (!is_known || value < 0 || value > kMostSharedBytes) return CUDA_ERROR_INVALID_VALUE;
    w.most_shared_bytes[number(function)] = static_cast<unsigned int>(value);
    return CUDA_SUCCESS;
  });
}

FAKE_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                    unsigned int block_z, unsigned int shared_bytes, CUstream hStream,
                                    void** parameters, void** extra) {
  return entry("cuLaunchKernel", [&](World& w, Lock& lock) -> CUresult {
    announce_launch(w, "cuLaunchKernel", number(hStream));
    if (!current_context(w)) return CUDA_ERROR_INVALID_CONTEXT;
    const auto found = w.functions.find(number(function));
    if (found == w.functions.end()) {
      note_use(w, number(function));
      return CUDA_ERROR_INVALID_HANDLE;
    }
    StreamPtr stream;
    if (const CUresult error = find_stream(w, hStream, stream); error != CUDA_SUCCESS) return error;
    for (const unsigned int extent : {grid_x, grid_y, grid_z, block_x, block_y, block_z}) {
      if (extent == 0) return CUDA_ERROR_INVALID_VALUE;
    }
    if (block_x * block_y * block_z > 1024 || extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto allowed = w.most_shared_bytes.find(found->first);
    if (shared_bytes > (allowed == w.most_shared_bytes.end() ? kSharedBytes : allowed->second))
      return CUDA_ERROR_INVALID_VALUE;
    Task task = kernel_task(found->second, 0);
    const auto round = w.rounds.find(found->first);
    const double blocks = 1.0 * grid_x * grid_y * grid_z, threads = 1.0 * block_x * block_y * block_z;
    const CUresult made = round == w.rounds.end()
                              ? make_task(w, *stream, found->second, parameters, task)
                              : arithmetic(w, task, round->second, blocks, threads, parameters);
    if (made != CUDA_SUCCESS) return made;
    if (const auto checked = w.checked_sums.find(found->first); checked != w.checked_sums.end()) {
      const std::uint32_t all = static_cast<std::uint32_t>(blocks * threads) * checked->second;
      if (const CUresult error = check_sums(w, task, round->second, all, parameters); error != CUDA_SUCCESS)
        return error;
    }
    if (const CUresult error = enqueue(w, *stream, std::move(task)); error != CUDA_SUCCESS) return error;
    return w.launches_block && !stream->capture ? wait_for(w, lock, {stream->last()}) : CUDA_SUCCESS;
  });
}

}  // namespace fairlap::fakes
