/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks and libraries write, and the kernel's log and lists: whatever the
 * bytes are and however they are cut, what is made of them can be shown, is
 * within its bounds, and is the same.
 *
 * Input: 1 byte (pieces of so many bytes, 0: whole), then the bytes.
 */
#include <string.h>

#include "common/buf.h"
#include "proto/text.h"
#include "tests/lib/fuzz.h"
#include "worker/evidence.h"
#include "worker/failure.h"
#include "worker/lastwords.h"
#include "worker/mask.h"
#include "worker/nccl_build.h"
#include "worker/nccl_log.h"

enum { MASK_WORDS = 16 };

static void check_tail(const char *bytes, size_t n)
{
    static char out[GPUL_TAIL_BYTES_MAX + 1];
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        size_t used = evidence_tail(out, bytes, n, is_cut != 0);
        FUZZ_CHECK(used <= GPUL_TAIL_BYTES_MAX && out[used] == 0);
        FUZZ_CHECK(strlen(out) == used);
        FUZZ_CHECK(gpul_text_is_valid(out, GPUL_TEXT_LINES));
    }
}

static void feed(struct lastwords *w, struct evidence_nccl *e,
                 struct nccl_log *log, const char *bytes, size_t n,
                 size_t piece)
{
    uint32_t stage = log->stage;
    for (size_t at = 0; at < n; at += piece) {
        size_t left = n - at < piece ? n - at : piece;
        lastwords_take(w, true, bytes + at, left);
        evidence_nccl_take(e, 0, bytes + at, left);
        bool has_risen = nccl_log_take(log, bytes + at, left);
        FUZZ_CHECK(has_risen == (log->stage > stage));
        FUZZ_CHECK(log->used <= NCCL_LOG_LINE_BYTES);
        stage = log->stage;
    }
    evidence_nccl_end(e);
}

/* In pieces as in one. */
static void check_streams(const char *bytes, size_t n, size_t piece)
{
    static struct evidence_nccl whole, cut;
    struct nccl_log whole_log = {0}, cut_log = {0};
    struct lastwords w = {0}, v = {0};
    memset(&whole, 0, sizeof(whole));
    memset(&cut, 0, sizeof(cut));
    feed(&w, &whole, &whole_log, bytes, n, n + 1);
    feed(&v, &cut, &cut_log, bytes, n, piece);
    FUZZ_CHECK(whole_log.stage == cut_log.stage);
    FUZZ_CHECK(whole.count == cut.count);
    FUZZ_CHECK(whole.count <= GPUL_NCCL_WARNINGS_MAX);
    for (size_t i = 0; i < whole.count; i++) {
        FUZZ_CHECK(strcmp(whole.found[i], cut.found[i]) == 0);
        FUZZ_CHECK(strlen(whole.found[i]) <= GPUL_NCCL_WARNING_BYTES_MAX);
        FUZZ_CHECK(gpul_text_is_valid(whole.found[i], GPUL_TEXT_LINE));
    }
    FUZZ_CHECK(w.used == v.used && w.used <= GPUL_TAIL_BYTES_MAX);
    FUZZ_CHECK(w.used == 0 || memcmp(w.tail, v.tail, w.used) == 0);
    evidence_nccl_release(&whole);
    evidence_nccl_release(&cut);
    lastwords_release(&w);
    lastwords_release(&v);
}

/* A list of processors reads back as itself. */
static void check_mask(const char *text)
{
    uint64_t mask[MASK_WORDS], again[MASK_WORDS];
    struct gpul_buf out;
    gpul_buf_init(&out, 64 << 10);
    if (mask_parse(mask, MASK_WORDS, text)) {
        FUZZ_CHECK(mask_format(&out, mask, MASK_WORDS) == 0);
        FUZZ_CHECK(mask_parse(again, MASK_WORDS, gpul_buf_text(&out)));
        FUZZ_CHECK(memcmp(mask, again, sizeof(mask)) == 0);
    } else {
        FUZZ_CHECK(mask_is_empty(mask, MASK_WORDS));
    }
    gpul_buf_release(&out);
}

static void check_words(const char *bytes, size_t n)
{
    static const uint16_t ports[] = {29500, 1024};
    char build[NCCL_BUILD_BYTES];
    const struct failure_end end = {
        .tail = bytes, .tail_bytes = n, .ports = ports, .port_count = 2};
    (void)failure_is_bind_error(&end);
    FUZZ_CHECK(evidence_oom_pid(bytes, n) >= 0);
    nccl_build_find(build, bytes, n, "2.28.9");
    FUZZ_CHECK(memchr(build, 0, sizeof(build)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0) {
        return 0;
    }
    size_t piece = data[0] > 0 ? data[0] : n;
    data++;
    n--;
    char *bytes = malloc(n > 0 ? n : 1); /* exact, for the sanitizer */
    char *text = malloc(n + 1);
    FUZZ_CHECK(bytes != NULL && text != NULL);
    if (n > 0) {
        memcpy(bytes, data, n);
        memcpy(text, data, n);
    }
    text[n] = 0;
    check_tail(bytes, n);
    check_streams(bytes, n, piece);
    check_mask(text);
    check_words(bytes, n);
    free(text);
    free(bytes);
    return 0;
}
