/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user sees of the launch: one live line on a terminal, plain lines
 * elsewhere and no more of them than needed. Edge (it writes to the console).
 */
#ifndef LAUNCHER_PROGRESS_H
#define LAUNCHER_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "launcher/console.h"
#include "launcher/plan.h"
#include "launcher/status.h"

struct progress {
    struct console *console;
    const struct plan *plan;
    struct status status;
    uint64_t started_ms;
    uint64_t next_ms; /* of the live line, or of the next plain line */
    /* Why the job is being stopped: said when the end is not there at once,
     * since the last line says it too. */
    char *stopping;
    uint64_t stopping_ms; /* when to say it, UINT64_MAX: not */
    char *said;           /* plain lines: the wait that was told last */
    bool is_live;         /* a terminal that can redraw a line */
    bool has_color;
};

/* Errors: GPUL_ENOMEM. */
int progress_init(struct progress *p, struct console *console,
                  const struct plan *plan, uint64_t now_ms);
void progress_release(struct progress *p);

/* The coordinator tells something. */
void progress_event(struct progress *p, const Gpul__Event *event,
                    uint64_t now_ms);

/* Redraw or remind, if it is time to. */
void progress_tick(struct progress *p, uint64_t now_ms);

/* When progress_tick has something to do; UINT64_MAX: nothing ahead. */
uint64_t progress_next_ms(const struct progress *p);

/* One line "gpulaunch: ..." of ours, also with --quiet. */
void progress_fault(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, but not with --quiet. */
void progress_note(struct progress *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
