/* SPDX-License-Identifier: Apache-2.0
 *
 * A coordinator in the hands of a test: it starts the real gpulaunch-worker,
 * sends what the test says, and waits, with a bound, for what must come.
 * Heartbeats are acknowledged, output is collected and credited meanwhile.
 */
#ifndef TESTS_LIB_DESK_H
#define TESTS_LIB_DESK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "proto/frame.h"
#include "proto/message.h"

enum {
    DESK_EPOCH = 3,
    DESK_PATIENCE_MS = 120000, /* of every wait: then the test fails */
    DESK_OUTPUT_MAX = 1 << 20, /* kept of each stream; all is counted */
};

struct desk {
    int listener;
    int fd; /* connection to the worker, -1 */
    uint16_t port;
    char job[40];     /* ID of the job: no other desk has it, since a worker */
                      /* kills whatever carries its job's marker */
    pid_t worker;     /* 0: waited for */
    int worker_error; /* reading end of the worker's stderr */
    struct gpul_deframer in;
    uint32_t generation;
    char log_dir[128]; /* a new folder each; the job's is below it */
    uint32_t world_size;
    uint16_t port_base;
    bool gives_credit;
    bool acknowledges; /* heartbeats */
    uint32_t heartbeats;
    /* What came from the ranks. */
    struct gpul_buf streams[2]; /* first DESK_OUTPUT_MAX of stdout, stderr */
    uint64_t output_bytes;
    uint64_t output_hash; /* FNV-1a of all stdout */
    uint64_t uncredited;
    struct gpul_buf notices; /* one a line */
};

/* The program that is started as the worker; NULL: the real one. */
extern const char *desk_worker;

/* What the next Welcome grants: so long that no load of the machine ends it,
 * unless a test is about that. */
extern uint32_t desk_lease_ms;

/* Listen, start a worker, let it connect. */
void desk_open(struct desk *d);

/* The worker must end with this code; its stderr into `text` if not NULL
 * (512 bytes). Removes everything. */
void desk_close(struct desk *d, int exit_code, char *text);

/* The same for a worker that was killed by this signal. */
void desk_reap(struct desk *d, int signal);

/* Send one frame, stamped. */
void desk_send(struct desk *d, Gpul__Frame *frame);

/* The next frame that is neither heartbeat nor output nor notice: it must be
 * of this kind. The caller releases it. */
Gpul__Frame *desk_expect(struct desk *d, Gpul__Frame__BodyCase kind);

/* The same of whatever kind. */
Gpul__Frame *desk_expect_any(struct desk *d);

/* Take in what comes until `is_done` says so, failing at the bound. */
void desk_until(struct desk *d, bool (*is_done)(const struct desk *d));

/* Take in what comes until so many more heartbeats have. They come in order
 * with the output, so they tell that no more of it is on the way. */
void desk_await_heartbeats(struct desk *d, uint32_t count);

/* Hello, Welcome, Job (this command, through sh -c unless argv is given),
 * Assign, Ready, Roster: the worker then is ASSIGNED. */
void desk_prepare(struct desk *d, uint32_t ranks, const char *script);
void desk_prepare_command(struct desk *d, uint32_t ranks, int argc,
                          const char *const *argv);

/* The agent has died: take the next one's connection. It must be number
 * `attach` of its keeper, and hold the present generation; it is told all but
 * Launch of it. */
void desk_attach(struct desk *d, uint32_t attach, const char *script);

/* Change the Job before it is sent; NULL: as it is. For the test. */
extern void (*desk_edit_job)(Gpul__Job *job);

/* A new generation: Assign, Ready, Roster. */
void desk_assign(struct desk *d, uint32_t ranks);

/* Exits of all of `ranks` ranks; `first` receives a copy of the numbers of
 * the exit of the rank of that number (NULL: all must be successes). */
struct desk_exit {
    uint32_t rank; /* in: which */
    uint32_t code;
    uint32_t signal;
    uint32_t exec_errno;
    bool is_bind_error;
    char text[256];
    char log[256];
};
void desk_expect_exits(struct desk *d, uint32_t ranks, struct desk_exit *one);

/* Idle, with this many unclean. */
void desk_expect_idle(struct desk *d, size_t unclean);

/* Do processes whose command line holds this text exist? */
bool desk_sees_process(const char *text);

/* How many processes, ourselves not counted, hold this text in their
 * environment. */
unsigned desk_count_processes(const char *text);

void desk_launch(struct desk *d, uint32_t attempt);
void desk_stop(struct desk *d, int signal, uint32_t grace_ms);
void desk_finish(struct desk *d, bool keeps_logs);
void desk_credit(struct desk *d, uint64_t bytes);

/* Text that a rank has written so far. */
const char *desk_output(struct desk *d, int stream);

#endif
