#include <cstdint>
#include <thread>
#include <vector>

#include "load/decision.hpp"
#include "tests/check.hpp"

using namespace fairlap::load;

namespace {

// After two requests two late ones are too many; after three none, after four at most one is few enough.
const std::vector<std::uint32_t> kMissedAt{9, 9, 2, 2, 3};
const std::vector<std::int32_t> kMetAt{-1, -1, -1, 0, 1};

}  // namespace

TEST("So many late requests or more mean that the bound is missed") {
  const Decision decision{.bound_ns = 1, .missed_at = kMissedAt, .met_at = kMetAt};
  CHECK(decision.after(2, 1) == Decided::not_yet);
  CHECK(decision.after(2, 2) == Decided::missed);
  CHECK(decision.after(4, 4) == Decided::missed);
}

TEST("So many late requests or fewer mean that the bound is met") {
  const Decision decision{.bound_ns = 1, .missed_at = kMissedAt, .met_at = kMetAt};
  CHECK(decision.after(3, 0) == Decided::met);
  CHECK(decision.after(3, 1) == Decided::not_yet);
  CHECK(decision.after(4, 1) == Decided::met);
}

TEST("Minus one means that nothing is met yet, even without a late request") {
  const Decision decision{.bound_ns = 1, .missed_at = kMissedAt, .met_at = kMetAt};
  CHECK(decision.after(2, 0) == Decided::not_yet);
}

TEST("Beyond its tables a decision is never made") {
  const Decision decision{.bound_ns = 1, .missed_at = kMissedAt, .met_at = kMetAt};
  CHECK(decision.after(5, 5) == Decided::not_yet);
  CHECK(Decision{}.after(0, 0) == Decided::not_yet);
}

TEST("A group is decided after its last request") {
  const Decision decision{.bound_ns = 1, .missed_at = kMissedAt, .met_at = kMetAt};
  Tally tally(decision);
  const Tally::Counted counted = tally.add(4, 1);
  CHECK_EQUAL(counted.completed, 4U);
  CHECK(counted.decided == Decided::met);
}

TEST("One of the workers that count at the same time sees the last request") {
  Tally tally(Decision{});
  int last = 0;
  const auto count = [&tally] {
    int seen = 0;
    for (int request = 0; request < 10000; ++request) seen += tally.add(1, 1).completed == 20000 ? 1 : 0;
    return seen;
  };
  int other = 0;
  std::thread thread([&] { other = count(); });
  last = count();
  thread.join();
  CHECK_EQUAL(last + other, 1);
}

TEST_MAIN()
