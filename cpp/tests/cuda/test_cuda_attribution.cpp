#include <string>
#include <vector>

#include "cuda/activity/attribution.hpp"
#include "tests/check.hpp"

using namespace fairlap::cuda;

namespace {

const std::string kAdd = "add";
const std::string kMul = "mul";

Activity kernel(std::uint64_t start, std::uint64_t end, std::uint32_t stream = 7,
                const std::string& name = kAdd) {
  return {.start_ns = start, .end_ns = end, .name = &name, .stream = stream, .kind = ActivityKind::kernel};
}
Activity copy(std::uint64_t start, std::uint64_t end) {
  return {.start_ns = start, .end_ns = end, .stream = 7, .kind = ActivityKind::copy};
}
Activity fill(std::uint64_t start, std::uint64_t end) {
  return {.start_ns = start, .end_ns = end, .stream = 7, .kind = ActivityKind::fill};
}

const std::vector<Window> kTwoWindows = {{1000, 2000}, {3000, 4000}};

}  // namespace

TEST("each activity goes to the sample in whose window it ran") {
  TraceSummary summary;
  std::vector<Activity> activities = {kernel(3100, 3300), kernel(1100, 1400), kernel(1500, 1600, 7, kMul)};
  const auto samples = attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(samples[0].kernel_sum_ns, 400.0);
  CHECK_EQUAL(samples[0].kernels, 2U);
  CHECK_EQUAL(samples[1].kernel_sum_ns, 200.0);
  CHECK_EQUAL(summary.kernels.at("add").count, 2U);
  CHECK_EQUAL(summary.kernels.at("mul").total_ns, 100.0);
  CHECK_EQUAL(summary.between_samples, 0U);
}

TEST("kernels that overlap count twice in the sum and once in the busy time") {
  TraceSummary summary;
  std::vector<Activity> activities = {kernel(1000, 1600, 7), kernel(1200, 1500, 8), kernel(1800, 1900, 7)};
  const auto samples = attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(samples[0].kernel_sum_ns, 1000.0);
  CHECK_EQUAL(samples[0].busy_ns, 700.0);
  CHECK_EQUAL(samples[0].gap_ns, 200.0);
  CHECK_EQUAL(summary.streams.at(7).count, 2U);
  CHECK_EQUAL(summary.streams.at(8).total_ns, 300.0);
}

TEST("copies and fills are apart from kernels") {
  TraceSummary summary;
  std::vector<Activity> activities = {copy(1000, 1100), kernel(1100, 1300), fill(1300, 1350)};
  const auto samples = attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(samples[0].kernel_sum_ns, 200.0);
  CHECK_EQUAL(samples[0].copy_sum_ns, 150.0);
  CHECK_EQUAL(samples[0].copies, 2U);
  CHECK_EQUAL(samples[0].busy_ns, 350.0);
}

TEST("an activity that extends beyond a window still belongs to it") {
  TraceSummary summary;
  std::vector<Activity> activities = {kernel(990, 1400), kernel(1900, 2010), kernel(2990, 3200)};
  const auto samples = attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(samples[0].kernel_sum_ns, 520.0);
  CHECK_EQUAL(samples[1].kernel_sum_ns, 210.0);
  CHECK_EQUAL(summary.between_samples, 0U);
}

TEST("what ran between samples belongs to none; the flush is expected there, a kernel is not") {
  TraceSummary summary;
  std::vector<Activity> activities = {fill(2100, 2900), kernel(2100, 2200), kernel(10, 20),
                                      kernel(5000, 5100)};
  const auto samples = attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(samples[0].kernels + samples[1].kernels, 0U);
  CHECK_EQUAL(summary.between_samples, 3U);
}

TEST("a kernel too short for the records' clock still counts") {
  TraceSummary summary;
  std::vector<Activity> activities = {kernel(1500, 1500)};
  CHECK_EQUAL(attribute(activities, kTwoWindows, summary)[0].kernels, 1U);
}

TEST("the last sample is kept in the order of its starts") {
  TraceSummary summary;
  std::vector<Activity> activities = {kernel(3500, 3600, 7, kMul), kernel(3100, 3300), kernel(1100, 1200)};
  attribute(activities, kTwoWindows, summary);
  CHECK_EQUAL(summary.last_sample.size(), 2U);
  CHECK_EQUAL(*summary.last_sample[1].name, "mul");
}

TEST("no records and no windows give no samples") {
  TraceSummary summary;
  std::vector<Activity> activities;
  CHECK(attribute(activities, {}, summary).empty());
  CHECK_EQUAL(attribute(activities, kTwoWindows, summary).size(), 2U);
}

TEST_MAIN()
