/* Sums a vector over all workers of a job ten times, and checks each result.
 *
 * With the Debian package libiswitch-dev:
 *
 *   cc all_reduce.c $(pkg-config --cflags --libs iswitch) -o all_reduce
 *
 * In the root directory of the repository, without the package (the program loads the library by its SONAME):
 *
 *   cargo build --release -p iswitch-c -p iswitch-daemon
 *   ln -sf libiswitch.so target/release/libiswitch.so.0.1
 *   cc worker-lib/c-interface/examples/all_reduce.c -Iworker-lib/c-interface/include -Ltarget/release -Wl,-rpath,target/release -liswitch -o all_reduce
 *   target/release/iswitchd --udp 127.0.0.1:7711 &
 *   ./all_reduce 127.0.0.1:7711 2 0 & ./all_reduce 127.0.0.1:7711 2 1
 */
#include <stdio.h>
#include <stdlib.h>

#include "iswitch.h"

enum { LEN = 10119, ROUNDS = 10 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, iswitch_last_error());
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s ADDRESS:PORT WORKERS RANK\n", argv[0]);
        return EXIT_FAILURE;
    }
    const int workers = atoi(argv[2]), rank = atoi(argv[3]);

    iswitch_join_options options;
    iswitch_join_options_init(&options);
    options.switch_address = argv[1];
    options.workers = (uint16_t)workers;
    options.gradient_len = LEN;

    iswitch_worker *worker;
    if (iswitch_join(&options, &worker) != ISWITCH_STATUS_OK)
        return fail("join");

    static float vector[LEN];
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < LEN; k++)
            vector[k] = (float)(rank + i + k % 7);
        iswitch_round round;
        if (iswitch_all_reduce(worker, vector, LEN, &round) != ISWITCH_STATUS_OK)
            return fail("all_reduce");
        const int ranks = workers * (workers - 1) / 2;
        for (int k = 0; k < LEN; k++) {
            const float expected = (float)(ranks + workers * (i + k % 7));
            if (vector[k] != expected) {
                fprintf(stderr, "round %u [%d]: %g, expected %g\n", round.number, k, vector[k], expected);
                return EXIT_FAILURE;
            }
        }
        printf("round %u: sum of %u gradients\n", round.number, round.contributors);
    }
    if (iswitch_leave(worker) != ISWITCH_STATUS_OK)
        return fail("leave");
    return EXIT_SUCCESS;
}
