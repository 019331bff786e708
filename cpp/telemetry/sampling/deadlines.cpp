#include "telemetry/sampling/deadlines.hpp"

#include <stdexcept>

namespace fairlap::telemetry {

Deadlines::Deadlines(std::int64_t start_ns, std::int64_t period_ns, double jitter_share, std::uint64_t seed)
    : start_ns_(start_ns),
      period_ns_(period_ns),
      most_jitter_ns_(jitter_share * static_cast<double>(period_ns)),
      random_(seed) {
  if (period_ns <= 0) throw std::invalid_argument("the period of a sampler must be longer than nothing");
  if (!(jitter_share >= 0.0 && jitter_share <= 1.0)) {
    throw std::invalid_argument("the jitter of a sampler is a share of its period, from 0 to 1");
  }
  draw();
}

std::uint64_t Deadlines::advance(std::int64_t now_ns) noexcept {
  std::uint64_t missed = 0;
  do {
    ++number_;
    draw();
    // The next one may be a little late and is still held: it is missed only when the one after it is due
    // too.
    if (start_ns_ + static_cast<std::int64_t>(number_ + 1) * period_ns_ > now_ns) break;
    ++missed;
  } while (true);
  return missed;
}

void Deadlines::draw() noexcept {
  // xorshift64* (Vigna 2016): any generator will do that needs no lock and no allocation.
  random_ ^= random_ == 0 ? 0x9E3779B97F4A7C15U : 0U;
  random_ ^= random_ >> 12U;
  random_ ^= random_ << 25U;
  random_ ^= random_ >> 27U;
  const double share = static_cast<double>((random_ * 0x2545F4914F6CDD1DU) >> 11U) * 0x1p-53;
  next_ns_ = start_ns_ + static_cast<std::int64_t>(number_) * period_ns_ +
             static_cast<std::int64_t>(share * most_jitter_ns_);
}

}  // namespace fairlap::telemetry
