#include "cuda/roofs/roof_code.hpp"

namespace fairlap::cuda {
namespace {

constexpr int kTilesBytes = 40960;  // of an instruction's two matrices, in the layout that takes the most
constexpr unsigned int kHashOfThread = 0x9e3779b1, kHashOfPlace = 0x85ebca6b, kHashAgain = 0x2c1b3c6d;

// Of the units whose sums are in registers.
class RegisterCode final : public RoofCode {
 public:
  using RoofCode::RoofCode;

 private:
  void declare_operands() override {
    if (kernel().unit == ArithmeticUnit::warpgroup) {
      declare_tiles();
      out() << "    .reg .b64 %left0, %right0, %tile;\n";
    } else {
      out() << "    .reg ." << word() << " %left<" << kernel().left << ">, %right<" << kernel().right
            << ">;\n";
    }
  }

  void prepare() override {
    if (kernel().unit == ArithmeticUnit::warpgroup) {
      fill_tiles();
      describe("left0", 0);
      describe("right0", kSecondTileBytes);
      out() << "    setp.eq.u32 %equal, %thread, %thread;\n";
      zero_sums();
      return;
    }
    fill("left", kernel().left, kernel().factor);
    fill("right", kernel().right, kernel().factor);
    if (checks()) {
      zero_sums();
    } else {
      fill("sum", kernel().sums(), kernel().sum);
    }
  }

  void round() override {
    if (kernel().unit == ArithmeticUnit::warpgroup) out() << "    wgmma.fence.sync.aligned;\n";
    for (int repetition = 0; repetition < kernel().repetitions(); ++repetition) {
      for (int chain = 0; chain < kernel().chains(); ++chain) instruction(chain);
    }
    if (kernel().unit == ArithmeticUnit::warpgroup)
      out() << "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n";
  }

  void instruction(int chain) {
    out() << "    " << kernel().operation << ' ';
    const int first = chain * kernel().accumulators;
    if (kernel().unit == ArithmeticUnit::lanes) {
      out() << "%sum" << chain << ", %sum" << chain << ", %left0, %right0";
    } else if (kernel().unit == ArithmeticUnit::warp) {
      registers("sum", first, kernel().accumulators);
      out() << ", ";
      registers("left", 0, kernel().left);
      out() << ", ";
      registers("right", 0, kernel().right);
      out() << ", ";
      registers("sum", first, kernel().accumulators);
      out() << kernel().ending;
    } else {
      registers("sum", first, kernel().accumulators);
      out() << ", %left0, %right0, %equal" << kernel().ending;
    }
    out() << ";\n";
  }
};

std::string text_for(const RoofKernel& kernel, Purpose purpose) {
  if (kernel.unit == ArithmeticUnit::tensor_memory) return tensor_memory_code(kernel, purpose)->text();
  return RegisterCode(kernel, purpose).text();
}

}  // namespace

RoofCode::RoofCode(const RoofKernel& kernel, Purpose purpose)
    : kernel_(kernel),
      checks_(purpose == Purpose::check),
      sums_(kernel.sums()),
      wide_(kernel.bits_of_a_register == 64) {}

std::string RoofCode::text() {
  out_ << ".version " << kernel_.ptx_version << "\n.target " << kernel_.target << "\n.address_size 64\n\n"
       << ".visible .entry " << (checks_ ? kRoofCheckEntry : kArithmeticRoofEntry)
       << "(.param .u32 rounds, .param .u32 never, .param .u64 out" << (checks_ ? ", .param .u32 one" : "")
       << ")\n{\n";
  declare_operands();
  declare();
  prepare();
  out_ << "ROUND:\n";
  round();
  out_ << "    sub.u32 %rounds, %rounds, 1;\n    setp.ne.u32 %more, %rounds, 0;\n    @%more bra ROUND;\n";
  end_rounds();
  if (checks_) {
    count_wrong_sums();
  } else {
    use_the_sums();
  }
  leave();
  out_ << "    ret;\n}\n";
  return out_.str();
}

void RoofCode::declare() {
  out_ << "    .reg ." << word() << " %sum<" << sums_ << ">, %all;\n"
       << "    .reg .b32 %thread, %hash, %high, %rounds, %never, %word;\n    .reg .b64 %out;\n"
       << "    .reg .pred %more, %equal;\n"
       << "    ld.param.u32 %rounds, [rounds];\n    ld.param.u32 %never, [never];\n"
       << "    ld.param.u64 %out, [out];\n    mov.u32 %thread, %tid.x;\n";
  if (checks_) {
    out_ << "    .reg .b32 %one, %low, %wrong;\n    ld.param.u32 %one, [one];\n    mov.u32 %wrong, 0;\n";
  }
  if (kernel_.scale != 0) {
    out_ << "    .reg .b32 %scale;\n    mov.b32 %scale, " << kernel_.scale << ";\n";
  }
}

// %word becomes a value of this filling that differs between threads and between places.
void RoofCode::make_word(std::string_view thread, const Filling& filling) {
  if (checks_) {
    out_ << "    mov.b32 %word, %one;\n";
    return;
  }
  const unsigned int place = kHashOfPlace * ++place_;
  out_ << "    mad.lo.u32 %hash, " << thread << ", " << kHashOfThread << ", " << place << ";\n"
       << "    shr.u32 %high, %hash, 15;\n    xor.b32 %hash, %hash, %high;\n"
       << "    mul.lo.u32 %hash, %hash, " << kHashAgain << ";\n    and.b32 %hash, %hash, " << filling.mask
       << ";\n    or.b32 %word, %hash, " << filling.bits << ";\n";
}

void RoofCode::fill(std::string_view name, int registers, const Filling& filling) {
  for (int number = 0; number < registers; ++number) {
    make_word("%thread", filling);
    if (wide_) {
      out_ << "    mov.b64 %" << name << number << ", {" << (checks_ && is_fp64() ? "0" : "%word")
           << ", %word};\n";
    } else {
      out_ << "    mov.b32 %" << name << number << ", %word;\n";
    }
  }
}

void RoofCode::zero_sums() {
  for (int sum = 0; sum < sums_; ++sum) out_ << "    mov." << word() << " %sum" << sum << ", 0;\n";
}

void RoofCode::registers(std::string_view name, int first, int count) {
  out_ << '{';
  for (int number = first; number < first + count; ++number)
    out_ << (number == first ? "%" : ", %") << name << number;
  out_ << '}';
}

void RoofCode::declare_tiles() {
  out_ << "    .shared .align 1024 .b8 tiles[" << kTilesBytes << "];\n    .reg .b32 %place, %end;\n";
}

void RoofCode::fill_tiles() {
  out_ << "    mov.u32 %place, tiles;\n    add.u32 %end, %place, " << kTilesBytes << ";\n"
       << "    shl.b32 %high, %thread, 2;\n    add.u32 %place, %place, %high;\nFILL:\n";
  make_word("%place", kernel_.factor);
  out_ << "    st.shared.b32 [%place], %word;\n    add.u32 %place, %place, "
       << 4 * kernel_.threads_of_a_block()
       << ";\n    setp.lt.u32 %more, %place, %end;\n    @%more bra FILL;\n"
       << "    fence.proxy.async;\n    bar.sync 0;\n";
}

// A descriptor holds the address in units of 16 bytes.
void RoofCode::describe(std::string_view name, int from_the_beginning) {
  out_ << "    mov.u32 %place, tiles;\n    add.u32 %place, %place, " << from_the_beginning << ";\n"
       << "    shr.u32 %place, %place, 4;\n    cvt.u64.u32 %tile, %place;\n"
       << "    or.b64 %" << name << ", %tile, " << kernel_.tile_layout << ";\n";
}

// Of two words both are known: a pair has two sums, and the lower half of a small number in fp64 is zero.
void RoofCode::count_wrong_sums() {
  for (int sum = 0; sum < sums_; ++sum) {
    load_sum(sum);
    if (wide_) {
      out_ << "    mov.b64 {%low, %word}, %sum" << sum << ";\n"
           << "    setp.ne.u32 %more, %low, " << (is_fp64() ? "0" : "%never") << ";\n"
           << "    setp.ne.or.u32 %more, %word, %never, %more;\n";
    } else {
      out_ << "    mov.b32 %word, %sum" << sum << ";\n    setp.ne.u32 %more, %word, %never;\n";
    }
    out_ << "    @%more add.u32 %wrong, %wrong, 1;\n";
  }
  out_ << "    red.global.add.u32 [%out], %wrong;\n    red.global.add.u32 [%out+4], " << sums_ << ";\n";
}

void RoofCode::use_the_sums() {
  load_sum(0);
  out_ << "    mov." << word() << " %all, %sum0;\n";
  for (int sum = 1; sum < sums_; ++sum) {
    load_sum(sum);
    out_ << "    xor." << word() << " %all, %all, %sum" << sum << ";\n";
  }
  out_ << (wide_ ? "    cvt.u32.u64 %word, %all;\n" : "    mov.b32 %word, %all;\n")
       << "    setp.eq.u32 %equal, %word, %never;\n    @%equal st.global.u32 [%out], %word;\n";
}

std::string code_of(const RoofKernel& kernel) { return text_for(kernel, Purpose::speed); }

std::string check_code_of(const RoofKernel& kernel) { return text_for(kernel, Purpose::check); }

const char* const kTriadRoofCode = R"ptx(
.version 6.3
.target sm_70
.address_size 64

.visible .entry fairlap_roof_triad(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 vectors,
                                   .param .u32 passes)
{
    .reg .b32 %vectors, %passes, %first, %step, %at, %block, %threads;
    .reg .b64 %a, %b, %c, %offset, %from;
    .reg .f32 %x<4>, %y<4>;
    .reg .pred %more;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %c, [c];
    ld.param.u32 %vectors, [vectors];
    ld.param.u32 %passes, [passes];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %b, %b;
    cvta.to.global.u64 %c, %c;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %first, %tid.x;
    mad.lo.u32 %first, %block, %threads, %first;
    mov.u32 %step, %nctaid.x;
    mul.lo.u32 %step, %step, %threads;
PASS:
    mov.u32 %at, %first;
    bra LOOK;
NEXT:
    mul.wide.u32 %offset, %at, 16;
    add.u64 %from, %b, %offset;
    ld.global.cg.v4.f32 {%x0, %x1, %x2, %x3}, [%from];
    add.u64 %from, %c, %offset;
    ld.global.cg.v4.f32 {%y0, %y1, %y2, %y3}, [%from];
    fma.rn.f32 %x0, %y0, 0f3ECCCCCD, %x0;
    fma.rn.f32 %x1, %y1, 0f3ECCCCCD, %x1;
    fma.rn.f32 %x2, %y2, 0f3ECCCCCD, %x2;
    fma.rn.f32 %x3, %y3, 0f3ECCCCCD, %x3;
    add.u64 %from, %a, %offset;
    st.global.cg.v4.f32 [%from], {%x0, %x1, %x2, %x3};
    add.u32 %at, %at, %step;
LOOK:
    setp.lt.u32 %more, %at, %vectors;
    @%more bra NEXT;
    sub.u32 %passes, %passes, 1;
    setp.ne.u32 %more, %passes, 0;
    @%more bra PASS;
    ret;
}
)ptx";

}  // namespace fairlap::cuda
