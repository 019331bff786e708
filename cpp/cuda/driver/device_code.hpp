#pragma once

namespace fairlap::cuda {

constexpr const char* kEmptyKernel = "fairlap_empty";
constexpr const char* kSpinGateKernel = "fairlap_spin_gate";
constexpr const char* kSpinNsKernel = "fairlap_spin_ns";
constexpr const char* kSpinCyclesKernel = "fairlap_spin_cycles";
constexpr const char* kClockRateKernel = "fairlap_clock_rate";
constexpr const char* kTimerStepsKernel = "fairlap_timer_steps";
constexpr const char* kLongestPauseKernel = "fairlap_longest_pause";

// Written by hand, assembled by the driver when it is loaded. Every kernel runs as one thread and ends
// by itself: a device must never hang because its host died.
//
//   fairlap_empty()
//   fairlap_spin_gate(u64 flag, u32 ticket, u64 bound_ns)
//       spins until (s32)(flag[0] - ticket) >= 0; after bound_ns writes ticket to flag[1] and ends
//   fairlap_spin_ns(u64 ns, u64 stamps)
//       spins for ns of %globaltimer; stamps, when not 0, gets the first and the last reading
//   fairlap_spin_cycles(u64 cycles, u64 stamps)
//       the same by %clock64
//   fairlap_clock_rate(u64 ns, u64 readings)
//       waits until %globaltimer steps and spins for ns of it; readings gets %globaltimer and %clock64 at its
//       first step and at its last. A reading between steps may be old by one, which is a microsecond on some
//       devices.
//   fairlap_timer_steps(u64 readings, u32 count)
//       writes count successive different readings of %globaltimer
//   fairlap_longest_pause(u64 ns, u64 longest)
//       reads %globaltimer for ns, and writes the longest time between two readings to longest[0]
constexpr const char* kDeviceCode = R"ptx(
.version 6.3
.target sm_70
.address_size 64

.visible .entry fairlap_empty()
{
    ret;
}

.visible .entry fairlap_spin_gate(.param .u64 flag, .param .u32 ticket, .param .u64 bound_ns)
{
    .reg .pred %open, %over;
    .reg .b32 %wanted, %seen, %ahead;
    .reg .b64 %address, %bound, %begin, %now;
    ld.param.u64 %address, [flag];
    ld.param.u32 %wanted, [ticket];
    ld.param.u64 %bound, [bound_ns];
    mov.u64 %begin, %globaltimer;
LOOK:
    ld.volatile.global.u32 %seen, [%address];
    sub.s32 %ahead, %seen, %wanted;
    setp.ge.s32 %open, %ahead, 0;
    @%open bra DONE;
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %over, %now, %bound;
    @%over bra LOOK;
    st.volatile.global.u32 [%address + 4], %wanted;
DONE:
    ret;
}

.visible .entry fairlap_spin_ns(.param .u64 ns, .param .u64 stamps)
{
    .reg .pred %more, %quiet;
    .reg .b64 %length, %out, %begin, %now, %spent;
    ld.param.u64 %length, [ns];
    ld.param.u64 %out, [stamps];
    mov.u64 %begin, %globaltimer;
SPIN:
    mov.u64 %now, %globaltimer;
    sub.u64 %spent, %now, %begin;
    setp.lt.u64 %more, %spent, %length;
    @%more bra SPIN;
    setp.eq.u64 %quiet, %out, 0;
    @%quiet bra END;
    st.volatile.global.u64 [%out], %begin;
    st.volatile.global.u64 [%out + 8], %now;
END:
    ret;
}

.visible .entry fairlap_spin_cycles(.param .u64 cycles, .param .u64 stamps)
{
    .reg .pred %more, %quiet;
    .reg .b64 %length, %out, %begin, %now, %spent;
    ld.param.u64 %length, [cycles];
    ld.param.u64 %out, [stamps];
    mov.u64 %begin, %clock64;
SPIN:
    mov.u64 %now, %clock64;
    sub.u64 %spent, %now, %begin;
    setp.lt.u64 %more, %spent, %length;
    @%more bra SPIN;
    setp.eq.u64 %quiet, %out, 0;
    @%quiet bra END;
    st.volatile.global.u64 [%out], %begin;
    st.volatile.global.u64 [%out + 8], %now;
END:
    ret;
}

.visible .entry fairlap_clock_rate(.param .u64 ns, .param .u64 readings)
{
    .reg .pred %same, %more;
    .reg .b64 %length, %out, %last, %begin, %first, %now, %cycles, %spent;
    ld.param.u64 %length, [ns];
    ld.param.u64 %out, [readings];
    mov.u64 %last, %globaltimer;
EDGE:
    mov.u64 %begin, %globaltimer;
    mov.u64 %first, %clock64;
    setp.eq.u64 %same, %begin, %last;
    @%same bra EDGE;
SPIN:
    mov.u64 %now, %globaltimer;
    mov.u64 %cycles, %clock64;
    sub.u64 %spent, %now, %begin;
    setp.lt.u64 %more, %spent, %length;
    @%more bra SPIN;
    st.volatile.global.u64 [%out], %begin;
    st.volatile.global.u64 [%out + 8], %first;
    st.volatile.global.u64 [%out + 16], %now;
    st.volatile.global.u64 [%out + 24], %cycles;
    ret;
}

.visible .entry fairlap_timer_steps(.param .u64 readings, .param .u32 count)
{
    .reg .pred %same, %more;
    .reg .b32 %left;
    .reg .b64 %out, %last, %now;
    ld.param.u64 %out, [readings];
    ld.param.u32 %left, [count];
    mov.u64 %last, %globaltimer;
NEXT:
    mov.u64 %now, %globaltimer;
    setp.eq.u64 %same, %now, %last;
    @%same bra NEXT;
    mov.u64 %last, %now;
    st.volatile.global.u64 [%out], %now;
    add.u64 %out, %out, 8;
    sub.u32 %left, %left, 1;
    setp.ne.u32 %more, %left, 0;
    @%more bra NEXT;
    ret;
}

.visible .entry fairlap_longest_pause(.param .u64 ns, .param .u64 longest)
{
    .reg .pred %more;
    .reg .b64 %length, %out, %begin, %last, %now, %pause, %most, %spent;
    ld.param.u64 %length, [ns];
    ld.param.u64 %out, [longest];
    mov.u64 %begin, %globaltimer;
    mov.u64 %last, %begin;
    mov.u64 %most, 0;
READ:
    mov.u64 %now, %globaltimer;
    sub.u64 %pause, %now, %last;
    max.u64 %most, %most, %pause;
    mov.u64 %last, %now;
    sub.u64 %spent, %now, %begin;
    setp.lt.u64 %more, %spent, %length;
    @%more bra READ;
    st.volatile.global.u64 [%out], %most;
    ret;
}
)ptx";

}  // namespace fairlap::cuda
