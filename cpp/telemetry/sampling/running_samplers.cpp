#include "telemetry/sampling/running_samplers.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "telemetry/sampling/sampler.hpp"

namespace fairlap::telemetry {
namespace {

struct List {
  std::mutex mutex;
  std::vector<std::shared_ptr<SamplerControl>> running;
};

void stop_all();

// Never destroyed: samplers may end after everything static.
List& list() {
  static List* const the_list = [] {
    auto* fresh = new List;
    std::atexit(stop_all);
    pthread_atfork([] { list().mutex.lock(); }, [] { list().mutex.unlock(); },
                   [] {
                     list().running.clear();
                     list().mutex.unlock();
                   });
    return fresh;
  }();
  return *the_list;
}

void stop_all() {
  while (true) {
    std::shared_ptr<SamplerControl> last;
    {
      const std::lock_guard lock(list().mutex);
      if (list().running.empty()) return;
      last = std::move(list().running.back());
      list().running.pop_back();
    }
    const std::lock_guard lock(last->mutex);
    if (last->sampler != nullptr) last->sampler->end_thread();
  }
}

}  // namespace

void enlist(const std::shared_ptr<SamplerControl>& control) {
  const std::lock_guard lock(list().mutex);
  list().running.push_back(control);
}

void strike_off(const SamplerControl& control) noexcept {
  const std::lock_guard lock(list().mutex);
  std::erase_if(list().running, [&](const auto& each) { return each.get() == &control; });
}

}  // namespace fairlap::telemetry
