#include "telemetry/nvml/nvml_source.hpp"

#include <algorithm>

#include "clock/system_clock.hpp"

namespace fairlap::telemetry {
namespace {

constexpr std::uint32_t kLongestPause = 64;
constexpr double kWrapOf32Bits = 4294967296.0;

class NoNvml final : public Source {
 public:
  explicit NoNvml(std::string reason) : Source("nvml") { be_absent(std::move(reason)); }
  void read(Lane, Recorder&) noexcept override {}
};

// On an H100 with driver 580 the energy counter takes 3.3 ms and some counters of slowing down 0.6 ms each;
// most fields take one microsecond.
constexpr std::int64_t kExpensiveNs = 100'000;

// A call of each, timed at its second time: the first may open something.
template <class Call>
Lane lane_of(Lane planned, Call&& call) {
  call();
  const std::int64_t before_ns = clock::monotonic_now_ns();
  call();
  const bool expensive = clock::monotonic_now_ns() - before_ns > kExpensiveNs;
  return expensive && planned == Lane::slow ? Lane::rare : planned;
}

bool is_loss(nvmlReturn_t code) noexcept {
  return code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED;
}

}  // namespace

bool NvmlSource::Patience::due() noexcept {
  if (rounds_left == 0) return true;
  --rounds_left;
  return false;
}

void NvmlSource::Patience::failed() noexcept {
  pause = std::clamp(2 * pause, 1U, kLongestPause);
  rounds_left = pause;
}

NvmlSource::NvmlSource(std::shared_ptr<NvmlSession> session, unsigned int index)
    : Source("nvml:" + std::to_string(index)), session_(std::move(session)) {
  const nvmlReturn_t code = session_->call().nvmlDeviceGetHandleByIndex_v2(index, &device_);
  if (code != NVML_SUCCESS) {
    be_absent("device " + std::to_string(index) + " cannot be opened: " + session_->text_of(code));
    return;
  }
  find_field_values();
  find_getters();
  keep_an_only_counter();
  values_.resize(asked_.size());
  due_.reserve(asked_.size());
  conclude();
}

void NvmlSource::find_field_values() {
  const NvmlFunctions& nvml = session_->call();
  int cuda = 0;
  if (nvml.nvmlSystemGetCudaDriverVersion_v2 != nullptr) nvml.nvmlSystemGetCudaDriverVersion_v2(&cuda);
  for (const NvmlFieldValue& each : nvml_field_values()) {
    Field field{.name = each.name, .kind = each.kind, .lane = each.lane, .absent_because = ""};
    nvmlFieldValue_t value{};
    value.fieldId = each.id;
    if (cuda < each.since_cuda) {
      field.absent_because =
          "it needs a driver for CUDA " + std::to_string(each.since_cuda / 1000) + " or later";
    } else if (nvml.nvmlDeviceGetFieldValues == nullptr) {
      field.absent_because = session_->text_of(NVML_ERROR_FUNCTION_NOT_FOUND);
    } else {
      nvmlReturn_t code = NVML_SUCCESS;
      field.lane = lane_of(each.lane, [&] { code = nvml.nvmlDeviceGetFieldValues(device_, 1, &value); });
      if (code == NVML_SUCCESS) code = value.nvmlReturn;
      if (code != NVML_SUCCESS) field.absent_because = session_->text_of(code);
    }
    // Energy grows by centuries before 64 bits are full; bytes over PCIe are counted in 32.
    const bool wraps = each.kind == FieldKind::counter && value.valueType == NVML_VALUE_TYPE_UNSIGNED_INT;
    if (wraps) field.wraps_at = kWrapOf32Bits * each.scale;
    const bool present = field.present();
    const Lane lane = field.lane;
    const std::uint32_t number = add(std::move(field));
    if (present) asked_.push_back({&each, number, lane, {}});
  }
}

void NvmlSource::find_getters() {
  for (const NvmlGetter& getter : nvml_getters()) {
    const auto known = std::find_if(fields().begin(), fields().end(),
                                    [&](const Field& field) { return field.name == getter.names[0]; });
    if (known != fields().end() && known->present()) continue;
    double values[NvmlGetter::kMostValues] = {};
    nvmlReturn_t code = NVML_SUCCESS;
    const Lane lane = lane_of(getter.lane, [&] { code = getter.read(session_->call(), device_, values); });
    const std::string reason = code == NVML_SUCCESS ? "" : session_->text_of(code);
    Called called{&getter, {}, lane, {}};
    if (known != fields().end()) {
      called.fields[0] = static_cast<std::uint32_t>(known - fields().begin());
      if (code == NVML_SUCCESS) field(called.fields[0]).absent_because.clear();
      field(called.fields[0]).lane = lane;
    } else {
      for (int i = 0; i < NvmlGetter::kMostValues && getter.names[i] != nullptr; ++i) {
        called.fields[i] =
            add({.name = getter.names[i], .kind = getter.kind, .lane = lane, .absent_because = reason});
      }
    }
    if (code == NVML_SUCCESS) called_.push_back(called);
  }
}

// Where power cannot be read, its counter is all that tells the energy of a region, however expensive it is.
void NvmlSource::keep_an_only_counter() {
  const auto is_named = [this](std::uint32_t number, const char* name) {
    return fields()[number].name == name;
  };
  for (std::uint32_t number = 0; number < fields().size(); ++number) {
    if (is_named(number, "power_instant_w") && fields()[number].present()) return;
  }
  for (Asked& asked : asked_) {
    if (is_named(asked.field, "energy_j")) field(asked.field).lane = asked.lane = asked.what->lane;
  }
  for (Called& called : called_) {
    if (is_named(called.fields[0], "energy_j"))
      field(called.fields[0]).lane = called.lane = called.what->lane;
  }
}

void NvmlSource::read(Lane lane, Recorder& recorder) noexcept {
  if (lost_ || !present()) return;
  read_field_values(lane, recorder);
  if (!lost_) read_getters(lane, recorder);
}

void NvmlSource::read_field_values(Lane lane, Recorder& recorder) noexcept {
  due_.clear();
  for (Asked& asked : asked_) {
    if (asked.lane != lane || !asked.patience.due()) continue;
    ask_for(asked);
  }
  ask_those_due(recorder);
}

void NvmlSource::ask_for(Asked& asked) noexcept {
  values_[due_.size()] = {};
  values_[due_.size()].fieldId = asked.what->id;
  due_.push_back(&asked);
}

void NvmlSource::ask_those_due(Recorder& recorder) noexcept {
  if (due_.empty()) return;
  nvmlReturn_t code = NVML_SUCCESS;
  const Moment when = recorder.timed([&] {
    code = session_->call().nvmlDeviceGetFieldValues(device_, static_cast<int>(due_.size()), values_.data());
  });
  for (std::size_t i = 0; i < due_.size(); ++i) {
    const nvmlReturn_t own = code != NVML_SUCCESS ? code : values_[i].nvmlReturn;
    if (is_loss(own)) return give_up(when, own, recorder);
    if (own == NVML_SUCCESS) {
      recorder.put(when, due_[i]->field, value_of(values_[i]) * due_[i]->what->scale, values_[i].timestamp);
      due_[i]->patience.succeeded();
    } else {
      recorder.put_failed(when, due_[i]->field, own);
      due_[i]->patience.failed();
    }
  }
}

void NvmlSource::read_getters(Lane lane, Recorder& recorder) noexcept {
  for (Called& called : called_) {
    if (called.lane != lane || !called.patience.due()) continue;
    call(called, recorder);
    if (lost_) return;
  }
}

void NvmlSource::call(Called& called, Recorder& recorder) noexcept {
  double values[NvmlGetter::kMostValues] = {};
  nvmlReturn_t code = NVML_SUCCESS;
  const Moment when = recorder.timed([&] { code = called.what->read(session_->call(), device_, values); });
  if (is_loss(code)) return give_up(when, code, recorder);
  for (int i = 0; i < NvmlGetter::kMostValues && called.what->names[i] != nullptr; ++i) {
    if (code == NVML_SUCCESS)
      recorder.put(when, called.fields[i], values[i]);
    else
      recorder.put_failed(when, called.fields[i], code);
  }
  if (code == NVML_SUCCESS)
    called.patience.succeeded();
  else
    called.patience.failed();
}

void NvmlSource::read_alone(std::uint32_t field, Recorder& recorder) noexcept {
  if (lost_) return;
  for (Asked& asked : asked_) {
    if (asked.field != field) continue;
    due_.clear();
    ask_for(asked);
    return ask_those_due(recorder);
  }
  for (Called& called : called_) {
    for (int i = 0; i < NvmlGetter::kMostValues && called.what->names[i] != nullptr; ++i) {
      if (called.fields[i] == field) return call(called, recorder);
    }
  }
}

void NvmlSource::give_up(const Moment& when, nvmlReturn_t code, Recorder& recorder) noexcept {
  lost_ = true;
  for (std::uint32_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].present()) recorder.put_lost(when, i, code);
  }
}

std::vector<std::unique_ptr<Source>> nvml_sources(const std::string& library_path) {
  std::vector<std::unique_ptr<Source>> sources;
  std::string reason;
  const std::shared_ptr<NvmlSession> session = NvmlSession::open(library_path, reason);
  if (session != nullptr) {
    unsigned int count = 0;
    const nvmlReturn_t code = session->call().nvmlDeviceGetCount_v2(&count);
    if (code != NVML_SUCCESS)
      reason = "devices cannot be counted: " + session->text_of(code);
    else if (count == 0)
      reason = "NVML lists no device";
    for (unsigned int i = 0; i < count && code == NVML_SUCCESS; ++i) {
      sources.push_back(std::make_unique<NvmlSource>(session, i));
    }
  }
  if (sources.empty()) sources.push_back(std::make_unique<NoNvml>(reason));
  return sources;
}

}  // namespace fairlap::telemetry
