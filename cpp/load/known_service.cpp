#include "load/known_service.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "load/bell.hpp"
#include "load/load_clock.hpp"

namespace fairlap::load {

bool KnownService::serve(const Group& group) {
  const std::span<const double> lengths = length_ns_.subspan(group.first, group.count);
  const double ns = *std::max_element(lengths.begin(), lengths.end());
  if (by_ == KnownServiceBy::sleeping) {
    end_sleeps_on_time();
    std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(ns)));
    return true;
  }
  const std::uint64_t begin = on_.start();
  const std::uint64_t ticks = on_.ticks_of(ns);
  while (on_.finish() - begin < ticks) relax();
  return true;
}

}  // namespace fairlap::load
