/* SPDX-License-Identifier: Apache-2.0 */
#include "common/signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"

/* Of Linux, for programs: glibc keeps 32 and 33. */
enum { REAL_TIME_MIN = 34, REAL_TIME_MAX = 64 };

const char *gpul_format_signal(char out[GPUL_SIGNAL_TEXT_BYTES],
                               uint32_t number)
{
    const char *name = number < NSIG ? sigabbrev_np((int)number) : NULL;
    if (name == NULL) {
        snprintf(out, GPUL_SIGNAL_TEXT_BYTES, "signal %" PRIu32, number);
    } else {
        snprintf(out, GPUL_SIGNAL_TEXT_BYTES, "signal %" PRIu32 " (SIG%s)",
                 number, name);
    }
    return out;
}

/* The signal of this name, without "SIG"; 0: none. */
static uint32_t find_name(const char *name)
{
    for (int number = 1; number < REAL_TIME_MIN; number++) {
        const char *known = sigabbrev_np(number);
        if (known != NULL && strcasecmp(known, name) == 0) {
            return (uint32_t)number;
        }
    }
    return 0;
}

/* "RTMIN", "RTMIN+3", "RTMAX-1"; 0: none of these. */
static uint32_t find_real_time(const char *name)
{
    enum { PREFIX = 5, SPAN = REAL_TIME_MAX - REAL_TIME_MIN };
    bool is_low = strncasecmp(name, "RTMIN", PREFIX) == 0;
    bool is_high = strncasecmp(name, "RTMAX", PREFIX) == 0;
    uint32_t steps = 0;
    if (!is_low && !is_high) {
        return 0;
    }
    if (name[PREFIX] != 0 &&
        (name[PREFIX] != (is_low ? '+' : '-') ||
         gpul_parse_count(&steps, name + PREFIX + 1, 0, SPAN, NULL) != 0)) {
        return 0;
    }
    return is_low ? REAL_TIME_MIN + steps : REAL_TIME_MAX - steps;
}

int gpul_parse_signal(uint32_t *out, const char *text, struct gpul_error *err)
{
    const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
    uint32_t number = 0;
    if (gpul_parse_count(&number, text, 1, REAL_TIME_MAX, NULL) != 0) {
        number = find_name(name);
    }
    if (number == 0) {
        number = find_real_time(name);
    }
    if (number == 0 ||
        (number < REAL_TIME_MIN && sigabbrev_np((int)number) == NULL)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%.40s\" is no signal; use a name or number such "
                         "as USR1 or 10",
                         text);
    }
    *out = number;
    return 0;
}

const char *gpul_signal_meaning(uint32_t number)
{
    static const char *const meanings[NSIG] = {
        [SIGABRT] = "it aborted itself",
        [SIGBUS] = "bus error: memory, or a mapped file, that is not there",
        [SIGFPE] = "arithmetic error, as a division by zero",
        [SIGILL] = "illegal instruction",
        [SIGPIPE] = "the reader of its output was gone",
        [SIGSEGV] = "segmentation fault",
        [SIGSYS] = "a system call that is not allowed here",
        [SIGTRAP] = "trap, as of a failed check",
        [SIGXCPU] = "over its limit of CPU time",
        [SIGXFSZ] = "over its limit of file size",
    };
    return number < NSIG ? meanings[number] : NULL;
}
