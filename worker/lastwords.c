/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/lastwords.h"

#include <stdlib.h>
#include <string.h>

static void keep_tail(struct lastwords *w, const char *bytes, size_t n)
{
    if (w->tail == NULL && (w->tail = malloc(GPUL_TAIL_BYTES_MAX)) == NULL) {
        return;
    }
    if (n > GPUL_TAIL_BYTES_MAX) {
        bytes += n - GPUL_TAIL_BYTES_MAX;
        n = GPUL_TAIL_BYTES_MAX;
        w->is_cut = true;
    }
    size_t kept = w->used;
    if (kept > GPUL_TAIL_BYTES_MAX - n) {
        kept = GPUL_TAIL_BYTES_MAX - n;
        memmove(w->tail, w->tail + w->used - kept, kept);
        w->is_cut = true;
    }
    memcpy(w->tail + kept, bytes, n);
    w->used = kept + n;
}

void lastwords_take(struct lastwords *w, bool is_stderr, const char *bytes,
                    size_t n)
{
    if (w->nccl == NULL) {
        w->nccl = calloc(1, sizeof(*w->nccl));
    }
    if (w->nccl != NULL) {
        evidence_nccl_take(w->nccl, is_stderr ? 1 : 0, bytes, n);
    }
    if (is_stderr) {
        keep_tail(w, bytes, n);
    }
}

void lastwords_release(struct lastwords *w)
{
    if (w->nccl != NULL) {
        evidence_nccl_release(w->nccl);
    }
    free(w->nccl);
    free(w->tail);
    *w = (struct lastwords){0};
}
