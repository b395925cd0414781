/* Asynchronous workers, which do not wait for each other: one thread submits vectors, and another receives the sums.
 * Each sum contains as many vectors as there are workers, but these need not come from different workers.
 *
 * With the Debian package libiswitch-dev:
 *
 *   cc asynchronous.c $(pkg-config --cflags --libs iswitch) -pthread -o asynchronous
 *
 * In the root directory of the repository, without the package (the program loads the library by its SONAME):
 *
 *   cargo build --release -p iswitch-c -p iswitch-daemon
 *   ln -sf libiswitch.so target/release/libiswitch.so.0.1
 *   cc worker-lib/c-interface/examples/asynchronous.c -Iworker-lib/c-interface/include -Ltarget/release -Wl,-rpath,target/release -liswitch -pthread -o asynchronous
 *   target/release/iswitchd --udp 127.0.0.1:7711 &
 *   ./asynchronous 127.0.0.1:7711 2 0 & ./asynchronous 127.0.0.1:7711 2 1
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "iswitch.h"

enum { LEN = 10119, VECTORS = 50 };

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, iswitch_last_error());
    exit(EXIT_FAILURE);
}

/* State of the thread that receives the sums; a training program would apply them to its model. */
struct taker {
    iswitch_async_worker *worker;
    double total;
    unsigned contributions;
};

static void *take(void *argument)
{
    struct taker *taker = argument;
    static float sum[LEN];
    for (int i = 0; i < VECTORS; i++) {
        iswitch_aggregate aggregate;
        if (iswitch_async_recv_sum(taker->worker, sum, LEN, &aggregate) != ISWITCH_STATUS_OK)
            fail("recv_sum");
        taker->total += sum[LEN - 1];
        taker->contributions += aggregate.contributions;
    }
    return NULL;
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
    options.rank = (uint16_t)rank;
    options.gradient_len = LEN;

    struct taker taker = {0};
    if (iswitch_async_join(&options, &taker.worker) != ISWITCH_STATUS_OK)
        fail("join");
    pthread_t thread;
    if (pthread_create(&thread, NULL, take, &taker) != 0)
        fail("thread");

    static float vector[LEN];
    for (int k = 0; k < LEN; k++)
        vector[k] = (float)(rank + 1);
    for (int i = 0; i < VECTORS; i++)
        if (iswitch_async_submit(taker.worker, vector, LEN) != ISWITCH_STATUS_OK)
            fail("submit");
    pthread_join(thread, NULL);

    /* Each vector is part of exactly one aggregate. */
    const double expected = (double)VECTORS * workers * (workers + 1) / 2;
    printf("%d sums of %u gradients\n", VECTORS, taker.contributions);
    if (taker.total != expected || taker.contributions != (unsigned)(VECTORS * workers)) {
        fprintf(stderr, "the sums add up to %g, expected %g\n", taker.total, expected);
        return EXIT_FAILURE;
    }
    iswitch_async_leave(taker.worker);
    return EXIT_SUCCESS;
}
