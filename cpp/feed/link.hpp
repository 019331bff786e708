#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "feed/dlpack_abi.hpp"

namespace fairlap::feed {

// The way to the device failed; the message names the call and what to do.
class LinkFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The memory of the slots, for a link to copy from: `count` pieces, each `stride` after the one before.
struct HostSlots {
  std::byte* memory = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
};

// What keeps a slot that was given back from being filled again.
enum class SlotUse { none, copied_from, worked_on };

// Of copies that were timed: how long they took, and how much of that was behind work on other batches.
struct CopyTimes {
  std::uint64_t copies = 0;
  double copied_ns = 0.0;
  double hidden_ns = 0.0;
  // Left out: no stream was named for all of the work on the batch, or several.
  std::uint64_t without_stream = 0;
  // Left out: a batch was held while many others passed, or an event failed.
  std::uint64_t lost = 0;
};

// From slots in host memory to as many slots on a device. Copies and the work of consumers run on the
// device's own time, so that a slot may still be in use when every holder here has given it back; the link
// knows. Each slot is used by one thread at a time, except where stated.
class Link {
 public:
  Link() = default;
  virtual ~Link() = default;
  Link(const Link&) = delete;  // Consumers have addresses in it.
  Link& operator=(const Link&) = delete;

  [[nodiscard]] virtual dlpack::Device device() const noexcept = 0;
  [[nodiscard]] virtual void* memory(std::size_t slot) const noexcept = 0;

  // The memory node that the slots in host memory were put on, for being near the device.
  [[nodiscard]] virtual std::optional<int> host_node() const noexcept { return std::nullopt; }

  // Times copies and the work on batches from the next copy on, or ends that, where a link can. Throws
  // LinkFailed.
  virtual void time_copies(bool /*on*/) {}
  [[nodiscard]] virtual std::optional<CopyTimes> copy_times() const noexcept { return std::nullopt; }

  // By those who fill. Both throw LinkFailed.
  virtual SlotUse use_of(std::size_t slot) = 0;
  virtual void send(std::size_t slot, std::size_t bytes) = 0;  // begins the copy and does not wait for it

  // By those who hold a batch, several at a time. All but the third throw LinkFailed. A stream is named by
  // the number that DLPack has for it.
  virtual void make_wait(std::uintptr_t stream, std::size_t slot) = 0;  // for the copy; it will use the slot
  virtual void will_be_used(std::uintptr_t stream, std::size_t slot) = 0;  // without waiting
  virtual void used_by_unknown(std::size_t slot) noexcept = 0;             // on an unnamed stream
  [[nodiscard]] virtual bool has_arrived(std::size_t slot) = 0;

  // By the last holder. `all_named`: the streams named are all that used it.
  // What fails here, use_of() throws.
  virtual void given_back(std::size_t slot, bool all_named) noexcept = 0;
};

using MakeLink = std::function<std::unique_ptr<Link>(const HostSlots& slots)>;

}  // namespace fairlap::feed
