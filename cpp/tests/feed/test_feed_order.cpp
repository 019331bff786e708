#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

#include "feed/element_type.hpp"
#include "feed/order.hpp"
#include "tests/check.hpp"
#include "tests/refuses.hpp"

using namespace fairlap::feed;
using fairlap::test::refuses;
using Batch = std::vector<std::uint64_t>;

namespace {

std::vector<Batch> all_batches(const OrderSettings& settings, std::size_t most = 1000) {
  Order order(settings);
  std::vector<Batch> out;
  while (out.size() < most) {
    Batch batch(settings.batch);
    batch.resize(order.draw(batch));
    if (batch.empty()) break;
    out.push_back(batch);
  }
  return out;
}

Batch joined(const std::vector<Batch>& batches) {
  Batch out;
  for (const Batch& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

Batch counting_to(std::uint64_t end) {
  Batch out(end);
  std::iota(out.begin(), out.end(), std::uint64_t{0});
  return out;
}

TEST("SplitMix64 gives the numbers of its published reference for state 1234567") {
  SplitMix64 generator(1234567);
  for (const std::uint64_t known : {6457827717110365317U, 3203168211198807973U, 9817491932198370423U}) {
    CHECK_EQUAL(generator.next(), known);
  }
}

TEST("numbers below a bound are all reached and about equally often") {
  SplitMix64 generator(1);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts.at(generator.below(6));
  for (const int count : counts) CHECK_NEAR(count, 10'000, 500);  // more than five standard deviations
  CHECK_EQUAL(generator.below(1), 0U);
}

TEST("the order of a seed is the same on every machine") {
  const Batch known{6, 1, 5, 9, 3, 8, 4, 2, 0, 7, 9, 2, 4, 3, 7, 8, 6, 0, 1, 5};
  CHECK(joined(all_batches({10, 10, 2, 42, LastBatch::keep})) == known);
}

TEST("without a seed the samples come in their stored order") {
  CHECK(joined(all_batches({10, 4, 1, {}, LastBatch::keep})) == counting_to(10));
}

TEST("every epoch has every sample once, in its own order, far from the first") {
  const std::vector<Batch> epochs = all_batches({1000, 1000, 3, 7, LastBatch::keep});
  CHECK_EQUAL(epochs.size(), 3U);
  for (const Batch& epoch : epochs) {
    Batch sorted = epoch;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted == counting_to(1000));
    unsigned in_place = 0;
    for (std::size_t i = 0; i < 1000; ++i) in_place += epoch[i] == i ? 1U : 0U;
    CHECK(in_place < 10);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
}

TEST("the order within an epoch does not depend on the size of a batch or on how the last is handled") {
  const Batch whole = joined(all_batches({103, 103, 3, 5, LastBatch::keep}));
  CHECK(joined(all_batches({103, 10, 3, 5, LastBatch::keep})) == whole);
  const std::vector<Batch> dropped = all_batches({103, 10, 3, 5, LastBatch::drop});
  CHECK_EQUAL(dropped.size(), 30U);
  CHECK_EQUAL(dropped[10][0], whole[103]);
  CHECK_EQUAL(dropped[20][9], whole[215]);
}

TEST("all 24 orders of four samples come about equally often") {
  std::set<Batch> seen;
  int first_is_three = 0;
  for (const Batch& epoch : all_batches({4, 4, 4000, 11, LastBatch::keep}, 4000)) {
    seen.insert(epoch);
    first_is_three += epoch[0] == 3 ? 1 : 0;
  }
  CHECK_EQUAL(seen.size(), 24U);
  CHECK_NEAR(first_is_three, 1000, 150);  // more than five standard deviations
}

TEST("an incomplete last batch is kept, dropped, or filled up from the beginning of its epoch") {
  const auto last_of = [](LastBatch last) { return all_batches({10, 4, 1, {}, last}).back(); };
  CHECK((last_of(LastBatch::keep) == Batch{8, 9}));
  CHECK((last_of(LastBatch::drop) == Batch{4, 5, 6, 7}));
  CHECK((last_of(LastBatch::wrap) == Batch{8, 9, 0, 1}));
  const std::vector<Batch> shuffled = all_batches({10, 4, 2, 3, LastBatch::wrap});
  CHECK_EQUAL(shuffled[5][2], shuffled[3][0]);
  CHECK_EQUAL(shuffled[5][3], shuffled[3][1]);
}

TEST("a batch larger than the samples wraps over and over, is kept small, or is refused") {
  CHECK((all_batches({3, 7, 1, {}, LastBatch::wrap}) == std::vector<Batch>{{0, 1, 2, 0, 1, 2, 0}}));
  CHECK((all_batches({3, 7, 2, {}, LastBatch::keep}) == std::vector<Batch>{{0, 1, 2}, {0, 1, 2}}));
  CHECK(refuses<BadFeed>([] { Order({3, 7, 1, {}, LastBatch::drop}); }));
  CHECK(refuses<BadFeed>([] { Order({0, 7, 1, {}, LastBatch::keep}); }));
  CHECK(refuses<BadFeed>([] { Order({3, 0, 1, {}, LastBatch::keep}); }));
}

TEST("the number of batches is known in advance and is right") {
  for (const LastBatch last : {LastBatch::keep, LastBatch::drop, LastBatch::wrap}) {
    for (const std::size_t batch : {1, 4, 5, 10}) {
      const OrderSettings settings{.samples = 10, .batch = batch, .epochs = 3, .seed = 1, .last = last};
      CHECK_EQUAL(Order(settings).batches(), all_batches(settings).size());
    }
  }
}

TEST("more batches than a number can hold are as many as it can hold, and never none") {
  CHECK_EQUAL(Order({10, 1, std::uint64_t{1} << 63U, {}, LastBatch::keep}).batches(), UINT64_MAX);
}

TEST("after the end there are no more batches, and without a number of epochs there is no end") {
  Order order({2, 2, 1, 1, LastBatch::keep});
  Batch room(2);
  CHECK_EQUAL(order.draw(room), 2U);
  CHECK_EQUAL(order.draw(room), 0U);
  CHECK_EQUAL(order.draw(room), 0U);
  CHECK_EQUAL(all_batches({2, 2, 0, 1, LastBatch::keep}, 500).size(), 500U);
}

}  // namespace

TEST_MAIN()
