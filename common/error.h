/* SPDX-License-Identifier: Apache-2.0
 *
 * Statuses and the text that goes with them.
 *
 * A function that can fail returns 0 or a negative `enum gpul_status`, and
 * takes an optional `struct gpul_error *` as its last argument. Failure is
 * reported and returned in one line:
 *
 *     return gpul_fail(err, GPUL_ELIMIT, "%s: %zu bytes", name, n);
 */
#ifndef GPUL_COMMON_ERROR_H
#define GPUL_COMMON_ERROR_H

#include <stdarg.h>

/* name, number, what it means when nothing better is known */
#define GPUL_STATUS_MAP(X)                                                     \
    X(EINVAL, -1, "invalid value")                                             \
    X(ENOMEM, -2, "out of memory")                                             \
    X(ESYS, -3, "system error")                                                \
    X(EPROTO, -4, "protocol violation")                                        \
    X(ELIMIT, -5, "over a limit")                                              \
    X(ETIMEOUT, -6, "deadline reached")                                        \
    X(ENOTFOUND, -7, "not found")                                              \
    X(ECLOSED, -8, "connection closed")

enum gpul_status {
    GPUL_OK = 0,
#define X(name, number, text) GPUL_##name = number,
    GPUL_STATUS_MAP(X)
#undef X
};

enum { GPUL_ERROR_TEXT_BYTES = 512 };

/* First failure wins: whoever holds one clears it before reuse. */
struct gpul_error {
    int status;
    char text[GPUL_ERROR_TEXT_BYTES]; /* NUL-terminated, cut if too long */
};

/* The default text of a status; "unknown status" for a foreign number. */
const char *gpul_status_text(int status);

/* Fill `err` (NULL is accepted) and return `status`. */
int gpul_fail(struct gpul_error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* gpul_fail with GPUL_ESYS and ": <text of the errno value>" appended, and
 * what to do where that is known. */
int gpul_fail_errno(struct gpul_error *err, int errno_value, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* The same for a process that could not be started: EAGAIN means that there
 * may be no more of them. */
int gpul_fail_start(struct gpul_error *err, int errno_value, const char *format,
                    ...) __attribute__((format(printf, 3, 4)));

/* Put "<context>: " before the text already in `err`; returns its status,
 * or `status` when err is NULL. For context on the way up. */
int gpul_wrap(struct gpul_error *err, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
