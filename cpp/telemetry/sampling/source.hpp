#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "telemetry/sampling/recorder.hpp"

namespace fairlap::telemetry {

enum class FieldKind {
  gauge,    // what holds at this moment
  counter,  // a total that grows
};

// The fast lane is for what changes within a region, such as power; the slow one for what the device counts
// and sets itself; the rare one for what is expensive to read or hardly changes.
enum class Lane { fast, slow, rare };

// One number of a source. The name ends in its unit.
struct Field {
  std::string name;
  FieldKind kind = FieldKind::gauge;
  Lane lane = Lane::slow;
  double wraps_at = 0.0;       // a counter starts again from 0 when it would reach this; 0: it never wraps
  std::string absent_because;  // empty: present

  [[nodiscard]] bool present() const noexcept { return absent_because.empty(); }
};

// Something that can be read while the program runs. It finds out once, when made, what is there and why the
// rest is not; from then on reading neither allocates nor throws.
class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;  // It owns open files or a library's handle.
  Source& operator=(const Source&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }

  // Why the whole source is absent; empty when at least one field is there.
  [[nodiscard]] const std::string& absent_because() const noexcept { return absent_because_; }
  [[nodiscard]] bool present() const noexcept { return absent_because_.empty(); }
  [[nodiscard]] bool has(Lane lane) const noexcept {
    for (const Field& field : fields_) {
      if (field.present() && field.lane == lane) return true;
    }
    return false;
  }

  // Reads what belongs to the lane. Called by one thread only.
  virtual void read(Lane lane, Recorder& recorder) noexcept = 0;

  // Reads one present field, without its neighbours where the source can do that; for calibration.
  virtual void read_alone(std::uint32_t field, Recorder& recorder) noexcept {
    read(fields_[field].lane, recorder);
  }

  // What a failed reading's code means.
  [[nodiscard]] virtual std::string text_of(std::int32_t code) const;

 protected:
  explicit Source(std::string name) : name_(std::move(name)) {}

  // The number by which readings refer to the field.
  std::uint32_t add(Field field);
  Field& field(std::uint32_t number) { return fields_.at(number); }

  // To be called once all fields are known: absent as a whole when no field is there.
  void conclude();
  void be_absent(std::string reason) { absent_because_ = std::move(reason); }

 private:
  std::string name_;
  std::vector<Field> fields_;
  std::string absent_because_;
};

}  // namespace fairlap::telemetry
