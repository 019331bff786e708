#include "feed/ledger.hpp"
#include "tests/check.hpp"

using namespace fairlap::feed;

namespace {

std::uint64_t sum_of_parts(const StallLedger& ledger) {
  return ledger.consumer_ns + ledger.source_ns + ledger.staging_ns + ledger.link_ns + ledger.no_slot_ns;
}

TEST("a batch that was ready costs no waiting, whatever its making took") {
  LedgerKeeper keeper(0);
  keeper.wait_begins(1000);
  keeper.wait_ends(1000, {0, 100, 900, 800}, 4, 64);
  const StallLedger ledger = keeper.until(1500, false);
  CHECK_EQUAL(ledger.consumer_ns, 1500U);
  CHECK_EQUAL(sum_of_parts(ledger), ledger.wall_ns);
  CHECK_EQUAL(ledger.batches, 1U);
  CHECK_EQUAL(ledger.samples, 4U);
  CHECK_EQUAL(ledger.bytes, 64U);
}

TEST("a wait is laid to the slot until it is free, then to the thread, then to reading and converting") {
  LedgerKeeper keeper(0);
  keeper.wait_begins(1000);
  // Free at 1300, claimed at 1310, full at 1710; a quarter of the 400 was reading; noticed at 1720.
  keeper.wait_ends(1720, {1300, 1310, 1710, 100}, 1, 1);
  const StallLedger ledger = keeper.until(1720, false);
  CHECK_EQUAL(ledger.consumer_ns, 1000U);
  CHECK_EQUAL(ledger.no_slot_ns, 300U);
  CHECK_EQUAL(ledger.source_ns, 100U);
  CHECK_EQUAL(ledger.staging_ns, 320U);
  CHECK_EQUAL(sum_of_parts(ledger), ledger.wall_ns);
}

TEST(
    "a slot that the device held is laid to the link while it was copied from, then to the consumer's work") {
  LedgerKeeper keeper(0);
  keeper.wait_begins(1000);
  // Given back at 1100, copied from until 1500, worked on until 1600; full at 1900, half of that reading.
  keeper.wait_ends(2000, {1100, 1600, 1900, 150, 1500, 1600}, 1, 1);
  const StallLedger ledger = keeper.until(2000, false);
  CHECK_EQUAL(ledger.no_slot_ns, 200U);
  CHECK_EQUAL(ledger.link_ns, 400U);
  CHECK_EQUAL(ledger.source_ns, 150U);
  CHECK_EQUAL(ledger.staging_ns, 250U);
  CHECK_EQUAL(sum_of_parts(ledger), ledger.wall_ns);
}

TEST("only the part of the filling that was waited for counts") {
  LedgerKeeper keeper(0);
  keeper.wait_begins(1000);
  keeper.wait_ends(1100, {0, 500, 1100, 600}, 1, 1);
  const StallLedger ledger = keeper.until(1100, false);
  CHECK_EQUAL(ledger.source_ns, 100U);
  CHECK_EQUAL(ledger.staging_ns, 0U);
}

TEST("a wait that goes on or brings nothing is laid to the slots when all are held, otherwise to staging") {
  for (const bool all_held : {false, true}) {
    LedgerKeeper keeper(0);
    keeper.wait_begins(100);
    const StallLedger under_way = keeper.until(150, all_held);
    keeper.wait_ends_empty(200, all_held);
    const StallLedger done = keeper.until(200, all_held);
    CHECK_EQUAL(all_held ? under_way.no_slot_ns : under_way.staging_ns, 50U);
    CHECK_EQUAL(all_held ? done.no_slot_ns : done.staging_ns, 100U);
    CHECK_EQUAL(sum_of_parts(under_way), under_way.wall_ns);
    CHECK_EQUAL(sum_of_parts(done), done.wall_ns);
  }
}

TEST("a closed ledger does not grow") {
  LedgerKeeper keeper(0);
  keeper.close(100);
  CHECK_EQUAL(keeper.until(5000, false).wall_ns, 100U);
  CHECK_EQUAL(keeper.until(5000, false).consumer_ns, 100U);
}

}  // namespace

TEST_MAIN()
