#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>

#include "telemetry/energy/perf_energy.hpp"
#include "telemetry/energy/powercap.hpp"
#include "telemetry/sampling/machine_sources.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

// Two packages, one with a part, as Intel's and AMD's processors show them.
void write_powercap(const FileTree& tree) {
  const std::string top = "sys/class/powercap/";
  for (const auto& [zone, name] :
       {std::pair{"intel-rapl:0", "package-0"}, std::pair{"intel-rapl:0:0", "core"},
        std::pair{"intel-rapl:1", "package-1"}}) {
    tree.write(top + zone + "/name", std::string(name) + "\n");
    tree.write(top + zone + "/energy_uj", "1000000\n");
    tree.write(top + zone + "/max_energy_range_uj", "65532610987\n");
  }
  tree.write(top + "intel-rapl/enabled", "1\n");
}

void write_perf(const FileTree& tree, const std::string& cores) {
  const std::string top = "sys/bus/event_source/devices/power/";
  tree.write(top + "type", "23\n");
  tree.write(top + "cpumask", cores);
  tree.write(top + "events/energy-pkg", "event=0x02\n");
  tree.write(top + "events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
  tree.write(top + "events/energy-pkg.unit", "Joules\n");
}

}  // namespace

TEST("powercap gives every zone its counter in joules and where it wraps") {
  const FileTree tree;
  write_powercap(tree);
  Powercap powercap(tree.root());
  CHECK_EQUAL(powercap.fields().size(), 3U);
  CHECK_EQUAL(powercap.fields()[1].name, "intel-rapl:0:0 core energy_j");
  CHECK_NEAR(powercap.fields()[0].wraps_at, 65532.610988, 1e-9);
  tree.write("sys/class/powercap/intel-rapl:1/energy_uj", "2500000\n");
  auto readings = read_once(powercap, Lane::fast);
  CHECK_EQUAL(readings.size(), 3U);
  CHECK_NEAR(readings["intel-rapl:0 package-0 energy_j"].value, 1.0, 1e-9);
  CHECK_NEAR(readings["intel-rapl:1 package-1 energy_j"].value, 2.5, 1e-9);
}

TEST("a counter that only root may read is absent with the reason") {
  const FileTree tree;
  write_powercap(tree);
  chmod(tree.path("sys/class/powercap/intel-rapl:0/energy_uj").c_str(), 0400);
  chmod(tree.root().c_str(), 0755);
  const bool was_root = geteuid() == 0;
  if (was_root)
    CHECK_EQUAL(seteuid(65534), 0);  // root may read everything, so be someone else for a while
  else
    chmod(tree.path("sys/class/powercap/intel-rapl:0/energy_uj").c_str(), 0);
  const Powercap powercap(tree.root());
  if (was_root) CHECK_EQUAL(seteuid(0), 0);
  CHECK(contains(powercap.fields()[0].absent_because, "may be read by root only"));
  CHECK(powercap.fields()[2].present());
  CHECK(powercap.present());
}

TEST("a counter whose limit is unknown is absent, since a difference over a wrap would be wrong") {
  const FileTree tree;
  write_powercap(tree);
  std::filesystem::remove(tree.path("sys/class/powercap/intel-rapl:0/max_energy_range_uj"));
  const Powercap powercap(tree.root());
  CHECK(contains(powercap.fields()[0].absent_because, "limit of its counter is unknown"));
}

TEST("a file that stops being a number makes failed readings without a value") {
  const FileTree tree;
  write_powercap(tree);
  Powercap powercap(tree.root());
  tree.write("sys/class/powercap/intel-rapl:0/energy_uj", "");
  const Reading reading = read_once(powercap, Lane::fast)["intel-rapl:0 package-0 energy_j"];
  CHECK(reading.state == ReadingState::failed);
  CHECK(std::isnan(reading.value));
  CHECK_EQUAL(reading.code, ENODATA);
  CHECK(!powercap.text_of(reading.code).empty());
}

TEST("perf gives each package its energy, by the type, event, scale and unit in sysfs") {
  const FileTree tree;
  write_perf(tree, "0,8-9\n");
  std::vector<std::string> asked;
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& each : pipes) CHECK_EQUAL(::pipe(each.data()), 0);
  std::size_t opened = 0;
  PerfEnergy perf(tree.root(), [&](std::uint32_t type, std::uint64_t config, int core) {
    asked.push_back(std::to_string(type) + " " + std::to_string(config) + " " + std::to_string(core));
    return pipes.at(opened++)[0];
  });
  CHECK_EQUAL(perf.absent_because(), "");
  const std::vector<std::string> expected{"23 2 0", "23 2 8", "23 2 9"};
  CHECK(asked == expected);
  CHECK_EQUAL(perf.fields().size(), 3U);
  const std::uint64_t count = std::uint64_t{1} << 33U;
  for (auto& each : pipes) CHECK_EQUAL(::write(each[1], &count, sizeof count), 8);
  auto readings = read_once(perf, Lane::fast);
  CHECK_EQUAL(readings.size(), 3U);
  CHECK_NEAR(readings["energy-pkg cpu8 energy_j"].value, 2.0, 1e-9);
  CHECK(read_once(perf, Lane::slow).empty());
  for (auto& each : pipes) ::close(each[1]);
  readings = read_once(perf, Lane::fast);  // nothing can be read any more
  CHECK(readings["energy-pkg cpu0 energy_j"].state == ReadingState::failed);
  CHECK_EQUAL(readings["energy-pkg cpu0 energy_j"].code, ENODATA);
}

TEST("perf events that are refused, or whose unit, scale or number is unknown, are absent with the reason") {
  const auto reason_with = [](const std::string& file, const std::string& text, int answer) {
    const FileTree tree;
    write_perf(tree, "0\n");
    if (!file.empty()) tree.write("sys/bus/event_source/devices/power/" + file, text);
    return PerfEnergy(tree.root(), [&](std::uint32_t, std::uint64_t, int) { return answer; })
        .absent_because();
  };
  CHECK(contains(reason_with("", "", -EACCES), "perf_event_paranoid"));
  CHECK(contains(reason_with("", "", -EPERM), "CAP_PERFMON"));
  CHECK(contains(reason_with("", "", -ENOENT), "No such file"));
  CHECK(contains(reason_with("events/energy-pkg.unit", "Watts\n", 0), "is not Joules"));
  CHECK(contains(reason_with("events/energy-pkg.scale", "much\n", 0), "scale does not hold a number"));
  CHECK(contains(reason_with("events/energy-pkg", "umask=1\n", 0), "does not give its number"));
  CHECK(contains(reason_with("cpumask", "all\n", 0), "does not list cores"));
}

TEST("perf is asked only where powercap is closed") {
  const FileTree tree;
  write_powercap(tree);
  write_perf(tree, "0\n");
  const auto absent = [](const std::string& root) {
    for (const auto& source : machine_sources(root, "/nowhere/nvml.so")) {
      if (source->name() == "perf_energy") return source->absent_because();
    }
    throw Failure("perf_energy is not looked for");
  };
  CHECK_EQUAL(absent(tree.root()), "powercap reports the same energy");
  std::filesystem::remove_all(tree.path("sys/class/powercap"));
  CHECK(!contains(absent(tree.root()), "powercap"));
}

TEST("on a machine without sensors, every source is absent with its reason and reads nothing") {
  const FileTree tree;
  Powercap powercap(tree.root());
  PerfEnergy perf(tree.root());
  const std::vector<std::pair<Source*, std::string>> expected{{&powercap, "no zone with an energy counter"},
                                                              {&perf, "no energy event under"}};
  for (const auto& [source, reason] : expected) {
    CHECK(!source->present());
    CHECK(contains(source->absent_because(), reason));
    CHECK(read_once(*source, Lane::rare).empty());
    CHECK(read_once(*source, Lane::slow).empty());
    CHECK(read_once(*source, Lane::fast).empty());
  }
}

TEST_MAIN()
