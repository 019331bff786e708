#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/roofs/roof_kernel.hpp"
#include "cuda/stream/own_stream.hpp"

namespace fairlap::cuda {

// What a trial repeats, with any of several kernels.
class DeviceLoad;

// Trials of a load on a whole device, each of about two milliseconds: long beside the microseconds in which a
// kernel starts and ends, which count as part of it. Each is timed by events around it, on a stream of ours
// that must outlive this; the trials follow each other without a gap, so that the device keeps its clock.
class DeviceTrials {
 public:
  // Throws Unavailable where a kernel cannot be loaded: without the fastest the roof would be too low.
  DeviceTrials(const OwnStream& stream, const std::vector<RoofKernel>& kernels);

  // The triad over three arrays of together about so many bytes.
  DeviceTrials(const OwnStream& stream, std::size_t bytes);
  ~DeviceTrials();

  DeviceTrials(const DeviceTrials&) = delete;  // It can hold gigabytes of the device's memory.
  DeviceTrials& operator=(const DeviceTrials&) = delete;

  // Of the kernel that is in use: the one that was the fastest in a few trials.
  [[nodiscard]] std::string instructions() const;

  // The rate of each trial, in operations or bytes per second. Takes about so many seconds of the device's
  // time, at least a few trials.
  std::vector<double> rates(double seconds);

 private:
  void use_the_fastest();
  [[nodiscard]] std::uint32_t units_of_a_trial();
  std::vector<double> spans_ns(std::uint32_t units, std::size_t trials);

  const OwnStream& stream_;
  std::unique_ptr<DeviceLoad> load_;
  std::vector<std::unique_ptr<Event>> events_;
  std::uint32_t units_ = 1;
};

}  // namespace fairlap::cuda
