/* SPDX-License-Identifier: Apache-2.0
 *
 * Any bytes are requests, one after the other, until one is refused or not
 * whole. An answer given early stands when more bytes come, a request lies
 * within its bounds, the store within its own, and every response is whole.
 *
 * Input: the stream.
 */
#include <string.h>

#include "tests/lib/fuzz.h"
#include "worker/kvhttp.h"

enum { STORE_BYTES_MAX = 2000, PREFIX_STEP = 7 };

/* Parse some beginnings of the bytes before the whole. */
static unsigned int parse(struct kvhttp_request *r, const char *data, size_t n)
{
    unsigned int early = 0;
    for (size_t i = 0; i < n && i < 600; i += PREFIX_STEP) {
        unsigned int now = kvhttp_parse(r, data, i);
        FUZZ_CHECK(early == 0 || now == early);
        early = now;
    }
    unsigned int status = kvhttp_parse(r, data, n);
    FUZZ_CHECK(early == 0 || status == early);
    FUZZ_CHECK(status == 0 || status == 200 || (status >= 400 && status < 600));
    return status;
}

static void check_request(const struct kvhttp_request *r, const char *data,
                          size_t n)
{
    const char *body = r->body;
    FUZZ_CHECK(r->bytes > 0 && r->bytes <= n);
    FUZZ_CHECK(body + r->body_bytes == data + r->bytes);
    FUZZ_CHECK(r->body_bytes <= KVHTTP_VALUE_BYTES_MAX);
    FUZZ_CHECK(r->name.text > data);
    FUZZ_CHECK(r->name.text + r->name.bytes < body);
    FUZZ_CHECK(r->name.bytes <= KVHTTP_NAME_BYTES_MAX);
    FUZZ_CHECK(r->name.scope_bytes > 0);
    FUZZ_CHECK(r->name.scope_bytes < r->name.bytes);
    FUZZ_CHECK(r->name.text[r->name.scope_bytes] == '/');
}

/* What a PUT stored, a GET gives back; what a DELETE took, it may not, unless
 * all are to be done with it first. */
static void check_effect(struct kvstore *store, const struct kvhttp_request *r,
                         bool is_stored)
{
    size_t bytes;
    const void *value = kvstore_get(store, &r->name, &bytes);
    FUZZ_CHECK(store->bytes <= STORE_BYTES_MAX);
    if (r->method == KVHTTP_PUT && is_stored) {
        FUZZ_CHECK(value != NULL && bytes == r->body_bytes);
        FUZZ_CHECK(memcmp(value, r->body, bytes) == 0);
    }
    if (r->method == KVHTTP_DELETE && r->name.text[0] == 'x') {
        FUZZ_CHECK(value == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *at = (const char *)data;
    struct kvstore store;
    struct gpul_buf out;
    struct kvhttp_request r;
    unsigned int status;
    kvstore_init(&store, STORE_BYTES_MAX);
    gpul_buf_init(&out, STORE_BYTES_MAX + 1000);
    while ((status = parse(&r, at, n)) == 200) {
        check_request(&r, at, n);
        gpul_buf_clear(&out);
        FUZZ_CHECK(kvhttp_answer(&out, &store, &r) == 0);
        check_effect(&store, &r, memcmp(out.data, "HTTP/1.1 200", 12) == 0);
        at += r.bytes;
        n -= r.bytes;
    }
    if (status != 0) {
        gpul_buf_clear(&out);
        FUZZ_CHECK(kvhttp_refuse(&out, status) == 0);
    }
    gpul_buf_release(&out);
    kvstore_release(&store);
    return 0;
}
