#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/stream/own_stream.hpp"

namespace fairlap::cuda_link {

enum class CopyWay : std::uint8_t { to_device, from_device, both };

// One stream's copies, over and over from one buffer to another.
class CopyLane;

// Trials of copies, each of at least two milliseconds: long beside the microsecond in which a copy starts.
// Each is timed by events on the copies' own streams, from before the first to after the last; where two
// streams copy at once they begin together, and a trial ends when both have.
class CopyTrials {
 public:
  // Between the device and pinned memory on its own memory node, as a feeder's slots are.
  CopyTrials(const cuda::OwnStream& stream, CopyWay way, const std::string& sys_folder = "/sys");

  // From one device to another, directly where both have access to each other's memory. Streams must outlive
  // this.
  CopyTrials(const cuda::OwnStream& from, const cuda::OwnStream& to);
  ~CopyTrials();

  CopyTrials(const CopyTrials&) = delete;  // It holds pinned memory, and memory of devices.
  CopyTrials& operator=(const CopyTrials&) = delete;

  // Whether the driver has the devices read each other's memory; else copies between them go through the
  // host's.
  [[nodiscard]] bool is_direct() const noexcept { return is_direct_; }

  // The rate of each trial in bytes per second, of both directions together where there are two. Takes about
  // so many seconds, at least a few trials.
  std::vector<double> rates(double seconds);

 private:
  [[nodiscard]] std::uint32_t copies_of_a_trial();
  std::vector<double> spans_ns(std::uint32_t copies, std::size_t trials);

  const cuda::OwnStream& stream_;
  bool is_direct_ = false;
  std::vector<std::unique_ptr<CopyLane>> lanes_;
  std::vector<std::unique_ptr<cuda::Event>> begun_;
  std::uint32_t copies_ = 1;
};

}  // namespace fairlap::cuda_link
