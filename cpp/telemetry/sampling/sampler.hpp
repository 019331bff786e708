#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "clock/clock.hpp"
#include "telemetry/sampling/marks.hpp"
#include "telemetry/sampling/ring.hpp"
#include "telemetry/sampling/running_samplers.hpp"
#include "telemetry/sampling/source.hpp"
#include "telemetry/sampling/wakeable_sleep.hpp"

namespace fairlap::telemetry {

class ForkedSampler : public std::runtime_error {
 public:
  ForkedSampler()
      : std::runtime_error(
            "this sampler was made before the process was forked, and its thread stayed with the parent; "
            "make a new sampler in the child") {}
};

class NotNow : public std::runtime_error {
 public:
  NotNow() : std::runtime_error("a sampler that runs cannot be calibrated; stop it first") {}
};

struct SamplerSettings {
  std::chrono::nanoseconds fast_period{
      std::chrono::milliseconds(50)};  // half of what sensors mostly publish at
  std::chrono::nanoseconds slow_period{std::chrono::milliseconds(100)};
  std::chrono::nanoseconds rare_period{std::chrono::milliseconds(1000)};
  double most_call_share = 0.005;  // of wall time that the fast lane may spend in its calls
  double jitter_share = 0.1;
  std::uint64_t seed = 1;
  std::size_t readings = 32'768;  // 1.5 MiB; more than two minutes of one device without collecting
  std::size_t marks = 4'096;
};

struct SamplerCounts {
  std::uint64_t rounds = 0;  // of any lane
  std::uint64_t slow_rounds = 0;
  std::uint64_t rare_rounds = 0;
  std::uint64_t held_back = 0;  // rounds without the fast lane, whose calls were too expensive
  std::uint64_t missed = 0;     // deadlines that passed before their round could begin
  std::uint64_t overflowed_readings = 0;
  std::uint64_t overflowed_marks = 0;
  std::int64_t worst_lateness_ns = 0;
  std::int64_t cpu_ns = 0;    // what the thread itself has used
  std::int64_t calls_ns = 0;  // time in the sources' calls, which may wait for a driver
};

// Reads sources alongside the measured program, on its own thread, and keeps the readings until
// they are collected. In steady state it neither allocates nor locks nor knows of Python.
class Sampler {
 public:
  Sampler(std::vector<std::unique_ptr<Source>> sources, const clock::Clock& on_clock,
          const SamplerSettings& settings);
  ~Sampler();

  Sampler(const Sampler&) = delete;  // Its thread refers to it.
  Sampler& operator=(const Sampler&) = delete;

  // Either may be called again without harm, from any thread. The first readings are there when start()
  // returns, the last ones when stop() does, so that a region in between is enclosed.
  void start();
  void stop();

  // What stop() and the end of the process do; control's mutex must be held.
  void end_thread() noexcept;

  // False in a forked child: its parent has the thread.
  [[nodiscard]] bool running() const noexcept;
  [[nodiscard]] bool forked() const noexcept;

  // For calibration: reads every field that is present, alone, over and over for so long, on the calling
  // thread. Throws NotNow while the sampler runs, since two threads must not read one source.
  std::vector<Reading> read_each_alone(std::chrono::nanoseconds length);

  // At most the slow lane's. Throws NotNow while the sampler runs.
  void set_fast_period(std::chrono::nanoseconds wanted);

  // Names this moment, from any thread; returns when it was. Never blocks; a mark without room is counted.
  std::int64_t mark(std::uint64_t label) noexcept;

  // Moves what was read or marked since the last time to the end of `into`. Throws ForkedSampler in a child.
  void collect(std::vector<Reading>& into);
  void collect(std::vector<Mark>& into);

  [[nodiscard]] const std::vector<std::unique_ptr<Source>>& sources() const noexcept { return sources_; }
  [[nodiscard]] const clock::Clock& on_clock() const noexcept { return clock_; }
  [[nodiscard]] std::chrono::nanoseconds period() const noexcept { return period_; }
  [[nodiscard]] SamplerCounts counts() const noexcept;

 private:
  struct Lanes {
    bool fast = true;
    bool slow = true;
    bool rare = true;
  };

  // What the calls of two lanes took.
  struct Costs {
    std::int64_t fast_ns = 0;
    std::int64_t rare_ns = 0;
  };

  void run() noexcept;
  std::int64_t read_lane(Lane lane) noexcept;  // returns how long that took
  Costs read_all(const Lanes& lanes) noexcept;
  void take_account() noexcept;
  void refuse_in_child() const;
  void look_at_each(std::vector<Reading>& into);

  std::vector<std::unique_ptr<Source>> sources_;
  const clock::Clock& clock_;
  SamplerSettings settings_;
  std::chrono::nanoseconds period_;  // of rounds
  Ring ring_;
  Marks marks_;
  int owner_process_;

  std::shared_ptr<SamplerControl> control_;  // of start and stop
  std::mutex collect_;                       // of collectors
  std::unique_ptr<std::thread> thread_;
  WakeableSleep sleep_;
  std::atomic<bool> running_{false};
  std::atomic<std::uint64_t> rounds_{0};
  std::atomic<std::uint64_t> slow_rounds_{0};
  std::atomic<std::uint64_t> rare_rounds_{0};
  std::atomic<std::uint64_t> held_back_{0};
  std::atomic<std::uint64_t> missed_{0};
  std::atomic<std::int64_t> worst_lateness_ns_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::atomic<std::int64_t> calls_ns_{0};
  std::int64_t cpu_before_ns_ = 0;  // of threads before this one
};

}  // namespace fairlap::telemetry
