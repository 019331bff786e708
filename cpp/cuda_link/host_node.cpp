#include "cuda_link/host_node.hpp"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

namespace fairlap::cuda_link {
namespace {

#ifdef __linux__
// From the kernel's linux/mempolicy.h, which not every machine that compiles this has.
constexpr int kPreferred = 1;
constexpr unsigned kMove = 2;
constexpr unsigned kNodeOfAddress = 3;  // a node, and of an address

constexpr std::size_t kBitsInWord = 8 * sizeof(unsigned long);
constexpr std::size_t kMostNodes = 1024;
using NodeMask = std::array<unsigned long, kMostNodes / kBitsInWord>;
#endif

}  // namespace

std::optional<int> node_of_device(const std::string& pci_bus_id, const std::string& sys_folder) {
  std::string address = pci_bus_id;
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::ifstream file(sys_folder + "/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0) return std::nullopt;
  return node;
}

#ifdef __linux__

bool move_to_node(const std::byte* memory, std::size_t bytes, int node) noexcept {
  const auto number = static_cast<std::size_t>(node);
  if (node < 0 || number >= kMostNodes) return false;
  NodeMask mask{};
  mask[number / kBitsInWord] = 1UL << (number % kBitsInWord);
  return syscall(SYS_mbind, memory, bytes, kPreferred, mask.data(), kMostNodes + 1, kMove) == 0;
}

std::optional<int> node_of_page(const std::byte* memory) noexcept {
  int node = -1;
  if (syscall(SYS_get_mempolicy, &node, nullptr, 0UL, memory, kNodeOfAddress) != 0 || node < 0)
    return std::nullopt;
  return node;
}

#else

bool move_to_node(const std::byte*, std::size_t, int) noexcept { return false; }
std::optional<int> node_of_page(const std::byte*) noexcept { return std::nullopt; }

#endif

}  // namespace fairlap::cuda_link
