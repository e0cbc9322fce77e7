/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenario: what the doubles pretend. A text file, named by
 * GPULAUNCH_DOUBLE_SCENARIO, says which devices a node has and what goes
 * wrong where; docs/doubles.md has its grammar. Every process reads it for
 * the one node that it belongs to.
 */
#ifndef DOUBLES_SCENARIO_H
#define DOUBLES_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCENARIO_GPUS_MAX = 512, /* on one node */
    SCENARIO_FAULTS_MAX = 64,
    SCENARIO_LINKS_MAX = 64,
    SCENARIO_HIDDEN_MAX = 32,
    SCENARIO_TEXT = 96,  /* bytes of a text, NUL included */
    SCENARIO_ANY = -1,   /* a fault that holds for every rank, GPU, call */
    SCENARIO_ERROR = 256 /* bytes that hold every message */
};

/* One device as its node's driver would tell it. Numbers are 64 bits wide
 * whatever their meaning, so that one table can fill them. */
struct scenario_gpu {
    char uuid[SCENARIO_TEXT]; /* "GPU-8-4-4-4-12", as NVML writes it */
    char model[SCENARIO_TEXT];
    uint64_t pci; /* domain << 16 | bus << 8 | device */
    uint64_t memory_bytes;
    uint64_t used_bytes; /* in use by nobody that can be named */
    uint64_t process;    /* PID said to hold used_bytes; 0: none */
    uint64_t lingers_ms; /* how long memory outlives its process */
    uint64_t has_ecc;    /* 0: queries say "not supported" */
    uint64_t ecc_mode;
    uint64_t ecc_corrected;
    uint64_t ecc_uncorrected;
    uint64_t remap_corrected;
    uint64_t remap_uncorrected;
    uint64_t remap_pending;
    uint64_t remap_failed;
    uint64_t mig;
    uint64_t nvlinks; /* links that are up */
    uint64_t nvlink_version;
    uint64_t pcie_gen;
    uint64_t pcie_width;
    uint64_t pcie_max_gen;
    uint64_t pcie_max_width;
    uint64_t clock_sm; /* MHz, as are the next three */
    uint64_t clock_mem;
    uint64_t max_clock_sm;
    uint64_t max_clock_mem;
    uint64_t throttle; /* NVML's bit mask of reasons */
    uint64_t temperature;
    uint64_t temperature_limit; /* where the hardware slows it down */
    uint64_t power_w;
    uint64_t power_limit_w;
    uint64_t compute_mode;
    uint64_t persistence;
    uint64_t utilization;
    uint64_t lost; /* has fallen off the bus: NVML says so to every query */
};

/* Where a fault may strike. The first four come before a process knows its
 * rank, so a fault there is chosen by node, and at context by GPU too. */
enum scenario_point {
    POINT_FACTS,      /* nvmlInit */
    POINT_CUINIT,     /* cuInit */
    POINT_CONTEXT,    /* cuDevicePrimaryCtxRetain */
    POINT_UID,        /* ncclGetUniqueId */
    POINT_INIT,       /* ncclCommInit*, before the rank checks in at the root */
    POINT_CONNECT,    /* the same, when every rank has checked in */
    POINT_SPLIT,      /* ncclCommSplit, before the ranks tell their groups */
    POINT_COLLECTIVE, /* each of the next five */
    POINT_ALLREDUCE,
    POINT_ALLGATHER,
    POINT_REDUCESCATTER,
    POINT_BROADCAST,
    POINT_SENDRECV,
    POINT_FINALIZE,
    POINT_DESTROY,
    POINT_ABORT,
    POINT_COUNT
};

enum scenario_action {
    ACTION_NEVER_ARRIVES,
    ACTION_LATE,
    ACTION_HANG,
    ACTION_STALL,
    ACTION_CODE,
    ACTION_SIGNAL,
    ACTION_FLIP,
    ACTION_SLOW
};

struct scenario_fault {
    enum scenario_action action;
    enum scenario_point point;
    int rank; /* SCENARIO_ANY, as are gpu and call */
    int gpu;
    int call; /* from 1, counted for each rank and point */
    int code;
    int signal;
    uint64_t wait_ms; /* of late; of signal: how long after the call */
    uint64_t element;
    unsigned bit;
    double factor;
};

/* What a transfer between two nodes costs; patterns as of fnmatch(3). */
struct scenario_link {
    char from[SCENARIO_TEXT];
    char to[SCENARIO_TEXT];
    uint64_t latency_ns;
    uint64_t bytes_per_s; /* 0: no limit */
};

struct scenario {
    char node[SCENARIO_TEXT];
    uint64_t gpu_count;
    uint64_t cuda;      /* as cuDriverGetVersion: 12080 is 12.8 */
    uint64_t nccl;      /* as ncclGetVersion: 22809 is 2.28.9 */
    uint64_t cuda_init; /* result of cuInit and nvmlInit; 0: as it should */
    uint64_t nvml_init;
    uint64_t context_bytes; /* device memory that a context takes */
    uint64_t debug_bytes;   /* that libnccl logs when it is loaded */
    char driver[SCENARIO_TEXT];
    char nvml[SCENARIO_TEXT];
    struct scenario_gpu *gpus;
    struct scenario_fault faults[SCENARIO_FAULTS_MAX];
    int fault_count;
    struct scenario_link links[SCENARIO_LINKS_MAX];
    int link_count;
    char hidden[SCENARIO_HIDDEN_MAX][SCENARIO_TEXT]; /* missing symbols */
    int hidden_count;
};

/* Reads `text` for `node`. 0, or -1 with "LINE:COLUMN: what is wrong" in
 * `error` and `scenario` released. */
int scenario_parse(struct scenario *scenario, const char *text,
                   const char *node, char error[SCENARIO_ERROR]);
void scenario_release(struct scenario *scenario);

/* The scenario of this process, read at the first call; never NULL, and for
 * ever the same. Without GPULAUNCH_DOUBLE_SCENARIO it is a node without a
 * device. A file that cannot be read or is wrong ends the process with
 * SIGABRT and one line on stderr: no test may run on half a scenario.
 * Safe from several threads. */
const struct scenario *scenario_get(void);

/* Path of the scenario's file, or NULL without one. */
const char *scenario_path(void);

#endif
