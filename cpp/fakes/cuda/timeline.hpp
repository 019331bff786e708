#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <vector>

namespace fairlap::fakes {

// The condition that holds a stream: a word of host-visible memory compared with a value. The owner of
// the word may write it at any real time, also from a thread that calls nothing else.
struct Gate {
  const std::uint32_t* word = nullptr;
  std::function<bool(std::uint32_t)> open;
  std::int64_t give_up_after_ns = 0;  // a bounded spin ends by itself; 0 means never
  bool gave_up = false;
  std::optional<std::int64_t> open_since_ns;
};

// One piece of device work. It starts when everything before it has ended and not before the host
// enqueued it. Its times are known at once unless something before it waits for a gate.
struct Op {
  std::int64_t earliest_ns = 0;
  std::int64_t duration_ns = 0;
  std::unique_ptr<Gate> gate;
  std::function<void(const Op&)> at_end;  // applied when the virtual clock reaches end_ns

  bool timed = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  int blockers = 0;                             // untimed ops this one waits for
  std::vector<std::shared_ptr<Op>> dependents;  // ops that wait for this one
};
using OpPtr = std::shared_ptr<Op>;

// The virtual clock and the work on it, a discrete-event simulation in integer nanoseconds.
// Device work has its times computed when it is enqueued; its effects on memory are applied in the
// order of time as the host's now passes them. Not thread-safe: the world's lock guards it.
class Timeline {
 public:
  [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }

  // Adds work that starts after all of `after`. Null entries are ignored.
  void submit(const OpPtr& op, const std::vector<OpPtr>& after);

  // Looks at the words of the gates, as the hardware would all the time.
  void observe();

  // Moves the host's now, applying effects and opening gates at their exact times.
  void advance_to(std::int64_t time_ns);
  void advance_by(std::int64_t ns) { advance_to(now_ns_ + ns); }

  // The next time at which something changes by itself; none when only a write by the host, or a spin
  // that gives up, can make progress.
  [[nodiscard]] std::optional<std::int64_t> next_event_ns() const;
  [[nodiscard]] std::optional<std::int64_t> next_give_up_ns() const;

  [[nodiscard]] bool done(const OpPtr& op) const { return !op || (op->timed && op->end_ns <= now_ns_); }

 private:
  struct Effect {
    std::int64_t time_ns;
    std::uint64_t order;  // work that ends at the same time takes effect in the order it was timed
    OpPtr op;
    bool operator>(const Effect& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };
  void unblocked(const OpPtr& op);
  void set_times(const OpPtr& op, std::int64_t end_ns);
  void poll_gates();

  std::int64_t now_ns_ = 0;
  std::vector<OpPtr> reached_gates_;  // gates with nothing untimed before them
  std::priority_queue<Effect, std::vector<Effect>, std::greater<>> effects_;
  std::uint64_t effects_made_ = 0;
};

}  // namespace fairlap::fakes
