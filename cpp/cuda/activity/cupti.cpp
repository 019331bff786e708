#include "cuda/activity/cupti.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "cuda/driver/shared_library.hpp"

namespace fairlap::cuda {
namespace {

// Records are read by fixed offsets, which have been compared with the headers from CUDA 11.8 on. CUPTI
// numbered its interface 18 then.
constexpr std::uint32_t kOldestVersion = 18;

// CUDA 13.0 before its Update 1, whose notes list a deadlock in cuptiActivityDisable and a crash in
// cuptiActivityFlushAll.
constexpr std::uint32_t kVersionThatHangs = 130'000;

std::atomic<bool> used{false};

std::string hint(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return " Another profiler holds CUPTI (a framework's profiler, Nsight, compute-sanitizer); end it, or "
             "time in a "
             "process without it.";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return " The driver lets only administrators profile; ask for NVreg_RestrictProfilingToAdminUsers=0.";
    case CUPTI_ERROR_NOT_COMPATIBLE:
      return " This CUPTI is newer than the driver; install the one of the driver's CUDA release.";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_NOT_SUPPORTED:
      return " This device or virtual machine has no activity records; use another method.";
    default:
      return "";
  }
}

}  // namespace

const Cupti& Cupti::of_this_process(const std::vector<std::string>& places) {
  static std::mutex mutex;
  static std::unique_ptr<const Cupti> cupti;
  const std::lock_guard lock(mutex);
  if (!cupti) cupti = open(places);
  used = true;
  return *cupti;
}

std::string Cupti::why_not_of_version(std::uint32_t version) {
  if (version < kOldestVersion) {
    return "CUPTI version " + std::to_string(version) + "; version " + std::to_string(kOldestVersion) +
           " (CUDA 11.8) or later is needed";
  }
  if (version == kVersionThatHangs) {
    return "CUDA 13.0 before Update 1, and may hang or crash; install a later one, such as nvidia-cuda-cupti "
           "13.0.85";
  }
  return "";
}

bool Cupti::was_used() noexcept { return used; }

std::unique_ptr<const Cupti> Cupti::open(const std::vector<std::string>& places) {
  const std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
                                          "libcupti.so"};
  const char* chosen = std::getenv("FAIRLAP_LIBCUPTI");
  const bool is_chosen = chosen != nullptr && *chosen != '\0';

  std::optional<SharedLibrary> library;
  std::string why_not;
  if (!is_chosen) library = SharedLibrary::already_loaded(names);
  if (!library) {
    std::vector<std::string> candidates = is_chosen ? std::vector<std::string>{chosen} : places;
    if (!is_chosen) candidates.insert(candidates.end(), names.begin(), names.end());
    library = SharedLibrary::open(candidates, why_not);
  }
  if (!library) {
    throw Unavailable(
        "activity records need libcupti, which was not found: " + why_not +
        ". Install the extra with `pip install fairlap[cuda]`, or name the file in FAIRLAP_LIBCUPTI.");
  }

  std::unique_ptr<Cupti> cupti(new Cupti());
  cupti->path_ = library->path();
#define FAIRLAP_FIND(name)                                            \
  cupti->name = reinterpret_cast<PFN_##name>(library->symbol(#name)); \
  if (cupti->name == nullptr)                                         \
    throw Unavailable(library->path() + " has no " #name "; it is too old or not CUPTI");
  FAIRLAP_CUPTI_FUNCTIONS(FAIRLAP_FIND)
#undef FAIRLAP_FIND
  cupti->check("cuptiGetVersion", cupti->cuptiGetVersion(&cupti->version_));
  if (const std::string why = why_not_of_version(cupti->version_); !why.empty()) {
    throw Unavailable(library->path() + " is of " + why);
  }
  return cupti;
}

void Cupti::check(const char* function, CUptiResult result) const {
  if (result == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  if (cuptiGetResultString(result, &name) != CUPTI_SUCCESS) name = nullptr;
  const std::string result_name = name != nullptr ? name : "";
  const std::string what_to_do = hint(result);
  if (what_to_do.empty()) throw CudaError(function, result, result_name, "");
  throw Unavailable(CudaError(function, result, result_name, "").what() + what_to_do);
}

}  // namespace fairlap::cuda
