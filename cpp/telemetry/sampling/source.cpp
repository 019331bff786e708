#include "telemetry/sampling/source.hpp"

#include <system_error>

namespace fairlap::telemetry {

std::string Source::text_of(std::int32_t code) const { return std::generic_category().message(code); }

std::uint32_t Source::add(Field field) {
  fields_.push_back(std::move(field));
  return static_cast<std::uint32_t>(fields_.size() - 1);
}

void Source::conclude() {
  absent_because_.clear();
  for (const Field& field : fields_) {
    if (field.present()) return;
  }
  absent_because_ = fields_.empty() ? "it has nothing to read" : fields_.front().absent_because;
}

}  // namespace fairlap::telemetry
