/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ends of a channel and the wire between them, which is a loop in
 * memory: whole, cut into pieces, or with a byte changed.
 */
#ifndef TESTS_LIB_CHANNELPAIR_H
#define TESTS_LIB_CHANNELPAIR_H

#include "common/buf.h"
#include "proto/channel.h"

#define PAIR_JOB "job-1"
#define PAIR_NODE "alpha"
#define PAIR_INBOX_BYTES_MAX (16u << 20)

/* One end, and what came out of it. */
struct pair_end {
    struct gpul_channel *channel;
    struct gpul_buf inbox; /* plain bytes */
    struct gpul_error why; /* status 0: it stands */
};

struct pair {
    struct gpul_keyring *keyrings[2];
    struct pair_end client, server;
    size_t piece; /* bytes that the wire carries at once; 0: all */
};

/* The secret whose bytes are all alike but the last. */
struct gpul_secret pair_secret(uint8_t fill);

/* A node of this name, job and secret, and the coordinator of PAIR_JOB with
 * pair_secret(1). Nothing has been carried yet. */
void pair_init(struct pair *p, uint8_t fill, const char *job_id,
               const char *node_name);
void pair_release(struct pair *p);

/* Give n bytes to one end, in pieces of `piece`, and take what comes out. */
void pair_put(struct pair_end *to, const uint8_t *bytes, size_t n,
              size_t piece);

/* Take the output of an end: into `out`, which is initialised here. */
void pair_take(struct gpul_buf *out, struct pair_end *from);

/* Carry what one end has for the other; how many bytes that were. */
size_t pair_carry(struct pair *p, struct pair_end *from, struct pair_end *to);

/* Carry both ways until there is nothing more. */
void pair_run(struct pair *p);

#endif
