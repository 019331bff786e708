#pragma once

#include <span>

#include "clock/clock.hpp"
#include "load/service.hpp"

namespace fairlap::load {

enum class KnownServiceBy { spinning, sleeping };

// Takes as long as the caller gave for each request, a group as long as its longest. Its queue is
// known in theory.
class KnownService final : public Service {
 public:
  KnownService(std::span<const double> length_ns, KnownServiceBy by, const clock::Clock& on) noexcept
      : length_ns_(length_ns), by_(by), on_(on) {}

  bool serve(const Group& group) override;
  bool settle(const Group&, bool) override { return true; }

 private:
  std::span<const double> length_ns_;
  KnownServiceBy by_;
  const clock::Clock& on_;
};

}  // namespace fairlap::load
