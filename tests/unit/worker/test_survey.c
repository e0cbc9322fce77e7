/* SPDX-License-Identifier: Apache-2.0
 *
 * Facts as a list and as bytes, and what is decided without a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/text.h"
#include "worker/survey.h"
#include "worker/survey_variables.h"
#include "worker/survey_wires.h"

static const Gpul__Fact *last(const struct survey *s)
{
    assert_true(s->message.n_facts > 0);
    return s->message.facts[s->message.n_facts - 1];
}

static void test_values(void **state)
{
    (void)state;
    struct survey s = {0};
    survey_say(&s, "a.one", "line\none\t");
    assert_string_equal(last(&s)->value, "line?one?");
    survey_say(&s, "a.one", "again");
    assert_int_equal(s.message.n_facts, 1);
    survey_unknown(&s, "a.two", "%s", "");
    assert_string_equal(last(&s)->unknown, "no reason was given");
    survey_say(&s, "a.three", "%s", "");
    assert_string_equal(last(&s)->unknown, "it is empty");
    survey_say(&s, "a key", "no name");
    assert_int_equal(s.message.n_facts, 3);
    survey_say_number(&s, "a.four", UINT64_MAX);
    assert_string_equal(last(&s)->value, "18446744073709551615");
    survey_release(&s);
}

/* What is cut still differs, and fits. */
static void test_long(void **state)
{
    (void)state;
    struct survey s = {0};
    char text[2000];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    survey_say(&s, "a.one", "%s", text);
    text[sizeof(text) - 2] = 'y';
    survey_say(&s, "a.two", "%s", text);
    const char *one = s.message.facts[0]->value;
    const char *two = s.message.facts[1]->value;
    assert_true(strlen(one) <= GPUL_FACT_VALUE_BYTES_MAX);
    assert_int_equal(strlen(one), strlen(two));
    assert_string_not_equal(one, two);
    assert_non_null(strstr(one, "x ... #"));
    survey_unknown(&s, "a.three", "%s", text);
    assert_int_equal(strlen(last(&s)->unknown), GPUL_FACT_UNKNOWN_BYTES_MAX);
    survey_release(&s);
}

/* However much there is: within the bounds of the message. */
static void test_bounds(void **state)
{
    (void)state;
    struct survey s = {0};
    char text[500];
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    for (int i = 0; i < 2000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "a.%d", i);
        survey_say(&s, key, "%s", i % 2 == 0 ? text : "x");
    }
    assert_true(s.message.n_facts <= GPUL_FACTS_MAX);
    assert_true(gpul__survey__get_packed_size(&s.message) <=
                GPUL_SURVEY_BYTES_MAX);
    assert_true(s.message.n_facts > 200);
    survey_release(&s);
}

/* Cut anywhere, the same facts come out, and half a fact does not. */
static void test_bytes(void **state)
{
    (void)state;
    struct survey s = {0};
    struct gpul_buf bytes;
    gpul_buf_init(&bytes, 4096);
    survey_say(&s, "a.one", "1");
    survey_unknown(&s, "a.two", "why");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(survey_encode(&bytes, s.message.facts[i]), 0);
    }
    size_t first = strlen("a.one") + strlen("1") + 3;
    for (size_t n = 0; n <= bytes.used; n++) {
        struct survey out = {0};
        size_t used = survey_decode(&out, (const char *)bytes.data, n);
        assert_int_equal(used, n == bytes.used ? n : n >= first ? first : 0);
        assert_int_equal(out.message.n_facts, n == bytes.used ? 2
                                              : n >= first    ? 1
                                                              : 0);
        survey_release(&out);
    }
    struct survey out = {0};
    assert_int_equal(survey_decode(&out, "k\0v\0u\0", 6), SIZE_MAX);
    assert_int_equal(survey_decode(&out, "k\0\0\0", 4), SIZE_MAX);
    survey_release(&out);
    survey_release(&s);
    gpul_buf_release(&bytes);
}

static void test_list(void **state)
{
    (void)state;
    struct survey_list list = {""};
    assert_string_equal(survey_list_text(&list), "none");
    survey_list_add(&list, "mlx5_1");
    survey_list_add(&list, "mlx5_10");
    survey_list_add(&list, "mlx5_1");
    survey_list_add(&list, "%s", "");
    assert_string_equal(survey_list_text(&list), "mlx5_1 mlx5_10");
    for (int i = 0; i < 2000; i++) {
        survey_list_add(&list, "word%d", i);
    }
    assert_true(strlen(list.text) < SURVEY_LIST_BYTES);
}

/* ---- variables ----------------------------------------------------------- */

static void test_variables(void **state)
{
    (void)state;
    static const char *const compared[] = {"NCCL_DEBUG", "LD_LIBRARY_PATH",
                                           "OMPI_MCA_btl", "TF_NUM_INTEROP"};
    static const char *const ignored[] = {
        "HOME",  "NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES", "TF_CONFIG",
        "NCCL_", "MYNCCL_DEBUG",       "LD_LIBRARY_PATHS"};
    static const char *const secrets[] = {"NCCL_TOKEN", "aws_secret_id",
                                          "TF_ApiKey", "UCX_PASSWORDS",
                                          "GOOGLE_CREDENTIALS"};
    for (size_t i = 0; i < sizeof(compared) / sizeof(compared[0]); i++) {
        assert_true(survey_compares(compared[i], strlen(compared[i])));
        assert_false(survey_is_secret(compared[i], strlen(compared[i])));
    }
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        assert_false(survey_compares(ignored[i], strlen(ignored[i])));
    }
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        assert_true(survey_is_secret(secrets[i], strlen(secrets[i])));
    }
    assert_false(survey_is_secret("NCCL_TOKEN", 9));
}

/* ---- interfaces ---------------------------------------------------------- */

static void expect_match(const char *setting, const char *expected)
{
    static const char *const names[] = {"lo", "eth0", "eth1", "bond0",
                                        "bond0.5"};
    struct survey_list out;
    survey_match_interfaces(&out, setting, names, 5);
    assert_string_equal(out.text, expected);
}

static void test_interfaces(void **state)
{
    (void)state;
    expect_match(NULL, "unset");
    expect_match("^lo,docker", "unset");
    expect_match("bond0", "bond0 bond0.5");
    expect_match("=bond0", "exact");
    expect_match("=bond", "none");
    expect_match("bond0.", "exact");
    expect_match("eth0,eth1", "exact");
    expect_match("eth0,bond", "bond0 bond0.5");
    expect_match("ib", "none");
    expect_match(",", "none");
}

static struct survey_address address(const char *interface, uint8_t third,
                                     uint8_t last_byte, unsigned prefix)
{
    return (struct survey_address){.interface = interface,
                                   .bytes = {10, 0, third, last_byte},
                                   .bits = 32,
                                   .prefix = prefix};
}

static void test_subnets(void **state)
{
    (void)state;
    char text[SURVEY_SHARED_BYTES];
    struct survey_address all[] = {
        address("eth0", 0, 1, 24),
        address("eth0", 0, 2, 24), /* a second address of the same */
        address("eth1", 1, 1, 24),
        address("eth2", 0, 9, 25), /* another network */
    };
    survey_shared_subnet(text, all, 4);
    assert_string_equal(text, "none");
    all[2] = address("eth1", 0, 200, 24);
    survey_shared_subnet(text, all, 4);
    assert_string_equal(text, "eth0 and eth1 in 10.0.0.0/24");
    all[0].prefix = all[1].prefix = all[2].prefix = 32;
    survey_shared_subnet(text, all, 3);
    assert_string_equal(text, "none");
    /* One address on two interfaces is no network of both. */
    memcpy(all[2].bytes, all[0].bytes, sizeof(all[2].bytes));
    survey_shared_subnet(text, all, 3);
    assert_string_equal(text, "none");
    struct survey_address six[] = {
        {"ib0", {0xfd, 0, 1, 2, 3, 4, 5, 6, 1}, 128, 63},
        {"ib1", {0xfd, 0, 1, 2, 3, 4, 5, 7, 2}, 128, 63},
    };
    survey_shared_subnet(text, six, 2);
    assert_string_equal(text, "ib0 and ib1 in fd00:102:304:506::/63");
    six[0].prefix = six[1].prefix = 64;
    survey_shared_subnet(text, six, 2);
    assert_string_equal(text, "none");
}

static void test_prefix(void **state)
{
    (void)state;
    const uint8_t mask[] = {255, 255, 240, 0};
    const uint8_t all[] = {255, 255, 255, 255};
    const uint8_t none[] = {0, 0, 0, 0};
    assert_int_equal(survey_prefix(mask, 32), 20);
    assert_int_equal(survey_prefix(all, 32), 32);
    assert_int_equal(survey_prefix(none, 32), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_long),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_list),       cmocka_unit_test(test_variables),
        cmocka_unit_test(test_interfaces), cmocka_unit_test(test_subnets),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
