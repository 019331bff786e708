#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "load/request_queue.hpp"
#include "tests/check.hpp"
#include "tests/load/virtual_load.hpp"

using namespace fairlap;
using test::Served;
using test::VirtualLoad;

namespace {

std::function<double(const load::Group&)> always(double ns) {
  return [ns](const load::Group&) { return ns; };
}

std::vector<double> started(const std::vector<Served>& served) {
  std::vector<double> out;
  for (const Served& each : served) out.push_back(each.started_ns);
  return out;
}

std::vector<std::uint32_t> sizes(const std::vector<Served>& served) {
  std::vector<std::uint32_t> out;
  for (const Served& each : served) out.push_back(each.group.count);
  return out;
}

}  // namespace

TEST("A request waits for the one before it, and a free worker waits for the next request") {
  const VirtualLoad one{.due_ns = {0, 10, 100, 105}, .length_ns = always(30)};
  CHECK(started(one.run()) == std::vector<double>({0, 30, 100, 130}));
}

TEST("Two workers serve the oldest requests side by side") {
  const VirtualLoad two{.due_ns = {0, 1, 2, 3}, .workers = 2, .length_ns = always(10)};
  const std::vector<Served> served = two.run();
  CHECK(started(served) == std::vector<double>({0, 1, 10, 11}));
  CHECK_EQUAL(served[0].worker, 0U);
  CHECK_EQUAL(served[1].worker, 1U);
  CHECK_EQUAL(served[2].worker, 0U);
}

TEST("A group closes as soon as it is full") {
  const VirtualLoad load{.due_ns = {0, 5, 9, 20, 30, 40},
                         .batching = {.largest = 3, .longest_wait_ns = 1000},
                         .length_ns = always(1)};
  const std::vector<Served> served = load.run();
  CHECK(started(served) == std::vector<double>({9, 40}));
  CHECK(sizes(served) == std::vector<std::uint32_t>({3, 3}));
}

TEST("A group closes when its oldest request has waited long enough") {
  const VirtualLoad load{
      .due_ns = {0, 5, 50}, .batching = {.largest = 4, .longest_wait_ns = 20}, .length_ns = always(1)};
  const std::vector<Served> served = load.run();
  CHECK(started(served) == std::vector<double>({20, 70}));
  CHECK(sizes(served) == std::vector<std::uint32_t>({2, 1}));
}

TEST("The wait of a group counts from when its oldest request was due, not from when a worker became free") {
  const VirtualLoad load{
      .due_ns = {0, 5, 8}, .batching = {.largest = 2, .longest_wait_ns = 40}, .length_ns = always(100)};
  CHECK(started(load.run()) == std::vector<double>({5, 105}));
}

TEST("Without a wait a worker takes what is there, up to the largest group") {
  const VirtualLoad load{.due_ns = {0, 1, 2, 3, 4, 5}, .batching = {.largest = 4}, .length_ns = always(10)};
  const std::vector<Served> served = load.run();
  CHECK(started(served) == std::vector<double>({0, 10, 20}));
  CHECK(sizes(served) == std::vector<std::uint32_t>({1, 4, 1}));
}

TEST("Groups are numbered in the order in which they are taken") {
  const VirtualLoad load{.due_ns = {0, 0, 0}, .workers = 3, .length_ns = always(10)};
  std::uint32_t number = 0;
  for (const Served& each : load.run()) CHECK_EQUAL(each.group.number, number++);
  CHECK_EQUAL(number, 3U);
}

TEST("A worker that takes a group knows whether it leaves requests for others") {
  const std::vector<double> due_ns{0, 0, 0};
  load::RequestQueue queue(due_ns, {.largest = 2});
  CHECK(queue.next(0).leaves_others);
  CHECK(!queue.next(0).leaves_others);
}

TEST("An empty queue is looked at again when the next request is due, and never after the last") {
  const std::vector<double> due_ns{5};
  load::RequestQueue queue(due_ns, {});
  CHECK_EQUAL(queue.next(4).group.count, 0U);
  CHECK_EQUAL(queue.next(4).look_again_ns, 5.0);
  CHECK_EQUAL(queue.next(5).group.count, 1U);
  CHECK(std::isinf(queue.next(5).look_again_ns));
}

TEST("A group that is not full is looked at again when it is, or when its oldest request has waited") {
  const std::vector<double> due_ns{0, 5, 9};
  const load::Batching batching{.largest = 3, .longest_wait_ns = 20};
  CHECK_EQUAL(load::RequestQueue(due_ns, batching).next(6).look_again_ns, 9.0);
  const std::vector<double> too_far_ns{0, 5, 90};
  CHECK_EQUAL(load::RequestQueue(too_far_ns, batching).next(6).look_again_ns, 20.0);
}

TEST("A turn knows when its group closed") {
  const std::vector<double> due_ns{0, 5, 9, 30};
  load::RequestQueue queue(due_ns, {.largest = 3, .longest_wait_ns = 20});
  CHECK_EQUAL(queue.next(100).closed_ns, 9.0);
  CHECK_EQUAL(queue.next(100).closed_ns, 50.0);
}

TEST("The stamps of one worker are those of Lindley's recursion") {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(0.9);
  std::exponential_distribution<double> length(1.0);
  std::vector<double> due_ns;
  std::vector<double> lengths;
  double due = 0.0;
  for (int request = 0; request < 20000; ++request) {
    due_ns.push_back(due += gap(random));
    lengths.push_back(length(random));
  }
  const VirtualLoad load{.due_ns = due_ns,
                         .length_ns = [&](const load::Group& group) { return lengths[group.first]; }};
  double free_at = 0.0;
  for (const Served& each : load.run()) {
    const double starts = std::max(due_ns[each.group.first], free_at);
    free_at = starts + lengths[each.group.first];
    CHECK_EQUAL(each.started_ns, starts);
    CHECK_EQUAL(each.completed_ns, free_at);
  }
}

TEST("Workers that compete for requests take each exactly once") {
  constexpr std::uint32_t kRequests = 20000;
  const std::vector<double> due_ns(kRequests, 0.0);
  load::RequestQueue queue(due_ns, {.largest = 3});
  std::vector<std::atomic<int>> taken(kRequests);
  const auto work = [&] {
    while (!queue.all_taken()) {
      const load::Group group = queue.next(0.0).group;
      for (std::uint32_t place = group.first; place < group.first + group.count; ++place) ++taken[place];
    }
  };
  std::thread first(work);
  std::thread second(work);
  for (std::thread* const thread : {&first, &second}) thread->join();
  CHECK(std::all_of(taken.begin(), taken.end(), [](const std::atomic<int>& times) { return times == 1; }));
}

TEST_MAIN()
