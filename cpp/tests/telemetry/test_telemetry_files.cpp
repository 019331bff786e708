#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>

#include "telemetry/energy/perf_energy.hpp"
#include "telemetry/energy/powercap.hpp"
#include "telemetry/files/control_group.hpp"
#include "telemetry/files/cpu_frequency.hpp"
#include "telemetry/files/pressure.hpp"
#include "telemetry/files/process_memory.hpp"
#include "telemetry/files/steal.hpp"
#include "telemetry/sampling/machine_sources.hpp"
#include "tests/check.hpp"
#include "tests/telemetry/telemetry_at_work.hpp"

using namespace fairlap::telemetry;
using namespace fairlap::test;

namespace {

std::string status(int anonymous, int file, int shared) {
  return "Name:\tx\nVmRSS:\t" + std::to_string(anonymous + file + shared) + " kB\nRssAnon:\t" +
         std::to_string(anonymous) + " kB\nRssFile:\t" + std::to_string(file) + " kB\nRssShmem:\t" +
         std::to_string(shared) + " kB\n";
}

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

TEST("memory is split by kind, and every descendant's is added up apart from this process's") {
  const FileTree tree;
  tree.write("proc/self/statm", "9000 123 23 1 0 100 0\n");
  tree.write("proc/self/status", status(100, 20, 3));
  tree.write("proc/self/task/10/children", "20 ");
  tree.write("proc/self/task/11/children", "30 31 ");
  tree.write("proc/20/status", status(1000, 0, 0));
  tree.write("proc/20/task/20/children", "40 ");
  tree.write("proc/30/status", status(500, 5, 0));
  tree.write("proc/31/status", "Name:\tzombie\n");
  tree.write("proc/40/status", status(7, 0, 9));
  ProcessMemory memory(tree.root());
  CHECK_EQUAL(memory.absent_because(), "");
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  auto slow = read_once(memory, Lane::slow);
  CHECK_EQUAL(slow.size(), 2U);
  CHECK_EQUAL(slow["rss_bytes"].value, 123 * page_bytes);
  CHECK_EQUAL(slow["rss_anonymous_bytes"].value, 100 * page_bytes);
  auto readings = read_once(memory, Lane::rare);
  CHECK_EQUAL(readings.size(), 7U);
  CHECK_EQUAL(readings["rss_file_bytes"].value, 20 * 1024.0);
  CHECK_EQUAL(readings["rss_shared_bytes"].value, 3 * 1024.0);
  CHECK_EQUAL(readings["children_rss_anonymous_bytes"].value, 1507 * 1024.0);
  CHECK_EQUAL(readings["children_rss_shared_bytes"].value, 9 * 1024.0);
  CHECK_EQUAL(readings["children_count"].value, 4.0);
  CHECK(read_once(memory, Lane::fast).empty());

  tree.write("proc/self/task/11/children", "");
  tree.write("proc/self/statm", "broken\n");
  std::filesystem::remove_all(tree.path("proc/20"));
  readings = read_once(memory, Lane::rare);
  CHECK_EQUAL(readings["children_count"].value, 0.0);
  CHECK_EQUAL(readings["children_rss_bytes"].value, 0.0);
  slow = read_once(memory, Lane::slow);
  CHECK(slow["rss_bytes"].state == ReadingState::failed);
  CHECK(std::isnan(slow["rss_anonymous_bytes"].value));
}

TEST("more children than can be counted make a failed reading, not a sum that is too small") {
  const FileTree tree;
  tree.write("proc/self/statm", "3 3 2 0 0 0 0\n");
  tree.write("proc/self/status", status(1, 1, 1));
  std::string many;
  for (int pid = 10'000; pid < 11'100; ++pid) many += std::to_string(pid) + " ";
  tree.write("proc/self/task/10/children", many);
  ProcessMemory memory(tree.root());
  auto readings = read_once(memory, Lane::rare);
  CHECK(readings["children_rss_bytes"].state == ReadingState::failed);
  CHECK(std::isnan(readings["children_rss_bytes"].value));
  CHECK(readings["rss_file_bytes"].state == ReadingState::value);
}

TEST("a kernel that lists no children, or has no kinds of memory, gives the reason for those fields alone") {
  const FileTree tree;
  tree.write("proc/self/status", "VmRSS:\t12 kB\n");
  tree.write("proc/self/statm", "9 3 2 0 0 0 0\n");
  const ProcessMemory memory(tree.root());
  CHECK(memory.present());
  CHECK(field_named(memory, "rss_bytes").present());
  CHECK(contains(field_named(memory, "rss_shared_bytes").absent_because, "no line RssShmem:"));
  CHECK(contains(field_named(memory, "children_rss_bytes").absent_because, "lists no children"));
}

TEST("this process and its child are measured") {
  ProcessMemory memory;
  if (!memory.present()) return;  // no /proc
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  auto own = read_once(memory, Lane::slow);
  auto readings = read_once(memory, Lane::rare);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(own["rss_bytes"].value > 100e3);
  CHECK(own["rss_bytes"].value < 1e12);
  if (!field_named(memory, "children_count").present()) return;
  CHECK_EQUAL(readings["children_count"].value, 1.0);
  CHECK(readings["children_rss_bytes"].value > 0.0);
}

TEST("a control group of version 2 reports memory, processor time and throttling") {
  const FileTree tree;
  tree.write("proc/self/cgroup", "0::/jobs/mine\n");
  tree.write("sys/fs/cgroup/jobs/mine/memory.current", "4096\n");
  tree.write("sys/fs/cgroup/jobs/memory.current", "9999\n");
  tree.write("sys/fs/cgroup/jobs/mine/cpu.stat",
             "usage_usec 2500000\nnr_throttled 3\nthrottled_usec 40000\n");
  ControlGroup group(tree.root());
  auto readings = read_once(group, Lane::rare);
  CHECK_EQUAL(readings["memory_bytes"].value, 4096.0);
  CHECK_NEAR(readings["cpu_s"].value, 2.5, 1e-9);
  CHECK_NEAR(readings["throttled_s"].value, 0.04, 1e-9);
  CHECK_EQUAL(readings["throttled_periods"].value, 3.0);
  CHECK(contains(field_named(group, "memory_peak_bytes").absent_because, "no control group"));
  CHECK_EQUAL(readings.count("memory_peak_bytes"), 0U);
}

TEST("in a container the top of the tree is the process's own group") {
  const FileTree tree;
  tree.write("proc/self/cgroup", "0::/docker/0123456789\n");
  tree.write("sys/fs/cgroup/memory.current", "77\n");
  ControlGroup group(tree.root());
  CHECK_EQUAL(read_once(group, Lane::rare)["memory_bytes"].value, 77.0);
}

TEST("a control group of version 1 is read where its controllers are") {
  const FileTree tree;
  tree.write("proc/self/cgroup", "4:memory:/mine\n3:cpu,cpuacct:/mine\n0::/\n");
  tree.write("sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "512\n");
  tree.write("sys/fs/cgroup/memory/mine/memory.max_usage_in_bytes", "1024\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/mine/cpuacct.usage", "1500000000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/mine/cpu.stat", "nr_throttled 2\nthrottled_time 250000000\n");
  ControlGroup group(tree.root());
  auto readings = read_once(group, Lane::rare);
  CHECK_EQUAL(readings["memory_bytes"].value, 512.0);
  CHECK_EQUAL(readings["memory_peak_bytes"].value, 1024.0);
  CHECK_NEAR(readings["cpu_s"].value, 1.5, 1e-9);
  CHECK_NEAR(readings["throttled_s"].value, 0.25, 1e-9);
  CHECK_EQUAL(readings["throttled_periods"].value, 2.0);
}

TEST("the clock of the cores is their mean, lowest and highest, in the order of megahertz") {
  const FileTree tree;
  for (int core = 0; core < 40; ++core) {
    tree.write("sys/devices/system/cpu/cpu" + std::to_string(core) + "/cpufreq/scaling_cur_freq",
               core % 2 == 0 ? "2000000\n" : "3000000\n");
  }
  tree.write("sys/devices/system/cpu/cpufreq/boost", "1\n");
  CpuFrequency frequency(tree.root());
  CHECK_EQUAL(frequency.cores_read(), CpuFrequency::kMostCores);
  auto readings = read_once(frequency, Lane::rare);
  CHECK_EQUAL(readings["lowest_mhz"].value, 2000.0);
  CHECK_EQUAL(readings["highest_mhz"].value, 3000.0);
  CHECK_NEAR(readings["mean_mhz"].value, 2500.0, 200.0);
}

TEST("stolen time is the eighth column, in seconds") {
  const FileTree tree;
  tree.write("proc/stat", "cpu  1 2 3 4 5 6 7 800 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n");
  Steal steal(tree.root());
  CHECK_NEAR(read_once(steal, Lane::rare)["stolen_s"].value,
             800.0 / static_cast<double>(sysconf(_SC_CLK_TCK)), 1e-9);
}

TEST("pressure is the total of each line, and a kind that is missing is absent alone") {
  const FileTree tree;
  tree.write("proc/pressure/cpu",
             "some avg10=1.00 avg60=0.00 avg300=0.00 total=3000000\nfull avg10=0.00 total=0\n");
  tree.write("proc/pressure/memory",
             "some avg10=0.00 total=5\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4000000\n");
  Pressure pressure(tree.root());
  auto readings = read_once(pressure, Lane::rare);
  CHECK_EQUAL(readings.size(), 3U);
  CHECK_NEAR(readings["cpu_some_s"].value, 3.0, 1e-9);
  CHECK_NEAR(readings["memory_full_s"].value, 4.0, 1e-9);
  CHECK(contains(field_named(pressure, "io_some_s").absent_because, "psi=1"));
}

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
  ProcessMemory memory(tree.root());
  ControlGroup group(tree.root());
  CpuFrequency frequency(tree.root());
  Steal steal(tree.root());
  Pressure pressure(tree.root());
  Powercap powercap(tree.root());
  PerfEnergy perf(tree.root());
  const std::vector<std::pair<Source*, std::string>> expected{{&memory, "proc/self/statm: No such file"},
                                                              {&group, "no control group of this process"},
                                                              {&frequency, "no core has cpufreq"},
                                                              {&steal, "proc/stat: No such file"},
                                                              {&pressure, "proc/pressure/cpu: No such"},
                                                              {&powercap, "no zone with an energy counter"},
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
