#include "feed/staging.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "clock/monotonic_raw.hpp"
#include "feed/forks.hpp"
#include "threads/signals_blocked.hpp"

namespace fairlap::feed {
namespace {

constexpr std::chrono::nanoseconds kBetweenQuestions = std::chrono::milliseconds(50);
constexpr std::chrono::microseconds kShortestPause(10);
constexpr std::chrono::microseconds kLongestPause(1000);

std::uint64_t now_ns() noexcept { return clock::MonotonicRaw::now_ns(); }

OrderSettings over_all(OrderSettings settings, const Source& source) {
  settings.samples = source.array().samples;
  return settings;
}

}  // namespace

Staging::Staging(std::unique_ptr<Source> source, const StagingSettings& settings)
    : source_(std::move(source)),
      gather_(*source_, settings.gather),
      order_(over_all(settings.order, *source_)),
      batch_(settings.order.batch),
      batches_(order_.batches()),
      lending_(std::make_shared<Lending>(settings.slots, batch_, gather_.delivered(), settings.link)),
      works_(settings.slots),
      forks_(forks_behind_us()),
      stalls_(now_ns()),
      crew_(std::make_unique<Crew>()) {
  if (settings.threads == 0) throw BadFeed("a feeder needs at least one thread");
  for (Work& work : works_) work.samples.resize(batch_);
  scratches_.assign(settings.threads, std::vector<std::byte>(gather_.scratch_bytes()));
  if (batches_ != 0) lending_->slots().end_after(batches_);
  crew_->lending = lending_;
  const threads::SignalsBlocked blocked;
  try {
    for (std::vector<std::byte>& scratch : scratches_) {
      crew_->threads.emplace_back([this, &scratch] { fill_until_the_end(scratch); });
    }
  } catch (const std::system_error& error) {
    close();
    throw FeederStopped("of " + std::to_string(settings.threads) + " threads only " +
                        std::to_string(crew_->threads.size()) +
                        " could be started: " + error.code().message());
  } catch (...) {
    close();
    throw;
  }
}

Staging::~Staging() {
  if (!in_a_child()) {
    close();
    return;
  }
  // Ending threads that are not there, or destroying what they waited for, would wait for ever: the
  // child leaves both where they are.
  [[maybe_unused]] const Crew* const left_there = crew_.release();
}

bool Staging::in_a_child() const noexcept { return forks_behind_us() != forks_; }

bool Staging::claim(Slots::Begun& begun) {
  const std::scoped_lock lock(claiming_);
  Slots& slots = lending_->slots();
  if (batches_ != 0 && begun_ == batches_) return false;
  if (!slots.wait_until_one_is_empty()) return false;
  begun = slots.begin_filling();
  ++begun_;
  lending_->set_samples(begun.slot, order_.draw(works_[begun.slot].samples));
  return true;
}

// The device may still copy from a slot, or work on its copy, when everybody has given it back. False once
// the feeder is closed.
bool Staging::wait_until_unused(std::size_t slot) {
  Link* const link = lending_->link();
  SlotUse use = link == nullptr ? SlotUse::none : link->use_of(slot);
  if (use == SlotUse::none) return true;
  std::uint64_t copied_ns = 0;
  for (auto pause = kShortestPause; use != SlotUse::none; pause = std::min(2 * pause, kLongestPause)) {
    if (lending_->slots().closed()) return false;
    std::this_thread::sleep_for(pause);
    if (use == SlotUse::copied_from) copied_ns = now_ns();
    use = link->use_of(slot);
  }
  lending_->slots().freed(slot, copied_ns);
  return true;
}

void Staging::fill_until_the_end(std::span<std::byte> scratch) {
  Slots::Begun begun;
  while (claim(begun)) {
    Work& work = works_[begun.slot];
    std::uint64_t source_ns = 0;
    work.failed = false;
    try {
      if (!wait_until_unused(begun.slot)) return;
      const std::span<const std::uint64_t> samples(work.samples);
      const std::size_t count = lending_->samples_in(begun.slot);
      source_ns = gather_.fill(samples.first(count), lending_->slots().memory(begun.slot), scratch);
      if (Link* const link = lending_->link()) link->send(begun.slot, count * lending_->bytes_per_sample());
    } catch (const std::exception& error) {
      work.failed = true;
      work.failure = error.what();
    }
    lending_->slots().publish(begun.slot, source_ns);
  }
}

void Staging::refuse_in_a_child() const {
  if (!in_a_child()) return;
  throw FeederStopped(
      "this process was forked from the one that made the feeder, whose threads stayed there; make one here");
}

Staging::Delivered Staging::settle(const Slots::Arrived& arrived, std::uint64_t now) {
  const std::scoped_lock lock(stalls_lock_);
  if (arrived.arrival != Arrival::full) {
    stalls_.wait_ends_empty(now, arrived.arrival == Arrival::all_held);
    if (arrived.arrival != Arrival::closed) return {};
    throw FeederStopped("the feeder is closed");
  }
  const Work& work = works_[arrived.ticket.slot];
  const std::size_t samples = lending_->samples_in(arrived.ticket.slot);
  if (!work.failed) {
    stalls_.wait_ends(now, arrived.times, samples, samples * lending_->bytes_per_sample());
    return {.is_batch = true, .ticket = arrived.ticket, .batch = arrived.batch, .samples = samples};
  }
  stalls_.wait_ends_empty(now, false);
  failed_.emplace(arrived.batch, work.failure);
  lending_->give_back(arrived.ticket);
  lending_->slots().close();  // nothing after it is wanted
  throw BatchFailed(*failed_);
}

Staging::AtHand Staging::next_at_hand() {
  refuse_in_a_child();
  const std::unique_lock consumer(consuming_, std::try_to_lock);
  if (!consumer.owns_lock()) return {};
  if (failed_) throw BatchFailed(*failed_);
  const Slots::Arrived arrived = lending_->slots().hand_out(std::chrono::nanoseconds(0), lending_);
  if (arrived.arrival == Arrival::not_yet || arrived.arrival == Arrival::all_held) return {};
  const std::uint64_t now = now_ns();
  {
    const std::scoped_lock lock(stalls_lock_);
    stalls_.wait_begins(now);
  }
  return {true, settle(arrived, now)};
}

Staging::Delivered Staging::next(std::chrono::nanoseconds patience,
                                 const std::function<bool()>& keep_waiting) {
  refuse_in_a_child();
  auto held_since = std::chrono::steady_clock::time_point::max();
  // Why waiting ends without a batch; nothing while it continues.
  const auto ends_because = [&](bool all_held) -> std::optional<std::string> {
    const auto now = std::chrono::steady_clock::now();
    held_since = all_held ? std::min(held_since, now) : std::chrono::steady_clock::time_point::max();
    if (all_held && now - held_since >= patience) {
      return "all " + std::to_string(lending_->slots().count()) +
             " slots are held by batches that were not released; release one, or ask for more slots";
    }
    if (keep_waiting && !keep_waiting()) return "waiting for a batch was interrupted";
    return {};
  };
  std::unique_lock consumer(consuming_, std::defer_lock);
  while (!consumer.try_lock_for(kBetweenQuestions)) {
    if (const auto why = ends_because(all_held())) throw FeederStopped(*why);
  }
  if (failed_) throw BatchFailed(*failed_);
  {
    const std::scoped_lock lock(stalls_lock_);
    stalls_.wait_begins(now_ns());
  }
  while (true) {
    const Slots::Arrived arrived = lending_->slots().hand_out(kBetweenQuestions, lending_);
    const bool without = arrived.arrival == Arrival::all_held || arrived.arrival == Arrival::not_yet;
    if (!without) return settle(arrived, now_ns());
    if (const auto why = ends_because(arrived.arrival == Arrival::all_held)) {
      static_cast<void>(settle(arrived, now_ns()));
      throw FeederStopped(*why);
    }
  }
}

bool Staging::all_held() const {
  return lending_->slots().count_in(SlotState::handed_out) == lending_->slots().count();
}

std::vector<std::uint64_t> Staging::close() {
  if (in_a_child()) return {};
  Slots& slots = lending_->slots();
  slots.close();
  const std::scoped_lock closer(closing_);
  for (std::thread& thread : crew_->threads) {
    if (thread.joinable()) thread.join();
  }
  const std::scoped_lock lock(stalls_lock_);
  stalls_.close(now_ns());
  return slots.batches_held();
}

StallTimes Staging::stalls() const {
  refuse_in_a_child();  // a lock may have been taken when the child was forked
  const bool held = all_held();
  const std::scoped_lock lock(stalls_lock_);
  StallTimes stalls = stalls_.until(now_ns(), held);
  stalls.has_link = lending_->link() != nullptr;
  return stalls;
}

}  // namespace fairlap::feed
