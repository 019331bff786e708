#include "cuda_link/copy_overlap.hpp"

#include <algorithm>
#include <utility>

namespace fairlap::cuda_link {

double OverlapSum::covered_ns(const Stretch& copy) noexcept {
  std::size_t count = 0;
  for (const Stretch& work : works_) {
    const Stretch cut{std::max(work.from_ns, copy.from_ns), std::min(work.to_ns, copy.to_ns)};
    if (cut.from_ns < cut.to_ns) cut_[count++] = cut;
  }
  const auto first = cut_.begin();
  const auto last = first + static_cast<std::ptrdiff_t>(count);
  std::sort(first, last, [](const Stretch& a, const Stretch& b) { return a.from_ns < b.from_ns; });
  double covered_ns = 0.0;
  double until_ns = copy.from_ns;
  for (auto cut = first; cut != last; ++cut) {
    covered_ns += std::max(0.0, cut->to_ns - std::max(cut->from_ns, until_ns));
    until_ns = std::max(until_ns, cut->to_ns);
  }
  return covered_ns;
}

void OverlapSum::add(const Stretch& copy, const Stretch& work) noexcept {
  if (seen_ >= works_.size()) {
    ++copies_;
    copied_ns_ += copy.to_ns - copy.from_ns;
    hidden_ns_ += covered_ns(copy);
  }
  works_[seen_ % works_.size()] = work;
  ++seen_;
}

// As many batches as there are slots have work that has not ended, and as many again may have been sent
// between them. The copy before the one that is taken up is kept, too.
CopyOverlap::CopyOverlap(const cuda::BorrowedContext& context, std::size_t slots)
    : driver_(context.driver()), sum_(2 * slots) {
  const std::size_t kept = 4 * slots;
  timed_.reserve(kept);
  for (std::size_t number = 0; number < kept; ++number) timed_.emplace_back(context);
}

void CopyOverlap::turn(bool on) noexcept {
  const std::scoped_lock lock(mutex_);
  is_on_ = begins_ = on;
}

CopyOverlap::Timed* CopyOverlap::current(std::uint64_t copy) noexcept {
  Timed& timed = of(copy);
  return timed.copy == copy ? &timed : nullptr;
}

// A failed record is not the feeder's failure: what it means for the device is seen by the calls that follow.
bool CopyOverlap::record(Timed& timed, const cuda::Event& event, cuda::CUstream stream) noexcept {
  const bool is_recorded = driver_.cuEventRecord.code_of(event.handle(), stream) == cuda::CUDA_SUCCESS;
  if (!is_recorded) timed.has_failed = true;
  return is_recorded;
}

std::optional<std::uint64_t> CopyOverlap::copy_begins(cuda::CUstream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  if (!is_on_) return std::nullopt;
  const std::uint64_t copy = next_copy_++;
  // A batch is held while many others pass by: all that were not taken up are lost.
  if (copy - next_to_take_up_ >= timed_.size()) {
    lost_ += copy - next_to_take_up_;
    for (; next_to_take_up_ < copy; ++next_to_take_up_) held_ += of(next_to_take_up_).is_settled ? 0U : 1U;
    begins_ = true;
  }
  Timed& timed = of(copy);
  timed.copy = copy;
  timed.is_first = std::exchange(begins_, false);
  timed.is_settled = timed.is_worked_on = timed.has_ended = false;
  timed.has_other_work = timed.has_failed = false;
  record(timed, timed.copy_began, stream);
  return copy;
}

void CopyOverlap::copy_ends(std::uint64_t copy, cuda::CUstream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  if (Timed* const timed = current(copy)) record(*timed, timed->copy_ended, stream);
}

void CopyOverlap::work_begins(std::uint64_t copy, cuda::CUstream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  if (Timed* const timed = current(copy)) timed->is_worked_on = record(*timed, timed->work_began, stream);
}

void CopyOverlap::work_ends(std::uint64_t copy, cuda::CUstream stream) noexcept {
  const std::scoped_lock lock(mutex_);
  if (Timed* const timed = current(copy)) timed->has_ended = record(*timed, timed->work_ended, stream);
}

void CopyOverlap::has_other_work(std::uint64_t copy) noexcept {
  const std::scoped_lock lock(mutex_);
  if (Timed* const timed = current(copy)) timed->has_other_work = true;
}

std::optional<double> CopyOverlap::between_ns(const cuda::Event& from, const cuda::Event& to) const noexcept {
  float milliseconds = 0.0F;
  if (driver_.cuEventElapsedTime.code_of(&milliseconds, from.handle(), to.handle()) != cuda::CUDA_SUCCESS)
    return std::nullopt;
  return static_cast<double>(milliseconds) * 1e6;
}

// Copies that follow may have run beside its work.
void CopyOverlap::leave_out(std::uint64_t& count) noexcept {
  ++count;
  sum_.begin_again();
}

void CopyOverlap::settle(std::uint64_t copy) noexcept {
  const std::scoped_lock lock(mutex_);
  if (copy < next_to_take_up_) {
    --held_;
    return sum_.begin_again();
  }
  of(copy).is_settled = true;
  while (next_to_take_up_ < next_copy_ && of(next_to_take_up_).is_settled) take_up(of(next_to_take_up_++));
}

// In the order of the copies.
void CopyOverlap::take_up(const Timed& timed) noexcept {
  if (timed.is_first) sum_.begin_again();
  if (timed.has_failed || held_ > 0) return leave_out(lost_);
  // From one copy to the next: a driver gives times as floats, which hold no nanoseconds over seconds.
  const std::optional<double> since_last_ns =
      timed.is_first ? 0.0 : between_ns(of(timed.copy - 1).copy_began, timed.copy_began);
  const std::optional<double> length_ns = between_ns(timed.copy_began, timed.copy_ended);
  if (!since_last_ns || !length_ns) return leave_out(lost_);
  began_ns_ += *since_last_ns;
  if (timed.has_other_work || timed.is_worked_on != timed.has_ended) return leave_out(without_stream_);
  Stretch work{began_ns_, began_ns_};
  if (timed.is_worked_on) {
    const std::optional<double> from_ns = between_ns(timed.copy_began, timed.work_began);
    const std::optional<double> to_ns = between_ns(timed.copy_began, timed.work_ended);
    if (!from_ns || !to_ns) return leave_out(lost_);
    work = {began_ns_ + *from_ns, began_ns_ + *to_ns};
  }
  sum_.add({began_ns_, began_ns_ + *length_ns}, work);
}

feed::CopyTimes CopyOverlap::times() const noexcept {
  const std::scoped_lock lock(mutex_);
  return {.copies = sum_.copies(),
          .copied_ns = sum_.copied_ns(),
          .hidden_ns = sum_.hidden_ns(),
          .without_stream = without_stream_,
          .lost = lost_};
}

}  // namespace fairlap::cuda_link
