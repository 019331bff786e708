#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fairlap::cuda_link {

// The node of this machine's memory that a device is attached to, by its PCI address, as the kernel has it in
// `sys_folder`; none where the machine has no nodes, or does not say.
std::optional<int> node_of_device(const std::string& pci_bus_id, const std::string& sys_folder);

// Moves pages to the node, as far as it has room. Returns whether the kernel agreed: a container may forbid
// it.
bool move_to_node(const std::byte* memory, std::size_t bytes, int node) noexcept;

// Where the page of this address is; none where the kernel does not say.
std::optional<int> node_of_page(const std::byte* memory) noexcept;

}  // namespace fairlap::cuda_link
