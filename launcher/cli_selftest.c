/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the self-test, in nccl-tests' spelling where there is one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/cli_value.h"

enum {
    BYTES_MIN = 4, /* one float */
    FACTOR_MAX = 1024,
    ITERATIONS_MAX = 1000, /* the worker's own bounds */
    CHECKS_MAX = 100,
    GBPS_MAX = 100000,
};

#define BYTES_MAX (UINT64_C(1) << 40)

static int set_size(uint64_t *out, const char *value, const char *spelling,
                    struct gpul_error *err)
{
    int rc = gpul_parse_size(out, value, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "%s", spelling);
    }
    if (*out < BYTES_MIN || *out > BYTES_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%s\" is not a size from 4 bytes (one float) "
                         "to 1 TiB",
                         spelling, value);
    }
    return 0;
}

static int set_count(uint32_t *out, const char *value, uint32_t min,
                     uint32_t max, const char *spelling, struct gpul_error *err)
{
    int rc = gpul_parse_count(out, value, min, max, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_gbps(double *out, const char *value, const char *spelling,
                    struct gpul_error *err)
{
    char *end = NULL;
    bool is_plain = strspn(value, "0123456789.") == strlen(value);
    *out = is_plain ? strtod(value, &end) : 0;
    if (end == NULL || *end != '\0' || !(*out > 0) || *out > GBPS_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%s\" is not a bandwidth in GB/s above 0 and "
                         "up to %d, such as 180 or 2.5",
                         spelling, value, GBPS_MAX);
    }
    return 0;
}

int cli_selftest_set(struct plan *plan, enum option option, const char *value,
                     struct gpul_error *err)
{
    struct plan_sweep *s = &plan->sweep;
    const char *spelling = plan->settings[option].spelling;
    switch (option) {
    case OPTION_MINBYTES:
        return set_size(&s->bytes_min, value, spelling, err);
    case OPTION_MAXBYTES:
        return set_size(&s->bytes_max, value, spelling, err);
    case OPTION_STEPFACTOR:
        return set_count(&s->factor, value, 2, FACTOR_MAX, spelling, err);
    case OPTION_ITERS:
        return set_count(&s->iterations, value, 1, ITERATIONS_MAX, spelling,
                         err);
    case OPTION_WARMUP_ITERS:
        return set_count(&s->warmup, value, 0, ITERATIONS_MAX, spelling, err);
    case OPTION_CHECK:
        return set_count(&s->check, value, 0, CHECKS_MAX, spelling, err);
    case OPTION_MIN_BUSBW:
        return set_gbps(&s->busbw_min_gbps, value, spelling, err);
    default: /* --nccl-lib */
        if (value[0] == '\0') {
            return gpul_fail(err, GPUL_EINVAL, "%s: empty; give a file",
                             spelling);
        }
        plan->nccl_library = value;
        return 0;
    }
}

static int check_sizes(const struct plan *plan, struct gpul_error *err)
{
    const struct plan_sweep *s = &plan->sweep;
    if (!plan_has(plan, OPTION_MINBYTES) || !plan_has(plan, OPTION_MAXBYTES) ||
        s->bytes_min <= s->bytes_max) {
        return 0;
    }
    return gpul_fail(err, GPUL_EINVAL,
                     "%s %s is more than %s %s (%" PRIu64 " and %" PRIu64
                     " bytes); the smallest message comes first",
                     plan->settings[OPTION_MINBYTES].spelling,
                     plan->settings[OPTION_MINBYTES].value,
                     plan->settings[OPTION_MAXBYTES].spelling,
                     plan->settings[OPTION_MAXBYTES].value, s->bytes_min,
                     s->bytes_max);
}

/* A wish for what another word, no weaker, has switched off. */
static int check_wish(const struct plan *plan, enum option wish,
                      enum option against, struct gpul_error *err)
{
    const struct plan_setting *a = &plan->settings[wish];
    const struct plan_setting *b = &plan->settings[against];
    if (a->source == GPUL_SOURCE_NONE || a->source < b->source) {
        return 0;
    }
    return gpul_fail(err, GPUL_EINVAL,
                     "%s means nothing with %s %s; leave one of them out",
                     a->spelling, b->spelling, b->value);
}

int cli_selftest_check(const struct plan *plan, struct gpul_error *err)
{
    int rc = check_sizes(plan, err);
    for (int i = OPTION_BACKEND; rc == 0 && i <= OPTION_SELF_TEST_TIMEOUT &&
                                 plan->self_test == PLAN_SELF_TEST_OFF;
         i++) {
        rc = check_wish(plan, (enum option)i, OPTION_SELF_TEST, err);
    }
    if (rc == 0 && plan->backend == PLAN_BACKEND_HOST) {
        rc = check_wish(plan, OPTION_NCCL_LIB, OPTION_BACKEND, err);
    }
    return rc;
}
