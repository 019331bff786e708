#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fairlap::fakes {

// What each call costs the host, in virtual nanoseconds. The entry "*" is for functions not named.
std::map<std::string, std::int64_t> default_costs_ns();
std::int64_t cost_ns(const std::map<std::string, std::int64_t>& costs, const std::string& function);

}  // namespace fairlap::fakes
