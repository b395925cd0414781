// Drives the Verilated accelerator. Reads commands from standard input and writes frames to standard output (see
// src/simulation/verilated.rs for the format). It behaves like src/simulation/rust_device.rs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "Viswitch_accel.h"
#include "verilated.h"

namespace {

constexpr unsigned kDrainCycles = 600, kResetCycles = 4, kWakeCycles = 300, kBeat = 32;
constexpr unsigned kStallCycles = 20'000, kEndlessCycles = 1'000'000;

// Codes of BoardError in src/simulation/device.rs.
enum Failure : uint8_t { kStalled, kEndless, kKeepGap, kShortBeat };

struct Beat {
    uint8_t data[kBeat];
    uint32_t keep;
    bool last;
    uint16_t len;
    uint8_t source, destination;
};

Viswitch_accel top;
std::deque<Beat> beats;
std::vector<uint8_t> arriving;
uint8_t arriving_source, arriving_destination, source_pause, sink_pause;
bool offered;
uint64_t cycle, fed, started, ended, taken, state = 0x9E3779B97F4A7C15ull;
unsigned idle;

uint64_t random64() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

bool pauses(uint8_t code) {
    if (code == 0) return false;
    return code == 255 ? cycle % 4 == 3 : random64() % 100 < code;
}

void get(void* bytes, size_t count) {
    if (std::fread(bytes, 1, count, stdin) != count) std::exit(0);
}

template <typename T>
T get() {
    T value;
    get(&value, sizeof value);
    return value;
}

template <typename T>
void put(T value) {
    std::fwrite(&value, 1, sizeof value, stdout);
}

[[noreturn]] void fail(Failure failure) {
    put<uint8_t>('X');
    put<uint8_t>(failure);
    std::exit(0);
}

void take_output() {
    idle = 0;
    ended = cycle;
    uint32_t keep = top.m_axis_tkeep;
    if (keep & (keep + 1)) fail(kKeepGap);
    if (arriving.empty()) {
        arriving_source = top.m_axis_tuser[0] >> 16;
        arriving_destination = top.m_axis_tuser[0] >> 24;
    }
    uint8_t data[kBeat];
    std::memcpy(data, &top.m_axis_tdata, kBeat);
    arriving.insert(arriving.end(), data, data + __builtin_popcount(keep));
    if (!top.m_axis_tlast) {
        if (keep != 0xffffffffu) fail(kShortBeat);
        return;
    }
    put<uint8_t>('F');
    put<uint16_t>(arriving.size());
    put<uint8_t>(arriving_source);
    put<uint8_t>(arriving_destination);
    std::fwrite(arriving.data(), 1, arriving.size(), stdout);
    arriving.clear();
}

void step(bool open) {
    cycle++;
    bool source_pauses = pauses(source_pause), sink_pauses = pauses(sink_pause);
    offered = open && !beats.empty() && (offered || !source_pauses);
    top.s_axis_tvalid = offered;
    if (offered) {
        const Beat& beat = beats.front();
        std::memcpy(&top.s_axis_tdata, beat.data, kBeat);
        top.s_axis_tkeep = beat.keep;
        top.s_axis_tlast = beat.last;
        top.s_axis_tuser[0] = beat.len | beat.source << 16 | uint32_t(beat.destination) << 24;
    }
    top.m_axis_tready = open && !sink_pauses;
    top.axis_aclk = 0;
    top.eval();
    idle++;
    bool accepted = offered && top.s_axis_tready;
    if (accepted) {
        idle = 0;
        fed = cycle;
        taken++;
        if (!started) started = cycle;
        ended = cycle;
    }
    if (open && !sink_pauses && top.m_axis_tvalid) take_output();
    top.axis_aclk = 1;
    top.eval();
    if (accepted) {
        beats.pop_front();
        offered = false;
    }
}

void reset() {
    beats.clear();
    arriving.clear();
    offered = false;
    top.axis_resetn = 0;
    for (unsigned i = 0; i < kResetCycles; i++) step(false);
    top.axis_resetn = 1;
    for (unsigned i = 0; i < kWakeCycles; i++) step(false);
}

// Queues a frame, or only its first bytes if `cut` is smaller than its length.
void queue_frame(uint16_t cut = UINT16_MAX) {
    uint16_t len = get<uint16_t>();
    uint8_t source = get<uint8_t>(), destination = get<uint8_t>();
    std::vector<uint8_t> bytes(len);
    get(bytes.data(), len);
    size_t end = cut < len ? cut : len;
    for (size_t at = 0; at < end; at += kBeat) {
        Beat beat;
        size_t count = end - at < kBeat ? end - at : kBeat;
        std::memset(beat.data, 0xee, kBeat);
        std::memcpy(beat.data, &bytes[at], count);
        beat.keep = 0xffffffffu >> (kBeat - count);
        beat.last = at + kBeat >= end;
        beat.len = len;
        beat.source = source;
        beat.destination = destination;
        beats.push_back(beat);
    }
}

// Simulates one cycle of a loop that ends only if the board makes progress. Fails if it does not.
void step_or_give_up() {
    step(true);
    if (idle >= kStallCycles) fail(kStalled);
    if (cycle - fed >= kEndlessCycles) fail(kEndless);
}

void send_queued() {
    for (idle = 0, fed = cycle; !beats.empty();) step_or_give_up();
}

void write_register() {
    top.S_AXI_AWADDR = get<uint16_t>();
    top.S_AXI_WDATA = get<uint32_t>();
    top.S_AXI_AWVALID = top.S_AXI_WVALID = top.S_AXI_BREADY = 1;
    step(true);
    top.S_AXI_AWVALID = top.S_AXI_WVALID = 0;
    step(true);
    step(true);
}

void read_register() {
    top.S_AXI_ARADDR = get<uint16_t>();
    top.S_AXI_ARVALID = top.S_AXI_RREADY = 1;
    idle = 0;
    fed = cycle;
    step(true);
    top.S_AXI_ARVALID = 0;
    while (!top.S_AXI_RVALID) step_or_give_up();
    put<uint8_t>('V');
    put<uint32_t>(top.S_AXI_RDATA);
    step(true);
    std::fflush(stdout);
}

void drain() {
    for (idle = 0, fed = cycle; idle < kDrainCycles;) step_or_give_up();
}

}  // namespace

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    reset();
    for (;;) {
        switch (get<uint8_t>()) {
            case 'S':
                queue_frame();
                send_queued();
                break;
            case 'C':
                queue_frame(get<uint16_t>());
                send_queued();
                break;
            case 'X': {
                uint8_t count = get<uint8_t>();
                queue_frame();
                if (beats.size() > count) beats.resize(count);
                send_queued();
                reset();
                break;
            }
            case 'D':
                drain();
                break;
            case 'W':
                write_register();
                break;
            case 'R':
                read_register();
                break;
            case 'P':
                source_pause = get<uint8_t>();
                sink_pause = get<uint8_t>();
                break;
            case 'E':
                drain();
                put<uint8_t>('E');
                put<uint64_t>(started ? ended - started + 1 : 0);
                put<uint64_t>(taken);
                std::fflush(stdout);
                started = taken = 0;
                break;
            default:
                std::fprintf(stderr, "device: unknown command\n");
                return 1;
        }
    }
}
