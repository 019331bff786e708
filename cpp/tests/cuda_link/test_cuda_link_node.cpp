// Where the pinned slots are. The kernel's documentation of sysfs (Documentation/ABI/testing/sysfs-bus-pci)
// has a device's node in its file numa_node, which is -1 where there is none, and writes addresses in small
// letters.

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cuda_link/host_node.hpp"
#include "tests/check.hpp"
#include "tests/cuda_link/link_at_work.hpp"

using namespace fairlap::test;
using fairlap::cuda_link::CudaLink;
using fairlap::cuda_link::move_to_node;
using fairlap::cuda_link::node_of_device;

namespace {

constexpr std::size_t kSlotBytes = 64 << 10;
constexpr int kMissingNode = 1000;

// A folder like /sys in which one device is attached to a node.
class SysFolder {
 public:
  SysFolder(const std::string& address, const std::string& node) {
    std::string pattern = (std::filesystem::temp_directory_path() / "fairlap-sys-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Failure("no scratch folder");
    path_ = pattern;
    const std::filesystem::path device = path_ / "bus/pci/devices" / address;
    std::filesystem::create_directories(device);
    std::ofstream(device / "numa_node") << node << '\n';
  }
  ~SysFolder() { std::filesystem::remove_all(path_); }
  SysFolder(const SysFolder&) = delete;  // It removes its folder once.
  SysFolder& operator=(const SysFolder&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

struct Placed {
  std::optional<int> node;
  bool arrived_whole = false;
};

// A link whose device is in the given slot of the machine; what it was given is copied to the device and
// back.
Placed placed(const SysFolder& sys, int device_slot_number = 0) {
  EngineAtWork at_work;
  fake_cuda_set_device_slot(0, device_slot_number);
  const HostMemory host(2, kSlotBytes);
  const auto link = CudaLink::open(*at_work.driver, host.slots(), {.device = 0, .sys_folder = sys.path()});
  link->send(1, kSlotBytes);
  link->make_wait(at_work.stream, 1);
  std::vector<char> back(kSlotBytes);
  cuMemcpyDtoHAsync_v2(back.data(), device_slot(*link, 1), kSlotBytes, at_work.s());
  cuStreamSynchronize(at_work.s());
  return {link->host_node(), back == std::vector<char>(kSlotBytes, 'b')};
}

bool pages_may_be_moved() {
  const HostMemory host(1, kSlotBytes);
  return move_to_node(host.slots().memory, kSlotBytes, 0);
}

}  // namespace

TEST("pinned slots are on the node that the device is attached to") {
  const Placed found = placed(SysFolder("0000:01:00.0", "0"));
  CHECK(found.node == (pages_may_be_moved() ? std::optional(0) : std::nullopt));
  CHECK(found.arrived_whole);
}

TEST("a device is found whatever letters its address is written with") {
  const SysFolder sys("0000:af:00.0", "3");
  CHECK(node_of_device("0000:AF:00.0", sys.path()) == std::optional(3));
  CHECK(!node_of_device("0000:AE:00.0", sys.path()));
  constexpr int kSlotOfAf = 0xae;  // the fake's slots begin at bus 1
  CHECK(placed(SysFolder("0000:af:00.0", "0"), kSlotOfAf).node ==
        placed(SysFolder("0000:01:00.0", "0")).node);
}

TEST("without a node, or with one that is not there, slots stay where they are and feed") {
  for (const std::string& node : {std::string("-1"), std::to_string(kMissingNode), std::string("none")}) {
    const Placed found = placed(SysFolder("0000:01:00.0", node));
    CHECK(!found.node);
    CHECK(found.arrived_whole);
  }
  CHECK(!placed(SysFolder("0000:02:00.0", "0")).node);
}

TEST_MAIN()
