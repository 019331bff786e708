#include "telemetry/running_samplers.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "telemetry/sampler.hpp"

namespace fairlap::telemetry {
namespace {

struct List {
  std::mutex mutex;
  std::vector<Sampler*> samplers;
};

void stop_all();

// Never destroyed: samplers may end after everything static.
List& list() {
  static List* const the_list = [] {
    auto* fresh = new List;
    std::atexit(stop_all);
    pthread_atfork([] { list().mutex.lock(); }, [] { list().mutex.unlock(); },
                   [] {
                     list().samplers.clear();
                     list().mutex.unlock();
                   });
    return fresh;
  }();
  return *the_list;
}

void stop_all() {
  while (true) {
    Sampler* last = nullptr;
    {
      const std::lock_guard lock(list().mutex);
      if (list().samplers.empty()) return;
      last = list().samplers.back();
      list().samplers.pop_back();
    }
    last->stop();
  }
}

}  // namespace

void enlist(Sampler& sampler) {
  const std::lock_guard lock(list().mutex);
  list().samplers.push_back(&sampler);
}

void strike_off(const Sampler& sampler) noexcept {
  const std::lock_guard lock(list().mutex);
  std::erase(list().samplers, &sampler);
}

}  // namespace fairlap::telemetry
