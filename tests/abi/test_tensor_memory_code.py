"""The device code of products on tensor memory, read independently of the code that writes it.

No device has run it, so its descriptors, addresses, barriers and fences are compared here with what the PTX ISA says
of them: bit by bit, address by address and round by round.
"""

import re
import subprocess
from collections import deque
from pathlib import Path

import pytest

from .assemblers import Assembler, find_disassembler
from .test_roof_code import CASES, KERNELS, Kernel, round_of

pytestmark = pytest.mark.sanitized

OURS = [kernel for kernel in KERNELS if kernel.uses_tensor_memory]
each_kernel = pytest.mark.parametrize("kernel", OURS, ids=lambda kernel: f"{kernel.id}-{kernel.target}")
each_purpose = pytest.mark.parametrize("purpose", ["code", "check"])
ROWS = {"left": 128, "right": 256}
COLUMNS = 512
DISASSEMBLER = find_disassembler()

# PTX ISA, "Instruction descriptor": bits of A's and B's formats 7-9 and 10-12 by kind, of D's 4-5. With scales
# 4-5 and 29-30 choose among those of a word, and 23 is their format, of which 0 is UE4M3.
FORMATS = {
    "tf32": {"D": 1, "A": 2, "B": 2},
    "fp16": {"D": 1, "A": 0, "B": 0},
    "bf16": {"D": 1, "A": 1, "B": 1},
    "fp8": {"D": 1, "A": 0, "B": 0},
    "int8": {"D": 2, "A": 1, "B": 1},
    "fp4": {"D": 0, "A": 1, "B": 1},
}
SIZES = {"tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1, "fp4": 0.5}


def bits(word: int, first: int, last: int) -> int:
    return word >> first & (1 << (last - first + 1)) - 1


def is_deep(kernel: Kernel) -> bool:
    return ".block16 " in kernel.code


def row_bytes(kernel: Kernel) -> int:
    """Of each matrix of one instruction: as many elements as it adds up."""
    [depth] = {int(each) for each in re.findall(r"k(\d+)\.", kernel.instructions)}
    return int(depth * SIZES[kernel.number_type])


def descriptors(kernel: Kernel) -> dict[str, int]:
    """Of each side and step, with the tiles at the address 0."""
    found: dict[str, int] = {}
    pattern = re.compile(
        r"add\.u32 %place, %place, (\d+);\n\s+shr\.u32 %place, %place, 4;\n\s+cvt\.u64\.u32 %(tile|begin), %place;\n"
        r"(?:\s+shl\.b64 %begin, %begin, (\d+);\n)?\s+or\.b64 %(\w+), %\w+, (\d+|%begin);"
    )
    for offset, register, shift, name, word in pattern.findall(kernel.code):
        if register == "tile":
            found[name] = int(offset) >> 4 | int(word)
        else:
            found[name] |= int(offset) >> 4 << int(shift)
    return found


def addresses(kernel: Kernel, name: str, descriptor: int) -> set[int]:
    """Find every piece of 16 bytes that a descriptor reaches, in the layout of rows of 128 bytes that are swizzled.

    Eight rows follow each other, and the pieces of a row are exchanged by the number of the row among them.
    """
    start, groups = bits(descriptor, 0, 13) << 4, bits(descriptor, 32, 45) << 4
    reached = set()
    for row in range(ROWS[name.rstrip("0123456789")]):
        for piece in range(0, row_bytes(kernel), 16):
            place = start + row // 8 * groups + row % 8 * 128 + piece
            assert place // 128 == (start + row // 8 * groups + row % 8 * 128) // 128, "the row would wrap"
            reached.add(place ^ (place >> 7 & 7) << 4)
    return reached


@each_kernel
@each_purpose
def test_the_descriptor_of_the_instruction_names_its_types_and_shape(kernel: Kernel, purpose: str) -> None:
    [word] = re.findall(r"mov\.b32 %product, (\d+);", getattr(kernel, purpose))
    product = int(word)
    formats = FORMATS[kernel.number_type]
    assert (bits(product, 7, 9), bits(product, 10, 12)) == (formats["A"], formats["B"])
    assert bits(product, 4, 5) == formats["D"]
    assert bits(product, 17, 22) << 3 == 256
    assert bits(product, 24, 28) << 4 == 128
    assert bits(product, 31, 31) == is_deep(kernel)  # 96 elements of four bits, in place of 64
    # Dense, not saturated, nothing negated or transposed, the first scale of a word, scales in UE4M3.
    for first, last in ((0, 3), (6, 6), (13, 16), (23, 23), (29, 30)):
        assert bits(product, first, last) == 0
    used = 0b1_00_11111_0_111111_0_0_0_0_111_111_0_11_0_0_00  # no bits beside these
    assert product & ~used == 0


@each_kernel
def test_descriptors_of_matrices_have_their_constants_and_distances(kernel: Kernel) -> None:
    found = descriptors(kernel)
    steps = 128 // row_bytes(kernel)
    assert found.keys() == {f"{side}{step}" for side in ROWS for step in range(steps)}
    for name, descriptor in found.items():
        side, step = name.rstrip("0123456789"), int(name.lstrip("leftrigh"))
        tile = {"left": 0, "right": 8192}[side]
        assert bits(descriptor, 0, 13) << 4 == tile + step * row_bytes(kernel)
        assert bits(descriptor, 32, 45) << 4 == 8 * 128
        assert bits(descriptor, 46, 48) == 0b001
        assert bits(descriptor, 49, 51) == 0  # the pattern begins at multiples of 1024 bytes
        assert bits(descriptor, 52, 52) == is_deep(kernel)
        assert bits(descriptor, 16, 29) == (tile >> 4 if is_deep(kernel) else 1)
        assert bits(descriptor, 61, 63) == 2  # swizzled over 128 bytes
        for first, last in ((14, 15), (30, 31), (53, 60)):
            assert bits(descriptor, first, last) == 0
        assert tile % 1024 == 0
    assert ".shared .align 1024 .b8 tiles" in kernel.code


@each_kernel
@each_purpose
def test_every_address_that_a_descriptor_reaches_is_in_the_filled_tiles(kernel: Kernel, purpose: str) -> None:
    code = getattr(kernel, purpose)
    [declared] = re.findall(r"tiles\[(\d+)\]", code)
    [filled] = re.findall(r"add\.u32 %end, %place, (\d+);", code)
    assert declared == filled
    assert f"add.u32 %place, %place, {4 * kernel.threads};" in code  # a word of each thread, and then the next
    steps: dict[str, set[int]] = {"left": set(), "right": set()}
    for name, descriptor in descriptors(kernel).items():
        reached = addresses(kernel, name, descriptor)
        side = name.rstrip("0123456789")
        assert len(reached) == ROWS[side] * row_bytes(kernel) // 16
        assert not steps[side] & reached, "a step reads what another one has read"
        steps[side] |= reached
    assert min(min(each) for each in steps.values()) == 0
    assert max(max(each) for each in steps.values()) + 16 <= int(filled)


@each_kernel
@each_purpose
def test_sums_and_scales_have_columns_of_their_own_and_each_is_filled(kernel: Kernel, purpose: str) -> None:
    code = getattr(kernel, purpose)
    chains = {0} | {int(each) for each in re.findall(r"add\.u32 %at\d+, %at0, (\d+);", code)}
    sums = {column for chain in chains for column in range(chain, chain + 256)}
    assert len(sums) == 256 * len(chains) == kernel.sums
    filled = {
        int(column): register
        for column, register in re.findall(
            r"tcgen05\.st\.sync\.aligned\.32x32b\.x32\.b32 \[%lanes\+(\d+)\], \{(%\w+),", code
        )
    }
    assert filled.keys() == set(range(0, COLUMNS, 32))
    assert all((register == "%word") == (column in sums) for column, register in filled.items())
    read = {int(each) for each in re.findall(r"\.32x32b\.x32\.b32 \{.*\}, \[%lanes\+(\d+)\];", code)}
    assert {column + each for column in read for each in range(32)} == sums
    if kernel.number_type == "fp4":
        # A scale for every sixteen elements: at most two words of each row, of which 32 share a column.
        scales = [int(each) for each in re.findall(r"add\.u32 %(?:left|right)scales, %at0, (\d+);", code)]
        assert sums.isdisjoint(range(scales[0], COLUMNS))
        assert scales[1] - scales[0] >= 2 * 128 // 32
        assert COLUMNS - scales[1] >= 2 * 256 // 32
        assert f"mov.b32 %scale, {0x38383838};" in code


@each_kernel
@each_purpose
def test_memory_is_allocated_and_freed_once_and_every_access_is_ordered(kernel: Kernel, purpose: str) -> None:
    operations = [
        re.sub(r"^@!?%\w+ ", "", line.strip()).split()[0].rstrip(";")
        for line in getattr(kernel, purpose).splitlines()
        if line.strip()
    ]

    def last(start: str) -> int:
        return max(place for place, each in enumerate(operations) if each.startswith(start))

    def first(start: str, after: int = 0) -> int:
        return next(place for place, each in enumerate(operations) if place >= after and each.startswith(start))

    for once in ("tcgen05.alloc", "tcgen05.dealloc", "tcgen05.relinquish", "tcgen05.commit", "fence.proxy.async"):
        assert first(once) == last(once)
    assert first("tcgen05.alloc") < first("tcgen05.relinquish") < first("tcgen05.st")
    assert last("mbarrier.init") < first("fence.mbarrier_init") < first("bar.sync")
    assert last("st.shared.b32") > first("bar.sync") > first("fence.proxy.async") > first("FILL:")
    order = ["tcgen05.wait::st", "tcgen05.fence::before", "bar.sync", "tcgen05.fence::after", "tcgen05.mma"]
    place = last("tcgen05.st")
    for start in order:
        place = first(start, place)
    assert place == first("tcgen05.mma")
    assert last("tcgen05.mma") < first("tcgen05.commit") < first("mbarrier.try_wait")
    place = last("mbarrier.try_wait")
    for start in ("bar.warp.sync", "tcgen05.fence::before", "bar.sync", "tcgen05.fence::after", "tcgen05.ld"):
        place = first(start, place)
    assert place == first("tcgen05.ld")
    loads = [place for place, each in enumerate(operations) if each.startswith("tcgen05.ld")]
    assert all(operations[place + 1].startswith("tcgen05.wait::ld") for place in loads)
    assert last("tcgen05.wait::ld") < last("tcgen05.fence::before") < last("bar.sync") < first("tcgen05.dealloc")
    sizes = re.findall(r"tcgen05\.(?:alloc|dealloc)\S+ \S+, (\d+);", getattr(kernel, purpose))
    assert sizes == [str(COLUMNS)] * 2


def waits(kernel: Kernel) -> list[str]:
    """List the instructions of each of the two waits, up to the look at the barrier: in the loop, and behind it."""
    found = re.findall(
        r"\n(    xor\.b32 %barrier, %barrier, 8;\n.*?)\w+:\n    mbarrier\.try_wait", kernel.code, re.DOTALL
    )
    assert len(found) == 2
    return found


class Thread:
    """The one that issues, with the registers of its waits, and two barriers whose phases it completes by commits."""

    def __init__(self, kernel: Kernel, *, at_once: bool) -> None:
        self.waits = waits(kernel)
        [turn] = re.findall(r"mov\.u32 %turn, (\w+);", kernel.code)
        self.registers = {"barrier": 0, "turn": int(turn, 0), "parity": 0, "looks": 0}
        self.completed = {0: 0, 8: 0}  # phases
        self.running: deque[int] = deque()
        self.at_once = at_once

    def commit(self) -> None:
        self.running.append(self.registers["barrier"])
        if self.at_once:
            self.complete_one()

    def complete_one(self) -> None:
        self.completed[self.running.popleft()] += 1

    def wait(self, which: int) -> None:
        for operation, to, of, value in re.findall(r"(\w+)\.[bu]32 %(\w+), (?:%(\w+), )?(\w+);", self.waits[which]):
            number, before = int(value, 0), self.registers.get(of, 0)
            self.registers[to] = {
                "xor": before ^ number,
                "shr": before >> number,
                "and": before & number,
                "add": before + number & 0xFFFFFFFF,
                "mov": number,
            }[operation]
        # A look finds the phase before the present one completed if it has this parity.
        while self.completed[self.registers["barrier"]] % 2 == self.registers["parity"]:
            assert self.running, "a wait that never ends"
            self.complete_one()


@each_kernel
@pytest.mark.parametrize("at_once", [True, False], ids=["products end at once", "products end when waited for"])
@pytest.mark.parametrize("rounds", [1, 2, 3, 4, 5, 8, 9])
def test_a_wait_is_for_the_round_before_and_the_last_one_for_all(kernel: Kernel, rounds: int, at_once: bool) -> None:
    thread = Thread(kernel, at_once=at_once)
    for number in range(rounds):
        thread.commit()
        thread.wait(0)
        assert sum(thread.completed.values()) >= number
        if not at_once:
            assert sum(thread.completed.values()) == number, "a round waited for itself"
    thread.wait(1)
    assert sum(thread.completed.values()) == rounds


@each_kernel
@each_purpose
def test_a_wait_is_bounded_and_one_in_vain_leaves_the_sums_uncounted(kernel: Kernel, purpose: str) -> None:
    code = getattr(kernel, purpose)
    loops = re.findall(
        r"(\w+):\n    mbarrier\.try_wait[^;]*, (\d+);\n    @%ready bra AFTER_\1;\n    sub\.u32 %looks, %looks, 1;\n"
        r"    setp\.ne\.u32 %more, %looks, 0;\n    @%more bra \1;\n    bra TOGETHER;\nAFTER_\1:\n",
        code,
    )
    assert len(loops) == code.count("mbarrier.try_wait") == 2
    bounds = [int(each) for each in re.findall(r"mov\.u32 %looks, (\d+);", code)]
    assert all(looks * int(look_ns) < 5e9 for looks, (_, look_ns) in zip(bounds, loops, strict=True))
    assert min(bounds) * 10 > 2e6, "a wait in vain would be shorter than a trial"  # a look takes 10 ns at least
    ended = code.index("st.shared.b32 [ended], 1;")
    assert code.index("AFTER_LAST:") < ended < code.index("TOGETHER:\n")
    assert re.search(
        r"ld\.shared\.b32 %word, \[ended\];\n    setp\.eq\.u32 %more, %word, 0;\n    @%more bra LEAVE;", code
    )
    assert code.index("bra LEAVE") < code.index("tcgen05.ld") < code.index("LEAVE:\n") < code.index("tcgen05.dealloc")


@pytest.mark.slow
@pytest.mark.skipif(DISASSEMBLER is None, reason="nvdisasm is not installed; `make test-slow` installs it")
@each_purpose
@pytest.mark.parametrize(("kernel", "assembler", "capability"), [case for case in CASES if case.values[0] in OURS])
def test_the_machine_code_has_as_many_products_as_a_round(
    kernel: Kernel, assembler: Assembler, capability: str, purpose: str, tmp_path: Path
) -> None:
    source, cubin = tmp_path / "roof.ptx", tmp_path / "roof.cubin"
    source.write_text(getattr(kernel, purpose))
    assert assembler.assemble(source, capability, cubin).returncode == 0
    done = subprocess.run([str(DISASSEMBLER), "-c", str(cubin)], capture_output=True, text=True, check=True)
    products = re.findall(r"\bUTC[HQIO]MMA\b", done.stdout)
    assert len(products) == sum(each.startswith("tcgen05.mma") for each in round_of(kernel))
    assert len(set(products)) == 1
    assert len(re.findall(r"\bUTCBAR\b", done.stdout)) == 1
