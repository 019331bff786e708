#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda/activity/attribution.hpp"
#include "cuda/activity/cupti.hpp"

namespace fairlap::cuda {

// Where CUPTI puts its records. It hands buffers over from its own threads, without naming their
// recipient, and may do so until the process ends; so there is one store, and it is never destroyed.
class ActivityStore {
 public:
  static ActivityStore& of_this_process();

  // Takes records of one context from now on.
  void begin(const Cupti& cupti, std::uint32_t context_id);
  void end();

  // What came in since the last time, and what is missing: records without times, or for which was no room.
  std::vector<Activity> take(std::vector<Loss>& losses);

  static void on_buffer_wanted(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_at_most);
  static void on_buffer_full(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                             std::size_t valid_bytes);

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1024} * 1024;
  static constexpr std::size_t kBuffersReady = 4;
  static constexpr std::size_t kBuffersAtMost = 64;
  static constexpr std::size_t kRecordsAtMost = std::size_t{4} * 1024 * 1024;

  struct alignas(64) Buffer {
    std::uint8_t bytes[kBufferBytes];
  };

  ActivityStore();
  std::uint8_t* lend();
  void read(std::uint8_t* buffer, std::size_t valid_bytes);
  void keep(const CUpti_Activity& record);
  void keep(ActivityKind kind, std::uint64_t start, std::uint64_t end, std::uint32_t stream, const char* name,
            std::uint8_t copy_kind = 0);
  void lose_after_last();

  std::mutex mutex_;
  const Cupti* cupti_ = nullptr;  // null while no trace is active
  std::uint32_t context_id_ = 0;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::uint8_t*> free_;
  std::vector<Activity> records_;
  std::set<std::string> names_;  // a kernel's own name goes when its module is unloaded
  std::vector<Loss> losses_;
  std::size_t bounded_ = 0;    // losses whose end is known; the others are of the buffer being read
  std::uint64_t last_ns_ = 0;  // when the last complete record of the buffer being read ended
};

}  // namespace fairlap::cuda
