#include "cuda_link/copy_trials.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>

#include "cuda/activity/spans.hpp"
#include "cuda/device/device_identity.hpp"
#include "cuda/driver/current_context.hpp"
#include "cuda/gate/patience.hpp"
#include "cuda_link/host_node.hpp"

namespace fairlap::cuda_link {

using cuda::BorrowedContext;
using cuda::CurrentContext;
using cuda::Driver;
using cuda::Event;
using cuda::OwnStream;

class CopyLane {
 public:
  explicit CopyLane(const BorrowedContext& context) : context_(context) {}
  CopyLane(const CopyLane&) = delete;  // It holds memory.
  CopyLane& operator=(const CopyLane&) = delete;
  virtual ~CopyLane() = default;

  [[nodiscard]] virtual cuda::CUstream stream() const noexcept = 0;
  virtual void copy() = 0;  // the context is current

  [[nodiscard]] const Event& ended(std::size_t trial) {
    while (ended_.size() <= trial) ended_.push_back(std::make_unique<Event>(context_));
    return *ended_[trial];
  }

 private:
  const BorrowedContext& context_;
  std::vector<std::unique_ptr<Event>> ended_;
};

namespace {

constexpr std::size_t kCopyBytes = std::size_t{32} << 20U;
constexpr double kTrialNs = 2e6;
constexpr std::size_t kTrialsAtATime = 8;
constexpr std::size_t kCalibrationTrials = 3;
constexpr std::size_t kMostTrials = 20'000;
constexpr std::uint32_t kMostCopies = 1U << 20U;
constexpr auto kLongestWait = std::chrono::seconds(60);  // 32 MiB over the slowest link take a tenth of one
constexpr int kFilling = 0x5a;  // pages that were never written to would all be the same one

// Memory of this machine on the node of the device, which is not pinned yet: pinned pages do not move.
class NearPages {
 public:
  NearPages(const BorrowedContext& context, const std::string& sys_folder)
      : memory_(mmap(nullptr, kCopyBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    const std::string address = cuda::identity_of(context.driver(), context.device()).pci_bus_id;
    if (const std::optional<int> node = node_of_device(address, sys_folder))
      static_cast<void>(move_to_node(static_cast<std::byte*>(memory_), kCopyBytes, *node));
    std::memset(memory_, kFilling, kCopyBytes);
  }
  ~NearPages() { munmap(memory_, kCopyBytes); }
  NearPages(const NearPages&) = delete;  // It is a mapping.
  NearPages& operator=(const NearPages&) = delete;

  [[nodiscard]] void* memory() const noexcept { return memory_; }

 private:
  void* memory_;
};

class HostLane final : public CopyLane {
 public:
  HostLane(const BorrowedContext& context, bool to_device, const std::string& sys_folder)
      : CopyLane(context),
        driver_(context.driver()),
        to_device_(to_device),
        pages_(context, sys_folder),
        pinned_(context, pages_.memory(), kCopyBytes),
        memory_(context, kCopyBytes),
        stream_(context) {}

  [[nodiscard]] cuda::CUstream stream() const noexcept override { return stream_.handle(); }
  void copy() override {
    if (to_device_) {
      driver_.cuMemcpyHtoDAsync(memory_.handle(), static_cast<const void*>(pages_.memory()), kCopyBytes,
                                stream());
    } else {
      driver_.cuMemcpyDtoHAsync(pages_.memory(), memory_.handle(), kCopyBytes, stream());
    }
  }

 private:
  const Driver& driver_;
  bool to_device_;
  NearPages pages_;
  cuda::RegisteredMemory pinned_;
  cuda::DeviceMemory memory_;
  cuda::PrivateStream stream_;
};

// That what runs in a context may use the memory of another. It is given back where it was not there before.
class PeerAccess {
 public:
  PeerAccess(const BorrowedContext& context, const BorrowedContext& peer) : context_(context), peer_(peer) {
    const CurrentContext current(context.driver(), context.handle());
    const cuda::CUresult enabled = context.driver().cuCtxEnablePeerAccess.code_of(peer.handle(), 0U);
    is_ours_ = enabled == cuda::CUDA_SUCCESS;
    if (!is_ours_ && enabled != cuda::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      context.driver().cuCtxEnablePeerAccess.fail(enabled);
  }
  ~PeerAccess() {
    if (!is_ours_) return;
    const Driver& driver = context_.driver();
    if (driver.cuCtxPushCurrent.code_of(context_.handle()) != cuda::CUDA_SUCCESS) return;
    static_cast<void>(driver.cuCtxDisablePeerAccess.code_of(peer_.handle()));
    cuda::CUcontext popped = nullptr;
    static_cast<void>(driver.cuCtxPopCurrent.code_of(&popped));
  }
  PeerAccess(const PeerAccess&) = delete;  // It is given back once.
  PeerAccess& operator=(const PeerAccess&) = delete;

 private:
  const BorrowedContext& context_;
  const BorrowedContext& peer_;
  bool is_ours_ = false;
};

bool can_access(const BorrowedContext& context, const BorrowedContext& peer) {
  int can = 0;
  context.driver().cuDeviceCanAccessPeer(&can, context.device(), peer.device());
  return can != 0;
}

class PeerLane final : public CopyLane {
 public:
  PeerLane(const BorrowedContext& from, const BorrowedContext& to)
      : CopyLane(from),
        from_(from),
        to_(to),
        source_(from, kCopyBytes),
        target_(to, kCopyBytes),
        stream_(from) {
    if (!can_access(from, to) || !can_access(to, from)) return;
    there_.emplace(from, to);
    back_.emplace(to, from);
  }

  [[nodiscard]] bool is_direct() const noexcept { return there_.has_value(); }
  [[nodiscard]] cuda::CUstream stream() const noexcept override { return stream_.handle(); }
  void copy() override {
    from_.driver().cuMemcpyPeerAsync(target_.handle(), to_.handle(), source_.handle(), from_.handle(),
                                     kCopyBytes, stream());
  }

 private:
  const BorrowedContext& from_;
  const BorrowedContext& to_;
  cuda::DeviceMemory source_;
  cuda::DeviceMemory target_;
  cuda::PrivateStream stream_;
  std::optional<PeerAccess> there_;
  std::optional<PeerAccess> back_;
};

}  // namespace

CopyTrials::CopyTrials(const OwnStream& stream, CopyWay way, const std::string& sys_folder)
    : stream_(stream) {
  for (const bool to_device : {true, false}) {
    if (way == (to_device ? CopyWay::from_device : CopyWay::to_device)) continue;
    lanes_.push_back(std::make_unique<HostLane>(stream.context(), to_device, sys_folder));
  }
  copies_ = copies_of_a_trial();
}

CopyTrials::CopyTrials(const OwnStream& from, const OwnStream& to) : stream_(from) {
  auto lane = std::make_unique<PeerLane>(from.context(), to.context());
  is_direct_ = lane->is_direct();
  lanes_.push_back(std::move(lane));
  copies_ = copies_of_a_trial();
}

CopyTrials::~CopyTrials() = default;

std::uint32_t CopyTrials::copies_of_a_trial() {
  const std::vector<double> spans = spans_ns(1, kCalibrationTrials);
  const double copies = std::ceil(kTrialNs / *std::min_element(spans.begin(), spans.end()));
  if (copies > kMostCopies) throw cuda::Unavailable("a copy takes no time on this device");
  return static_cast<std::uint32_t>(copies);
}

std::vector<double> CopyTrials::rates(double seconds) {
  const double bytes = static_cast<double>(kCopyBytes) * static_cast<double>(lanes_.size()) * copies_;
  std::vector<double> rates;
  double taken_ns = 0.0;
  do {
    for (const double span_ns : spans_ns(copies_, kTrialsAtATime)) {
      taken_ns += span_ns;
      rates.push_back(bytes / (span_ns * 1e-9));
    }
  } while (taken_ns < seconds * 1e9 && rates.size() < kMostTrials);
  return rates;
}

// One more trial goes before them, which wakes a link that saved power.
std::vector<double> CopyTrials::spans_ns(std::uint32_t copies, std::size_t trials) {
  const Driver& driver = stream_.context().driver();
  const CurrentContext current(driver, stream_.context().handle());
  while (begun_.size() <= trials) begun_.push_back(std::make_unique<Event>(stream_.context()));
  auto* const first = lanes_.front()->stream();
  for (std::size_t trial = 0; trial <= trials; ++trial) {
    for (const auto& lane : lanes_) {
      if (trial > 0 && lane->stream() != first)
        driver.cuStreamWaitEvent(first, lane->ended(trial - 1).handle(), 0U);
    }
    driver.cuEventRecord(begun_[trial]->handle(), first);
    for (const auto& lane : lanes_) {
      if (lane->stream() != first) driver.cuStreamWaitEvent(lane->stream(), begun_[trial]->handle(), 0U);
    }
    for (std::uint32_t copy = 0; copy < copies; ++copy) {
      for (const auto& lane : lanes_) lane->copy();
    }
    for (const auto& lane : lanes_) driver.cuEventRecord(lane->ended(trial).handle(), lane->stream());
  }
  cuda::Patience patience(kLongestWait);
  for (const auto& lane : lanes_) {
    while (!cuda::is_done(driver, lane->ended(trials).handle())) {
      if (!patience.wait_a_little()) throw cuda::Unavailable("the device does not come to rest");
    }
  }
  std::vector<double> spans;
  spans.reserve(trials);
  for (std::size_t trial = 1; trial <= trials; ++trial) {
    double longest_ns = 1.0;
    for (const auto& lane : lanes_) {
      longest_ns =
          std::max(longest_ns, cuda::span_ns(driver, begun_[trial]->handle(), lane->ended(trial).handle()));
    }
    spans.push_back(longest_ns);
  }
  return spans;
}

}  // namespace fairlap::cuda_link
