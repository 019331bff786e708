#include "cuda/roofs/roof_code.hpp"

// Products of a whole block, whose factors are in shared memory and whose sums are in tensor memory: 512
// columns of 128 lanes, a word in each. One thread issues them for the block; they run in the background, and
// a barrier in shared memory completes a phase when those before it have ended.
//
// No device has run this code yet. What it rests on is in the PTX ISA, in the sections on tcgen05: who
// allocates and who frees, which fences order accesses of several threads and of several proxies, and that
// products with the same sums are executed in the order in which they were issued.
namespace fairlap::cuda {
namespace {

constexpr int kColumns = 512;  // all that a multiprocessor has, so that only one block can be at work
constexpr int kColumnsAtATime = 32;
constexpr int kLeftScales = 256, kRightScales = 384;  // columns, behind those of the sums
constexpr int kBytesOfASwizzledRow = 128;
constexpr int kIssuingWarpEnds = 32;

// How often a thread looks for the end of a round, which takes microseconds, and how long a look may wait at
// most. So many looks take longer than a trial, which a wait in vain can then only make slower, and at most
// about a second.
constexpr int kLooks = 1'000'000;
constexpr int kLookNs = 1000;

class TensorMemoryCode final : public RoofCode {
 public:
  using RoofCode::RoofCode;

 private:
  void declare_operands() override {
    declare_tiles();
    out() << "    .shared .align 16 .b64 barriers[2];\n"
          << "    .shared .align 4 .b32 allocated;\n    .shared .align 4 .b32 ended;\n"
          << "    .reg .b64 %left<" << steps() << ">, %right<" << steps() << ">, %tile, %begin;\n"
          << "    .reg .b32 %at<" << kernel().chains()
          << ">, %lanes, %product, %barrier, %turn, %parity, %looks;\n"
          << "    .reg .pred %other, %chosen, %ready;\n";
    if (has_scales()) out() << "    .reg .b32 %leftscales, %rightscales;\n";
  }

  void prepare() override {
    out() << "    setp.ge.u32 %other, %thread, " << kIssuingWarpEnds << ";\n    @%other bra ALLOCATED;\n"
          << "    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [allocated], " << kColumns << ";\n"
          << "    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nALLOCATED:\n"
          << "    setp.eq.u32 %equal, %thread, 0;\n    @%equal st.shared.b32 [ended], 0;\n"
          << "    @%equal mbarrier.init.shared::cta.b64 [barriers], 1;\n"
          << "    @%equal mbarrier.init.shared::cta.b64 [barriers+8], 1;\n"
          << "    @%equal fence.mbarrier_init.release.cluster;\n    tcgen05.fence::before_thread_sync;\n";
    fill_tiles();
    out() << "    tcgen05.fence::after_thread_sync;\n    ld.shared.b32 %at0, [allocated];\n";
    fill_columns();
    describe_factors();
    choose_one_thread();
  }

  // Each warp reaches 32 of the lanes: its threads those of their numbers.
  void fill_columns() {
    out() << "    and.b32 %lanes, %thread, " << ~31U << ";\n    shl.b32 %lanes, %lanes, 16;\n"
          << "    add.u32 %lanes, %lanes, %at0;\n    mov.b32 %word, 0;\n";
    for (int column = 0; column < kColumns; column += kColumnsAtATime) {
      out() << "    tcgen05.st.sync.aligned.32x32b.x" << kColumnsAtATime << ".b32 [%lanes+" << column
            << "], {";
      for (int each = 0; each < kColumnsAtATime; ++each)
        out() << (each == 0 ? "" : ", ") << (column < kernel().sums() ? "%word" : "%scale");
      out() << "};\n";
    }
    out() << "    tcgen05.wait::st.sync.aligned;\n";
    synchronize();
  }

  // What threads did to tensor memory before it is done for those that go on behind it.
  void synchronize() {
    out()
        << "    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n    tcgen05.fence::after_thread_sync;\n";
  }

  // Each step takes other bytes of the tiles' rows, as along the depth of a large product.
  void describe_factors() {
    for (int step = 0; step < steps(); ++step) {
      describe_step("left", step, 0);
      describe_step("right", step, kSecondTileBytes);
    }
    for (int chain = 1; chain < kernel().chains(); ++chain)
      out() << "    add.u32 %at" << chain << ", %at0, " << chain * kernel().accumulators << ";\n";
    if (has_scales())
      out() << "    add.u32 %leftscales, %at0, " << kLeftScales << ";\n    add.u32 %rightscales, %at0, "
            << kRightScales << ";\n";
    out() << "    mov.b32 %product, " << kernel().product << ";\n";
  }

  void describe_step(std::string_view side, int step, int from_the_beginning) {
    const std::string name = std::string(side) + std::to_string(step);
    describe(name, from_the_beginning + step * kernel().row_bytes);
    if (!kernel().row_wraps) return;
    out() << "    mov.u32 %place, tiles;\n    add.u32 %place, %place, " << from_the_beginning << ";\n"
          << "    shr.u32 %place, %place, 4;\n    cvt.u64.u32 %begin, %place;\n    shl.b64 %begin, %begin, "
             "16;\n"
          << "    or.b64 %" << name << ", %" << name << ", %begin;\n";
  }

  // The others wait at TOGETHER. Before the first round no turn has been taken.
  void choose_one_thread() {
    out() << "    setp.ge.u32 %other, %thread, " << kIssuingWarpEnds << ";\n    @%other bra TOGETHER;\n"
          << "    elect.sync _|%chosen, 0xffffffff;\n    @!%chosen bra TOGETHER;\n"
          << "    mov.u32 %barrier, barriers;\n    mov.u32 %turn, 0xffffffff;\n"
          << "    setp.eq.u32 %equal, %thread, %thread;\n";
  }

  // While it waits for the round before, this one is at work.
  void round() override {
    for (int repetition = 0; repetition < kernel().repetitions(); ++repetition) {
      for (int chain = 0; chain < kernel().chains(); ++chain) instruction(chain, repetition % steps());
    }
    out() << "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%barrier];\n";
    wait_for_a_round("BEFORE");
  }

  void instruction(int chain, int step) {
    out() << "    " << kernel().operation << " [%at" << chain << "], %left" << step << ", %right" << step
          << ", %product" << (has_scales() ? ", [%leftscales], [%rightscales]" : "") << ", %equal;\n";
  }

  // The rounds take turns with two barriers, each of which changes its parity with every phase; that of the
  // phase before the first counts as completed. A single barrier could be two phases further, which look the
  // same.
  void wait_for_a_round(std::string_view label) {
    out() << "    xor.b32 %barrier, %barrier, 8;\n    shr.u32 %parity, %turn, 1;\n"
          << "    and.b32 %parity, %parity, 1;\n    add.u32 %turn, %turn, 1;\n    mov.u32 %looks, " << kLooks
          << ";\n"
          << label << ":\n    mbarrier.try_wait.parity.shared::cta.b64 %ready, [%barrier], %parity, "
          << kLookNs << ";\n    @%ready bra AFTER_" << label << ";\n    sub.u32 %looks, %looks, 1;\n"
          << "    setp.ne.u32 %more, %looks, 0;\n    @%more bra " << label << ";\n    bra TOGETHER;\nAFTER_"
          << label << ":\n";
  }

  // Where a wait was in vain, the sums are neither compared nor counted, and the check fails.
  void end_rounds() override {
    wait_for_a_round("LAST");
    out() << "    st.shared.b32 [ended], 1;\nTOGETHER:\n    bar.warp.sync 0xffffffff;\n";
    synchronize();
    out() << "    ld.shared.b32 %word, [ended];\n    setp.eq.u32 %more, %word, 0;\n    @%more bra LEAVE;\n";
  }

  void load_sum(int sum) override {
    if (sum % kColumnsAtATime != 0) return;
    out() << "    tcgen05.ld.sync.aligned.32x32b.x" << kColumnsAtATime << ".b32 ";
    registers("sum", sum, kColumnsAtATime);
    out() << ", [%lanes+" << sum << "];\n    tcgen05.wait::ld.sync.aligned;\n";
  }

  void leave() override {
    out() << "LEAVE:\n";
    synchronize();
    out() << "    setp.ge.u32 %other, %thread, " << kIssuingWarpEnds << ";\n    @%other bra FREED;\n"
          << "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %at0, " << kColumns << ";\nFREED:\n";
  }

  [[nodiscard]] int steps() const { return kBytesOfASwizzledRow / kernel().row_bytes; }
  [[nodiscard]] bool has_scales() const { return kernel().scale != 0; }
};

}  // namespace

std::unique_ptr<RoofCode> tensor_memory_code(const RoofKernel& kernel, Purpose purpose) {
  return std::make_unique<TensorMemoryCode>(kernel, purpose);
}

}  // namespace fairlap::cuda
