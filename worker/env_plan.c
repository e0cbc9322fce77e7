/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/env_plan.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "worker/put.h"

enum { CAPACITY_FIRST = 64 };

struct env_block {
    struct env_block *next;
    _Alignas(max_align_t) char bytes[];
};

void *env_plan_alloc(struct env_plan *p, size_t n)
{
    if (p->status != 0) {
        return NULL;
    }
    struct env_block *block = calloc(1, sizeof(*block) + n);
    if (block == NULL) {
        env_plan_fail(p, GPUL_ENOMEM, "environment: out of memory");
        return NULL;
    }
    block->next = p->blocks;
    p->blocks = block;
    return block->bytes;
}

__attribute__((format(printf, 2, 0))) static char *
format_list(struct env_plan *p, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    assert(n >= 0);
    char *text = env_plan_alloc(p, (size_t)n + 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)n + 1, format, again);
    }
    va_end(again);
    return text;
}

char *env_plan_format(struct env_plan *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_list(p, format, args);
    va_end(args);
    return text;
}

void env_plan_fail(struct env_plan *p, int status, const char *format, ...)
{
    if (p->status != 0) {
        return;
    }
    p->status = status;
    char text[GPUL_ERROR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    gpul_fail(p->err, status, "%s", text);
}

/* Room for one more item; NULL after a failure. */
static void *grow(struct env_plan *p, void *items, size_t count,
                  size_t *capacity, size_t item_bytes)
{
    if (count < *capacity) {
        return items;
    }
    size_t more = *capacity == 0 ? CAPACITY_FIRST : *capacity * 2;
    void *moved = realloc(items, more * item_bytes);
    if (moved == NULL) {
        env_plan_fail(p, GPUL_ENOMEM, "environment: out of memory");
        return NULL;
    }
    *capacity = more;
    return moved;
}

void env_claim(struct env_plan *p, struct env_claim claim)
{
    if (p->status != 0) {
        return;
    }
    struct env_claim *claims =
        grow(p, p->claims, p->claim_count, &p->claim_capacity, sizeof(*claims));
    if (claims != NULL) {
        p->claims = claims;
        claims[p->claim_count++] = claim;
    }
}

void env_claim_value(struct env_plan *p, const char *name, const char *rule,
                     const char *value)
{
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = rule,
                     .value = value,
                     .strength = ENV_IDENTITY,
                 });
}

void env_claim_u32(struct env_plan *p, const char *name, const char *rule,
                   uint32_t value)
{
    env_claim_value(p, name, rule, env_plan_format(p, "%u", value));
}

void env_claim_default(struct env_plan *p, const char *name, const char *rule,
                       const char *value)
{
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = rule,
                     .value = value,
                     .strength = ENV_TUNING,
                 });
}

void env_claim_node_value(struct env_plan *p, const char *name,
                          const char *rule, const char *value)
{
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = rule,
                     .value = value,
                     .strength = ENV_IDENTITY,
                     .is_per_node = true,
                 });
}

void env_claim_node_u32(struct env_plan *p, const char *name, const char *rule,
                        uint32_t value)
{
    env_claim_node_value(p, name, rule, env_plan_format(p, "%u", value));
}

void env_claim_node_default(struct env_plan *p, const char *name,
                            const char *rule, const char *value)
{
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = rule,
                     .value = value,
                     .strength = ENV_TUNING,
                     .is_per_node = true,
                 });
}

void env_claim_absent(struct env_plan *p, const char *name, const char *rule)
{
    env_claim(p, (struct env_claim){
                     .name = name, .rule = rule, .strength = ENV_ABSENT});
}

void env_claim_each(struct env_plan *p, const char *name, const char *rule,
                    env_put_fn *put)
{
    env_claim(p, (struct env_claim){
                     .name = name,
                     .rule = rule,
                     .put = put,
                     .bytes_max = PUT_U32_BYTES_MAX,
                     .strength = ENV_IDENTITY,
                 });
}

char *env_put_rank(char *out, const struct env_plan *p, uint32_t local_rank)
{
    return put_u32(out, p->first_rank + local_rank);
}

char *env_put_local_rank(char *out, const struct env_plan *p,
                         uint32_t local_rank)
{
    (void)p;
    return put_u32(out, local_rank);
}

void env_plan_note(struct env_plan *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_list(p, format, args);
    va_end(args);
    const char **notices = grow(p, p->notices, p->notice_count,
                                &p->notice_capacity, sizeof(*notices));
    if (notices == NULL) {
        return;
    }
    p->notices = notices;
    if (text == NULL) {
        return;
    }
    if (strlen(text) >= GPUL_TEXT_BYTES_MAX) {
        memcpy(text + GPUL_TEXT_BYTES_MAX - sizeof("..."), "...",
               sizeof("..."));
    }
    for (char *c = text; *c != 0; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    p->notices[p->notice_count++] = text;
}

uint32_t env_extra_port(const struct env_plan *p, enum env_extra_port which)
{
    const struct env_world *w = &p->in->world;
    return w->port_bases[0] + w->rank_counts[0] + (uint32_t)which;
}

const char *env_master_address(const struct env_plan *p)
{
    return p->in->world.addresses[0];
}

void env_plan_destroy(struct env_plan *p)
{
    if (p == NULL) {
        return;
    }
    tf_config_release(&p->tf);
    free(p->claims);
    free(p->notices);
    while (p->blocks != NULL) {
        struct env_block *next = p->blocks->next;
        free(p->blocks);
        p->blocks = next;
    }
    free(p);
}

size_t env_plan_notices(const struct env_plan *plan,
                        const char *const **notices)
{
    *notices = plan->notices;
    return plan->notice_count;
}
