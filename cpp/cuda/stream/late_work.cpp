#include "cuda/stream/late_work.hpp"

#include <thread>
#include <vector>

#include "cuda/activity/spans.hpp"
#include "cuda/driver/owned.hpp"
#include "cuda/gate/patience.hpp"
#include "loop/entered.hpp"

namespace fairlap::cuda {
namespace {

// A thread that launches for another one does so within a tenth of this.
constexpr auto kAWhile = std::chrono::milliseconds(2);

class Look {
 public:
  Look(const BorrowedStream& stream, Gate& gate, loop::Work& work, std::chrono::nanoseconds limit)
      : stream_(stream),
        driver_(stream.driver()),
        gate_(gate),
        work_(work),
        limit_(limit),
        returned_(stream.context()),
        later_(stream.context()) {}

  void take(LateWork& found) {
    found.held = enqueue(found.end) && found.held;
    if (found.end == SampleEnd::taken) wait(found.end);
    if (found.end != SampleEnd::taken) return;
    if (!complete()) {
      found.end = SampleEnd::raised;
      return;
    }
    const CurrentContext current(driver_, stream_.context().handle());
    spans_ns_.push_back(span_ns(driver_, returned_.handle(), later_.handle()));
    found.usual_ns = median_of(spans_ns_);
  }

 private:
  // Whether the stream was held until the end.
  bool enqueue(SampleEnd& end) {
    {
      const CurrentContext current(driver_, stream_.context().handle());
      gate_.close(stream_.handle());
    }
    try {
      call(end);
      std::this_thread::sleep_for(kAWhile);
      const CurrentContext current(driver_, stream_.context().handle());
      driver_.cuEventRecord(later_.handle(), stream_.handle());
    } catch (...) {
      static_cast<void>(gate_.open());
      throw;
    }
    return gate_.open();
  }

  void call(SampleEnd& end) {
    const loop::Entered entered(work_);
    const bool fine = work_.call();
    const CurrentContext current(driver_, stream_.context().handle());
    driver_.cuEventRecord(returned_.handle(), stream_.handle());
    if (!fine) end = SampleEnd::raised;
    if (work_.stop_requested()) end = SampleEnd::stop_requested;
  }

  void wait(SampleEnd& end) {
    Patience patience(limit_);
    while (!is_done(driver_, later_.handle())) {
      if (patience.wait_a_little()) continue;
      end = SampleEnd::out_of_patience;
      return;
    }
  }

  bool complete() {
    const loop::Entered entered(work_);
    const bool waited = !work_.has_completion() || work_.wait();
    return work_.drop() && waited;
  }

  const BorrowedStream& stream_;
  const Driver& driver_;
  Gate& gate_;
  loop::Work& work_;
  std::chrono::nanoseconds limit_;
  Event returned_;
  Event later_;
  std::vector<double> spans_ns_;
};

}  // namespace

LateWork look_for_late_work(const BorrowedStream& stream, Gate& gate, loop::Work& work, std::size_t looks,
                            std::chrono::nanoseconds limit) {
  LateWork found;
  Look look(stream, gate, work, limit);
  for (std::size_t number = 0; number < looks && found.end == SampleEnd::taken && found.held; ++number) {
    ++found.calls;
    look.take(found);
  }
  return found;
}

}  // namespace fairlap::cuda
