#pragma once

#include <memory>
#include <string>
#include <vector>

#include "telemetry/nvml/nvml_fields.hpp"
#include "telemetry/nvml/nvml_library.hpp"
#include "telemetry/sampling/source.hpp"

namespace fairlap::telemetry {

// One NVIDIA device through NVML. What the device does not support is absent. What fails later is read half
// as often after each failure, since failing calls hold the driver's locks as well; it comes back with the
// first success. A device that is lost is not asked again.
class NvmlSource final : public Source {
 public:
  NvmlSource(std::shared_ptr<NvmlSession> session, unsigned int index);
  void read(Lane lane, Recorder& recorder) noexcept override;
  void read_alone(std::uint32_t field, Recorder& recorder) noexcept override;
  [[nodiscard]] std::string text_of(std::int32_t code) const override { return session_->text_of(code); }
  [[nodiscard]] bool lost() const noexcept { return lost_; }

 private:
  // Rounds to leave out after failures in a row.
  struct Patience {
    std::uint32_t pause = 0;
    std::uint32_t rounds_left = 0;
    [[nodiscard]] bool due() noexcept;
    void failed() noexcept;
    void succeeded() noexcept { pause = rounds_left = 0; }
  };
  struct Asked {
    const NvmlFieldValue* what;
    std::uint32_t field;
    Lane lane;
    Patience patience;
  };
  struct Called {
    const NvmlGetter* what;
    std::uint32_t fields[NvmlGetter::kMostValues];
    Lane lane;
    Patience patience;
  };

  void find_field_values();
  void find_getters();
  void keep_an_only_counter();
  void read_field_values(Lane lane, Recorder& recorder) noexcept;
  void ask_for(Asked& asked) noexcept;
  void ask_those_due(Recorder& recorder) noexcept;
  void read_getters(Lane lane, Recorder& recorder) noexcept;
  void call(Called& called, Recorder& recorder) noexcept;
  void give_up(const Moment& when, nvmlReturn_t code, Recorder& recorder) noexcept;

  std::shared_ptr<NvmlSession> session_;
  nvmlDevice_t device_ = nullptr;
  std::vector<Asked> asked_;
  std::vector<Called> called_;
  std::vector<nvmlFieldValue_t> values_;  // room for one call
  std::vector<Asked*> due_;               // the fields that the values belong to
  bool lost_ = false;
};

// One source for each device of this machine; or a single absent one with the reason.
std::vector<std::unique_ptr<Source>> nvml_sources(const std::string& library_path = "");

}  // namespace fairlap::telemetry
