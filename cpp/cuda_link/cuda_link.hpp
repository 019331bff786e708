#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver/owned.hpp"
#include "cuda_link/copy_overlap.hpp"
#include "feed/link.hpp"

namespace fairlap::cuda_link {

struct CudaLinkSettings {
  int device = -1;  // the current context's, or that of the only device in use
  // A device that is still at work on a slot when all this ends is waited for so long; then its memory is
  // left where it is, since freeing would wait without end.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
  std::string sys_folder = "/sys";  // in which the kernel says to which memory a device is attached
};

// Slots on a CUDA device, copied to from slots that are pinned, on the device's own memory node where there
// are several, on a stream of our own in the framework's context. Everything is allocated at the beginning,
// but for events of slots that many streams use.
class CudaLink final : public feed::Link {
 public:
  // Throws BadStream when the device is not there or has not been used yet, and LinkFailed.
  static std::unique_ptr<CudaLink> open(const cuda::Driver& driver, const feed::HostSlots& host,
                                        const CudaLinkSettings& settings);
  ~CudaLink() override;

  [[nodiscard]] feed::dlpack::Device device() const noexcept override;
  [[nodiscard]] void* memory(std::size_t slot) const noexcept override;
  void time_copies(bool on) override;
  [[nodiscard]] std::optional<feed::CopyTimes> copy_times() const noexcept override;
  feed::SlotUse use_of(std::size_t slot) override;
  void send(std::size_t slot, std::size_t bytes) override;
  void make_wait(std::uintptr_t stream, std::size_t slot) override;
  void will_be_used(std::uintptr_t stream, std::size_t slot) override;
  void used_by_unknown(std::size_t slot) noexcept override;
  [[nodiscard]] bool has_arrived(std::size_t slot) override;
  void given_back(std::size_t slot, bool all_named) noexcept override;
  [[nodiscard]] std::optional<int> host_node() const noexcept override { return host_node_; }

 private:
  // A consumer's stream. The default stream of a thread is another one in another thread.
  struct Use {
    std::uintptr_t stream = 0;
    std::thread::id thread;
  };
  struct Slot {
    explicit Slot(const cuda::BorrowedContext& context);
    cuda::Event copied;
    std::vector<cuda::Event> used;  // as many as streams have ever used one batch in it
    std::vector<Use> uses;
    std::size_t recorded = 0;  // of the events of use
    bool sent = false;
    bool unknown = false;                // used on a stream that was not named
    bool whole_context = false;          // only an idle context proves that it is not in use
    std::optional<std::uint64_t> timed;  // the number of the copy, where it is timed
    std::exception_ptr failure;
  };

  CudaLink(cuda::BorrowedContext context, const feed::HostSlots& host, const CudaLinkSettings& settings);
  feed::SlotUse use_seen(Slot& slot) const;
  void check(std::uintptr_t stream);
  // The number of the use, unless the stream was known to use it.
  std::optional<std::size_t> note_use(std::uintptr_t stream, Slot& slot);
  [[nodiscard]] bool is_at_rest(std::chrono::nanoseconds patience);

  feed::HostSlots host_;
  std::chrono::nanoseconds patience_;
  cuda::BorrowedContext context_;
  std::optional<int> host_node_;  // before the memory is pinned, since pinned pages do not move
  cuda::RegisteredMemory pinned_;
  cuda::DeviceMemory memory_;
  cuda::PrivateStream stream_;
  std::vector<Slot> slots_;
  std::mutex sending_;  // a copy and its event follow each other
  std::mutex using_;
  std::vector<std::uintptr_t> streams_seen_;  // known to be of our context
  std::mutex timing_;
  std::unique_ptr<CopyOverlap> overlap_made_;
  std::atomic<CopyOverlap*> overlap_ = nullptr;  // for those who do not make it
};

// For a feeder's settings. Throws Unavailable where there is no driver.
feed::MakeLink link_to_cuda(const CudaLinkSettings& settings);

}  // namespace fairlap::cuda_link
