#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/driver/owned.hpp"
#include "feed/link.hpp"

namespace fairlap::cuda_link {

// A stretch of the device's time, in nanoseconds on an axis that all of one feeder share.
struct Stretch {
  double from_ns = 0.0;
  double to_ns = 0.0;
};

// Adds up how much of the copies' time was behind work. Copies come in the order in which they were made, one
// after the other, each with the work on its batch, which begins after it. Only the work on the last so many
// batches can run beside a copy; the first copies, for which some of it is not known, are not counted.
class OverlapSum {
 public:
  explicit OverlapSum(std::size_t batches) : works_(batches), cut_(batches) {}

  void add(const Stretch& copy, const Stretch& work) noexcept;
  void begin_again() noexcept { seen_ = 0; }  // what comes next does not follow what came last

  [[nodiscard]] std::uint64_t copies() const noexcept { return copies_; }
  [[nodiscard]] double copied_ns() const noexcept { return copied_ns_; }
  [[nodiscard]] double hidden_ns() const noexcept { return hidden_ns_; }

 private:
  [[nodiscard]] double covered_ns(const Stretch& copy) noexcept;

  std::vector<Stretch> works_;  // of the last batches
  std::vector<Stretch> cut_;    // the same, to the length of a copy
  std::uint64_t seen_ = 0;
  std::uint64_t copies_ = 0;
  double copied_ns_ = 0.0;
  double hidden_ns_ = 0.0;
};

// Times the copies of a link and the work on what they brought, by events: a copy on its own stream, and work
// on the consumer's, from when that stream has the batch until it gets to the release. Made once; while it is
// on, each batch costs two records of an event on either stream. Nothing is allocated then.
class CopyOverlap {
 public:
  CopyOverlap(const cuda::BorrowedContext& context, std::size_t slots);

  void turn(bool on) noexcept;

  // Before and after a copy is put on its stream, in the order of the copies. None while it is off.
  std::optional<std::uint64_t> copy_begins(cuda::CUstream stream) noexcept;
  void copy_ends(std::uint64_t copy, cuda::CUstream stream) noexcept;

  // By the consumer, whose stream has been made to wait for the copy; and at the release.
  void work_begins(std::uint64_t copy, cuda::CUstream stream) noexcept;
  void work_ends(std::uint64_t copy, cuda::CUstream stream) noexcept;
  // There is work on it that those two do not enclose.
  void has_other_work(std::uint64_t copy) noexcept;

  // When all that is known to use the slot is done, and before it is copied to again. Threads that fill slots
  // may send batches in another order than that in which they are taken and settled.
  void settle(std::uint64_t copy) noexcept;

  [[nodiscard]] feed::CopyTimes times() const noexcept;

 private:
  struct Timed {
    explicit Timed(const cuda::BorrowedContext& context)
        : copy_began(context), copy_ended(context), work_began(context), work_ended(context) {}
    cuda::Event copy_began, copy_ended, work_began, work_ended;
    std::uint64_t copy = 0;
    bool is_first = false;  // of those whose times are known one after the other
    bool is_settled = false;
    bool is_worked_on = false;
    bool has_ended = false;
    bool has_other_work = false;
    bool has_failed = false;
  };
  Timed& of(std::uint64_t copy) noexcept { return timed_[copy % timed_.size()]; }
  Timed* current(std::uint64_t copy) noexcept;  // none where a later one has taken its place
  bool record(Timed& timed, const cuda::Event& event, cuda::CUstream stream) noexcept;
  [[nodiscard]] std::optional<double> between_ns(const cuda::Event& from,
                                                 const cuda::Event& to) const noexcept;
  void take_up(const Timed& timed) noexcept;
  void leave_out(std::uint64_t& count) noexcept;

  const cuda::Driver& driver_;
  mutable std::mutex mutex_;
  bool is_on_ = false;
  bool begins_ = false;
  std::vector<Timed> timed_;  // by the number of the copy, over and over
  std::uint64_t next_copy_ = 0;
  std::uint64_t next_to_take_up_ = 0;
  std::uint64_t held_ = 0;  // of those that were not taken up: work on them may run beside any copy
  double began_ns_ = 0.0;   // of the copy that was taken up last
  OverlapSum sum_;
  std::uint64_t without_stream_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace fairlap::cuda_link
