#pragma once

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>

#include "fakes/nvml/exports.hpp"
#include "fakes/nvml/machine.hpp"

// What every NVML function does, and the ways in which they give their answers.
namespace fairlap::fakes {

using namespace fairlap::telemetry;  // the fake is written in NVML's own types

enum class Needs { nothing, init };

// What a call does before its own work: pay its cost, be counted, and fail when a test asked for it.
template <class Body>
nvmlReturn_t entry(const char* function, Needs needs, Body body) {
  // A driver's call keeps the processor busy; what the fake itself needs is part of the cost.
  const auto entered = std::chrono::steady_clock::now();
  Machine& m = machine();
  std::unique_lock lock(m.mutex);
  if (const std::int64_t cost_ns = m.cost_ns(function); cost_ns > 0 && m.real_clock) {
    lock.unlock();
    while (std::chrono::steady_clock::now() - entered < std::chrono::nanoseconds(cost_ns)) {
    }
    lock.lock();
  } else {
    m.test_now_ns += cost_ns;
  }
  if (const auto error = m.faults.enter(function)) return *error;
  if (needs == Needs::init && m.inits == 0) return NVML_ERROR_UNINITIALIZED;
  return body(m);
}

// Handles are the device's number plus one.
inline nvmlDevice_t handle_of(const Board& board) {
  return reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(board.number) + 1);
}

template <class Body>
nvmlReturn_t on_board(const char* function, nvmlDevice_t device, Body body) {
  return entry(function, Needs::init, [&](Machine& m) -> nvmlReturn_t {
    const auto number = reinterpret_cast<std::uintptr_t>(device);
    if (number == 0 || number > m.boards.size()) return NVML_ERROR_INVALID_ARGUMENT;
    const Board& board = m.boards[number - 1];
    if (board.lost) return NVML_ERROR_GPU_IS_LOST;
    return body(m, board);
  });
}

inline nvmlReturn_t give_text(const std::string& text, char* out, unsigned int length) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (length <= text.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class Value>
nvmlReturn_t give(Value* out, std::uint64_t value) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = static_cast<Value>(value);
  return NVML_SUCCESS;
}

}  // namespace fairlap::fakes
