#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairlap::cuda {

// How the registers of an operand or an accumulator are filled: with bits of a hash of the thread's number
// where the mask has ones, and these bits elsewhere. For numbers of floating point they make values from a
// half to one, of both signs: zeros would cost less power than any real work, and a board would not lower its
// clock for them.
struct Filling {
  std::uint32_t mask = 0;
  std::uint32_t bits = 0;
};

enum class ArithmeticUnit : std::uint8_t {
  lanes,          // an instruction of a thread
  warp,           // a matrix product of a warp, from registers
  warpgroup,      // a matrix product of four warps, from shared memory
  tensor_memory,  // a matrix product that one thread issues for its block, from shared memory
};

// Independent multiply-adds on what a device holds close to its units, enough of them to keep these busy.
struct RoofKernel {
  std::string_view number_type;
  std::string_view instructions;  // as they are shown
  int least_capability = 0;       // 10 * major + minor
  int most_capability = 0;        // the last one on which it is the fastest known
  std::string_view ptx_version;
  std::string_view target;
  ArithmeticUnit unit = ArithmeticUnit::lanes;
  std::string_view operation;  // PTX, up to its operands
  int bits_of_a_register = 32;
  int accumulators = 1;  // of a thread, for one instruction's sum: registers, or columns of tensor memory
  int left = 1;          // registers of its factors
  int right = 1;
  Filling sum{};
  Filling factor{};
  double operations = 0.0;        // of one instruction; a multiply-add counts as two
  const char* ending = "";        // of an operation, behind its operands
  std::uint32_t scale = 0;        // four times that of blocks of factors, in %scale; 0 where they have none
  std::uint64_t tile_layout = 0;  // of matrices in shared memory: a descriptor without their address
  bool is_unproven = false;       // no device has run it yet, and a mistake in it could break a context
  std::uint32_t product = 0;      // in tensor memory: types and shape of the matrices, as a descriptor
  int row_bytes = 32;             // of the matrices of one such instruction
  bool row_wraps = false;         // may go beyond the 128 bytes that rows of tiles have, to a given address

  [[nodiscard]] unsigned int threads_of_a_block() const noexcept;
  [[nodiscard]] unsigned int blocks_of_a_multiprocessor() const noexcept;
  [[nodiscard]] int chains() const noexcept;                    // sums that do not wait for each other
  [[nodiscard]] int repetitions() const noexcept;               // of all chains in a round
  [[nodiscard]] double operations_of_a_round() const noexcept;  // of a block
  [[nodiscard]] int sums() const noexcept;           // that a thread adds up in registers, or reads
  [[nodiscard]] int depth() const noexcept;          // products that an instruction adds to each of its sums
  [[nodiscard]] std::uint32_t one() const noexcept;  // a word of its factors; of fp64 the upper one
  [[nodiscard]] std::uint32_t count(std::uint32_t ones) const noexcept;  // this number, as a word of its sums
};

// Every kernel for this type on a device of this capability (10 * major + minor), in no order; none where the
// device lacks the type, or has units for it that no kernel here reaches.
std::vector<RoofKernel> roof_kernels(std::string_view number_type, int capability);

// All of them, for tests.
std::vector<RoofKernel> all_roof_kernels();

// Its device code, whose one entry is
//   fairlap_roof_arithmetic(u32 rounds, u32 never, u64 out)
// It writes to `out` if the sum of all that it computed happens to be `never`, so that nothing is left out.
std::string code_of(const RoofKernel& kernel);

constexpr const char* kArithmeticRoofEntry = "fairlap_roof_arithmetic";

// The same instructions on factors that are all one, and on sums that begin with zero, so that every sum is
// known:
//   fairlap_roof_check(u32 rounds, u32 expected, u64 out, u32 one)
// It adds to the first word of `out` how many sums are not `expected`, and to the second how many there are.
std::string check_code_of(const RoofKernel& kernel);

constexpr const char* kRoofCheckEntry = "fairlap_roof_check";

constexpr const char* kTriadRoofEntry = "fairlap_roof_triad";
constexpr double kTriadRoofBytes = 48.0;  // of a vector of four float32: two are read and one is written
constexpr std::size_t kTriadVectorBytes = 16;

// fairlap_roof_triad(u64 a, u64 b, u64 c, u32 vectors, u32 passes): a = b + 0.4 * c, so many times. Loads and
// stores go to the L2 cache and past the one of the multiprocessor, which would keep a thread's part of small
// arrays.
extern const char* const kTriadRoofCode;

}  // namespace fairlap::cuda
