/* SPDX-License-Identifier: Apache-2.0
 *
 * The real gpulaunch-coordinator with a front end and nodes in the hands of a
 * test or a bench. The nodes are transports of this process: they dial, show
 * their key, say Hello, are welcomed and then only hold their place, with a
 * heartbeat in time. Whatever fails here ends the program with a line that
 * says what; the coordinator ends with it.
 */
#ifndef TESTS_LIB_COORDSTAGE_H
#define TESTS_LIB_COORDSTAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "common/buf.h"
#include "common/rng.h"
#include "proto/limits.h"
#include "proto/transport.h"

#define COORDSTAGE_JOB "20261201-000000-stage"
/* Nodes are n0, n1 and so on. */
#define COORDSTAGE_PREFIX "n"

struct coordstage_config {
    const char *program; /* the coordinator */
    const char *address; /* it listens on, a literal */
    const char *log;     /* file for its standard error */
    uint32_t node_count;
    bool is_insecure;
};

/* One node; zeroed but for name and key. */
struct coordstage_node {
    struct coordstage *stage;
    struct gpul_keyring *keyring; /* NULL: none */
    const Gpul__Frame *first;     /* said first; NULL: Hello */
    struct gpul_transport *transport;
    char name[32];    /* in its Hello */
    uint32_t dialled; /* how often */
    uint64_t retry_at_ms;
    uint32_t epoch; /* of its Welcome */
    bool is_welcome;
    bool is_refused;                 /* by a word of the coordinator */
    char why[GPUL_ERROR_TEXT_BYTES]; /* of its last end */
};

struct coordstage {
    struct coordstage_config config;
    uv_loop_t loop;
    uv_timer_t retry;
    uint64_t beat_at_ms; /* of all nodes at once */
    uint64_t beats;
    uint16_t port;
    pid_t pid; /* 0: it has ended */
    int status;
    struct gpul_secret secret;
    struct gpul_rng rng;
    struct gpul_transport *desk; /* to the coordinator; NULL: closed */
    /* What the front end was told. */
    uint32_t joined;
    uint32_t refused;
    bool has_end;
    struct gpul_buf notices; /* one a line */
    /* Its nodes; coordstage_join dials from `next` on. */
    struct coordstage_node *nodes;
    uint32_t node_count, next, in_flight, in_flight_max, welcome, turned_away;
};

/* Start it and give it a job; make the nodes' keys. */
void coordstage_open(struct coordstage *s, const struct coordstage_config *c);

/* The key of a node's name, for a node of that name. */
struct gpul_keyring *coordstage_key(const struct coordstage *s,
                                    const char *name);

/* Dial; what comes of it is in *n later. Its transport is NULL once it has
 * ended. */
void coordstage_dial(struct coordstage *s, struct coordstage_node *n);

/* Dial, and wait until it has ended. */
void coordstage_expect_end(struct coordstage *s, struct coordstage_node *n,
                           uint64_t limit_ms);

/* Let all the job's nodes join, at most `at_once` of them in the handshake;
 * who is turned away dials again. False: not all of them in that time. */
bool coordstage_join(struct coordstage *s, uint32_t at_once, uint64_t limit_ms);

/* Run the loop until `is_done`; false: it did not come true in that time. */
bool coordstage_until(struct coordstage *s, bool (*is_done)(const void *of),
                      const void *of, uint64_t limit_ms);

/* A number of /proc/PID/status of the coordinator, as "VmHWM": KiB. */
uint64_t coordstage_memory_kib(const struct coordstage *s, const char *field);

/* Processor time that the coordinator has had. */
uint64_t coordstage_processor_ns(const struct coordstage *s);

/* Is it alive? */
bool coordstage_is_alive(struct coordstage *s);

/* Close all, kill it, wait for it. */
void coordstage_close(struct coordstage *s);

#endif
