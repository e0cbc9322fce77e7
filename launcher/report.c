/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/report.h"

#include <string.h>

#include "common/error.h"

int report_sentence(struct gpul_buf *out, const Gpul__JobEnd *end,
                    const char *log_dir)
{
    const char *text = end->text[0] != '\0' ? end->text : end->reason;
    gpul_buf_append_text(out, text);
    if (end->log[0] != '\0') {
        if (strstr(text, end->log) == NULL) {
            gpul_buf_appendf(out, "; its log: %s", end->log);
        }
    } else if (end->has_rank && log_dir != NULL && log_dir[0] != '\0') {
        gpul_buf_appendf(out, "; logs: %s", log_dir);
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}
