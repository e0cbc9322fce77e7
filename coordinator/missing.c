/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/missing.h"

#include "common/buf.h"
#include "common/hostlist.h"
#include "common/units.h"

static uint32_t collect(struct gpul_hostlist *names, const struct roster *r,
                        missing_fn lacks, const void *arg)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (!lacks(r, i, arg)) {
            continue;
        }
        if (count++ < MISSING_NAMES_MAX && r->nodes[i].name != NULL) {
            gpul_hostlist_push(names, r->nodes[i].name);
        }
    }
    return count;
}

uint32_t missing_names(struct text *out, const struct roster *r,
                       missing_fn lacks, const void *arg)
{
    struct gpul_hostlist names;
    struct gpul_buf folded;
    gpul_hostlist_init(&names);
    /* Room for the count behind the names. */
    gpul_buf_init(&folded, GPUL_TEXT_BYTES_MAX / 2);
    uint32_t count = collect(&names, r, lacks, arg);
    size_t shown = names.count;
    while (shown > 0 && gpul_hostlist_fold(&folded, &names, 0, shown) != 0) {
        shown--; /* ten names of 253 bytes do not fit a text */
        gpul_buf_clear(&folded);
    }
    const char *list = shown > 0 ? gpul_buf_text(&folded) : NULL;
    if (list == NULL) {
        text_format(out, "%u node%s", count, gpul_plural(count));
    } else if (count > shown) {
        text_format(out, "%s and %zu more", list, count - shown);
    } else {
        text_format(out, "%s", list);
    }
    gpul_buf_release(&folded);
    gpul_hostlist_release(&names);
    return count;
}
