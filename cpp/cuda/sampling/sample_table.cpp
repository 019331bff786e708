#include "cuda/sampling/sample_table.hpp"

namespace fairlap::cuda {

SampleTable::SampleTable(std::size_t capacity, std::span<const Quantity> quantities)
    : capacity_(capacity), started_(std::make_unique<loop::PrefaultedMemory>(capacity * sizeof(double))) {
  for (const Quantity quantity : quantities) {
    columns_[index(quantity)] = std::make_unique<loop::PrefaultedMemory>(capacity * sizeof(double));
  }
}

std::span<const double> SampleTable::column(Quantity quantity) const noexcept {
  return has(quantity) ? std::span<const double>(cells(quantity)).first(size_) : std::span<const double>();
}

std::span<const double> SampleTable::started_ns() const noexcept {
  return std::span<const double>(started_->as<double>()).first(size_);
}

std::size_t SampleTable::add_row() noexcept {
  const std::size_t row = size_++;
  for (const auto& column : columns_) {
    if (column) column->as<double>()[row] = std::numeric_limits<double>::quiet_NaN();
  }
  return row;
}

void SampleTable::invalidate(std::size_t row, Invalid reason) noexcept {
  if (!is_valid(row)) return;
  ++counts_[static_cast<std::size_t>(reason)];
  for (const auto& column : columns_) {
    if (column) column->as<double>()[row] = std::numeric_limits<double>::quiet_NaN();
  }
}

void SampleTable::invalidate_rows_before(std::size_t row, Invalid reason) noexcept {
  for (std::size_t earlier = 0; earlier < row; ++earlier) invalidate(earlier, reason);
}

std::size_t SampleTable::valid() const noexcept {
  std::size_t invalid = 0;
  for (const std::size_t count : counts_) invalid += count;
  return size_ - invalid;
}

}  // namespace fairlap::cuda
