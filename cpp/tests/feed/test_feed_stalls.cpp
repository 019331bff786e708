#include "feed/stalls.hpp"
#include "tests/check.hpp"

using namespace fairlap::feed;

namespace {

std::uint64_t sum_of_parts(const StallTimes& stalls) {
  return stalls.consumer_ns + stalls.source_ns + stalls.staging_ns + stalls.link_ns + stalls.no_slot_ns;
}

TEST("a batch that was ready costs no waiting, whatever its making took") {
  StallTimer timer(0);
  timer.wait_begins(1000);
  timer.wait_ends(1000, {0, 100, 900, 800}, 4, 64);
  const StallTimes stalls = timer.until(1500, false);
  CHECK_EQUAL(stalls.consumer_ns, 1500U);
  CHECK_EQUAL(sum_of_parts(stalls), stalls.wall_ns);
  CHECK_EQUAL(stalls.batches, 1U);
  CHECK_EQUAL(stalls.samples, 4U);
  CHECK_EQUAL(stalls.bytes, 64U);
}

TEST("a wait is laid to the slot until it is free, then to the thread, then to reading and converting") {
  StallTimer timer(0);
  timer.wait_begins(1000);
  // Free at 1300, claimed at 1310, full at 1710; a quarter of the 400 was reading; noticed at 1720.
  timer.wait_ends(1720, {1300, 1310, 1710, 100}, 1, 1);
  const StallTimes stalls = timer.until(1720, false);
  CHECK_EQUAL(stalls.consumer_ns, 1000U);
  CHECK_EQUAL(stalls.no_slot_ns, 300U);
  CHECK_EQUAL(stalls.source_ns, 100U);
  CHECK_EQUAL(stalls.staging_ns, 320U);
  CHECK_EQUAL(sum_of_parts(stalls), stalls.wall_ns);
}

TEST(
    "a slot that the device held is laid to the link while it was copied from, then to the consumer's work") {
  StallTimer timer(0);
  timer.wait_begins(1000);
  // Given back at 1100, copied from until 1500, worked on until 1600; full at 1900, half of that reading.
  timer.wait_ends(2000, {1100, 1600, 1900, 150, 1500, 1600}, 1, 1);
  const StallTimes stalls = timer.until(2000, false);
  CHECK_EQUAL(stalls.no_slot_ns, 200U);
  CHECK_EQUAL(stalls.link_ns, 400U);
  CHECK_EQUAL(stalls.source_ns, 150U);
  CHECK_EQUAL(stalls.staging_ns, 250U);
  CHECK_EQUAL(sum_of_parts(stalls), stalls.wall_ns);
}

TEST("only the part of the filling that was waited for counts") {
  StallTimer timer(0);
  timer.wait_begins(1000);
  timer.wait_ends(1100, {0, 500, 1100, 600}, 1, 1);
  const StallTimes stalls = timer.until(1100, false);
  CHECK_EQUAL(stalls.source_ns, 100U);
  CHECK_EQUAL(stalls.staging_ns, 0U);
}

TEST("a wait that goes on or brings nothing counts as no slot when all are held, otherwise as staging") {
  for (const bool all_held : {false, true}) {
    StallTimer timer(0);
    timer.wait_begins(100);
    const StallTimes under_way = timer.until(150, all_held);
    timer.wait_ends_empty(200, all_held);
    const StallTimes done = timer.until(200, all_held);
    CHECK_EQUAL(all_held ? under_way.no_slot_ns : under_way.staging_ns, 50U);
    CHECK_EQUAL(all_held ? done.no_slot_ns : done.staging_ns, 100U);
    CHECK_EQUAL(sum_of_parts(under_way), under_way.wall_ns);
    CHECK_EQUAL(sum_of_parts(done), done.wall_ns);
  }
}

TEST("stall times do not grow after closing") {
  StallTimer timer(0);
  timer.close(100);
  CHECK_EQUAL(timer.until(5000, false).wall_ns, 100U);
  CHECK_EQUAL(timer.until(5000, false).consumer_ns, 100U);
}

}  // namespace

TEST_MAIN()
