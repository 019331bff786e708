#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/activity/cupti_abi.hpp"
#include "cuda/driver/cuda_error.hpp"

namespace fairlap::cuda {

// The functions of CUPTI that are used. FORM(name)
#define FAIRLAP_CUPTI_FUNCTIONS(FORM)          \
  FORM(cuptiGetVersion)                        \
  FORM(cuptiGetResultString)                   \
  FORM(cuptiGetTimestamp)                      \
  FORM(cuptiGetContextId)                      \
  FORM(cuptiGetStreamIdEx)                     \
  FORM(cuptiSubscribe)                         \
  FORM(cuptiEnableDomain)                      \
  FORM(cuptiUnsubscribe)                       \
  FORM(cuptiActivityRegisterCallbacks)         \
  FORM(cuptiActivityRegisterTimestampCallback) \
  FORM(cuptiActivityEnable)                    \
  FORM(cuptiActivityDisable)                   \
  FORM(cuptiActivityFlushAll)                  \
  FORM(cuptiActivityGetNextRecord)             \
  FORM(cuptiActivityGetNumDroppedRecords)

// NVIDIA's profiling library, opened at run time. It does not come with the driver.
class Cupti {
 public:
  // Tries FAIRLAP_LIBCUPTI alone when that is set; else a copy that this process has loaded, the places given
  // (a package's folder, a toolkit's), and the system's own. Throws Unavailable with every reason.
  static const Cupti& of_this_process(const std::vector<std::string>& places);

  // Whether it was ever opened by us; from then on launches in this process may cost more.
  static bool was_used() noexcept;

  Cupti(const Cupti&) = delete;  // CUPTI keeps one state for the whole process.
  Cupti& operator=(const Cupti&) = delete;

  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // Throws CudaError unless the result is success.
  void check(const char* function, CUptiResult result) const;

#define FAIRLAP_MEMBER(name) PFN_##name name = nullptr;
  FAIRLAP_CUPTI_FUNCTIONS(FAIRLAP_MEMBER)
#undef FAIRLAP_MEMBER

  // Empty where records can be taken with a CUPTI of this version.
  static std::string why_not_of_version(std::uint32_t version);

 private:
  Cupti() = default;
  static std::unique_ptr<const Cupti> open(const std::vector<std::string>& places);

  std::uint32_t version_ = 0;
  std::string path_;
};

}  // namespace fairlap::cuda
