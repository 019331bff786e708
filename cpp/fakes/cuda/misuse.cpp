#include "fakes/cuda/misuse.hpp"

#include <cstdio>
#include <cstdlib>

#include "fakes/cuda/entry.hpp"

namespace fairlap::fakes {
namespace {

thread_local const char* this_call = "";

// Of the whole process, across resets of the fake. Never destroyed, because the last report is written
// after static objects are.
std::vector<std::string>& all_misuses() {
  static auto* const all = new std::vector<std::string>;
  return *all;
}

void note(World& w, const std::string& kind, const char* given_back_by) {
  w.misuses.push_back(std::string(this_call) + " used " + kind + " after " + given_back_by);
  all_misuses().push_back(w.misuses.back());
}

constexpr const char* kLeft[] = {"streams",          "events",          "device_allocations",
                                 "host_allocations", "graphs",          "host_registrations",
                                 "graph_execs",      "further_modules", "primary_retains",
                                 "pushed_contexts"};

// What was misused and what is left when the process ends, into the file that CUDA_FAKE_REPORT names.
__attribute__((destructor)) void report_at_exit() {
  const char* file = std::getenv("CUDA_FAKE_REPORT");
  if (file == nullptr || *file == '\0') return;
  std::FILE* out = std::fopen(file, "a");
  if (out == nullptr) std::abort();  // a report that is lost would pass for a clean one
  for (const std::string& misuse : all_misuses()) std::fprintf(out, "%s\n", misuse.c_str());
  for (const char* kind : kLeft) {
    const std::int64_t left = fake_cuda_outstanding(kind);
    if (left != 0) std::fprintf(out, "left %lld %s\n", static_cast<long long>(left), kind);
  }
  std::fclose(out);
}

}  // namespace

void set_call(const char* function) { this_call = function; }

void gave_back(World& w, const char* kind, Handle handle) { w.given_back[handle] = {kind, this_call}; }

void gave_back_memory(World& w, std::uint64_t address, std::uint64_t bytes) {
  w.memory_given_back[address] = {bytes, this_call};
}

void took_memory(World& w, std::uint64_t address, std::uint64_t bytes) {
  std::erase_if(w.memory_given_back, [&](const auto& old) {
    return old.first < address + bytes && address < old.first + old.second.bytes;
  });
}

void note_use(World& w, Handle handle) {
  const auto found = w.given_back.find(handle);
  if (found != w.given_back.end()) note(w, found->second.kind, found->second.by);
}

void note_use_of_memory(World& w, std::uint64_t address) {
  auto next = w.memory_given_back.upper_bound(address);
  if (next == w.memory_given_back.begin()) return;
  const auto& [start, old] = *--next;
  if (address - start < old.bytes) note(w, "memory", old.by);
}

}  // namespace fairlap::fakes
