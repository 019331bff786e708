"""What kernels show of a machine's first processor in /proc/cpuinfo, as owners of such machines published it."""

from __future__ import annotations

from collections.abc import Mapping

_X86_OF_ALL = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2"
_ARM_OF_ALL = "fp asimd evtstrm"


def _x86(maker: str, model: str, flags: str) -> str:
    return f"processor\t: 0\nvendor_id\t: {maker}\nmodel name\t: {model}\nflags\t\t: {_X86_OF_ALL} {flags}\n\n"


def _arm(part: str, variant: str, mips: str, features: str) -> str:
    return (
        f"processor\t: 0\nBogoMIPS\t: {mips}\nFeatures\t: {_ARM_OF_ALL} {features}\nCPU implementer\t: 0x41\n"
        f"CPU architecture: 8\nCPU variant\t: {variant}\nCPU part\t: {part}\n\n"
    )


DESCRIBED: Mapping[str, str] = {
    "Sapphire Rapids": _x86(
        "GenuineIntel",
        "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
        "ss ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology nonstop_tsc cpuid tsc_known_freq pni "
        "pclmulqdq ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx f16c rdrand hypervisor lahf_lm "
        "abm 3dnowprefetch ssbd ibrs ibpb stibp ibrs_enhanced fsgsbase tsc_adjust bmi1 avx2 smep bmi2 erms invpcid rtm "
        "avx512f avx512dq rdseed adx smap avx512ifma clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec "
        "xgetbv1 xsaves avx_vnni avx512_bf16 arat avx512vbmi umip avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni "
        "avx512_bitalg avx512_vpopcntdq la57 rdpid cldemote movdiri movdir64b fsrm md_clear serialize tsxldtrk "
        "amx_bf16 avx512_fp16 amx_tile amx_int8 arch_capabilities",
    ),
    "Ice Lake": _x86(
        "GenuineIntel",
        "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz",
        "ss ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology tsc_reliable nonstop_tsc cpuid "
        "aperfmperf tsc_known_freq pni pclmulqdq vmx ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt "
        "tsc_deadline_timer aes xsave avx f16c rdrand hypervisor lahf_lm abm 3dnowprefetch tpr_shadow ept vpid ept_ad "
        "fsgsbase tsc_adjust bmi1 hle avx2 smep bmi2 erms invpcid rtm avx512f avx512dq rdseed adx smap avx512ifma "
        "clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec xgetbv1 xsaves vnmi avx512vbmi umip "
        "avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq la57 rdpid fsrm "
        "arch_capabilities",
    ),
    "Zen 4": _x86(
        "AuthenticAMD",
        "AMD EPYC 9654 96-Core Processor",
        "ht syscall nx mmxext fxsr_opt pdpe1gb rdtscp lm constant_tsc rep_good amd_lbr_v2 nopl xtopology nonstop_tsc "
        "cpuid extd_apicid aperfmperf rapl pni pclmulqdq monitor ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt "
        "aes xsave avx f16c rdrand lahf_lm cmp_legacy svm extapic cr8_legacy abm sse4a misalignsse 3dnowprefetch osvw "
        "ibs skinit wdt tce topoext perfctr_core perfctr_nb bpext perfctr_llc mwaitx cpb cat_l3 cdp_l3 hw_pstate ssbd "
        "mba perfmon_v2 ibrs ibpb stibp ibrs_enhanced vmmcall fsgsbase bmi1 avx2 smep bmi2 erms invpcid cqm rdt_a "
        "avx512f avx512dq rdseed adx smap avx512ifma clflushopt clwb avx512cd sha_ni avx512bw avx512vl xsaveopt xsavec "
        "xgetbv1 xsaves cqm_llc cqm_occup_llc cqm_mbm_total cqm_mbm_local user_shstk avx512_bf16 clzero irperf "
        "xsaveerptr rdpru wbnoinvd amd_ppin cppc arat npt lbrv svm_lock nrip_save tsc_scale vmcb_clean flushbyasid "
        "decodeassists pausefilter pfthreshold avic v_vmsave_vmload vgif x2avic v_spec_ctrl vnmi avx512vbmi umip pku "
        "ospke avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq la57 rdpid overflow_recov "
        "succor smca fsrm flush_l1d debug_swap",
    ),
    "Neoverse V2": _arm(
        "0xd4f",
        "0x0",
        "2000.00",
        "aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 sm3 sm4 asimddp "
        "sha512 sve asimdfhm dit uscat ilrcpc flagm sb paca pacg dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 "
        "flagm2 frint svei8mm svebf16 i8mm bf16 dgh bti",
    ),
    "Neoverse V1": _arm(
        "0xd40",
        "0x1",
        "2100.00",
        "aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc dcpop sha3 sm3 sm4 asimddp "
        "sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs paca pacg dcpodp svei8mm svebf16 i8mm bf16 dgh rng",
    ),
    "Neoverse N1": _arm(
        "0xd0c",
        "0x3",
        "50.00",
        "aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs",
    ),
    "Cortex-A72": _arm("0xd08", "0x0", "108.00", "crc32 cpuid"),
}
