#include "roofs/trials.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "roofs/team.hpp"

namespace fairlap::roofs {

// Made by the thread that runs it, so that its memory is near.
class Load {
 public:
  Load() = default;
  Load(const Load&) = delete;  // It can be a mapping.
  Load& operator=(const Load&) = delete;
  virtual ~Load() = default;

  [[nodiscard]] virtual std::size_t kernels() const noexcept = 0;
  virtual void use(std::size_t kernel) noexcept = 0;
  [[nodiscard]] virtual std::string_view instructions() const noexcept = 0;
  [[nodiscard]] virtual double amount_per_unit() const noexcept = 0;  // operations or bytes
  virtual void run(std::uint64_t units) noexcept = 0;
};

// One thread's stamps, on cache lines that no other thread writes.
struct alignas(kCacheLineBytes) Trials::Stamps {
  std::vector<std::uint64_t> begins;
  std::vector<std::uint64_t> ends;
};

namespace {

constexpr double kTrialNs = 500e3;
constexpr double kCalibrationS = 0.01;
constexpr std::size_t kCalibrationTrials = 5;
constexpr double kPilotS = 0.012;
constexpr std::size_t kMostPilotTrials = 100;
constexpr int kPilotTurns = 5;
constexpr std::size_t kMostTrials = 20'000;
constexpr std::size_t kPieceElements = 4'096;  // of a large array: 32 KiB
// Arrays that begin at the same place of a page would have each store wait for unrelated loads (Intel's
// optimization manual, "4-KByte aliasing").
constexpr std::size_t kStaggerBytes = 21 * kCacheLineBytes;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(mapped);
#if defined(MADV_HUGEPAGE)
    madvise(data_, bytes_, MADV_HUGEPAGE);  // Otherwise it is the TLB that would be measured.
#endif
  }
  ~Mapping() { munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;  // It is the memory.
  Mapping& operator=(const Mapping&) = delete;

  // The first address that is aligned to a huge page.
  [[nodiscard]] std::byte* aligned() const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(data_);
    return data_ + ((kHugePageBytes - address % kHugePageBytes) % kHugePageBytes);
  }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

template <class Kernel>
class LoadOf : public Load {
 public:
  explicit LoadOf(const std::vector<Kernel>& kernels) : kernels_(kernels) {}
  [[nodiscard]] std::size_t kernels() const noexcept override { return kernels_.size(); }
  void use(std::size_t kernel) noexcept override { used_ = kernel; }
  [[nodiscard]] std::string_view instructions() const noexcept override { return kernel().instructions; }

 protected:
  [[nodiscard]] const Kernel& kernel() const noexcept { return kernels_[used_]; }

 private:
  std::vector<Kernel> kernels_;
  std::size_t used_ = 0;
};

class Arithmetic final : public LoadOf<ArithmeticKernel> {
 public:
  using LoadOf::LoadOf;
  void run(std::uint64_t units) noexcept override { kernel().run(units * kRoundsPerUnit); }
  [[nodiscard]] double amount_per_unit() const noexcept override {
    return kernel().operations_per_round * static_cast<double>(kRoundsPerUnit);
  }

 private:
  static constexpr std::uint64_t kRoundsPerUnit = 64;
};

class Triad final : public LoadOf<TriadKernel> {
 public:
  Triad(const std::vector<TriadKernel>& kernels, std::size_t bytes)
      : LoadOf(kernels),
        piece_(std::min(whole_steps(bytes), kPieceElements)),
        pieces_((whole_steps(bytes) + piece_ - 1) / piece_),
        memory_(3 * (pieces_ * piece_ * sizeof(double) + kStaggerBytes) + kHugePageBytes) {
    std::byte* const first = memory_.aligned();
    const std::size_t elements = pieces_ * piece_;
    const std::size_t apart = elements * sizeof(double) + kStaggerBytes;
    a_ = reinterpret_cast<double*>(first);
    b_ = reinterpret_cast<double*>(first + apart);
    c_ = reinterpret_cast<double*>(first + 2 * apart);
    std::fill_n(a_, elements, 1.0);
    std::fill_n(b_, elements, 2.0);
    std::fill_n(c_, elements, 0.5);
  }

  void run(std::uint64_t units) noexcept override {
    if (pieces_ == 1) {
      kernel().run(a_, b_, c_, piece_, units);
      return;
    }
    while (units > 0) {
      const std::size_t at = next_ * piece_;
      const std::uint64_t in_a_row = std::min<std::uint64_t>(units, pieces_ - next_);
      kernel().run(a_ + at, b_ + at, c_ + at, in_a_row * piece_, 1);
      next_ = (next_ + in_a_row) % pieces_;
      units -= in_a_row;
    }
  }
  [[nodiscard]] double amount_per_unit() const noexcept override {
    return kTriadBytes * static_cast<double>(piece_);
  }

 private:
  static std::size_t whole_steps(std::size_t bytes) {
    const std::size_t elements = bytes / (3 * sizeof(double));
    return std::max<std::size_t>(1, elements / kTriadStep) * kTriadStep;
  }

  std::size_t piece_;
  std::size_t pieces_;
  Mapping memory_;
  std::size_t next_ = 0;
  double* a_ = nullptr;
  double* b_ = nullptr;
  double* c_ = nullptr;
};

template <class MakeLoad>
std::vector<std::unique_ptr<Load>> made_on_threads(const Team& team, std::size_t kernels,
                                                   const MakeLoad& make) {
  if (kernels == 0) throw std::invalid_argument("a trial needs a kernel");
  if (team.threads == 0) throw std::invalid_argument("a trial needs a thread");
  if (!team.cores.empty() && team.cores.size() != team.threads)
    throw std::invalid_argument("as many cores as threads are needed");
  std::vector<std::unique_ptr<Load>> loads(team.threads);
  run_on_threads(team.threads, team.cores, [&](std::size_t number) { loads[number] = make(); });
  return loads;
}

}  // namespace

Trials::Trials(const std::vector<ArithmeticKernel>& kernels, Team team)
    : clock_(clock::Clock::best()),
      team_(std::move(team)),
      loads_(made_on_threads(team_, kernels.size(), [&] { return std::make_unique<Arithmetic>(kernels); })) {
  use_the_fastest();
}

Trials::Trials(const std::vector<TriadKernel>& kernels, std::size_t bytes_per_thread, Team team)
    : clock_(clock::Clock::best()),
      team_(std::move(team)),
      loads_(made_on_threads(team_, kernels.size(),
                             [&] { return std::make_unique<Triad>(kernels, bytes_per_thread); })) {
  use_the_fastest();
}

Trials::~Trials() = default;

std::string_view Trials::instructions() const noexcept { return loads_.front()->instructions(); }

std::uint64_t Trials::shortest_own_ticks(const std::vector<Stamps>& stamps) {
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  for (const Stamps& each : stamps) {
    for (std::size_t trial = 0; trial < each.begins.size(); ++trial) {
      if (each.ends[trial] > each.begins[trial])
        shortest = std::min(shortest, each.ends[trial] - each.begins[trial]);
    }
  }
  return shortest;
}

// The kernels take turns, so that a disturbance does not meet all trials of one.
void Trials::use_the_fastest() {
  const std::size_t kernels = loads_.front()->kernels();
  std::vector<std::uint64_t> units(kernels);
  std::vector<double> highest(kernels);
  const auto use = [&](std::size_t kernel) {
    for (const auto& load : loads_) load->use(kernel);
    units_ = units[kernel];
  };
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    use(kernel);
    units[kernel] = units_of_a_trial();
  }
  for (int turn = 0; kernels > 1 && turn < kPilotTurns; ++turn) {
    for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
      use(kernel);
      const auto ticks = static_cast<double>(shortest_own_ticks(take(units_, kPilotS, kMostPilotTrials)));
      const double amount = loads_.front()->amount_per_unit() * static_cast<double>(units_);
      highest[kernel] = std::max(highest[kernel], amount / ticks);
    }
  }
  use(static_cast<std::size_t>(std::max_element(highest.begin(), highest.end()) - highest.begin()));
}

std::uint64_t Trials::units_of_a_trial() {
  std::uint64_t units = 1;
  while (true) {
    const std::uint64_t shortest = shortest_own_ticks(take(units, kCalibrationS, kCalibrationTrials));
    const double times = kTrialNs / std::max(1.0, clock_.ns_of(shortest));
    if (times < 1.25) return units;
    // A short trial is mostly the cost of starting.
    units = static_cast<std::uint64_t>(std::ceil(static_cast<double>(units) * std::min(times, 50.0)));
  }
}

std::vector<double> Trials::rates(double seconds) {
  const std::vector<Stamps> stamps = take(units_, seconds, kMostTrials);
  const double amount =
      loads_.front()->amount_per_unit() * static_cast<double>(units_) * static_cast<double>(team_.threads);
  std::vector<double> rates;
  rates.reserve(stamps[0].begins.size());
  for (std::size_t trial = 0; trial < stamps[0].begins.size(); ++trial) {
    std::uint64_t begin = stamps[0].begins[trial];
    std::uint64_t end = stamps[0].ends[trial];
    for (const Stamps& each : stamps) {
      begin = std::min(begin, each.begins[trial]);
      end = std::max(end, each.ends[trial]);
    }
    rates.push_back(amount / (clock_.ns_of(std::max<std::uint64_t>(1, end - begin)) * 1e-9));
  }
  return rates;
}

std::vector<Trials::Stamps> Trials::take(std::uint64_t units, double seconds, std::size_t most) {
  std::vector<Stamps> stamps(team_.threads);
  for (Stamps& each : stamps) {
    each.begins.resize(most);
    each.ends.resize(most);
  }
  SpinBarrier barrier(team_.threads);
  std::atomic<std::size_t> taken{most};
  const std::uint64_t limit_ticks = clock_.ticks_of(1e9 * seconds);
  run_on_threads(team_.threads, team_.cores, [&](std::size_t number) {
    Stamps& own = stamps[number];
    Load& load = *loads_[number];
    load.run(1);  // what the thread's core has in its caches is another's
    std::size_t trial = 0;
    while (true) {
      barrier.wait();
      if (trial == taken.load(std::memory_order_relaxed)) break;
      own.begins[trial] = clock_.start();
      load.run(units);
      own.ends[trial] = clock_.finish();
      ++trial;
      // The first thread decides for all before it arrives at the barrier. A number and not a flag, which a
      // thread that is late for this trial would take for the end before it.
      if (number == 0 && own.ends[trial - 1] - own.begins[0] >= limit_ticks)
        taken.store(trial, std::memory_order_relaxed);
    }
  });
  for (Stamps& each : stamps) {
    each.begins.resize(taken);
    each.ends.resize(taken);
  }
  return stamps;
}

}  // namespace fairlap::roofs
