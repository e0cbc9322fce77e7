/* SPDX-License-Identifier: Apache-2.0
 *
 * What NCCL logs: with NCCL_DEBUG and NCCL_DEBUG_FILE set, lines of a log, as
 * many bytes as the scenario says (`debug`), and then of each communicator.
 * Source: NCCL src/debug.cc, ncclDebugInit: the file is opened by fopen(...,
 * "w") and written by lines. */
#include "tests/doubles/nccl_debug.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/doubles/scenario.h"

__attribute__((constructor)) static void debug_log(void)
{
    const char *level = getenv("NCCL_DEBUG");
    const char *path = getenv("NCCL_DEBUG_FILE");
    const struct scenario *scenario = scenario_get();
    FILE *log = level && path ? fopen(path, "w") : NULL;

    if (!log)
        return;
    (void)setvbuf(log, NULL, _IOLBF, 0);
    int written = fprintf(log, "NCCL double, code %d\n", (int)scenario->nccl);
    for (uint64_t bytes = written > 0 ? (uint64_t)written : 0;
         written > 0 && bytes < scenario->debug_bytes;
         bytes += (uint64_t)written)
        written =
            fprintf(log, "%s:%d NCCL INFO byte %llu of the log\n",
                    scenario->node, (int)getpid(), (unsigned long long)bytes);
    (void)fclose(log);
}

void nccl_debug(const char *format, ...)
{
    const char *level = getenv("NCCL_DEBUG");
    const char *path = getenv("NCCL_DEBUG_FILE");
    FILE *log = level && path ? fopen(path, "a") : NULL;
    va_list arguments;

    if (!log)
        return;
    (void)fprintf(log, "%s:%d NCCL INFO ", scenario_get()->node, (int)getpid());
    va_start(arguments, format);
    (void)vfprintf(log, format, arguments);
    va_end(arguments);
    (void)fputc('\n', log);
    (void)fclose(log);
}
