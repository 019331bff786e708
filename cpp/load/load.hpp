#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "clock/clock.hpp"
#include "load/bell.hpp"
#include "load/decision.hpp"
#include "load/load_clock.hpp"
#include "load/request_queue.hpp"
#include "load/requests.hpp"
#include "load/service.hpp"

namespace fairlap::load {

struct Settings {
  Batching batching{};
  Decision decision{};
  double give_up_ns = 0.0;  // after the last request is due; then running calls have as long again to return
  double spin_ns = 0.0;     // a free worker wakes so long before a request is due, and spins
  bool warm_up = false;     // every worker serves the first requests once before the load starts
};

enum class LoadEnd { running, completed, met, missed, raised, interrupted, gave_up };

struct Outcome {
  LoadEnd end = LoadEnd::running;
  double elapsed_ns = 0.0;
  std::size_t left_in_call = 0;  // workers whose call did not return; their threads stay
};

// An open-loop load: every request is in the queue from when it is due, and workers serve them in order. No
// thread has to run for a request to arrive while all workers are in a call. Of the free workers one leads:
// it sleeps until the next request is due, and lets another one lead before it serves (Schmidt et al.,
// "Leader/Followers", 2000). So a request that finds a free worker wakes one thread, on the core that serves
// it. Between due and completed nothing allocates and no lock is taken; what the service does is its own
// matter.
class Load {
 public:
  // The services and the memory behind `requests` and the decision must outlive this.
  Load(const Requests& requests, const std::vector<Service*>& services, const Settings& settings,
       const clock::Clock& on);
  Load(const Load&) = delete;  // Threads hold on to it.
  Load& operator=(const Load&) = delete;

  // Runs the load, once. `keep_going` is asked by the calling thread about twenty times a second; false
  // interrupts, and at the second time leaves running calls. When workers were left in a call, neither this
  // nor what it was made of may ever be destroyed.
  Outcome run(const std::function<bool()>& keep_going);

 private:
  // A worker in a call may not come back; everywhere else it ends soon by itself.
  enum class Phase { free, in_call, left, ended };
  struct Worker {
    Service* service = nullptr;
    std::atomic<Phase> phase{Phase::free};
    std::thread thread;
  };

  void start_threads();
  void work(std::int32_t number);
  [[nodiscard]] bool wait_for_start();
  void record(const Group& group, double completed_ns);
  void stamp_what_waits() noexcept;

  // Of a worker's thread. False when it was left in a call: the load is over, and the thread only ends.
  [[nodiscard]] bool warm_up(Worker& worker);
  [[nodiscard]] bool serve_until_end(Worker& worker, std::int32_t number);
  void stamp_issued(const RequestQueue::Turn& turn, double free_ns, double now_ns);
  void wait_until(double look_again_ns, std::uint32_t heard) noexcept;
  [[nodiscard]] bool serve(Worker& worker, std::int32_t number, const Group& group);
  [[nodiscard]] bool came_back(Worker& worker);
  [[nodiscard]] bool settle(Worker& worker, const Group& group, bool may_look);

  [[nodiscard]] bool ended() const noexcept {
    return end_.load(std::memory_order_acquire) != LoadEnd::running;
  }
  void end(LoadEnd why) noexcept;
  template <class Reached>
  void watch(const Reached& reached, double until_ns, const std::function<bool()>& keep_going);
  std::size_t end_threads(const std::function<bool()>& keep_going);

  RequestQueue queue_;
  Requests requests_;
  Settings settings_;
  LoadClock clock_;
  Tally tally_;
  double give_up_at_ns_;

  std::atomic<std::size_t> ready_{0};
  std::atomic<LoadEnd> end_{LoadEnd::running};
  std::atomic<bool> started_{false};
  Bell starting_;   // heard by all threads: the load starts, or will not
  Bell waiting_;    // heard by free workers: one of them may lead, or the load has ended
  Bell reporting_;  // heard by the calling thread: something has changed
  std::deque<Worker> workers_;
  std::atomic<bool> led_{false};  // one of the free workers waits for the next request
};

}  // namespace fairlap::load
