/* SPDX-License-Identifier: Apache-2.0 */
#include "common/signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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
