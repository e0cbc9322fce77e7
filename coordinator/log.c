/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/log.h"

#include <stdio.h>

void log_line(const char *text)
{
    fprintf(stderr, "gpulaunch-coordinator: %s\n", text);
}
