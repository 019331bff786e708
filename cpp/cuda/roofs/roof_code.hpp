#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "cuda/roofs/roof_kernel.hpp"

namespace fairlap::cuda {

enum class Purpose : std::uint8_t { speed, check };

// Writes the device code of one kernel. This is what the code for every unit has in common: the frame of the
// entry, the loop over rounds, how memory and registers are filled, and how sums are compared or used.
class RoofCode {
 public:
  RoofCode(const RoofKernel& kernel, Purpose purpose);
  RoofCode(const RoofCode&) = delete;  // It is a text in the making.
  RoofCode& operator=(const RoofCode&) = delete;
  virtual ~RoofCode() = default;

  std::string text();

 protected:
  [[nodiscard]] const RoofKernel& kernel() const { return kernel_; }
  [[nodiscard]] bool checks() const { return checks_; }
  [[nodiscard]] std::string_view word() const { return wide_ ? "b64" : "b32"; }
  std::ostringstream& out() { return out_; }

  void fill(std::string_view name, int registers, const Filling& filling);
  void zero_sums();
  void registers(std::string_view name, int first, int count);

  // The matrices of one instruction, in shared memory.
  void declare_tiles();
  void fill_tiles();  // and lets the whole block see them
  void describe(std::string_view name, int from_the_beginning);

 private:
  virtual void declare_operands() = 0;
  virtual void prepare() = 0;
  virtual void round() = 0;
  virtual void end_rounds() {}
  virtual void load_sum(int /*sum*/) {}
  virtual void leave() {}

  void declare();
  void make_word(std::string_view thread, const Filling& filling);
  void count_wrong_sums();
  void use_the_sums();
  [[nodiscard]] bool is_fp64() const { return kernel_.number_type == "fp64"; }

  const RoofKernel& kernel_;
  bool checks_;
  int sums_;
  bool wide_;
  unsigned int place_ = 0;
  std::ostringstream out_;
};

constexpr int kSecondTileBytes = 8192;  // from the beginning of the first

std::unique_ptr<RoofCode> tensor_memory_code(const RoofKernel& kernel, Purpose purpose);

}  // namespace fairlap::cuda
