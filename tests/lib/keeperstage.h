/* SPDX-License-Identifier: Apache-2.0
 *
 * A keeper in a process of its own, with agents that do nothing but hand their
 * end of the pair to the test: so the test is the agent, and an agent's death
 * is a death like any other.
 *
 * Every wait has a bound and fails the test.
 */
#ifndef TESTS_LIB_KEEPERSTAGE_H
#define TESTS_LIB_KEEPERSTAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "worker/keeperwire.h"
#include "worker/startspec.h"

enum { STAGE_WAIT_MS = 120000, STAGE_JOB_BYTES = 32 };

struct keeperstage {
    pid_t keeper;
    pid_t agent;
    int socket;                /* the agent's end; -1: none */
    int control;               /* where agents announce themselves */
    char job[STAGE_JOB_BYTES]; /* unique, for the marker */
    const char *root;          /* before open: of the keeper */
    bool has_bad_agents;       /* before open: they end at once */
    void (*in_keeper)(void);   /* before open: called before it starts */
    void (*forget)(void *arg); /* before open: of the keeper */
};

void stage_init(struct keeperstage *s);
void stage_open(struct keeperstage *s);

/* The next agent; reads STATE into `mail`. */
void stage_take_agent(struct keeperstage *s, struct keeper_mail *mail);

/* End an agent that is there, and forget its socket. */
void stage_kill_agent(struct keeperstage *s);

void stage_send(struct keeperstage *s, const struct keeper_packet *packet);
void stage_say(struct keeperstage *s, enum keeper_packet_type type,
               int32_t signal);
void stage_begin(struct keeperstage *s, uint32_t ranks, uint32_t orphan_ms);

/* START of "/bin/sh -c script" with its marker; stdout and stderr are pipes
 * that are kept. Returns the reading end of stdout if `out` is wanted. */
void stage_start(struct keeperstage *s, uint32_t slot, const char *script,
                 int *out);

/* START of anything, without descriptors but the standard three. */
void stage_start_spec(struct keeperstage *s, uint32_t slot,
                      const struct startspec *spec);

/* The next packet, which must be of this type. */
void stage_expect(struct keeperstage *s, struct keeper_mail *mail,
                  enum keeper_packet_type type);

/* LEAVE and the keeper's end, with this code. */
void stage_leave(struct keeperstage *s, int exit_code);

/* The keeper's wait status. An agent that is left ends by itself then. */
int stage_wait(struct keeperstage *s);

/* Processes with this job's marker. */
size_t stage_count(const struct keeperstage *s);

/* Wait until there are so many. */
void stage_await_count(const struct keeperstage *s, size_t count);

/* Read one line of a script's output. */
void stage_read_line(int fd, char *line, size_t bytes);

size_t stage_open_fds(pid_t pid);

#endif
