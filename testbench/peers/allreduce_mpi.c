/* One rank of an Open MPI job that only sums vectors. Its output has the format of reduce_times.
   Arguments: floats, measured rounds, rounds before the measured ones, element type (f32, bf16 or f16).

   MPI has no 16-bit types: a user-defined operation adds them in 32 bits and rounds each sum to nearest even. Only
   finite numbers occur. */
#include <mpi.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static float of_bf16(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}

static uint16_t to_bf16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

static void add_bf16(void *in, void *sum, int *count, MPI_Datatype *type) {
    (void)type;
    const uint16_t *restrict a = in;
    uint16_t *restrict b = sum;
    for (int at = 0; at < *count; at++) b[at] = to_bf16(of_bf16(a[at]) + of_bf16(b[at]));
}

static void add_f16(void *in, void *sum, int *count, MPI_Datatype *type) {
    (void)type;
    const _Float16 *restrict a = in;
    _Float16 *restrict b = sum;
    for (int at = 0; at < *count; at++) b[at] = (_Float16)((float)a[at] + (float)b[at]);
}

/* How the elements of a vector are stored and added. */
struct elements {
    MPI_Datatype type;
    MPI_Op add;
    size_t size;
    int is_bf16;
};

static struct elements elements_named(const char *name) {
    struct elements found = {MPI_FLOAT, MPI_SUM, sizeof(float), !strcmp(name, "bf16")};
    if (strcmp(name, "f32")) {
        found.type = MPI_UINT16_T;
        found.size = sizeof(uint16_t);
        MPI_Op_create(found.is_bf16 ? add_bf16 : add_f16, 1, &found.add);
    }
    return found;
}

static void put(struct elements *how, void *vector, int at, float x) {
    if (how->size == sizeof(float)) ((float *)vector)[at] = x;
    else if (how->is_bf16) ((uint16_t *)vector)[at] = to_bf16(x);
    else ((_Float16 *)vector)[at] = (_Float16)x;
}

static float get(const struct elements *how, const void *vector, int at) {
    if (how->size == sizeof(float)) return ((const float *)vector)[at];
    if (how->is_bf16) return of_bf16(((const uint16_t *)vector)[at]);
    return (float)((const _Float16 *)vector)[at];
}

/* The element of a worker's vector: an integer, so that sums are exact. With 16 bits, sums have eight bits. */
static float value(const struct elements *how, int rank, int at) {
    return how->size == sizeof(float) ? rank + 1 + at % 1024 : rank % 4 + 1 + at % 8;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec * 1e-6 + usage.ru_stime.tv_sec + usage.ru_stime.tv_usec * 1e-6;
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, workers;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &workers);
    if (count != 5) {
        fprintf(stderr, "allreduce_mpi FLOATS ROUNDS WARM_UP TYPE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int floats = atoi(arguments[1]), rounds = atoi(arguments[2]), warm_up = atoi(arguments[3]);
    struct elements how = elements_named(arguments[4]);
    void *own = malloc(how.size * floats), *sum = malloc(how.size * floats);
    double *times = malloc(sizeof(double) * rounds);
    if (!own || !sum || !times) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int at = 0; at < floats; at++) put(&how, own, at, value(&how, rank, at));
    for (int round = 0; round < warm_up; round++)
        MPI_Allreduce(own, sum, floats, how.type, how.add, MPI_COMM_WORLD);
    double cpu = cpu_seconds();
    for (int round = 0; round < rounds; round++) {
        double begin = MPI_Wtime();
        MPI_Allreduce(own, sum, floats, how.type, how.add, MPI_COMM_WORLD);
        times[round] = (MPI_Wtime() - begin) * 1e6;
    }
    cpu = cpu_seconds() - cpu;
    for (int at = 0; at < floats; at++) {
        float expected = 0;
        for (int other = 0; other < workers; other++) expected += value(&how, other, at);
        if (get(&how, sum, at) != expected) {
            fprintf(stderr, "element %d of the sum is %g, expected %g\n", at, get(&how, sum, at), expected);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    qsort(times, rounds, sizeof(double), compare);
    int p99 = rounds * 99 / 100;
    printf("{\"rank\":%d,\"rounds\":%d,\"us_p50\":%.3f,\"us_p99\":%.3f,\"us_min\":%.3f,\"cpu_seconds\":%.6f,\"peak_rss_kib\":%ld}\n",
           rank, rounds, times[rounds / 2], times[p99 < rounds ? p99 : rounds - 1], times[0], cpu, usage.ru_maxrss);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
