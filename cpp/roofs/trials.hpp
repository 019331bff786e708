#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "clock/clock.hpp"
#include "roofs/kernel.hpp"

namespace fairlap::roofs {

struct Team {
  std::size_t threads = 1;
  std::vector<int> cores;  // one for each thread; empty leaves them to the scheduler
};

// What one thread of a trial repeats, with any of several kernels.
class Load;

// Trials of a load on all threads at once, each of about half a millisecond, so that many fit between two
// interruptions by other programs.
class Trials {
 public:
  // The kernels must be available. Those of one number type, since the widest instructions are not always the
  // fastest: some processors lower their clock for them.
  Trials(const std::vector<ArithmeticKernel>& kernels, Team team);

  // Three arrays of together about so many bytes for each thread. Small arrays are passed over many times in
  // a trial. Of large ones a trial takes the next piece: it stays short, and before a later one returns to
  // the piece, the others have displaced it from any cache that is much smaller than the arrays.
  Trials(const std::vector<TriadKernel>& kernels, std::size_t bytes_per_thread, Team team);
  ~Trials();

  Trials(const Trials&) = delete;  // It can hold more than a gigabyte.
  Trials& operator=(const Trials&) = delete;

  // Of the kernel that is in use: the one that was the fastest in a few trials.
  [[nodiscard]] std::string_view instructions() const noexcept;

  // The rate of each trial, in operations or bytes per second of all threads together, from the first
  // thread's begin to the last one's end. Takes about so many seconds; at least one trial.
  std::vector<double> rates(double seconds);

 private:
  struct Stamps;

  // Of any one thread. What a trial takes of all together is no guide to a kernel: on a busy machine they
  // begin far apart.
  static std::uint64_t shortest_own_ticks(const std::vector<Stamps>& stamps);
  void use_the_fastest();
  [[nodiscard]] std::uint64_t units_of_a_trial();
  std::vector<Stamps> take(std::uint64_t units, double seconds, std::size_t most);

  const clock::Clock& clock_;
  Team team_;
  std::vector<std::unique_ptr<Load>> loads_;
  std::uint64_t units_ = 1;
};

}  // namespace fairlap::roofs
