#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "loop/prefaulted_memory.hpp"

namespace fairlap::cuda {

// Why a sample is not a number.
enum class Invalid {
  gate_timed_out,      // the call waited for the device, or outgrew the queue, while the stream was held
  hidden_work,         // work was still running after the stop event
  records_dropped,     // activity records were lost
  no_activity,         // not one activity record belongs to the sample
  span_backwards,      // the stop event is older than the start event
  calls_were_reduced,  // taken with another number of calls per sample than the rest
};
constexpr std::size_t kInvalidReasons = 6;

enum class Quantity {
  host_issue_ns,
  device_span_ns,
  context_span_ns,
  kernel_sum_ns,
  busy_ns,      // time in which at least one kernel, copy or fill ran
  gap_ns,       // from the first start to the last end, less busy
  copy_sum_ns,  // copies and fills
};
constexpr std::size_t kQuantities = 7;

// Samples in the order of their taking, eight bytes for each quantity measured, all of it there beforehand.
class SampleTable {
 public:
  SampleTable(std::size_t capacity, std::span<const Quantity> quantities);

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool has(Quantity quantity) const noexcept { return columns_[index(quantity)] != nullptr; }
  [[nodiscard]] std::span<const double> column(Quantity quantity) const noexcept;

  // When the host began each sample, valid or not, on the engine's clock since its calibration.
  [[nodiscard]] std::span<const double> started_ns() const noexcept;

  // Opens a row of NaN and gives its number.
  std::size_t add_row() noexcept;
  void set(std::size_t row, Quantity quantity, double value_ns) noexcept { cells(quantity)[row] = value_ns; }
  void set_started(std::size_t row, double time_ns) noexcept { started_->as<double>()[row] = time_ns; }

  // Every quantity of the row becomes NaN. The first reason given counts.
  void invalidate(std::size_t row, Invalid reason) noexcept;
  void invalidate_rows_before(std::size_t row, Invalid reason) noexcept;

  [[nodiscard]] std::size_t count(Invalid reason) const noexcept {
    return counts_[static_cast<std::size_t>(reason)];
  }
  [[nodiscard]] std::size_t valid() const noexcept;

 private:
  static std::size_t index(Quantity quantity) noexcept { return static_cast<std::size_t>(quantity); }
  [[nodiscard]] std::span<double> cells(Quantity quantity) const noexcept {
    return columns_[index(quantity)]->as<double>();
  }
  [[nodiscard]] bool is_valid(std::size_t row) const noexcept {
    return !std::isnan(cells(Quantity::host_issue_ns)[row]);
  }

  std::size_t capacity_;
  std::size_t size_ = 0;
  std::unique_ptr<loop::PrefaultedMemory> started_;
  std::array<std::unique_ptr<loop::PrefaultedMemory>, kQuantities> columns_;
  std::array<std::size_t, kInvalidReasons> counts_{};
};

}  // namespace fairlap::cuda
