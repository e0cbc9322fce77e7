/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of the way over ssh share: reach_ssh.c decides which node is
 * tried when, reach_ssh_session.c has one session. Nobody else includes this.
 */
#ifndef LAUNCHER_REACH_SSH_INTERNAL_H
#define LAUNCHER_REACH_SSH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "common/rng.h"
#include "launcher/localaddr.h"
#include "launcher/reach_internal.h"
#include "launcher/sshwords.h"

enum { SSH_LINE_BYTES = 512 };

enum ssh_state {
    SSH_WAITING = 0, /* for its turn, or for another try */
    SSH_STARTING,    /* ssh runs, the worker has not greeted */
    SSH_GREETED,     /* it has its orders */
    SSH_DONE,        /* it will not be tried again */
};

struct ssh_way;

struct ssh_node {
    struct ssh_way *way;
    uint32_t index;
    enum ssh_state state;
    uint32_t tries;
    uint64_t retry_ms;          /* not before */
    bool has_greeted;           /* in this try */
    enum ssh_fault fault;       /* found by ourselves; OTHER: none */
    char found[SSH_LINE_BYTES]; /* and what was found */
    uv_pipe_t *in; /* its standard input; NULL: none. Each on the heap, since */
    uv_pipe_t *out; /* a handle that is closing cannot be used again */
    char line[SSH_LINE_BYTES]; /* of its output, as far as it has come */
    size_t used;
};

struct ssh_way {
    struct reach *reach;
    const struct plan *plan;
    struct listening listening; /* ports and addresses only */
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    struct gpul_secret secret;
    bool is_sealed;
    char **ssh;       /* the command and its options, NULL-terminated; owned */
    char *script;     /* the command there; owned */
    uint8_t *program; /* --copy-worker: the worker's file, mapped; NULL */
    size_t program_bytes;
    struct localaddr *addresses; /* by node */
    struct ssh_node *nodes;
    uint32_t starting;
    uint32_t at_once; /* so many may be */
    uint32_t next;    /* no node before it waits */
    uint64_t join_ms; /* by then all have to have greeted */
    bool is_stopping;
    bool is_closed;
    uv_timer_t timer;
    struct gpul_rng rng;
};

/* Start ssh for this node. Errors: GPUL_ESYS. */
int ssh_session_start(struct ssh_node *node, struct gpul_error *err);

/* Write to its standard input; the bytes are copied. */
void ssh_session_write(struct ssh_node *node, const void *bytes, size_t n);

/* Close what is open of its streams. */
void ssh_session_close(struct ssh_node *node);

/* reach_ssh.c: the worker has greeted, or has turned out to be of no use. */
void ssh_greeted(struct ssh_node *node);

/* reach_ssh_prepare.c: make the state of the way, as reach_way asks. */
int ssh_prepare(struct reach *r, const struct plan *plan,
                struct listening *listening, struct gpul_error *err);

/* The ssh command of the plan as words; the caller frees with ssh_free_words.
 * The first is a path. Errors: GPUL_ENOTFOUND, GPUL_EINVAL, GPUL_ENOMEM. */
int ssh_command_words(char ***words, const struct plan *plan,
                      struct gpul_error *err);
void ssh_free_words(char **words);

#endif
