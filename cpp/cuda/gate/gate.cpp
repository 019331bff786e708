#include "cuda/gate/gate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "cuda/gate/patience.hpp"

namespace fairlap::cuda {
namespace {

constexpr auto kProbeDelay = std::chrono::microseconds(200);
constexpr auto kProbeLimit = std::chrono::seconds(2);
constexpr int kProbes = 5;

}  // namespace

Gate::Gate(const BorrowedContext& context, GateKind kind, const Kernels* kernels,
           std::chrono::nanoseconds limit)
    : driver_(context.driver()),
      kind_(kind),
      kernels_(kernels),
      limit_(limit),
      flag_(context, 2 * sizeof(std::uint32_t)),
      words_(static_cast<std::uint32_t*>(flag_.handle())) {
  words_[0] = words_[1] = 0;
  watchdog_ = std::make_unique<Watchdog>([this](std::uint32_t ticket) { release(ticket); }, limit);
}

Gate::~Gate() { release(ticket_); }

void Gate::close(CUstream stream) {
  if (++ticket_ == 0) ticket_ = 1;  // 0 means "none" to the watchdog.
  watchdog_->arm(ticket_);
  try {
    if (kind_ == GateKind::stream_wait) {
      driver_.cuStreamWaitValue32(stream, flag_.on_device(), ticket_, CU_STREAM_WAIT_VALUE_GEQ);
    } else {
      kernels_->launch_spin_gate(stream, flag_.on_device(), ticket_,
                                 static_cast<std::uint64_t>(limit_.count()) * 3 / 2);
    }
  } catch (...) {
    static_cast<void>(open());
    throw;
  }
}

bool Gate::open() noexcept {
  release(ticket_);
  watchdog_->disarm();
  const std::uint32_t gave_up = std::atomic_ref(words_[1]).load();
  return !watchdog_->released(ticket_) && gave_up != ticket_;
}

void Gate::release(std::uint32_t ticket) noexcept {
  const std::atomic_ref<std::uint32_t> opened(words_[0]);
  std::uint32_t last = opened.load();
  while (static_cast<std::int32_t>(ticket - last) > 0 && !opened.compare_exchange_weak(last, ticket)) {
  }
}

GateProbe probe_gate(const BorrowedStream& borrowed, GateKind kind, const Kernels* kernels) {
  const BorrowedContext& context = borrowed.context();
  const Driver& driver = context.driver();
  if (kind == GateKind::stream_wait && !driver.cuStreamWaitValue32.present()) {
    return {false, driver.cuStreamWaitValue32.absent_because()};
  }
  if (kind == GateKind::spin && kernels == nullptr) return {false, "the device code could not be loaded"};
  try {
    PrivateStream own(context);
    const bool is_default = is_default_stream(reinterpret_cast<std::uintptr_t>(borrowed.handle()));
    auto* const stream = is_default ? borrowed.handle() : own.handle();
    Event passed(context);
    Gate gate(context, kind, kernels, kProbeLimit);
    const CurrentContext current(driver, context.handle());
    std::array<double, kProbes> releases{};
    for (double& release_ns : releases) {
      gate.close(stream);
      driver.cuEventRecord(passed.handle(), stream);
      std::this_thread::sleep_for(kProbeDelay);
      const CUresult held = driver.cuEventQuery.code_of(passed.handle());
      const auto opened_at = std::chrono::steady_clock::now();
      if (!gate.open()) return {false, "it was open before it was opened"};
      if (held == CUDA_SUCCESS) return {false, "it does not hold the stream"};
      if (held != CUDA_ERROR_NOT_READY) driver.cuEventQuery.fail(held);
      Patience patience(kProbeLimit);
      while (!is_done(driver, passed.handle())) {
        if (patience.wait_a_little()) continue;
        // Whatever still waits on the flag keeps its memory; the stream goes when it is let go.
        gate.abandon();
        own.abandon();
        passed.abandon();
        return {false, "it does not let the stream go"};
      }
      release_ns =
          std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - opened_at).count();
    }
    std::nth_element(releases.begin(), releases.begin() + kProbes / 2, releases.end());
    return {true, "", releases[kProbes / 2]};
  } catch (const CudaError& error) {
    if (breaks_the_context(error.code())) throw;
    return {false, error.what()};
  }
}

}  // namespace fairlap::cuda
