/* One rank of an Open MPI job that only sums vectors. Its output has the format of reduce_times.
   Arguments: floats, measured rounds, rounds before the measured ones. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

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
    if (count != 4) {
        fprintf(stderr, "allreduce_mpi FLOATS ROUNDS WARM_UP\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    int floats = atoi(arguments[1]), rounds = atoi(arguments[2]), warm_up = atoi(arguments[3]);
    float *own = malloc(sizeof(float) * floats), *sum = malloc(sizeof(float) * floats);
    double *times = malloc(sizeof(double) * rounds);
    if (!own || !sum || !times) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int at = 0; at < floats; at++) own[at] = rank + 1 + at % 1024;
    for (int round = 0; round < warm_up; round++)
        MPI_Allreduce(own, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double cpu = cpu_seconds();
    for (int round = 0; round < rounds; round++) {
        double begin = MPI_Wtime();
        MPI_Allreduce(own, sum, floats, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        times[round] = (MPI_Wtime() - begin) * 1e6;
    }
    cpu = cpu_seconds() - cpu;
    for (int at = 0; at < floats; at++) {
        float expected = workers * (workers + 1) / 2 + (float)workers * (at % 1024);
        if (sum[at] != expected) {
            fprintf(stderr, "element %d of the sum is %g, expected %g\n", at, sum[at], expected);
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
