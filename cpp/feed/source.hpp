#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "feed/element_type.hpp"

namespace fairlap::feed {

// The source no longer gives what it promised; the message explains how.
class SourceFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Where samples come from. Several threads read at once.
class Source {
 public:
  explicit Source(SampleArray array)
      : array_(std::move(array)), bytes_per_sample_(array_.bytes_per_sample()) {}
  virtual ~Source() = default;
  Source(const Source&) = delete;  // It is a file, or borrowed memory; threads share the one.
  Source& operator=(const Source&) = delete;

  [[nodiscard]] const SampleArray& array() const noexcept { return array_; }
  [[nodiscard]] std::size_t bytes_per_sample() const noexcept { return bytes_per_sample_; }

  // Where the sample is in memory, or nullptr when it has to be read.
  [[nodiscard]] virtual const std::byte* in_place(std::uint64_t sample) const noexcept = 0;

  // Copies neighbouring samples, whole, or throws SourceFailed.
  virtual void read(std::uint64_t first, std::size_t samples, std::byte* to) const = 0;

  // Called before samples are taken from it: throws SourceFailed when the source is no longer what it was.
  virtual void check_still_there() const = 0;

 private:
  SampleArray array_;
  std::size_t bytes_per_sample_;
};

// Samples one after the other in memory, which the caller keeps alive and unchanged.
std::unique_ptr<Source> source_in_memory(const std::byte* first, const SampleArray& array);

// Little-endian samples one after the other from a byte offset on. As many as there are in the
// file when `array.samples` is 0; then what is left of the file must be whole samples.
std::unique_ptr<Source> source_in_raw_file(const std::string& path, std::uint64_t offset, SampleArray array);

}  // namespace fairlap::feed
