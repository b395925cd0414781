// Drives the Verilated adder. Reads pairs of operands from standard input, and writes the value of `sum` after the
// clock edge of each pair to standard output. It computes nothing itself: src/verification/adder.rs checks the sums.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "Vfp32_adder.h"
#include "verilated.h"

namespace {

constexpr size_t kPairs = 16384;

struct Pair {
    uint32_t a, b;
};

Pair pairs[kPairs];
uint32_t sums[kPairs];

}  // namespace

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    Vfp32_adder adder;
    while (size_t count = std::fread(pairs, sizeof(Pair), kPairs, stdin)) {
        for (size_t i = 0; i < count; i++) {
            adder.a = pairs[i].a;
            adder.b = pairs[i].b;
            adder.clock = 0;
            adder.eval();
            adder.clock = 1;
            adder.eval();
            sums[i] = adder.sum;
        }
        std::fwrite(sums, sizeof sums[0], count, stdout);
    }
    return 0;
}
