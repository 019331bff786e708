#pragma once

#include <functional>
#include <string>

namespace fairlap::test {

// The message of a refusal; empty when nothing was refused. Any other exception fails the test.
template <class Refused>
std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "";
}

template <class Refused>
bool refuses(const std::function<void()>& act) {
  return !refusal<Refused>(act).empty();
}

}  // namespace fairlap::test
