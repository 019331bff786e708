#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "feed/gather.hpp"
#include "feed/lending.hpp"
#include "feed/order.hpp"
#include "feed/source.hpp"
#include "feed/stalls.hpp"
#include "feed/turn.hpp"

namespace fairlap::feed {

// A batch could not be made; the batches before it were delivered.
class BatchFailed : public std::runtime_error {
 public:
  BatchFailed(std::uint64_t batch, const std::string& why)
      : std::runtime_error("batch " + std::to_string(batch) + " could not be fed: " + why), batch_(batch) {}
  [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }

 private:
  std::uint64_t batch_;
};

// The feeder cannot continue, for a reason other than the data.
class FeederStopped : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct StagingSettings {
  OrderSettings order;  // its number of samples is taken from the source
  GatherSettings gather;
  std::size_t slots = 4;
  std::size_t threads = 1;
  MakeLink link;  // none: batches stay in host memory
};

// Threads that fill slots with batches ahead of the consumer. Several batches may be in the making; they
// are delivered in order. A thread's failure reaches the consumer in place of the batch it concerns.
class Staging {
 public:
  Staging(std::unique_ptr<Source> source, const StagingSettings& settings);
  ~Staging();
  Staging(const Staging&) = delete;  // Its threads hold its address.
  Staging& operator=(const Staging&) = delete;

  struct Delivered {
    bool is_batch = false;  // otherwise the data has ended
    Ticket ticket;
    std::uint64_t batch = 0;
    std::size_t samples = 0;
  };
  // Waits for the next batch. When the consumer itself holds every slot, that is tolerated for
  // `patience` and then an error. `keep_waiting` is asked about twenty times a second; when it returns false,
  // FeederStopped is thrown and the batch stays for the next call. One consumer at a time; the others wait
  // for their turn in the same way.
  Delivered next(std::chrono::nanoseconds patience, const std::function<bool()>& keep_waiting = {});

  // A batch that is ready now, the end, or nothing: then neither flag of the pair is set.
  struct AtHand {
    bool answered = false;
    Delivered delivered;
  };
  AtHand next_at_hand();

  // Ends the threads. Returns the batches that are still held; their memory stays valid. It may be
  // called again, from any thread.
  std::vector<std::uint64_t> close();

  [[nodiscard]] const std::shared_ptr<Lending>& lending() const noexcept { return lending_; }
  [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }  // 0: without end
  [[nodiscard]] StallTimes stalls() const;

 private:
  struct Work {  // what one slot is filled with
    std::vector<std::uint64_t> samples;
    std::string failure;
    bool failed = false;
  };
  void fill_until_the_end(std::span<std::byte> scratch);
  bool claim(Slots::Begun& begun);
  bool wait_until_unused(std::size_t slot);
  Delivered settle(const Slots::Arrived& arrived, std::uint64_t now_ns);
  [[nodiscard]] bool all_held() const;
  [[nodiscard]] bool in_a_child() const noexcept;
  void refuse_in_a_child() const;

  std::unique_ptr<Source> source_;
  Gather gather_;
  Order order_;
  std::size_t batch_;
  std::uint64_t batches_;
  std::shared_ptr<Lending> lending_;
  std::vector<Work> works_;
  std::vector<std::vector<std::byte>> scratches_;
  std::uint64_t forks_;  // when it was made

  std::mutex claiming_;  // slot, batch number and samples are taken together, so that their orders agree
  std::uint64_t begun_ = 0;

  std::mutex closing_;  // a thread is joined by one
  Turn consuming_;
  std::optional<BatchFailed> failed_;
  mutable std::mutex stalls_lock_;
  StallTimer stalls_;

  // Apart, so that a forked child can leave it where it is.
  struct Crew {
    std::shared_ptr<Lending> lending;
    std::vector<std::thread> threads;
  };
  std::unique_ptr<Crew> crew_;  // last, since its threads use all the others
};

}  // namespace fairlap::feed
