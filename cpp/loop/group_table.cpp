#include "loop/group_table.hpp"

namespace fairlap::loop {
namespace {

void add(Disturbances& total, const Disturbances& more, std::int64_t sign) noexcept {
  for (const auto member :
       {&Disturbances::minor_faults, &Disturbances::major_faults, &Disturbances::voluntary_switches,
        &Disturbances::involuntary_switches, &Disturbances::cpu_ns}) {
    total.*member += sign * (more.*member);
  }
}

}  // namespace

void append(Group& group, const Group& later) noexcept {
  group.samples += later.samples;
  group.elapsed_ns = later.start_ns + later.elapsed_ns - group.start_ns;
  add(group.thread, later.thread, 1);
  add(group.process, later.process, 1);
  group.migrations += later.migrations;
  group.cpu = later.cpu;
}

GroupTable::GroupTable(std::size_t capacity) : memory_((capacity < 2 ? 2 : capacity) * sizeof(Group)) {}

void GroupTable::add(const Group& slice) noexcept {
  const std::span<Group> places = memory_.as<Group>();
  if (used_ > 0 && slices_in_last_ < slices_per_group_) {
    append(places[used_ - 1], slice);
    ++slices_in_last_;
    return;
  }
  if (used_ == places.size()) {
    merge_neighbours();
    // An odd table leaves its last group half full; the slice may still belong there.
    return add(slice);
  }
  places[used_++] = slice;
  slices_in_last_ = 1;
}

void GroupTable::merge_neighbours() noexcept {
  const std::span<Group> places = memory_.as<Group>();
  const bool odd = used_ % 2 != 0;
  for (std::size_t pair = 0; pair < used_ / 2; ++pair) {
    Group merged = places[2 * pair];
    append(merged, places[2 * pair + 1]);
    places[pair] = merged;
  }
  if (odd) places[used_ / 2] = places[used_ - 1];
  used_ = (used_ + 1) / 2;
  slices_in_last_ = odd ? slices_per_group_ : 2 * slices_per_group_;
  slices_per_group_ *= 2;
}

Group slice_between(const Counters& before, const Counters& after) noexcept {
  Group slice;
  slice.thread = after.thread;
  slice.process = after.process;
  add(slice.thread, before.thread, -1);
  add(slice.process, before.process, -1);
  slice.migrations = before.cpu != after.cpu ? 1 : 0;
  slice.cpu = after.cpu;
  return slice;
}

}  // namespace fairlap::loop
