#include "cuda/roofs/roof_trials.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "cuda/activity/spans.hpp"
#include "cuda/gate/patience.hpp"
#include "cuda/sampling/cache_flush.hpp"

namespace fairlap::cuda {

class DeviceLoad {
 public:
  DeviceLoad() = default;
  DeviceLoad(const DeviceLoad&) = delete;  // It holds memory and code of the device.
  DeviceLoad& operator=(const DeviceLoad&) = delete;
  virtual ~DeviceLoad() = default;

  [[nodiscard]] virtual std::size_t kernels() const noexcept = 0;
  virtual void use(std::size_t kernel) noexcept = 0;
  [[nodiscard]] virtual std::string instructions() const = 0;
  [[nodiscard]] virtual double amount_per_unit() const noexcept = 0;  // operations or bytes
  virtual void launch(std::uint32_t units) = 0;                       // the context is current
};

namespace {

constexpr double kTrialNs = 2e6;
constexpr std::size_t kTrialsAtATime = 8;
constexpr std::size_t kCalibrationTrials = 3;
constexpr int kPilotTurns = 3;
constexpr std::size_t kMostTrials = 20'000;
constexpr std::uint32_t kMostUnits = 1U << 30U;
constexpr auto kLongestWait = std::chrono::seconds(30);
constexpr unsigned int kTriadThreads = 256, kTriadBlocks = 8;
constexpr std::uint32_t kOne = 0x3f800000;  // 1 in fp32
constexpr std::uint32_t kRoundsOfACheck = 2;

unsigned int multiprocessors_of(const OwnStream& stream) {
  return static_cast<unsigned int>(device_attribute(stream.context().driver(), stream.context().device(),
                                                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}

// Device code of one entry.
class LoadedCode : public Owned<CUmodule> {
 public:
  LoadedCode(const OwnStream& stream, const std::string& code, const char* entry)
      : Owned(stream.context()), driver_(stream.context().driver()), stream_(stream.handle()) {
    make([&](const Driver& driver, CUmodule& module) {
      driver.cuModuleLoadData(&module, static_cast<const void*>(code.c_str()));
      if (const CUresult found = driver.cuModuleGetFunction.code_of(&function_, module, entry);
          found != CUDA_SUCCESS) {
        static_cast<void>(driver.cuModuleUnload.code_of(module));
        driver.cuModuleGetFunction.fail(found);
      }
    });
  }
  ~LoadedCode() {
    destroy([](const Driver& driver, CUmodule module) { return driver.cuModuleUnload.code_of(module); });
  }

  void launch(unsigned int blocks, unsigned int threads, void** parameters) const {
    driver_.cuLaunchKernel(function_, blocks, 1U, 1U, threads, 1U, 1U, 0U, stream_, parameters,
                           static_cast<void**>(nullptr));
  }

 private:
  const Driver& driver_;
  CUstream stream_;
  CUfunction function_ = nullptr;
};

void wait_for(const OwnStream& stream) {
  const Driver& driver = stream.context().driver();
  const Event end(stream.context());
  driver.cuEventRecord(end.handle(), stream.handle());
  Patience patience(kLongestWait);
  while (!is_done(driver, end.handle())) {
    if (!patience.wait_a_little()) throw Unavailable("the device does not come to rest");
  }
}

// Multiplies ones on the whole device, and throws Unavailable where a sum is not their number: what computes
// something else than it is said to may be faster.
void require_right_sums(const OwnStream& stream, const RoofKernel& kernel, unsigned int blocks) {
  const LoadedCode code(stream, check_code_of(kernel), kRoofCheckEntry);
  const Driver& driver = stream.context().driver();
  const CurrentContext current(driver, stream.context().handle());
  const DeviceMemory out(stream.context(), sizeof(std::uint32_t[2]));
  driver.cuMemsetD32Async(out.handle(), 0U, std::size_t{2}, stream.handle());
  std::uint32_t rounds = kRoundsOfACheck;
  std::uint32_t expected =
      kernel.count(rounds * static_cast<std::uint32_t>(kernel.repetitions() * kernel.depth()));
  CUdeviceptr address = out.handle();
  std::uint32_t one = kernel.one();
  void* parameters[] = {&rounds, &expected, &address, &one};
  code.launch(blocks, kernel.threads_of_a_block(), parameters);
  std::uint32_t found[2] = {};
  driver.cuMemcpyDtoHAsync(static_cast<void*>(found), out.handle(), sizeof found, stream.handle());
  wait_for(stream);
  const std::uint32_t all = blocks * kernel.threads_of_a_block() * static_cast<std::uint32_t>(kernel.sums());
  if (found[0] != 0 || found[1] != all)
    throw Unavailable("of " + std::to_string(all) + " sums of " + std::string(kernel.instructions) + ", " +
                      std::to_string(all - found[1] + found[0]) + " are wrong on this device");
}

class DeviceArithmetic final : public DeviceLoad {
 public:
  DeviceArithmetic(const OwnStream& stream, const std::vector<RoofKernel>& kernels)
      : kernels_(kernels), multiprocessors_(multiprocessors_of(stream)), out_(stream.context(), kOutBytes) {
    for (const RoofKernel& kernel : kernels_) {
      try {
        loaded_.push_back(std::make_unique<LoadedCode>(stream, code_of(kernel), kArithmeticRoofEntry));
        require_right_sums(stream, kernel, blocks_of(kernel));
      } catch (const CudaError& error) {
        if (breaks_the_context(error.code())) throw;
        throw Unavailable("the kernel of " + std::string(kernel.instructions) +
                          " could not be loaded: " + error.what());
      }
    }
  }

  [[nodiscard]] std::size_t kernels() const noexcept override { return kernels_.size(); }
  void use(std::size_t kernel) noexcept override { used_ = kernel; }
  [[nodiscard]] std::string instructions() const override {
    return std::string(kernels_[used_].instructions);
  }
  [[nodiscard]] double amount_per_unit() const noexcept override {
    return kernels_[used_].operations_of_a_round() * blocks();
  }
  void launch(std::uint32_t units) override {
    std::uint32_t never = 0;
    CUdeviceptr out = out_.handle();
    void* parameters[] = {&units, &never, &out};
    loaded_[used_]->launch(blocks(), kernels_[used_].threads_of_a_block(), parameters);
  }

 private:
  static constexpr std::size_t kOutBytes = 16;

  [[nodiscard]] unsigned int blocks_of(const RoofKernel& kernel) const noexcept {
    return multiprocessors_ * kernel.blocks_of_a_multiprocessor();
  }
  [[nodiscard]] unsigned int blocks() const noexcept { return blocks_of(kernels_[used_]); }

  std::vector<RoofKernel> kernels_;
  unsigned int multiprocessors_;
  DeviceMemory out_;
  std::vector<std::unique_ptr<LoadedCode>> loaded_;
  std::size_t used_ = 0;
};

class DeviceTriad final : public DeviceLoad {
 public:
  DeviceTriad(const OwnStream& stream, std::size_t bytes)
      : vectors_(static_cast<std::uint32_t>(std::clamp<std::size_t>(
            bytes / 3 / kTriadVectorBytes, 1, std::numeric_limits<std::int32_t>::max()))),
        blocks_(multiprocessors_of(stream) * kTriadBlocks),
        code_(stream, kTriadRoofCode, kTriadRoofEntry),
        a_(stream.context(), array_bytes()),
        b_(stream.context(), array_bytes()),
        c_(stream.context(), array_bytes()) {
    const Driver& driver = stream.context().driver();
    const CurrentContext current(driver, stream.context().handle());
    for (const DeviceMemory* array : {&a_, &b_, &c_})
      driver.cuMemsetD32Async(array->handle(), kOne, array_bytes() / sizeof kOne, stream.handle());
  }

  [[nodiscard]] std::size_t kernels() const noexcept override { return 1; }
  void use(std::size_t /*kernel*/) noexcept override {}
  [[nodiscard]] std::string instructions() const override { return "ld.v4.f32, past L1"; }
  [[nodiscard]] double amount_per_unit() const noexcept override { return kTriadRoofBytes * vectors_; }
  void launch(std::uint32_t units) override {
    CUdeviceptr a = a_.handle(), b = b_.handle(), c = c_.handle();
    std::uint32_t vectors = vectors_;
    void* parameters[] = {&a, &b, &c, &vectors, &units};
    code_.launch(blocks_, kTriadThreads, parameters);
  }

 private:
  [[nodiscard]] std::size_t array_bytes() const noexcept { return vectors_ * kTriadVectorBytes; }

  std::uint32_t vectors_;
  unsigned int blocks_;
  LoadedCode code_;
  DeviceMemory a_;
  DeviceMemory b_;
  DeviceMemory c_;
};

}  // namespace

DeviceTrials::DeviceTrials(const OwnStream& stream, const std::vector<RoofKernel>& kernels)
    : stream_(stream) {
  if (kernels.empty()) throw std::invalid_argument("a trial needs a kernel");
  load_ = std::make_unique<DeviceArithmetic>(stream, kernels);
  use_the_fastest();
}

DeviceTrials::DeviceTrials(const OwnStream& stream, std::size_t bytes)
    : stream_(stream), load_(std::make_unique<DeviceTriad>(stream, bytes)) {
  use_the_fastest();
}

DeviceTrials::~DeviceTrials() = default;

std::string DeviceTrials::instructions() const { return load_->instructions(); }

// The kernels take turns, so that a change of the device's clock does not meet all trials of one.
void DeviceTrials::use_the_fastest() {
  const std::size_t kernels = load_->kernels();
  std::vector<std::uint32_t> units(kernels);
  std::vector<double> highest(kernels);
  const auto use = [&](std::size_t kernel) {
    load_->use(kernel);
    units_ = units[kernel];
  };
  for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
    load_->use(kernel);
    units[kernel] = units_of_a_trial();
  }
  for (int turn = 0; kernels > 1 && turn < kPilotTurns; ++turn) {
    for (std::size_t kernel = 0; kernel < kernels; ++kernel) {
      use(kernel);
      for (const double span_ns : spans_ns(units_, kTrialsAtATime))
        highest[kernel] = std::max(highest[kernel], load_->amount_per_unit() * units_ / span_ns);
    }
  }
  use(static_cast<std::size_t>(std::max_element(highest.begin(), highest.end()) - highest.begin()));
}

std::uint32_t DeviceTrials::units_of_a_trial() {
  std::uint32_t units = 1;
  while (true) {
    const std::vector<double> spans = spans_ns(units, kCalibrationTrials);
    const double times = kTrialNs / std::max(1.0, *std::min_element(spans.begin(), spans.end()));
    if (times < 1.25) return units;
    // A short trial is mostly the cost of starting.
    const double wanted = std::ceil(units * std::min(times, 50.0));
    if (wanted > kMostUnits)
      throw Unavailable("a kernel of " + load_->instructions() + " takes no time on this device");
    units = static_cast<std::uint32_t>(wanted);
  }
}

std::vector<double> DeviceTrials::rates(double seconds) {
  std::vector<double> rates;
  double taken_ns = 0.0;
  do {
    for (const double span_ns : spans_ns(units_, kTrialsAtATime)) {
      taken_ns += span_ns;
      rates.push_back(load_->amount_per_unit() * units_ / (span_ns * 1e-9));
    }
  } while (taken_ns < seconds * 1e9 && rates.size() < kMostTrials);
  return rates;
}

// One more trial goes before them: what the caches hold belongs to another load.
std::vector<double> DeviceTrials::spans_ns(std::uint32_t units, std::size_t trials) {
  const Driver& driver = stream_.context().driver();
  const CurrentContext current(driver, stream_.context().handle());
  while (events_.size() <= trials) events_.push_back(std::make_unique<Event>(stream_.context()));
  load_->launch(units);
  driver.cuEventRecord(events_[0]->handle(), stream_.handle());
  for (std::size_t trial = 1; trial <= trials; ++trial) {
    load_->launch(units);
    driver.cuEventRecord(events_[trial]->handle(), stream_.handle());
  }
  Patience patience(kLongestWait);
  while (!is_done(driver, events_[trials]->handle())) {
    if (!patience.wait_a_little()) throw Unavailable("the device does not come to rest");
  }
  std::vector<double> spans;
  spans.reserve(trials);
  for (std::size_t trial = 1; trial <= trials; ++trial)
    spans.push_back(std::max(1.0, span_ns(driver, events_[trial - 1]->handle(), events_[trial]->handle())));
  return spans;
}

}  // namespace fairlap::cuda
