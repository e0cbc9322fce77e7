/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said over the standard streams of a worker that was started by a
 * remote shell, before it joins. Text, so that it can be read in a trace, and
 * fixed, so that every release understands the first line of every other:
 *
 *   worker, standard output:  gpulaunch-worker remote 1 0.1.0 1 1
 *   front end, standard input: orders 1
 *                              job 20261130-221500-3f9a2c41
 *                              node node07
 *                              join-timeout-ms 30000
 *                              coordinator 10.0.0.1:40123
 *                              coordinator [fd00::1]:40124
 *                              key 0123..ef
 *                              end
 *
 * The numbers are this form's version, the release, and the oldest and newest
 * protocol of the control channel. `coordinator` stands once for each address
 * that may be tried, in order. `key none` stands where none is asked for: that
 * is never told by leaving it out. Pure.
 *
 * A shell may print lines of its own before the first; nothing of the orders
 * is in any command line or environment.
 */
#ifndef GPUL_PROTO_ORDERS_H
#define GPUL_PROTO_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/hostport.h"
#include "proto/limits.h"

/* Of the form; it changes only if an old one could not be understood. */
#define GPUL_ORDERS_VERSION 1u

#define GPUL_ORDERS_BYTES_MAX (4u << 10)
#define GPUL_GREETING_BYTES_MAX 256u
#define GPUL_ORDERS_KEY_DIGITS 64u

/* After the orders: end now, as by SIGTERM. */
#define GPUL_ORDERS_STOP "stop\n"

struct gpul_greeting {
    uint32_t form; /* GPUL_ORDERS_VERSION */
    char version[GPUL_VERSION_BYTES_MAX + 1];
    uint32_t protocol_min;
    uint32_t protocol_max;
};

struct gpul_orders {
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    char node_name[GPUL_NAME_BYTES_MAX + 1];
    uint32_t join_timeout_ms;
    struct gpul_hostport coordinators[GPUL_COORDINATORS_MAX];
    uint32_t coordinator_count;
    char key[GPUL_ORDERS_KEY_DIGITS + 1]; /* "" if is_insecure */
    bool is_insecure;                     /* no key is asked for */
};

/* Append this program's greeting. GPUL_ELIMIT. */
int gpul_greeting_append(struct gpul_buf *out);

/* Is this line (without newline) a greeting? Then *out is filled. One of
 * another form has its `form` and nothing else. */
bool gpul_greeting_parse(struct gpul_greeting *out, const char *line);

/* Append the orders. GPUL_ELIMIT. */
int gpul_orders_append(struct gpul_buf *out, const struct gpul_orders *orders);

/* Take one line, without newline; *is_whole is set by "end". The caller
 * starts with orders that are all zero. GPUL_EINVAL naming the line's word,
 * never its value, which may be a key. */
int gpul_orders_take(struct gpul_orders *orders, bool *is_whole,
                     const char *line, struct gpul_error *err);

#endif
