#include "cuda/sample_table.hpp"

namespace fairlap::cuda {

const char* name_of(Invalid reason) noexcept {
  switch (reason) {
    case Invalid::gate_timed_out:
      return "gate_timed_out";
    case Invalid::hidden_work:
      return "hidden_work";
    case Invalid::records_dropped:
      return "records_dropped";
    case Invalid::no_activity:
      return "no_activity";
    case Invalid::span_backwards:
      return "span_backwards";
    case Invalid::calls_were_reduced:
      return "calls_were_reduced";
  }
  return "";
}

const char* name_of(Quantity quantity) noexcept {
  switch (quantity) {
    case Quantity::host_issue_ns:
      return "host_issue_ns";
    case Quantity::device_span_ns:
      return "device_span_ns";
    case Quantity::context_span_ns:
      return "context_span_ns";
    case Quantity::kernel_sum_ns:
      return "kernel_sum_ns";
    case Quantity::busy_ns:
      return "busy_ns";
    case Quantity::gap_ns:
      return "gap_ns";
    case Quantity::copy_sum_ns:
      return "copy_sum_ns";
  }
  return "";
}

SampleTable::SampleTable(std::size_t capacity, std::span<const Quantity> quantities) : capacity_(capacity) {
  for (const Quantity quantity : quantities) {
    columns_[index(quantity)] = std::make_unique<loop::PrefaultedMemory>(capacity * sizeof(double));
  }
}

std::span<const double> SampleTable::column(Quantity quantity) const noexcept {
  return has(quantity) ? std::span<const double>(cells(quantity)).first(size_) : std::span<const double>();
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
