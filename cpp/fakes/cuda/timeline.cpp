#include "fakes/cuda/timeline.hpp"

#include <algorithm>
#include <limits>

namespace fairlap::fakes {
namespace {

std::uint32_t read_word(const std::uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

}  // namespace

void Timeline::submit(const OpPtr& op, const std::vector<OpPtr>& after) {
  op->earliest_ns = std::max(op->earliest_ns, now_ns_);
  for (const OpPtr& before : after) {
    if (!before) continue;
    if (before->timed) {
      op->earliest_ns = std::max(op->earliest_ns, before->end_ns);
    } else {
      before->dependents.push_back(op);
      ++op->blockers;
    }
  }
  if (op->blockers == 0) unblocked(op);
  poll_gates();
}

void Timeline::unblocked(const OpPtr& op) {
  op->start_ns = op->earliest_ns;
  if (op->gate) {
    reached_gates_.push_back(op);
  } else {
    set_times(op, op->start_ns + op->duration_ns);
  }
}

void Timeline::set_times(const OpPtr& first, std::int64_t first_end_ns) {
  // A worklist, not recursion: a thousand launches behind one gate are a chain a thousand ops long.
  std::vector<std::pair<OpPtr, std::int64_t>> work{{first, first_end_ns}};
  while (!work.empty()) {
    const auto [op, end_ns] = work.back();
    work.pop_back();
    op->timed = true;
    op->end_ns = end_ns;
    if (op->at_end) effects_.push({end_ns, effects_made_++, op});
    std::vector<OpPtr> dependents;
    dependents.swap(op->dependents);
    for (const OpPtr& next : dependents) {
      next->earliest_ns = std::max(next->earliest_ns, end_ns);
      if (--next->blockers > 0) continue;
      next->start_ns = next->earliest_ns;
      if (next->gate) {
        reached_gates_.push_back(next);
      } else {
        work.emplace_back(next, next->start_ns + next->duration_ns);
      }
    }
  }
}

void Timeline::observe() { advance_to(now_ns_); }

void Timeline::poll_gates() {
  // Opening one gate may put the stream in front of the next, which joins the end of the list.
  for (std::size_t i = 0; i < reached_gates_.size();) {
    const OpPtr op = reached_gates_[i];
    Gate& gate = *op->gate;
    if (!gate.open(read_word(gate.word))) {
      gate.open_since_ns.reset();
    } else if (!gate.open_since_ns) {
      gate.open_since_ns = now_ns_;
    }
    std::optional<std::int64_t> end_ns;
    if (gate.open_since_ns && op->start_ns <= now_ns_) end_ns = std::max(op->start_ns, *gate.open_since_ns);
    const std::int64_t given_up_ns = op->start_ns + gate.give_up_after_ns;
    gate.gave_up = gate.give_up_after_ns > 0 && given_up_ns <= end_ns.value_or(now_ns_);
    if (gate.gave_up) end_ns = given_up_ns;
    if (!end_ns) {
      ++i;
      continue;
    }
    reached_gates_.erase(reached_gates_.begin() + static_cast<std::ptrdiff_t>(i));
    set_times(op, *end_ns);
    i = 0;
  }
}

std::optional<std::int64_t> Timeline::next_event_ns() const {
  std::optional<std::int64_t> next;
  if (!effects_.empty()) next = std::max(effects_.top().time_ns, now_ns_);
  for (const OpPtr& op : reached_gates_) {
    if (op->start_ns > now_ns_) next = std::min(next.value_or(op->start_ns), op->start_ns);
  }
  return next;
}

std::optional<std::int64_t> Timeline::next_give_up_ns() const {
  std::optional<std::int64_t> next;
  for (const OpPtr& op : reached_gates_) {
    const std::int64_t given_up_ns = op->start_ns + op->gate->give_up_after_ns;
    if (op->gate->give_up_after_ns > 0) next = std::min(next.value_or(given_up_ns), given_up_ns);
  }
  return next;
}

void Timeline::advance_to(std::int64_t time_ns) {
  poll_gates();
  while (true) {
    const std::int64_t never = std::numeric_limits<std::int64_t>::max();
    const std::int64_t next = std::min(next_event_ns().value_or(never), next_give_up_ns().value_or(never));
    if (next > time_ns) break;
    now_ns_ = std::max(now_ns_, next);
    while (!effects_.empty() && effects_.top().time_ns <= now_ns_) {
      const OpPtr op = effects_.top().op;
      effects_.pop();
      op->at_end(*op);
      op->at_end = nullptr;
    }
    poll_gates();
  }
  now_ns_ = std::max(now_ns_, time_ns);
  poll_gates();
}

}  // namespace fairlap::fakes
