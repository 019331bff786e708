#include <array>
#include <cmath>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/driver/cuda_error.hpp"
#include "cuda/sampling/calls_per_sample.hpp"
#include "cuda/sampling/sample_table.hpp"
#include "tests/check.hpp"

using namespace fairlap;
using cuda::find_calls_per_sample;
using cuda::Invalid;
using cuda::Quantity;
using cuda::SampleTable;

namespace {

constexpr std::array kTwo = {Quantity::host_issue_ns, Quantity::device_span_ns};

SampleTable three_rows() {
  SampleTable table(3, kTwo);
  for (double value = 1; value <= 3; ++value) {
    const std::size_t row = table.add_row();
    table.set(row, Quantity::host_issue_ns, value);
    table.set(row, Quantity::device_span_ns, 10 * value);
  }
  return table;
}

std::uint64_t calls_for(double quantum_ns, double share, double one_call_ns, double overhead_ns = 0.0) {
  return find_calls_per_sample(quantum_ns, share, [&](std::uint64_t calls) -> std::optional<double> {
    return overhead_ns + one_call_ns * static_cast<double>(calls);
  });
}

}  // namespace

TEST("an invalid row is NaN in every quantity and counted once") {
  SampleTable table = three_rows();
  table.invalidate(1, Invalid::hidden_work);
  table.invalidate(1, Invalid::gate_timed_out);
  CHECK(std::isnan(table.column(Quantity::device_span_ns)[1]));
  CHECK(std::isnan(table.column(Quantity::host_issue_ns)[1]));
  CHECK_EQUAL(table.column(Quantity::device_span_ns)[2], 30.0);
  CHECK_EQUAL(table.count(Invalid::hidden_work), 1U);
  CHECK_EQUAL(table.count(Invalid::gate_timed_out), 0U);
  CHECK_EQUAL(table.valid(), 2U);
  CHECK_EQUAL(table.size(), 3U);
}

TEST("rows before a change of shape are invalid under its name, whatever was invalid keeps its own") {
  SampleTable table = three_rows();
  table.invalidate(0, Invalid::gate_timed_out);
  table.invalidate_rows_before(2, Invalid::calls_were_reduced);
  CHECK_EQUAL(table.count(Invalid::calls_were_reduced), 1U);
  CHECK_EQUAL(table.valid(), 1U);
}

TEST("a quantity that was not measured has no column") {
  const SampleTable table = three_rows();
  CHECK(!table.has(Quantity::kernel_sum_ns));
  CHECK(table.column(Quantity::kernel_sum_ns).empty());
}

TEST("one call is enough when the quantum is a small share of it") {
  CHECK_EQUAL(calls_for(32, 0.01, 5000), 1U);
}

TEST("as many calls are taken as make the quantum the stated share") {
  CHECK_EQUAL(calls_for(500, 0.01, 1000), 50U);
  CHECK_EQUAL(calls_for(500, 0.1, 1000), 5U);
}

TEST("an overhead of the interval does not deceive the search") {
  const std::uint64_t calls = calls_for(500, 0.01, 100, 4000);
  CHECK(4000.0 + 100.0 * static_cast<double>(calls) >= 50000);
  CHECK(calls < 512);
}

TEST("a call that takes no time ends at the bound of the queue") {
  CHECK_EQUAL(calls_for(500, 0.01, 0), cuda::kCallsPerSampleAtMost);
}

TEST("a number of calls that cannot be taken leaves the largest that could") {
  const auto span_of = [](std::uint64_t calls) -> std::optional<double> {
    if (calls > 10) return std::nullopt;
    return 100.0 * static_cast<double>(calls);
  };
  CHECK_EQUAL(find_calls_per_sample(500, 0.01, span_of), 8U);
}

TEST("the smallest step between spans is found, and rounding is not a step") {
  CHECK_NEAR(cuda::smallest_step_of({320.0, 352.0, 352.1, 480.0, 320.0}), 31.9, 0.2);
  CHECK_EQUAL(cuda::smallest_step_of({320.0, 320.0, 320.1}), 0.0);
  CHECK_EQUAL(cuda::smallest_step_of({}), 0.0);
}

TEST("the median of nothing is zero") {
  CHECK_EQUAL(cuda::median_of({}), 0.0);
  CHECK_EQUAL(cuda::median_of({3.0, 1.0, 2.0}), 2.0);
}

TEST("an error names the function that failed, how, and what to do") {
  const cuda::CudaError error("cuEventRecord", cuda::CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE",
                              "bad handle");
  const std::string text = error.what();
  CHECK(text.find("cuEventRecord failed: CUDA_ERROR_INVALID_HANDLE (bad handle)") == 0);
  CHECK(text.find("get the stream from the framework again") != std::string::npos);
}

TEST("every way to break a capture has its explanation") {
  for (const cuda::CUresult code : {900, 901, 902, 903, 904, 905, 906, 907, 908})
    CHECK(!cuda::capture_fault(code).empty());
  CHECK(cuda::capture_fault(cuda::CUDA_ERROR_OUT_OF_MEMORY).empty());
}

TEST_MAIN()
