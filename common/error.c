/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *gpul_status_text(int status)
{
    switch (status) {
    case GPUL_OK:
        return "success";
#define X(name, number, text)                                                  \
    case GPUL_##name:                                                          \
        return text;
        GPUL_STATUS_MAP(X)
#undef X
    default:
        return "unknown status";
    }
}

__attribute__((format(printf, 3, 0))) static void
set_text(struct gpul_error *err, int status, const char *format, va_list args)
{
    err->status = status;
    vsnprintf(err->text, sizeof(err->text), format, args);
}

int gpul_fail(struct gpul_error *err, int status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        set_text(err, status, format, args);
        va_end(args);
    }
    return status;
}

/* What the user can do, where the system's words do not lead there. */
static const char *advice(int errno_value)
{
    return errno_value == EMFILE   ? "; raise ulimit -n"
           : errno_value == ENFILE ? "; raise sysctl fs.file-max"
           : errno_value == ENOMEM ? "; this machine, or its cgroup, is short "
                                     "of memory"
                                   : "";
}

__attribute__((format(printf, 4, 0))) static void
set_system_text(struct gpul_error *err, int errno_value, const char *what_to_do,
                const char *format, va_list args)
{
    set_text(err, GPUL_ESYS, format, args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s%s",
             strerror(errno_value), what_to_do);
}

int gpul_fail_errno(struct gpul_error *err, int errno_value, const char *format,
                    ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        set_system_text(err, errno_value, advice(errno_value), format, args);
        va_end(args);
    }
    return GPUL_ESYS;
}

int gpul_fail_start(struct gpul_error *err, int errno_value, const char *format,
                    ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        set_system_text(err, errno_value,
                        errno_value == EAGAIN
                            ? "; raise ulimit -u, or pids.max of the cgroup"
                            : advice(errno_value),
                        format, args);
        va_end(args);
    }
    return GPUL_ESYS;
}

int gpul_wrap(struct gpul_error *err, int status, const char *format, ...)
{
    if (err == NULL) {
        return status;
    }
    struct gpul_error inner = *err;
    va_list args;
    va_start(args, format);
    set_text(err, inner.status, format, args);
    va_end(args);
    size_t used = strlen(err->text);
    snprintf(err->text + used, sizeof(err->text) - used, ": %s", inner.text);
    return inner.status;
}
