#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
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

// Threads that fill slots with batches ahead of the consumer. They fill one batch together, in chunks of
// whole samples, and begin the next one when no chunk is left to take: so few slots keep many threads at
// work, and the batch that is wanted first is ready first. A batch that is not worth sharing is one chunk,
// and several of those are in the making at once. Batches are delivered in order. A thread's failure reaches
// the consumer in place of the batch it concerns.
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
  // What one slot is filled with. Several threads fill it; the last one delivers it.
  struct Work {
    std::vector<std::uint64_t> samples;
    std::uint64_t opened_ns = 0;
    std::atomic<std::size_t> chunks_left = 0;
    std::atomic<std::uint64_t> filling_ns = 0;  // of all threads together
    std::atomic<std::uint64_t> reading_ns = 0;  // how much of that was reading
    bool failed = false;
    std::size_t failed_at = 0;  // the first sample of the chunk that failed
    std::string failure;
  };
  // The batch whose chunks are being taken: one at a time.
  struct Open {
    std::size_t slot = 0;
    std::size_t first = 0;         // of the samples that nobody has taken
    std::size_t samples_left = 0;  // and how many they are
    std::size_t chunks_left = 0;
  };
  struct Chunk {
    std::size_t slot = 0;
    std::size_t first = 0;
    std::size_t samples = 0;
  };
  void fill_until_the_end(std::span<std::byte> scratch);
  bool take(Chunk& chunk);
  bool open_next();
  void fill(const Chunk& chunk, std::span<std::byte> scratch);
  void deliver(std::size_t slot);
  void note_failure(Work& work, std::size_t first, const std::exception& error);
  bool wait_until_unused(std::size_t slot);
  Delivered settle(const Slots::Arrived& arrived, std::uint64_t now_ns);
  [[nodiscard]] bool all_held() const;
  [[nodiscard]] bool in_a_child() const noexcept;
  void refuse_in_a_child() const;

  std::unique_ptr<Source> source_;
  Gather gather_;
  Order order_;
  std::size_t batch_;
  std::size_t chunk_;  // samples of the smallest one
  std::uint64_t batches_;
  std::shared_ptr<Lending> lending_;
  std::vector<Work> works_;
  std::vector<std::vector<std::byte>> scratches_;
  std::uint64_t forks_;  // when it was made

  std::mutex taking_;
  Open open_;
  bool opening_ = false;  // One thread opens the next batch, so that slots, numbers and samples agree.
  bool ended_ = false;
  // The samples of the batch after the open one, drawn while that one is filled.
  std::vector<std::uint64_t> drawn_;
  std::size_t drawn_count_ = 0;  // 0 at the end
  std::mutex failing_;

  std::mutex closing_;  // a thread is joined by one
  Turn consuming_;
  std::optional<BatchFailed> failed_;
  mutable std::mutex stalls_lock_;
  StallTimer stalls_;

  // Apart, so that a forked child can leave it where it is.
  struct Crew {
    std::shared_ptr<Lending> lending;
    std::condition_variable opened;  // or somebody has to open, or all is over
    std::vector<std::thread> threads;
  };
  std::unique_ptr<Crew> crew_;  // last, since its threads use all the others
};

}  // namespace fairlap::feed
