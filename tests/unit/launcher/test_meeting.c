/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/meeting.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HEAD "gpulaunch-meeting 1\nrun a/b\njob j\n"

static int parse(struct meeting *m, const char *text, size_t n,
                 struct gpul_error *err)
{
    char *copy = malloc(n + 1); /* no byte behind the text may be read */
    assert_non_null(copy);
    memcpy(copy, text, n);
    int rc = meeting_parse(m, copy, n, err);
    free(copy);
    return rc;
}

/* What one task writes, another reads; as much as fits, too. */
static void test_round(void **state)
{
    (void)state;
    struct gpul_error err;
    for (uint32_t count = 1; count <= GPUL_COORDINATORS_MAX; count++) {
        struct meeting m = {.count = count}, got;
        struct gpul_buf text;
        memset(m.run, 'r', sizeof(m.run) - 1);
        memset(m.job_id, 'j', sizeof(m.job_id) - 1);
        if (count % 2 == 0) {
            memset(m.secret, 'a', 2 * GPUL_SECRET_BYTES);
        }
        for (uint32_t i = 0; i < count; i++) {
            snprintf(m.at[i].host, sizeof(m.at[i].host),
                     i % 2 ? "fe80::%u" : "10.0.0.%u", i);
            m.at[i].port = (uint16_t)(4000 + i);
        }
        gpul_buf_init(&text, MEETING_BYTES_MAX);
        assert_int_equal(meeting_format(&text, &m), 0);
        assert_int_equal(parse(&got, (const char *)text.data, text.used, &err),
                         0);
        assert_string_equal(got.run, m.run);
        assert_string_equal(got.job_id, m.job_id);
        assert_string_equal(got.secret, m.secret);
        assert_int_equal(got.count, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_string_equal(got.at[i].host, m.at[i].host);
            assert_int_equal(got.at[i].port, m.at[i].port);
        }
        /* Half of it is none. */
        for (size_t n = 0; n < text.used; n++) {
            assert_int_equal(parse(&got, (const char *)text.data, n, &err),
                             GPUL_EINVAL);
            assert_int_equal(got.count, 0);
            assert_string_equal(got.secret, "");
        }
        gpul_buf_release(&text);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line;
    } rows[] = {
        {"", 1},
        {"gpulaunch-meeting 2\n", 1},
        {"gpulaunch-meeting 1\nrun a\nend\n", 3},
        {HEAD "end\n", 4},
        {HEAD "address 10.0.0.1:1\nend", 5},
        {HEAD "address 10.0.0.1:1\nend\nmore\n", 5},
        {HEAD "address 10.0.0.1:0\nend\n", 4},
        {HEAD "address nothing\nend\n", 4},
        {HEAD "job k\naddress 10.0.0.1:1\nend\n", 4},
        {HEAD "run k\naddress 10.0.0.1:1\nend\n", 4},
        {HEAD "address 10.0.0.1:1\nsecret \nend\n", 5},
        {HEAD "address 10.0.0.1:1\nsecret a\nsecret b\nend\n", 6},
        {HEAD "address 10.0.0.1:1\nother a\nend\n", 5},
        {"gpulaunch-meeting 1\nrun a b\n", 2},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct meeting m;
        struct gpul_error err;
        char start[32];
        assert_int_equal(parse(&m, rows[i].text, strlen(rows[i].text), &err),
                         GPUL_EINVAL);
        int n = snprintf(start, sizeof(start), "line %u is not", rows[i].line);
        assert_memory_equal(err.text, start, (size_t)n);
        assert_int_equal(m.count, 0);
    }
    /* One address more than there may be. */
    char text[1024] = HEAD;
    for (unsigned i = 0; i <= GPUL_COORDINATORS_MAX; i++) {
        strcat(text, "address 10.0.0.1:1\n");
    }
    strcat(text, "end\n");
    struct meeting m;
    struct gpul_error err;
    assert_int_equal(parse(&m, text, strlen(text), &err), GPUL_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
