#include <cmath>
#include <random>
#include <vector>

#include "roofs/roof.hpp"
#include "tests/check.hpp"

using namespace fairlap::roofs;

TEST("Without a rate there is no roof") {
  std::vector<double> none;
  const Roof roof = roof_of(none);
  CHECK(std::isnan(roof.value) && std::isnan(roof.low) && std::isnan(roof.high));
}

TEST("One rate is the roof and both of its bounds") {
  std::vector<double> one{5.0};
  const Roof roof = roof_of(one);
  CHECK_EQUAL(roof.value, 5.0);
  CHECK_EQUAL(roof.low, 5.0);
  CHECK_EQUAL(roof.high, 5.0);
}

TEST("With too few rates for an upper bound the largest is it") {
  std::vector<double> rates;
  for (int i = 71; i >= 1; --i) rates.push_back(i);  // 0.95^71 is more than 2.5 %
  CHECK_EQUAL(roof_of(rates).high, 71.0);
}

// Ranks computed with scipy.stats.binom for 1000 rates and the quantile 0.95: P(X <= 935) = 0.0207 and
// P(X > 963) = 0.0212, and one rank further in, each is more than 0.025.
TEST("The bounds of a thousand rates are those of the binomial distribution") {
  std::vector<double> rates;
  for (int i = 0; i < 1000; ++i) rates.push_back(i);
  const Roof roof = roof_of(rates);
  CHECK_EQUAL(roof.value, 949.0);
  CHECK_EQUAL(roof.low, 935.0);
  CHECK_EQUAL(roof.high, 963.0);
}

TEST("The interval of independent rates holds the true quantile in 95 of 100 samples") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  constexpr int kSamples = 4'000;
  int holds = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<double> rates(400);
    for (double& rate : rates) rate = uniform(random);
    const Roof roof = roof_of(rates);
    if (roof.low <= kShareBelowRoof && kShareBelowRoof <= roof.high) ++holds;
  }
  CHECK(holds >= 0.94 * kSamples);
  CHECK(holds <= 0.99 * kSamples);
}

TEST("A neighbour that slows down half of the trials moves the roof by less than their spread") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> spread(99.0, 100.0);
  std::vector<double> quiet(2'000);
  for (double& rate : quiet) rate = spread(random);
  std::vector<double> disturbed = quiet;
  for (std::size_t i = 0; i < disturbed.size(); i += 2) disturbed[i] /= 3.0;
  CHECK_NEAR(roof_of(disturbed).value, roof_of(quiet).value, 0.1);
}

TEST_MAIN()
