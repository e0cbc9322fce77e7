/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeperwatch.h"

void keeperwatch_init(struct keeperwatch *w, uint64_t now_ms)
{
    *w = (struct keeperwatch){.at_ms = now_ms + KEEPERWATCH_ASK_MS};
}

enum keeperwatch_due keeperwatch_look(struct keeperwatch *w, uint64_t now_ms)
{
    if (now_ms < w->at_ms) {
        return KEEPERWATCH_NOTHING;
    }
    if (!w->is_asked) {
        w->is_asked = true;
        w->at_ms = now_ms + KEEPERWATCH_ANSWER_MS;
        return KEEPERWATCH_ASK;
    }
    if (now_ms - w->at_ms > KEEPERWATCH_STALL_MS) {
        w->at_ms = now_ms + KEEPERWATCH_AGAIN_MS;
        return KEEPERWATCH_NOTHING;
    }
    if (!w->is_killed) {
        w->is_killed = true;
        w->at_ms = now_ms + KEEPERWATCH_KILL_MS;
        return KEEPERWATCH_KILL;
    }
    w->at_ms = UINT64_MAX;
    return KEEPERWATCH_GIVE_UP;
}

void keeperwatch_answered(struct keeperwatch *w, uint64_t now_ms)
{
    if (w->is_asked && !w->is_killed) {
        keeperwatch_init(w, now_ms);
    }
}
