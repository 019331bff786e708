#include <cmath>

#include "check.hpp"
#include "cuda_at_work.hpp"
#include "telemetry/event_timeline.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// The sampler's clock began earlier and runs 40 millionths faster than the device's.
double host_of(double device_ns) { return 5e12 + device_ns * (1.0 + 40e-6); }

ClockAnchor anchor_at(double device_ns, double half_width_ns, double wrong_by_ns = 0.0) {
  const double middle_ns = host_of(device_ns) + wrong_by_ns;
  return {device_ns, static_cast<std::int64_t>(std::floor(middle_ns - half_width_ns)),
          static_cast<std::int64_t>(std::ceil(middle_ns + half_width_ns))};
}

std::int64_t drifting_now() {
  return static_cast<std::int64_t>(host_of(static_cast<double>(fake_cuda_now_ns())));
}

}  // namespace

TEST("one anchor gives a time, and an uncertainty that grows with what clocks may drift apart") {
  const std::vector<ClockAnchor> one{anchor_at(1e9, 5'000.0)};
  CHECK_NEAR(aligned(one, 1e9).time_ns, host_of(1e9), 1.0);
  CHECK_NEAR(aligned(one, 1e9).uncertainty_ns, 5'000.0, 1.0);
  const AlignedTime later = aligned(one, 2e9);
  CHECK(std::abs(later.time_ns - host_of(2e9)) <= later.uncertainty_ns);
  CHECK_NEAR(later.uncertainty_ns, 5'000.0 + kUncomparedPpm * 1e3, 1.0);
  CHECK_EQUAL(drift_of(one).uncertainty_ppm, kUncomparedPpm);
}

TEST("drift is the slope through the anchors, as sure as they are narrow and far apart") {
  std::vector<ClockAnchor> anchors;
  for (int i = 0; i <= 10; ++i)
    anchors.push_back(anchor_at(i * 1e9, 2'000.0, i % 2 == 0 ? 1'500.0 : -1'500.0));
  const ClockDrift drift = drift_of(anchors);
  CHECK(std::abs(drift.ppm - 40.0) <= drift.uncertainty_ppm);
  CHECK(drift.uncertainty_ppm < 1.0);
  // A wide anchor, as an interrupt leaves it, hardly weighs.
  anchors.push_back(anchor_at(11e9, 900'000.0, 800'000.0));
  CHECK_NEAR(drift_of(anchors).ppm, 40.0, 0.5);
}

TEST("the truth lies within the uncertainty everywhere, between anchors and beyond them") {
  std::vector<ClockAnchor> anchors;
  for (int i = 0; i < 20; ++i) {
    const double half_ns = 1'000.0 + 700.0 * (i % 3);
    anchors.push_back(anchor_at(i * 1e9, half_ns, (i % 2 == 0 ? 0.99 : -0.99) * half_ns));
  }
  for (double device_ns = -5e9; device_ns < 30e9; device_ns += 0.137e9) {
    const AlignedTime time = aligned(anchors, device_ns);
    CHECK(std::abs(time.time_ns - host_of(device_ns)) <= time.uncertainty_ns + 1.0);
    if (device_ns >= 0.0 && device_ns <= 19e9) CHECK(time.uncertainty_ns <= 2'402.0);
  }
}

TEST("without an anchor nothing is aligned") {
  bool refused = false;
  try {
    static_cast<void>(aligned({}, 0.0));
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

TEST("events of a stream lie on the sampler's clock where they happened, within the uncertainty") {
  const EngineAtWork at_work;
  fake_cuda_set_cost("cuEventRecord", 1'200);
  fake_cuda_set_cost("cuEventQuery", 300);
  const auto context = BorrowedContext::of_device(*at_work.driver, -1);
  EventTimeline timeline(context, drifting_now);
  std::vector<std::pair<CUevent, double>> events;
  for (int second = 0; second < 30; ++second) {
    fake_cuda_advance_host(kSecond);
    CHECK(timeline.anchor_if_older(kSecond / 2));
    CHECK(!timeline.anchor_if_older(kSecond / 2));
    const std::int64_t begin_ns = fake_cuda_now_ns();
    fake_cuda_kernel(at_work.stream, "work", 400'000);
    const CUevent event = new_event();
    cuEventRecord(event, at_work.s());
    // The kernel begins where its launch left the clock: launches cost nothing here.
    events.emplace_back(event, host_of(static_cast<double>(begin_ns + 400'000)));
    fake_cuda_advance_host(kSecond / 3);
  }
  timeline.anchor();
  for (const auto& [event, host_ns] : events) {
    const AlignedTime time = timeline.time_of(event);
    CHECK(std::abs(time.time_ns - host_ns) <= time.uncertainty_ns);
    CHECK(time.uncertainty_ns < 2'000.0);
  }
  const ClockDrift drift = timeline.drift();
  CHECK(std::abs(drift.ppm - 40.0) <= drift.uncertainty_ppm);
  CHECK(drift.uncertainty_ppm < 0.2);
  for (const auto& [event, host_ns] : events) cuEventDestroy_v2(event);
}

TEST("a clock whose drift changes is followed, since it is anchored again") {
  const EngineAtWork at_work;
  fake_cuda_set_cost("cuEventQuery", 300);
  const auto bent = [] {
    const auto device = static_cast<double>(fake_cuda_now_ns());
    return static_cast<std::int64_t>(device * (1.0 + 10e-6) + std::max(0.0, device - 20e9) * 60e-6);
  };
  const auto context = BorrowedContext::of_device(*at_work.driver, -1);
  EventTimeline timeline(context, bent);
  std::vector<std::pair<CUevent, double>> events;
  for (int second = 0; second < 40; ++second) {
    fake_cuda_advance_host(kSecond / 2);
    const CUevent event = new_event();
    cuEventRecord(event, at_work.s());
    events.emplace_back(event, static_cast<double>(bent()));
    fake_cuda_advance_host(kSecond / 2);
    timeline.anchor();
  }
  for (const auto& [event, host_ns] : events) {
    CHECK_NEAR(timeline.time_of(event).time_ns, host_ns, 1'000.0);
    cuEventDestroy_v2(event);
  }
}

TEST("an event that is not done, and a device that fails, are errors, and nothing is left behind") {
  const EngineAtWork at_work;
  const std::int64_t before = outstanding_objects();
  {
    const auto context = BorrowedContext::of_device(*at_work.driver, -1);
    EventTimeline timeline(context, drifting_now);
    fake_cuda_kernel(at_work.stream, "long", 10 * kSecond);
    const CUevent event = new_event();
    cuEventRecord(event, at_work.s());
    CHECK(contains(message_of([&] { static_cast<void>(timeline.time_of(event)); }), "cuEventElapsedTime"));
    cuEventDestroy_v2(event);
    fake_cuda_fail("cuEventRecord", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(contains(message_of([&] { timeline.anchor(); }), "cuEventRecord"));
    CHECK_EQUAL(timeline.anchors(), 1U);
  }
  CHECK_EQUAL(outstanding_objects(), before);
}

TEST_MAIN()
