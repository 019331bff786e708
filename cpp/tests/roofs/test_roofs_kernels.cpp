#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "roofs/kernel.hpp"
#include "roofs/trials.hpp"
#include "tests/check.hpp"

using namespace fairlap::roofs;

namespace {

constexpr std::size_t kElements = 5 * kTriadStep;

struct alignas(kCacheLineBytes) Array {
  double values[kElements + kTriadStep];
};

}  // namespace

TEST("Every triad adds the scaled array to all elements and writes none beyond them") {
  for (const TriadKernel& kernel : triad_kernels()) {
    if (!kernel.available()) continue;
    static Array a, b, c;
    for (std::size_t i = 0; i < kElements + kTriadStep; ++i) {
      a.values[i] = -1.0;
      b.values[i] = static_cast<double>(i);
      c.values[i] = 5.0 * static_cast<double>(i % 7);
    }
    kernel.run(a.values, b.values, c.values, kElements, 2);
    for (std::size_t i = 0; i < kElements; ++i)
      CHECK_NEAR(a.values[i], b.values[i] + 0.4 * c.values[i], 1e-12);
    for (std::size_t i = kElements; i < kElements + kTriadStep; ++i) CHECK_EQUAL(a.values[i], -1.0);
  }
}

TEST("fp32 and fp64 have a kernel on every processor") {
  std::set<std::string> available;
  for (const ArithmeticKernel& kernel : arithmetic_kernels()) {
    if (kernel.available()) available.emplace(kernel.number_type);
  }
  CHECK(available.count("fp32") == 1 && available.count("fp64") == 1);
}

// A loop that the compiler removed would be faster than any: no core has done a hundredth of this, whatever
// the load.
TEST("No kernel's arithmetic is optimised away") {
  for (const ArithmeticKernel& kernel : arithmetic_kernels()) {
    if (!kernel.available()) continue;
    for (const double rate : Trials({kernel}, {.threads = 1, .cores = {}}).rates(0.01)) {
      CHECK(rate > 0.0);
      CHECK(rate < 1e15);
    }
  }
}

TEST("No kernel's passes over memory are optimised away") {
  for (const TriadKernel& kernel : triad_kernels()) {
    if (!kernel.available()) continue;
    for (const double rate : Trials({kernel}, 24 * 1024, {.threads = 1, .cores = {}}).rates(0.01)) {
      CHECK(rate > 0.0);
      CHECK(rate < 1e14);
    }
  }
}

TEST_MAIN()
