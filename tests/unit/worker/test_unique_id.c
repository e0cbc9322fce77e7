/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/unique_id.h"

/* NCCL's layout by hand: magic at 0, socket address at 8, zeros behind it. */
static struct nccl_unique_id make_id(uint64_t magic, const void *address,
                                     size_t bytes)
{
    struct nccl_unique_id id = {{0}};
    memcpy(id.internal, &magic, sizeof(magic));
    memcpy(id.internal + sizeof(magic), address, bytes);
    return id;
}

static struct nccl_unique_id make_v4(const char *literal, uint16_t port)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET, literal, &sin.sin_addr), 1);
    return make_id(0x1122334455667788, &sin, sizeof(sin));
}

static struct nccl_unique_id make_v6(const char *literal, uint16_t port)
{
    struct sockaddr_in6 sin = {.sin6_family = AF_INET6,
                               .sin6_port = htons(port)};
    assert_int_equal(inet_pton(AF_INET6, literal, &sin.sin6_addr), 1);
    return make_id(1, &sin, sizeof(sin));
}

/* Addresses of both families are read, and loopback ones are told apart. */
static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *address;
        uint16_t port;
        bool is_v6;
        bool is_loopback;
    } cases[] = {
        {"10.1.2.3", 41234, false, false}, {"127.0.0.1", 1, false, true},
        {"127.8.8.8", 65535, false, true}, {"128.0.0.1", 80, false, false},
        {"fd00::17", 50000, true, false},  {"::1", 50000, true, true},
        {"fe80::1", 9, true, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct nccl_unique_id id =
            cases[i].is_v6 ? make_v6(cases[i].address, cases[i].port)
                           : make_v4(cases[i].address, cases[i].port);
        struct unique_id_place place;
        assert_true(unique_id_place(&place, &id));
        assert_string_equal(place.address, cases[i].address);
        assert_int_equal(place.port, cases[i].port);
        assert_int_equal(place.is_loopback, cases[i].is_loopback);
    }
}

/* NCCL 2.29 counts ranks behind the address; that is still its layout. */
static void test_rank_count(void **state)
{
    (void)state;
    struct nccl_unique_id id = make_v4("10.1.2.3", 41234);
    int32_t ranks = 7;
    memcpy(id.internal + 8 + sizeof(struct sockaddr_in6), &ranks,
           sizeof(ranks));
    struct unique_id_place place;
    assert_true(unique_id_place(&place, &id));
    assert_string_equal(place.address, "10.1.2.3");
}

static void assert_unknown(const struct nccl_unique_id *id)
{
    struct unique_id_place place;
    memset(&place, 0x55, sizeof(place));
    assert_false(unique_id_place(&place, id));
    assert_string_equal(place.address, "");
    assert_int_equal(place.port, 0);
    assert_false(place.is_loopback);
}

/* Nothing is claimed of an ID that does not look as NCCL's do. */
static void test_unknown(void **state)
{
    (void)state;
    struct nccl_unique_id id = {{0}};
    assert_unknown(&id);

    memset(id.internal, 0xff, sizeof(id.internal));
    assert_unknown(&id);

    id = make_v4("10.1.2.3", 0); /* no port: nobody listens */
    assert_unknown(&id);

    id = make_v4("10.1.2.3", 41234);
    memset(id.internal, 0, 8); /* no magic */
    assert_unknown(&id);

    id = make_v4("10.1.2.3", 41234);
    id.internal[NCCL_UNIQUE_ID_BYTES - 1] = 1; /* something else behind it */
    assert_unknown(&id);

    struct sockaddr_in sin = {.sin_family = AF_UNIX, .sin_port = htons(80)};
    id = make_id(1, &sin, sizeof(sin));
    assert_unknown(&id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_rank_count),
        cmocka_unit_test(test_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
