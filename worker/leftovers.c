/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/leftovers.h"

#include <stdlib.h>
#include <string.h>

/* An agent that came after another has not seen all that was written. */
static void add_tail(Gpul__Evidence *e, const struct lastwords *w,
                     struct ranklogs *logs, uint32_t rank)
{
    char from_log[GPUL_TAIL_BYTES_MAX];
    char text[GPUL_TAIL_BYTES_MAX + 1];
    const char *bytes = w->tail;
    size_t n = w->used;
    bool is_cut = w->is_cut;
    uint64_t size = 0;
    if (logs->resumes) {
        size_t got =
            ranklogs_read_end(logs, rank, from_log, sizeof(from_log), &size);
        bytes = got > 0 ? from_log : bytes;
        n = got > 0 ? got : n;
        is_cut = is_cut || got == 0 || size > got;
    }
    if (n > 0 && evidence_tail(text, bytes, n, is_cut) > 0) {
        char *copy = strdup(text);
        e->tail = copy != NULL ? copy : e->tail;
    }
}

static void add_warnings(Gpul__Evidence *e, struct evidence_nccl *found)
{
    evidence_nccl_end(found);
    e->nccl_warnings = calloc(found->count + 1, sizeof(*e->nccl_warnings));
    for (size_t i = 0; e->nccl_warnings != NULL && i < found->count; i++) {
        char *copy = strdup(found->found[i]);
        if (copy != NULL) {
            e->nccl_warnings[e->n_nccl_warnings++] = copy;
        }
    }
}

static void add_error_file(Gpul__Evidence *e, struct ranklogs *logs,
                           uint32_t rank)
{
    uint8_t *bytes = malloc(GPUL_ERROR_FILE_BYTES_MAX);
    size_t n = bytes != NULL ? ranklogs_read_error(logs, rank, bytes,
                                                   GPUL_ERROR_FILE_BYTES_MAX,
                                                   &e->error_file_bytes)
                             : 0;
    if (n == 0 || n < e->error_file_bytes) {
        free(bytes); /* a part of it could not be read as JSON */
        return;
    }
    e->error_file.data = bytes;
    e->error_file.len = n;
}

Gpul__Evidence *leftovers_collect(struct lastwords *words,
                                  struct ranklogs *logs, uint32_t rank)
{
    Gpul__Evidence *e = malloc(sizeof(*e));
    if (e == NULL) {
        return NULL;
    }
    gpul__evidence__init(e);
    add_tail(e, words, logs, rank);
    if (words->nccl != NULL) {
        add_warnings(e, words->nccl);
    }
    if (ranklogs_is_on(logs)) {
        add_error_file(e, logs, rank);
    }
    if (e->tail[0] == 0 && e->n_nccl_warnings == 0 &&
        e->error_file_bytes == 0) {
        gpul__evidence__free_unpacked(e, NULL);
        return NULL;
    }
    return e;
}
