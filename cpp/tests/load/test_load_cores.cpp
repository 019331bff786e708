#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#include "load/bell.hpp"
#include "tests/check.hpp"

#if defined(__linux__)
namespace {

std::vector<int> cores_of_this_thread() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CHECK_EQUAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::vector<int> found;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) found.push_back(core);
  }
  return found;
}

// What `move` leaves to a thread that was bound to the first of these cores.
template <class Move>
std::vector<int> after(int first, const Move& move) {
  std::vector<int> found;
  std::thread([&] {
    CHECK(fairlap::load::stay_on(first));
    move();
    found = cores_of_this_thread();
  }).join();
  return found;
}

}  // namespace

TEST("A thread that issues leaves the cores of its process to the workers, where there are others") {
  const std::vector<int> all = cores_of_this_thread();
  const int first = all.front();
  const std::vector<int> others(all.begin() + 1, all.end());
  const std::vector<int> expected = others.empty() ? all : others;
  CHECK(after(first, [&] { fairlap::load::run_beside(all); }) == expected);
  CHECK(after(first, [] { fairlap::load::run_beside({}); }) == std::vector<int>{first});
  CHECK(after(first, [&] { fairlap::load::run_beside({first}); }) == std::vector<int>{first});
}

TEST("A thread that helps to issue may run on all of them") {
  const std::vector<int> all = cores_of_this_thread();
  CHECK(after(all.front(), [&] { fairlap::load::also_run_on(all); }) == all);
  CHECK(after(all.front(), [] { fairlap::load::also_run_on({}); }) == std::vector<int>{all.front()});
}
#endif

TEST_MAIN()
