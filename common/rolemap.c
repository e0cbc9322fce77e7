/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rolemap.h"

#include <assert.h>
#include <string.h>

#include "common/units.h"

/* So that no sum of the roles overflows; far over any real job. */
#define ROLE_RANKS_MAX (UINT32_MAX / GPUL_ROLE_COUNT)

static const char *const role_names[GPUL_ROLE_COUNT] = {
    [GPUL_ROLE_CHIEF] = "chief",
    [GPUL_ROLE_WORKER] = "worker",
    [GPUL_ROLE_PS] = "ps",
    [GPUL_ROLE_EVALUATOR] = "evaluator",
};

const char *gpul_role_name(enum gpul_role role)
{
    assert((unsigned int)role < GPUL_ROLE_COUNT);
    return role_names[role];
}

void gpul_rolemap_all_workers(struct gpul_rolemap *m, uint32_t world_size)
{
    *m = (struct gpul_rolemap){0};
    m->counts[GPUL_ROLE_WORKER] = world_size;
}

/* GPUL_ROLE_COUNT: none of the known ones. */
static unsigned int find_role(const char *name, size_t bytes)
{
    unsigned int role = 0;
    while (role < GPUL_ROLE_COUNT && (strlen(role_names[role]) != bytes ||
                                      memcmp(role_names[role], name, bytes))) {
        role++;
    }
    return role;
}

static int fail_unknown(const char *name, size_t bytes, struct gpul_error *err)
{
    return gpul_fail(err, GPUL_EINVAL,
                     "unknown role \"%.*s\"; the roles are chief, worker, ps "
                     "and evaluator",
                     (int)bytes, name);
}

int gpul_rolemap_add(struct gpul_rolemap *m, const char *name, uint32_t count,
                     struct gpul_error *err)
{
    unsigned int role = find_role(name, strlen(name));
    if (role == GPUL_ROLE_COUNT) {
        return fail_unknown(name, strlen(name), err);
    }
    if (count > ROLE_RANKS_MAX - m->counts[role]) {
        return gpul_fail(err, GPUL_EINVAL, "role %s has too many ranks", name);
    }
    m->counts[role] += count;
    return 0;
}

int gpul_rolemap_check(const struct gpul_rolemap *m, struct gpul_error *err)
{
    static const enum gpul_role single[] = {GPUL_ROLE_CHIEF,
                                            GPUL_ROLE_EVALUATOR};
    for (size_t i = 0; i < 2; i++) {
        if (m->counts[single[i]] > 1) {
            return gpul_fail(err, GPUL_EINVAL,
                             "a job has at most one %s, not %u",
                             role_names[single[i]], m->counts[single[i]]);
        }
    }
    if (m->counts[GPUL_ROLE_PS] > 0 && m->counts[GPUL_ROLE_WORKER] == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "parameter servers need a worker; add worker=N");
    }
    if (m->counts[GPUL_ROLE_CHIEF] + m->counts[GPUL_ROLE_WORKER] == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "no role of these trains; add worker=N");
    }
    return 0;
}

/* Take one "worker=3" of `bytes` bytes. */
static int parse_item(struct gpul_rolemap *m, const char *item, size_t bytes,
                      struct gpul_error *err)
{
    const char *equals = memchr(item, '=', bytes);
    if (equals == NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%.*s\" is not ROLE=COUNT, as in chief=1,worker=3",
                         (int)bytes, item);
    }
    size_t name_bytes = (size_t)(equals - item);
    unsigned int role = find_role(item, name_bytes);
    if (role == GPUL_ROLE_COUNT) {
        return fail_unknown(item, name_bytes, err);
    }
    if (m->counts[role] > 0) {
        return gpul_fail(err, GPUL_EINVAL, "role %s is given twice",
                         role_names[role]);
    }
    char count[16] = {0}; /* longer than any count in range */
    size_t count_bytes = bytes - name_bytes - 1;
    memcpy(count, equals + 1,
           count_bytes < sizeof(count) ? count_bytes : sizeof(count) - 1);
    int rc = gpul_parse_count(&m->counts[role], count, 1, ROLE_RANKS_MAX, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "role %s", role_names[role]);
}

int gpul_rolemap_parse(struct gpul_rolemap *m, const char *text,
                       struct gpul_error *err)
{
    struct gpul_rolemap parsed = {0};
    *m = parsed;
    for (const char *at = text;; at++) {
        size_t bytes = strcspn(at, ",");
        int rc = parse_item(&parsed, at, bytes, err);
        if (rc != 0) {
            return rc;
        }
        at += bytes;
        if (*at == 0) {
            break;
        }
    }
    int rc = gpul_rolemap_check(&parsed, err);
    if (rc == 0) {
        *m = parsed;
    }
    return rc;
}

uint32_t gpul_rolemap_first(const struct gpul_rolemap *m, enum gpul_role role)
{
    uint32_t first = 0;
    for (unsigned int r = 0; r < (unsigned int)role; r++) {
        first += m->counts[r];
    }
    return first;
}

uint32_t gpul_rolemap_total(const struct gpul_rolemap *m)
{
    return gpul_rolemap_first(m, GPUL_ROLE_COUNT);
}

enum gpul_role gpul_rolemap_role(const struct gpul_rolemap *m, uint32_t rank,
                                 uint32_t *index)
{
    unsigned int role = 0;
    while (role < GPUL_ROLE_EVALUATOR && rank >= m->counts[role]) {
        rank -= m->counts[role++];
    }
    assert(rank < m->counts[role]);
    *index = rank;
    return (enum gpul_role)role;
}

bool gpul_rolemap_decides(const struct gpul_rolemap *m, uint32_t rank)
{
    uint32_t index;
    switch (gpul_rolemap_role(m, rank, &index)) {
    case GPUL_ROLE_CHIEF:
        return true;
    case GPUL_ROLE_WORKER:
        return m->counts[GPUL_ROLE_PS] == 0 || m->counts[GPUL_ROLE_CHIEF] == 0;
    default:
        return false;
    }
}
