#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fairlap::feed {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): the state grows
// by the golden ratio's constant, and what is given is the state mixed by two multiplications.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t state) noexcept : state_(state) {}
  std::uint64_t next() noexcept;
  // Even over 0 ... bound-1: the lowest bits that can hold bound-1 are drawn until they are below bound.
  std::uint64_t below(std::uint64_t bound) noexcept;

 private:
  std::uint64_t state_;
};

// What becomes of the samples left at an epoch's end when they do not fill a batch.
enum class LastBatch {
  keep,  // a smaller batch
  drop,  // they are left out
  wrap,  // filled up with the first samples of the same epoch's order, over and over if need be
};

struct OrderSettings {
  std::uint64_t samples = 0;
  std::size_t batch = 1;
  std::uint64_t epochs = 1;           // 0: without end
  std::optional<std::uint64_t> seed;  // none: in the order of the samples
  LastBatch last = LastBatch::keep;
};

// Which samples make up which batch. The order depends on the settings alone, on every machine: epoch e is
// the Fisher-Yates shuffle of 0 ... samples-1, from the front, by SplitMix64 whose state is the first
// output of SplitMix64(first output of SplitMix64(seed) + e). An epoch does not depend on those before it.
//
// The shuffle takes as many steps as samples are drawn, and the next epoch's sequence is put in its first
// order meanwhile, so that an epoch begins without a pause. That takes 16 bytes for each sample.
class Order {
 public:
  explicit Order(const OrderSettings& settings);

  // Writes the next batch's samples and returns how many; 0 at the end. There is room for a whole batch.
  std::size_t draw(std::span<std::uint64_t> samples) noexcept;

  // 0: without end.
  [[nodiscard]] std::uint64_t batches() const noexcept;

 private:
  void begin_epoch() noexcept;
  void draw_one(std::uint64_t& sample) noexcept;
  void reset_next(std::uint64_t from, std::uint64_t to) noexcept;

  OrderSettings settings_;
  SplitMix64 generator_{0};
  std::vector<std::uint64_t> shuffled_;
  std::vector<std::uint64_t> next_;
  std::uint64_t epoch_ = 0;
  std::uint64_t drawn_ = 0;  // of this epoch
};

}  // namespace fairlap::feed
