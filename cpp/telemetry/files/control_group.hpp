#pragma once

#include <vector>

#include "telemetry/files/kept_file.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// Memory and processor time of the control group of this process, of version 2 or 1. It sees what
// a sum over processes misses: page cache, and children that have ended.
class ControlGroup final : public Source {
 public:
  explicit ControlGroup(const std::string& root = "");
  void read(Lane lane, Recorder& recorder) noexcept override;

 private:
  struct Number {
    std::size_t file;
    std::string key;  // the line's beginning; empty: the file holds the number alone
    double scale;
  };
  std::vector<KeptFile> files_;
  std::vector<Number> numbers_;  // by field
};

}  // namespace fairlap::telemetry
