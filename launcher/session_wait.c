/* SPDX-License-Identifier: Apache-2.0
 *
 * The last wait of a session: for whoever reads its standard output and error,
 * once the ranks have ended.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/clock.h"
#include "common/units.h"
#include "launcher/session_internal.h"

enum { READER_MS_MIN = 10000, SIZE_BYTES = 32 };

void session_init_wait(struct session *s)
{
    uint32_t grace_ms = s->plan->grace_ms;
    for (size_t i = 0; i < SESSION_READERS; i++) {
        patience_init(&s->readers[i],
                      grace_ms > READER_MS_MIN ? grace_ms : READER_MS_MIN);
    }
}

/* A job that went well has its output to say, and waits for whoever reads it
 * as any program in a pipe does. Of one that failed or was stopped the logs
 * have all of it. */
static bool has_limit(const struct session *s)
{
    return s->record.end != NULL &&
           (s->record.end->exit_code != 0 || s->stop_signal != 0);
}

static void give_up(struct session *s, enum console_stream stream)
{
    char size[SIZE_BYTES], limit[SIZE_BYTES];
    gpul_format_duration(limit, s->readers[stream].limit_ms);
    if (stream == CONSOLE_STDOUT && s->lost_output == 0) {
        s->lost_output = ETIMEDOUT;
        s->is_loss_late = true;
    }
    gpul_format_size(size, console_give_up(s->console, stream));
    progress_fault(&s->progress,
                   "nobody has read standard %s for %s: %s were not written%s",
                   stream == CONSOLE_STDOUT ? "output" : "error", limit, size,
                   s->plan->verb == PLAN_RUN ? "; the log files are complete"
                                             : "");
}

static void tell_wait(struct session *s, enum console_stream stream)
{
    char size[SIZE_BYTES];
    if (s->is_wait_told) {
        return;
    }
    s->is_wait_told = true;
    gpul_format_size(size, console_waiting_bytes(s->console, stream));
    progress_note(&s->progress,
                  "all ranks have ended; waiting for the reader of standard "
                  "%s, which has yet to take %s (Ctrl-C ends the wait)",
                  stream == CONSOLE_STDOUT ? "output" : "error", size);
}

void session_look_at_readers(struct session *s)
{
    bool is_over = s->record.end != NULL || s->are_ranks_over;
    for (int i = 0; is_over && i < SESSION_READERS; i++) {
        enum console_stream stream = (enum console_stream)i;
        struct patience *p = &s->readers[i];
        bool is_waiting = console_waiting_bytes(s->console, stream) > 0;
        if (!patience_look(p, is_waiting, console_written(s->console, stream),
                           gpul_clock_ms())) {
            continue;
        }
        if (has_limit(s)) {
            give_up(s, stream);
        } else {
            tell_wait(s, stream);
        }
        patience_init(p, p->limit_ms);
    }
}
