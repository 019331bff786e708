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
// Copying this much takes tens of microseconds; taking a chunk takes a fraction of one.
constexpr std::size_t kChunkBytes = std::size_t{256} << 10U;

std::uint64_t now_ns() noexcept { return clock::MonotonicRaw::now_ns(); }

OrderSettings over_all(OrderSettings settings, const Source& source) {
  settings.samples = source.array().samples;
  return settings;
}

std::size_t samples_of_a_chunk(std::size_t bytes_per_sample) {
  return (kChunkBytes + bytes_per_sample - 1) / bytes_per_sample;
}

}  // namespace

Staging::Staging(std::unique_ptr<Source> source, const StagingSettings& settings)
    : source_(std::move(source)),
      gather_(*source_, settings.gather),
      order_(over_all(settings.order, *source_)),
      batch_(settings.order.batch),
      chunk_(samples_of_a_chunk(gather_.delivered().bytes_per_sample())),
      batches_(order_.batches()),
      lending_(std::make_shared<Lending>(settings.slots, batch_, gather_.delivered(), settings.link)),
      works_(settings.slots),
      forks_(forks_behind_us()),
      drawn_(batch_),
      drawn_count_(order_.draw(drawn_)),
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

// A chunk of the open batch, or else of the next one, which a thread opens while the others wait. False when
// there is nothing more to fill.
bool Staging::take(Chunk& chunk) {
  std::condition_variable& opened = crew_->opened;
  std::unique_lock lock(taking_);
  while (true) {
    opened.wait(lock, [this] { return ended_ || open_.chunks_left > 0 || !opening_; });
    if (lending_->slots().closed()) ended_ = true;
    if (ended_) {
      opened.notify_all();
      return false;
    }
    if (open_.chunks_left > 0) {
      const std::size_t samples = open_.samples_left / open_.chunks_left;
      chunk = {open_.slot, open_.first, samples};
      open_.first += samples;
      open_.samples_left -= samples;
      if (--open_.chunks_left == 0) opened.notify_one();  // to open the next
      return true;
    }
    opening_ = true;
    lock.unlock();
    const bool is_open = open_next();
    lock.lock();
    opening_ = false;
    if (!is_open) ended_ = true;
  }
}

// By one thread at a time. False at the end and once the feeder is closed.
bool Staging::open_next() {
  Slots& slots = lending_->slots();
  if (drawn_count_ == 0 || !slots.wait_until_one_is_empty()) return false;
  const std::size_t slot = slots.begin_filling().slot;
  const std::size_t count = drawn_count_;
  Work& work = works_[slot];
  std::swap(work.samples, drawn_);
  lending_->set_samples(slot, count);
  work.failed = false;
  work.reading_ns = work.filling_ns = 0;
  try {
    if (!wait_until_unused(slot)) return false;
    work.opened_ns = now_ns();
    const std::size_t chunks = std::max<std::size_t>(1, count / chunk_);
    work.chunks_left = chunks;
    {
      const std::scoped_lock lock(taking_);
      open_ = {.slot = slot, .samples_left = count, .chunks_left = chunks};
    }
    if (chunks > 1) crew_->opened.notify_all();
  } catch (const std::exception& error) {
    note_failure(work, 0, error);
    slots.publish(slot, 0);
  }
  drawn_count_ = order_.draw(drawn_);
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
  Chunk chunk;
  while (take(chunk)) {
    fill(chunk, scratch);
    if (--works_[chunk.slot].chunks_left == 0) deliver(chunk.slot);
  }
}

void Staging::fill(const Chunk& chunk, std::span<std::byte> scratch) {
  Work& work = works_[chunk.slot];
  const std::uint64_t began_ns = now_ns();
  try {
    const std::span<const std::uint64_t> samples(work.samples);
    std::byte* const to = lending_->slots().memory(chunk.slot) + chunk.first * lending_->bytes_per_sample();
    work.reading_ns += gather_.fill(samples.subspan(chunk.first, chunk.samples), to, scratch);
  } catch (const std::exception& error) {
    note_failure(work, chunk.first, error);
  }
  work.filling_ns += now_ns() - began_ns;
}

// By the thread that filled the last chunk. Threads read at the same time, so that what they read together
// can take longer than the filling took; the same share of that was reading.
void Staging::deliver(std::size_t slot) {
  Work& work = works_[slot];
  try {
    Link* const link = lending_->link();
    if (link != nullptr && !work.failed) {
      link->send(slot, lending_->samples_in(slot) * lending_->bytes_per_sample());
    }
  } catch (const std::exception& error) {
    note_failure(work, 0, error);
  }
  const auto took_ns = static_cast<double>(now_ns() - work.opened_ns);
  const double at_once = std::max(1.0, static_cast<double>(work.filling_ns) / std::max(1.0, took_ns));
  lending_->slots().publish(slot, static_cast<std::uint64_t>(static_cast<double>(work.reading_ns) / at_once));
}

// Of several failures the first one in the batch's order counts, which does not depend on the threads.
void Staging::note_failure(Work& work, std::size_t first, const std::exception& error) {
  const std::scoped_lock lock(failing_);
  if (work.failed && work.failed_at < first) return;
  work.failed = true;
  work.failed_at = first;
  work.failure = error.what();
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
