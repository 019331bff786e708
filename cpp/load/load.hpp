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
  double spin_ns = 0.0;     // before a request is due the issuing thread wakes so early and spins
  std::uint32_t late_before_help = 3;  // late wake-ups before a second thread issues too; 0: from the start
  // From which requests may be issued, besides those of the process. GCC warns where it has no initializer.
  std::vector<int> cores{};  // NOLINT(readability-redundant-member-init)
  bool warm_up = false;      // every worker serves the first requests once before the load starts
};

enum class LoadEnd { running, completed, met, missed, raised, interrupted, gave_up };

struct Outcome {
  LoadEnd end = LoadEnd::running;
  double elapsed_ns = 0.0;
  double issuing_cpu_ns = 0.0;   // CPU time of the threads that issue
  std::size_t left_in_call = 0;  // workers whose call did not return; their threads stay
};

// An open-loop load: one thread issues every request when it is due and waits for nothing else, workers serve
// them in order. Where the kernel lets that thread wait for a core too often, a second one on another core
// issues too, and whichever is there first does. Between due and completed nothing allocates and no lock is
// taken; what the service does is its own matter.
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
  void issue_all();
  void help_to_issue();
  [[nodiscard]] bool wait_for_call();
  void issue_until_end();
  void call_help_if_often_late();
  void call_help();
  [[nodiscard]] bool sleep_until_due(std::uint32_t request);
  void work(std::int32_t number);
  [[nodiscard]] bool wait_for_start();
  void record(const Group& group, double completed_ns);

  // Of a worker's thread. False when it was left in a call: the load is over, and the thread only ends.
  [[nodiscard]] bool warm_up(Worker& worker);
  [[nodiscard]] bool serve_until_end(Worker& worker, std::int32_t number);
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
  Bell waiting_;    // heard by free workers: a request has been issued
  Bell issuing_;    // heard by the issuing threads: the load has ended
  Bell calling_;    // heard by the helper: it is called, or the load has ended
  Bell reporting_;  // heard by the calling thread: something has changed
  std::deque<Worker> workers_;
  std::thread issuer_, helper_;
  std::uint32_t late_ = 0;            // requests that the issuer issued late
  std::atomic<int> called_from_{-1};  // the core that the helper should stay off; negative until it is called
  std::atomic<std::int64_t> issuing_cpu_ns_{0};
};

}  // namespace fairlap::load
