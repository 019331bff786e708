// What the measured loop keeps of what it took: groups of slices, the interval of the median, stamps of
// answers.

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "loop/group_table.hpp"
#include "loop/robust_interval.hpp"
#include "loop/steadiness.hpp"
#include "loop/token_stamps.hpp"
#include "tests/check.hpp"

using namespace fairlap;
using namespace fairlap::loop;

TEST("a full table of groups merges neighbours and loses nothing, for every capacity") {
  for (std::size_t capacity = 2; capacity < 9; ++capacity) {
    GroupTable table(capacity);
    for (std::int64_t i = 0; i < 1000; ++i) {
      Group slice;
      slice.first_sample = 7 * i;
      slice.samples = 7;
      slice.start_ns = 100 * i;
      slice.elapsed_ns = 90;
      slice.thread.minor_faults = 2;
      slice.migrations = 1;
      table.add(slice);
    }
    Group total;
    std::int64_t next = 0;
    for (const Group& group : table.groups()) {
      CHECK_EQUAL(group.first_sample, next);
      CHECK_EQUAL(group.start_ns, next / 7 * 100);
      next += group.samples;
      total.thread.minor_faults += group.thread.minor_faults;
      total.migrations += group.migrations;
    }
    CHECK_EQUAL(next, 7000);
    CHECK_EQUAL(total.thread.minor_faults, 2000);
    CHECK_EQUAL(total.migrations, 1000);
    CHECK(table.groups().size() <= capacity);
    CHECK(2 * table.groups().size() + 2 >= capacity);
  }
}

TEST("the sign interval has the ranks of the printed tables") {
  CHECK_EQUAL(sign_ranks(5).coverage, 0.0);
  CHECK_EQUAL(sign_ranks(6).left_out, 0U);
  CHECK_NEAR(sign_ranks(6).coverage, 0.96875, 1e-12);
  CHECK_EQUAL(sign_ranks(10).left_out, 1U);
  CHECK_NEAR(sign_ranks(10).coverage, 0.978515625, 1e-12);
  CHECK_EQUAL(sign_ranks(20).left_out, 5U);
  CHECK_NEAR(sign_ranks(20).coverage, 0.9586105346679688, 1e-12);
}

TEST("the interval of a few samples is the sign interval of those samples") {
  std::vector<double> scratch(batch_scratch_size(10));
  const std::vector<double> samples{5, 1, 9, 3, 7, 2, 8, 4, 6, 10};
  const RobustInterval interval = interval_of_median(samples, scratch);
  CHECK_EQUAL(interval.median, 5.5);
  CHECK_EQUAL(interval.low, 2.0);
  CHECK_EQUAL(interval.high, 9.0);
}

TEST("five samples give a median and no interval") {
  std::vector<double> scratch(batch_scratch_size(5));
  const RobustInterval interval = interval_of_median(std::vector<double>{1, 2, 3, 4, 5}, scratch);
  CHECK_EQUAL(interval.median, 3.0);
  CHECK(!interval.exists());
}

TEST("a slow drift widens the interval, though neighbouring samples agree") {
  std::vector<double> drifting;
  std::vector<double> shuffled;
  for (int i = 0; i < 10'000; ++i) {
    drifting.push_back(100.0 + i / 1000.0);
    shuffled.push_back(100.0 + (i * 7919 % 10'000) / 1000.0);
  }
  std::vector<double> scratch(batch_scratch_size(drifting.size()));
  const RobustInterval with_drift = interval_of_median(drifting, scratch);
  const RobustInterval without = interval_of_median(shuffled, scratch);
  CHECK(with_drift.high - with_drift.low > 5 * (without.high - without.low));
}

TEST("invalid samples are left out of median and interval") {
  std::vector<double> samples(100, 10.0);
  for (std::size_t i = 0; i < 50; ++i) samples[i] = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> scratch(batch_scratch_size(samples.size()));
  const RobustInterval interval = interval_of_median(samples, scratch);
  CHECK_EQUAL(interval.median, 10.0);
  CHECK_EQUAL(interval.high, 10.0);
}

TEST("a falling series settles only when its windows agree") {
  Steadiness steadiness(0.02, 0.0);
  for (const double median : {200.0, 150.0, 120.0, 110.0, 105.0, 103.0}) {
    steadiness.add_window(median);
    CHECK(!steadiness.settled());
  }
  for (const double median : {102.0, 101.5, 101.0, 101.2}) steadiness.add_window(median);
  CHECK(steadiness.settled());
}

TEST("windows closer than the clock's resolution count as equal") {
  Steadiness steadiness(0.02, 10.0);
  for (const double median : {20.0, 30.0, 20.0, 30.0}) steadiness.add_window(median);
  CHECK(steadiness.settled());
}

TEST("stamps of answers keep the newest when their memory is full") {
  TokenStamps stamps(2, 3);
  CHECK_EQUAL(stamps.held(), 0U);
  for (std::uint64_t answer = 1; answer <= 5; ++answer) {
    const std::span<std::uint64_t> row = stamps.begin(7, answer);
    CHECK_EQUAL(row.size(), 4U);
    CHECK_EQUAL(row[3], 0U);  // nothing of the answer that was here before
    row[2] = 10 * answer;
    row[3] = 11 * answer;
  }
  CHECK_EQUAL(stamps.held(), 3U);
  for (std::uint64_t number = 0; number < 3; ++number) {
    CHECK_EQUAL(stamps.newest(number)[1], 5 - number);
    CHECK_EQUAL(stamps.newest(number)[3], 11 * (5 - number));
  }
}

TEST_MAIN()
