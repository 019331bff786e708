#pragma once

#include <stdexcept>
#include <string>

#include "cuda/driver/driver_abi.hpp"

namespace fairlap::cuda {

// Something requested is not available: a library, a function of a newer driver, a method of timing.
class Unavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The caller handed over something that cannot be used: a dead stream, a stream of another device.
class BadStream : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A call into the driver or CUPTI failed.
class CudaError : public std::runtime_error {
 public:
  CudaError(std::string function, int code, const std::string& name, const std::string& text);

  [[nodiscard]] const std::string& function() const noexcept { return function_; }
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string function_;
  int code_;
  std::string name_;
};

// What the reader of a failed call can do about it; empty when we know nothing better than its text.
std::string advice_on(CUresult code);

// Why a stream capture failed, in words about the callable that was captured; empty for other codes.
std::string capture_fault(CUresult code);

// True when the context is beyond use and every later call on it fails in the same way.
bool breaks_the_context(CUresult code) noexcept;

}  // namespace fairlap::cuda
