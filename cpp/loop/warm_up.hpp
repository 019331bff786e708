#pragma once

#include "loop/run.hpp"

namespace fairlap::loop {

struct WarmedUp {
  WarmUpDone done;
  std::uint64_t calls_per_sample = 1;
  double sample_period_ns = 0.0;  // from one sample to the next; 0 when nothing ran
  Interruption why = Interruption::none;
};

// Runs the work before the first sample is kept, as the settings ask, and finds how many calls one
// sample needs to be well above the clock's floor.
WarmedUp warm_up(SliceTaker& taker, const clock::Clock& clock, const Settings& settings);

}  // namespace fairlap::loop
