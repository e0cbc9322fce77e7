/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/remote.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/writeall.h"
#include "proto/secret.h"

enum { ORDERS_MS = 60000 };

static int greet(struct gpul_error *err)
{
    struct gpul_buf line;
    gpul_buf_init(&line, GPUL_GREETING_BYTES_MAX);
    int why = gpul_greeting_append(&line) != 0
                  ? ENOMEM
                  : gpul_write_all(STDOUT_FILENO, line.data, line.used);
    gpul_buf_release(&line);
    return why == 0
               ? 0
               : gpul_fail_errno(err, why, "cannot write to standard output");
}

/* Byte by byte: what comes behind the orders is not ours. */
static int read_byte(char *c, uint64_t end_ms, struct gpul_error *err)
{
    for (;;) {
        uint64_t now_ms = gpul_clock_ms();
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        if (now_ms >= end_ms) {
            return gpul_fail(err, GPUL_ETIMEOUT,
                             "the front end gave no orders within %d s",
                             ORDERS_MS / 1000);
        }
        if (poll(&p, 1, (int)(end_ms - now_ms)) <= 0) {
            continue;
        }
        ssize_t n = read(STDIN_FILENO, c, 1);
        if (n == 1) {
            return 0;
        }
        if (n == 0) {
            return gpul_fail(err, GPUL_ECLOSED,
                             "standard input ended before the orders did; "
                             "gpulaunch starts this program itself");
        }
        if (errno != EINTR && errno != EAGAIN) {
            return gpul_fail_errno(err, errno, "reading standard input");
        }
    }
}

static int read_line(char *line, size_t n, size_t *total, uint64_t end_ms,
                     struct gpul_error *err)
{
    size_t used = 0;
    for (;;) {
        int rc = read_byte(&line[used], end_ms, err);
        if (rc != 0) {
            return rc;
        }
        if (line[used] == '\n') {
            line[used] = '\0';
            return strlen(line) == used
                       ? 0
                       : gpul_fail(err, GPUL_EINVAL,
                                   "a zero byte in the orders");
        }
        if (++used == n || ++*total > GPUL_ORDERS_BYTES_MAX) {
            return gpul_fail(err, GPUL_ELIMIT,
                             "standard input does not hold orders: it is too "
                             "long for them");
        }
    }
}

int remote_take_orders(struct gpul_orders *out, struct gpul_error *err)
{
    char line[GPUL_NAME_BYTES_MAX + GPUL_TOKEN_BYTES_MAX];
    uint64_t end_ms = gpul_clock_ms() + ORDERS_MS;
    size_t total = 0;
    bool is_whole = false;
    *out = (struct gpul_orders){0};
    int rc = greet(err);
    while (rc == 0 && !is_whole) {
        rc = read_line(line, sizeof(line), &total, end_ms, err);
        if (rc == 0) {
            rc = gpul_orders_take(out, &is_whole, line, err);
        }
    }
    gpul_wipe(line, sizeof(line));
    return rc;
}

void remote_remove_copy(void)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0) {
        return;
    }
    path[n] = '\0';
    unlink(path);
    char *slash = strrchr(path, '/');
    if (slash != NULL && slash != path) {
        *slash = '\0';
        rmdir(path);
    }
}
