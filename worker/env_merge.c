/* SPDX-License-Identifier: Apache-2.0
 *
 * Three sorted lists become one: for each name the user's -x wins, then what
 * is claimed, then what was inherited. Every conflict is one line for the
 * user, all that is dropped is one line together.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "worker/env_plan.h"
#include "worker/env_rules.h"
#include "worker/put.h"

enum { SHOWN_BYTES = 60 }; /* of a value in a notice */

/* What there is for one name. */
struct trio {
    const char *name;
    const struct env_given *user;
    const struct env_claim *claim;
    const struct env_given *inherited;
};

static const char *shorten(struct env_plan *p, const char *value)
{
    const char *tail = strlen(value) > SHOWN_BYTES ? "..." : "";
    const char *text = env_plan_format(p, "%.*s%s", SHOWN_BYTES, value, tail);
    return text == NULL ? "" : text;
}

/* The value that some rank of this node gets and that is not `value`, or
 * NULL if all agree with it. */
static const char *differing(struct env_plan *p, const struct env_claim *c,
                             const char *value)
{
    if (c->put == NULL) {
        return strcmp(c->value, value) == 0 ? NULL : c->value;
    }
    for (uint32_t i = 0; i < p->rank_count; i++) {
        char *text = env_plan_alloc(p, c->bytes_max + 1);
        if (text == NULL) {
            return NULL;
        }
        c->put(text, p, i);
        if (strcmp(text, value) != 0) {
            return text;
        }
    }
    return NULL;
}

/* What stands instead, in words that are the same on all nodes: equal lines
 * of many nodes become one. */
static const char *name_ours(struct env_plan *p, const struct env_claim *c,
                             const char *ours)
{
    if (c->put != NULL) {
        return "each rank's own";
    }
    return c->is_per_node ? "each node's own" : shorten(p, ours);
}

static void note_user(struct env_plan *p, const struct trio *t)
{
    if (t->claim == NULL || t->claim->strength != ENV_IDENTITY) {
        return;
    }
    const char *ours = differing(p, t->claim, t->user->value);
    if (ours != NULL) {
        env_plan_note(p, "%s=%s, given with -x, stands in place of %s", t->name,
                      shorten(p, t->user->value), name_ours(p, t->claim, ours));
    }
}

static struct env_slot slot_of_user(struct env_plan *p, const struct trio *t)
{
    note_user(p, t);
    return (struct env_slot){
        .name = t->name,
        .value = t->user->value,
        .string = t->user->string,
        .action = ENV_KEPT,
        .rule = "given with -x",
    };
}

static struct env_slot slot_inherited(const struct trio *t,
                                      enum env_action action, const char *rule)
{
    return (struct env_slot){
        .name = t->name,
        .value = t->inherited->value,
        .string = action == ENV_DROPPED ? NULL : t->inherited->string,
        .action = action,
        .rule = rule,
    };
}

static struct env_slot slot_of_default(struct env_plan *p, const struct trio *t)
{
    const char *ours = t->claim->value; /* NULL: each rank's own */
    if (!t->claim->is_quiet && !p->is_nested &&
        (ours == NULL || strcmp(ours, t->inherited->value) != 0)) {
        env_plan_note(p,
                      "%s=%s is kept from your environment (gpulaunch's "
                      "default is %s)",
                      t->name, shorten(p, t->inherited->value),
                      name_ours(p, t->claim, ours));
    }
    const char *rule =
        env_plan_format(p, "your own; by default %s", t->claim->rule);
    return slot_inherited(t, ENV_KEPT, rule);
}

static void note_replaced(struct env_plan *p, const struct trio *t,
                          const char *ours)
{
    if (t->claim->is_quiet || p->is_nested) {
        return;
    }
    env_plan_note(p, "%s=%s from your environment is replaced by %s", t->name,
                  shorten(p, t->inherited->value),
                  name_ours(p, t->claim, ours));
}

static struct env_slot slot_of_claim(struct env_plan *p, const struct trio *t)
{
    const struct env_claim *c = t->claim;
    struct env_slot slot = {
        .name = t->name,
        .value = c->value,
        .action = ENV_SET,
        .rule = c->rule,
    };
    if (c->value != NULL) {
        slot.string = env_plan_format(p, "%s=%s", t->name, c->value);
    } else {
        slot.claim = c;
        p->rank_bytes += strlen(t->name) + c->bytes_max + sizeof("=");
    }
    if (t->inherited == NULL) {
        return slot;
    }
    const char *ours = differing(p, c, t->inherited->value);
    if (ours != NULL) {
        note_replaced(p, t, ours);
        slot.inherited = t->inherited->value;
        slot.action = c->put == NULL ? ENV_REPLACED : ENV_SET;
    }
    return slot;
}

/* Settle one name; false if nothing is left to say about it. */
static bool settle(struct env_plan *p, const struct trio *t,
                   struct env_slot *out, bool *is_notable)
{
    *is_notable = false;
    if (t->user != NULL) {
        *out = slot_of_user(p, t);
        return true;
    }
    if (t->claim != NULL && t->claim->strength != ENV_ABSENT) {
        bool is_kept = t->claim->strength == ENV_TUNING && t->inherited != NULL;
        *out = is_kept ? slot_of_default(p, t) : slot_of_claim(p, t);
        return true;
    }
    if (t->inherited == NULL) {
        return false;
    }
    if (t->claim != NULL) {
        *is_notable = !p->is_nested;
        *out = slot_inherited(t, ENV_DROPPED, t->claim->rule);
        return true;
    }
    const char *rule = env_scrub_rule(p, t->name, is_notable);
    *out = rule == NULL ? slot_inherited(t, ENV_INHERITED, "inherited")
                        : slot_inherited(t, ENV_DROPPED, rule);
    return true;
}

static int compare_claims(const void *a, const void *b)
{
    return strcmp(((const struct env_claim *)a)->name,
                  ((const struct env_claim *)b)->name);
}

static const char *lower(const char *a, const char *b)
{
    return a == NULL || (b != NULL && strcmp(b, a) < 0) ? b : a;
}

static bool is_named(const char *candidate, const char *name)
{
    return candidate != NULL && strcmp(candidate, name) == 0;
}

/* Take the lowest name off the three lists; false at their end. */
static bool next_trio(const struct env_plan *p, size_t at[3], struct trio *t)
{
    const struct env_given *user =
        at[0] < p->user.count ? &p->user.items[at[0]] : NULL;
    const struct env_claim *claim =
        at[1] < p->claim_count ? &p->claims[at[1]] : NULL;
    const struct env_given *inherited =
        at[2] < p->inherited.count ? &p->inherited.items[at[2]] : NULL;
    const char *names[3] = {
        user != NULL ? user->name : NULL,
        claim != NULL ? claim->name : NULL,
        inherited != NULL ? inherited->name : NULL,
    };
    const char *name = lower(lower(names[0], names[1]), names[2]);
    if (name == NULL) {
        return false;
    }
    *t = (struct trio){
        .name = name,
        .user = is_named(names[0], name) ? user : NULL,
        .claim = is_named(names[1], name) ? claim : NULL,
        .inherited = is_named(names[2], name) ? inherited : NULL,
    };
    at[0] += t->user != NULL;
    at[1] += t->claim != NULL;
    at[2] += t->inherited != NULL;
    return true;
}

/* One line with as many names as it holds. */
static void note_dropped(struct env_plan *p, const char *const *names,
                         size_t count)
{
    char text[GPUL_TEXT_BYTES_MAX - 128];
    char *out = text;
    size_t shown = 0;
    for (; shown < count; shown++) {
        size_t room = sizeof(text) - (size_t)(out - text);
        if (strlen(names[shown]) + sizeof(", ") > room) {
            break;
        }
        out = put_text(out, shown > 0 ? ", " : "");
        out = put_text(out, names[shown]);
    }
    *out = 0;
    if (shown < count) {
        env_plan_note(p, "not passed on to the ranks: %s and %zu more", text,
                      count - shown);
    } else if (count > 0) {
        env_plan_note(p, "not passed on to the ranks: %s", text);
    }
}

/* gpulaunch within a rank of gpulaunch finds all that the outer one has set:
 * one line for the lot. */
static void note_nested(struct env_plan *p)
{
    const char *job_id = env_plan_inherited(p, "GPULAUNCH_JOB_ID");
    p->is_nested = job_id != NULL;
    if (p->is_nested) {
        env_plan_note(p,
                      "within gpulaunch job %s: the place it gave (RANK, "
                      "TF_CONFIG and the like) is replaced by this job's, its "
                      "defaults (OMP_NUM_THREADS and the like) are kept",
                      shorten(p, job_id));
    }
}

void env_merge(struct env_plan *p)
{
    if (p->status != 0) {
        return;
    }
    note_nested(p);
    qsort(p->claims, p->claim_count, sizeof(*p->claims), compare_claims);
    size_t most = p->claim_count + p->inherited.count + p->user.count;
    p->slots = env_plan_alloc(p, most * sizeof(*p->slots));
    const char **dropped = env_plan_alloc(p, most * sizeof(*dropped));
    size_t dropped_count = 0;
    size_t at[3] = {0};
    struct trio t;
    while (p->status == 0 && next_trio(p, at, &t)) {
        bool is_notable = false;
        struct env_slot slot;
        if (!settle(p, &t, &slot, &is_notable)) {
            continue;
        }
        p->slots[p->slot_count++] = slot;
        if (is_notable) {
            dropped[dropped_count++] = t.name;
        }
    }
    if (p->status == 0) {
        note_dropped(p, dropped, dropped_count);
    }
}
