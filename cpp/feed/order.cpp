#include "feed/order.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "feed/element_type.hpp"

namespace fairlap::feed {

std::uint64_t SplitMix64::next() noexcept {
  state_ += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

std::uint64_t SplitMix64::below(std::uint64_t bound) noexcept {
  const auto bits = static_cast<unsigned>(std::bit_width(bound - 1));
  if (bits == 0) return 0;
  const std::uint64_t mask = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
  std::uint64_t drawn = next() & mask;
  while (drawn >= bound) drawn = next() & mask;
  return drawn;
}

Order::Order(const OrderSettings& settings) : settings_(settings) {
  if (settings.samples == 0) throw BadFeed("no samples to feed");
  if (settings.batch == 0) throw BadFeed("a batch has at least one sample");
  if (settings.last == LastBatch::drop && settings.batch > settings.samples) {
    throw BadFeed("a batch of " + std::to_string(settings.batch) + " is more than the " +
                  std::to_string(settings.samples) +
                  " samples there are, and incomplete batches are dropped");
  }
  if (settings.seed) {
    next_.resize(settings.samples);
    std::iota(next_.begin(), next_.end(), std::uint64_t{0});
    shuffled_ = next_;
  }
  begin_epoch();
}

void Order::begin_epoch() noexcept {
  drawn_ = 0;
  if (!settings_.seed) return;
  std::swap(shuffled_, next_);
  generator_ = SplitMix64(SplitMix64(SplitMix64(*settings_.seed).next() + epoch_).next());
}

void Order::draw_one(std::uint64_t& sample) noexcept {
  if (settings_.seed) {
    std::swap(shuffled_[drawn_], shuffled_[drawn_ + generator_.below(settings_.samples - drawn_)]);
    sample = shuffled_[drawn_];
    next_[drawn_] = drawn_;
  } else {
    sample = drawn_;
  }
  ++drawn_;
}

void Order::reset_next(std::uint64_t from, std::uint64_t to) noexcept {
  if (!settings_.seed) return;
  for (std::uint64_t place = from; place < to; ++place) next_[place] = place;
}

std::size_t Order::draw(std::span<std::uint64_t> samples) noexcept {
  if (settings_.epochs != 0 && epoch_ >= settings_.epochs) return 0;
  const std::uint64_t least_left = settings_.last == LastBatch::drop ? settings_.batch : 1;
  if (settings_.samples - drawn_ < least_left) {
    reset_next(drawn_, settings_.samples);
    ++epoch_;
    if (epoch_ == settings_.epochs) return 0;  // never so without end: it has begun at 1
    begin_epoch();
  }
  const auto take =
      static_cast<std::size_t>(std::min<std::uint64_t>(settings_.batch, settings_.samples - drawn_));
  for (std::size_t place = 0; place < take; ++place) draw_one(samples[place]);
  if (settings_.last != LastBatch::wrap) return take;
  for (std::size_t place = take; place < settings_.batch; ++place) {
    const std::uint64_t again = (place - take) % settings_.samples;
    samples[place] = settings_.seed ? shuffled_[again] : again;
  }
  return settings_.batch;
}

std::uint64_t Order::batches() const noexcept {
  const std::uint64_t whole = settings_.samples / settings_.batch;
  const bool rest = settings_.samples % settings_.batch != 0 && settings_.last != LastBatch::drop;
  const std::uint64_t each = whole + (rest ? 1 : 0);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  return settings_.epochs > most / each ? most : settings_.epochs * each;  // beyond any run
}

}  // namespace fairlap::feed
