#pragma once

#include "loop/work.hpp"

namespace fairlap::loop {

// The work holds the interpreter lock while this lives, so nothing in between may wait for the device.
class Entered {
 public:
  explicit Entered(Work& work) noexcept : work_(work) { work_.enter(); }
  ~Entered() { static_cast<void>(leave()); }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  // Before the end of its life, to learn whether a stop was asked for.
  bool leave() noexcept {
    if (!inside_) return false;
    inside_ = false;
    return work_.leave();
  }

 private:
  Work& work_;
  bool inside_ = true;
};

}  // namespace fairlap::loop
