/* SPDX-License-Identifier: Apache-2.0
 *
 * "host:port", with brackets around IPv6 literals: [::1]:29500. Pure.
 */
#ifndef GPUL_COMMON_HOSTPORT_H
#define GPUL_COMMON_HOSTPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

enum { GPUL_HOST_BYTES = 254 }; /* DNS's 253 and the NUL */

struct gpul_hostport {
    char host[GPUL_HOST_BYTES]; /* without brackets */
    uint16_t port;
};

/* Errors: GPUL_EINVAL, with what is wrong in the text. */
int gpul_hostport_parse(struct gpul_hostport *out, const char *text,
                        struct gpul_error *err);

/* Append host:port, with brackets if `host` has a colon. */
int gpul_hostport_append(struct gpul_buf *out, const char *host, uint16_t port);

/* 127.0.0.0/8, ::1, the v4-mapped form of it, or the name localhost. */
bool gpul_host_is_loopback(const char *host);

#endif
