/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "worker/kvhttp.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Parse each beginning of the text: not one byte before the last may be
 * enough, and no answer may change with more bytes. */
static unsigned int parse_growing(struct kvhttp_request *request,
                                  const char *text)
{
    size_t n = strlen(text);
    unsigned int status = 0;
    for (size_t i = 0; i <= n; i++) {
        unsigned int now = kvhttp_parse(request, text, i);
        if (status != 0) {
            assert_int_equal(now, status);
        }
        if (now == 200) {
            assert_int_equal(i >= request->bytes, 1);
        }
        status = now;
    }
    return status;
}

/* Whole requests, in every accepted spelling. */
static void test_requests(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum kvhttp_method method;
        const char *name;
        size_t scope_bytes;
        const char *body;
        bool keeps_alive;
    } rows[] = {
        {"GET /global/0 HTTP/1.1\r\n\r\n", KVHTTP_GET, "global/0", 6, "", true},
        {"PUT /s/k HTTP/1.1\r\nHost: n\r\nContent-Length: 3\r\n\r\nabc",
         KVHTTP_PUT, "s/k", 1, "abc", true},
        {"PUT /s/k HTTP/1.1\r\ncontent-length:\t 3 \r\n\r\na\r\n", KVHTTP_PUT,
         "s/k", 1, "a\r\n", true},
        {"PUT /s/k HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
         KVHTTP_PUT, "s/k", 1, "", true},
        {"DELETE /s/a/b HTTP/1.1\r\nConnection: Close\r\n\r\n", KVHTTP_DELETE,
         "s/a/b", 1, "", false},
        {"DELETE /s/ HTTP/1.1\r\n\r\n", KVHTTP_DELETE, "s/", 1, "", true},
        {"GET /s/k?x=%20 HTTP/1.0\r\n\r\n", KVHTTP_GET, "s/k?x=%20", 1, "",
         false},
        {"GET /s/k HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", KVHTTP_GET,
         "s/k", 1, "", true},
        {"GET /s/k HTTP/1.1\r\nX:\r\nY: \xc3\xa9\r\n\r\n", KVHTTP_GET, "s/k", 1,
         "", true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kvhttp_request r;
        assert_int_equal(parse_growing(&r, rows[i].text), 200);
        assert_int_equal(r.method, rows[i].method);
        assert_int_equal(r.name.bytes, strlen(rows[i].name));
        assert_memory_equal(r.name.text, rows[i].name, r.name.bytes);
        assert_int_equal(r.name.scope_bytes, rows[i].scope_bytes);
        assert_int_equal(r.body_bytes, strlen(rows[i].body));
        assert_memory_equal(r.body, rows[i].body, r.body_bytes);
        assert_int_equal(r.bytes, strlen(rows[i].text));
        assert_int_equal(r.keeps_alive, rows[i].keeps_alive);
    }
}

/* What cannot be served is refused with the status that says why. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        unsigned int status;
        const char *text;
    } rows[] = {
        {400, "\x16\x03\x01"},
        {400, "\r\n"},
        {400, "get /s/k HTTP/1.1\r\n\r\n"},
        {400, "GET\t/s/k HTTP/1.1\r\n\r\n"},
        {400, "GET /s/k\r\n\r\n"},
        {400, "GET  /s/k HTTP/1.1\r\n\r\n"},
        {400, "GET s/k HTTP/1.1\r\n\r\n"},
        {400, "GET http://n/s/k HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET //k HTTP/1.1\r\n\r\n"},
        {400, "GET /s HTTP/1.1\r\n\r\n"},
        {400, "GET /s/ HTTP/1.1\r\n\r\n"},
        {400, "DELETE /s HTTP/1.1\r\n\r\n"},
        {400, "GET /s/\xc3\xa9 HTTP/1.1\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\nHost: n\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\nHost\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\n: n\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\nHost : n\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\nA: \x01\r\n\r\n"},
        {400, "GET /s/k HTTP/1.1\r\nA: \x7f\r\n\r\n"},
        {400, "PUT /s/k HTTP/1.1\r\nContent-Length: -1\r\n\r\n"},
        {400, "PUT /s/k HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n"},
        {400, "PUT /s/k HTTP/1.1\r\nContent-Length:\r\n\r\n"},
        {400, "PUT /s/k HTTP/1.1\r\nContent-Length: 1\r\n"
              "Content-Length: 2\r\n\r\n"},
        {405, "POST /s/k HTTP/1.1\r\n\r\n"},
        {405, "HEAD /s/k HTTP/1.1\r\n\r\n"},
        {405, "PROPFIND"},
        {411, "PUT /s/k HTTP/1.1\r\n\r\n"},
        {411, "PUT /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {411, "GET /s/k HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
              "Content-Length: 1\r\n\r\n"},
        {413, "PUT /s/k HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n"},
        {413, "PUT /s/k HTTP/1.1\r\n"
              "Content-Length: 99999999999999999999999999\r\n\r\n"},
        {505, "GET /s/k HTTP/2.0\r\n\r\n"},
        {505, "GET /s/k HTTP/1.1 \r\n\r\n"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kvhttp_request r;
        assert_int_equal(parse_growing(&r, rows[i].text), rows[i].status);
    }
}

/* Head, name and body are taken up to their bounds and not one byte on. */
static void test_bounds(void **state)
{
    (void)state;
    struct kvhttp_request r;
    struct gpul_buf text;
    gpul_buf_init(&text, 2u << 20);
    for (int extra = 0; extra < 2; extra++) {
        gpul_buf_clear(&text);
        gpul_buf_append_text(&text, "GET /s/k HTTP/1.1\r\nA: ");
        while (text.used < KVHTTP_HEAD_BYTES_MAX - 4u + (unsigned int)extra) {
            gpul_buf_append_text(&text, "a");
        }
        gpul_buf_append_text(&text, "\r\n\r\n");
        assert_int_equal(kvhttp_parse(&r, text.data, text.used),
                         extra == 0 ? 200 : 431);

        gpul_buf_clear(&text);
        gpul_buf_append_text(&text, "GET /s/");
        while (text.used < 5u + KVHTTP_NAME_BYTES_MAX + (unsigned int)extra) {
            gpul_buf_append_text(&text, "k");
        }
        gpul_buf_append_text(&text, " HTTP/1.1\r\n\r\n");
        assert_int_equal(kvhttp_parse(&r, text.data, text.used),
                         extra == 0 ? 200 : 414);
    }
    gpul_buf_clear(&text);
    gpul_buf_append_text(
        &text, "PUT /s/k HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n");
    size_t head = text.used;
    memset(gpul_buf_extend(&text, KVHTTP_VALUE_BYTES_MAX), 'v',
           KVHTTP_VALUE_BYTES_MAX);
    assert_int_equal(kvhttp_parse(&r, text.data, text.used - 1), 0);
    assert_int_equal(kvhttp_parse(&r, text.data, text.used), 200);
    assert_int_equal(r.bytes, head + KVHTTP_VALUE_BYTES_MAX);
    gpul_buf_release(&text);
}

/* A dialogue with the store, to the byte. */
static void test_answers(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"GET /s/k HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"
                                      "Content-Length: 0\r\n"
                                      "Connection: keep-alive\r\n\r\n"},
        {"PUT /s/k HTTP/1.1\r\nContent-Length: 5\r\n\r\nvalue",
         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
         "Connection: keep-alive\r\n\r\n"},
        {"GET /s/k HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\n"
                                      "Content-Length: 5\r\n"
                                      "Connection: close\r\n\r\nvalue"},
        {"PUT /s/too-long HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789",
         "HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n"
         "Connection: keep-alive\r\n\r\n"},
        {"DELETE /s/k HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\n"
                                         "Content-Length: 0\r\n"
                                         "Connection: keep-alive\r\n\r\n"},
        {"GET /s/k HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found\r\n"
                                      "Content-Length: 0\r\n"
                                      "Connection: keep-alive\r\n\r\n"},
    };
    struct kvstore store;
    struct gpul_buf out;
    kvstore_init(&store, 45);
    gpul_buf_init(&out, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct kvhttp_request r;
        gpul_buf_clear(&out);
        assert_int_equal(kvhttp_parse(&r, rows[i][0], strlen(rows[i][0])), 200);
        assert_int_equal(kvhttp_answer(&out, &store, &r), 0);
        assert_string_equal(gpul_buf_text(&out), rows[i][1]);
    }
    gpul_buf_clear(&out);
    assert_int_equal(kvhttp_refuse(&out, 431), 0);
    assert_string_equal(gpul_buf_text(&out),
                        "HTTP/1.1 431 Request Header Fields Too Large\r\n"
                        "Content-Length: 0\r\nConnection: close\r\n\r\n");
    gpul_buf_release(&out);
    kvstore_release(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
