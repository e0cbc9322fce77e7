/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/linkpick.h"

static struct gpul_interface all[GPUL_INTERFACES_FOUND_MAX];
static size_t count;

static struct gpul_interface *add(const char *name, const char *address)
{
    struct gpul_interface *i = &all[count++];
    *i = (struct gpul_interface){.kind = "ethernet"};
    snprintf(i->name, sizeof(i->name), "%s", name);
    snprintf(i->address, sizeof(i->address), "%s", address);
    return i;
}

static struct gpul_interface *add_rejected(const char *name,
                                           const char *address, const char *why)
{
    struct gpul_interface *i = add(name, address);
    snprintf(i->rejection, sizeof(i->rejection), "%s", why);
    return i;
}

/* All of them in their order, as "name address", with '!' before those that
 * are no candidates. */
static const char *sorted(const char *wanted)
{
    static char line[2048];
    size_t candidates;
    size_t n = linkpick_sort(all, count, wanted, &candidates);
    line[0] = 0;
    for (size_t i = 0; i < n; i++) {
        size_t used = strlen(line);
        snprintf(line + used, sizeof(line) - used, "%s%s%.16s %.64s",
                 i > 0 ? ", " : "", i < candidates ? "" : "!", all[i].name,
                 all[i].address);
        assert_int_equal(all[i].rejection[0] != 0, i >= candidates);
    }
    count = n;
    return line;
}

/* IPv4, no tunnel, RDMA, rate, name in natural order, address. */
static void test_order(void **state)
{
    (void)state;
    count = 0;
    add("tun0", "10.8.0.1")->is_tunnel = true;
    add("eth10", "10.0.0.10");
    add("eth2", "10.0.0.9");
    add("eth2", "10.0.0.4");
    add("eth2", "fd00::4");
    add("eth3", "10.0.3.1")->mbits = 100000;
    add_rejected("docker0", "172.17.0.1", "a bridge");
    add("ib0", "10.1.0.1")->is_rdma = true;
    assert_string_equal(sorted(""),
                        "ib0 10.1.0.1, eth3 10.0.3.1, eth2 10.0.0.4, eth2 "
                        "10.0.0.9, eth10 10.0.0.10, tun0 10.8.0.1, eth2 "
                        "fd00::4, !docker0 172.17.0.1");
}

/* Exact names and addresses; it counts instead of the other reasons, but for
 * one. */
static void test_wanted(void **state)
{
    (void)state;
    count = 0;
    add("eth1", "10.0.0.1");
    add("eth10", "10.0.0.10");
    add_rejected("lo", "127.0.0.1", "loopback");
    add_rejected("lo", "fe80::1", "a link-local address")->is_link_local = true;
    assert_string_equal(sorted("lo,10.0.0.1"),
                        "eth1 10.0.0.1, lo 127.0.0.1, !eth10 10.0.0.10, !lo "
                        "fe80::1");
    assert_string_equal(all[2].rejection, "not named by --interface");
    assert_string_equal(all[3].rejection, "a link-local address");
}

static void test_too_many(void **state)
{
    (void)state;
    char address[16];
    count = 0;
    for (uint32_t i = 0; i < 40; i++) {
        snprintf(address, sizeof(address), "10.0.0.%u", i);
        add("eth0", address);
    }
    size_t candidates;
    assert_int_equal(linkpick_sort(all, count, "", &candidates),
                     GPUL_INTERFACES_MAX);
    assert_int_equal(candidates, GPUL_LINKS_MAX);
    assert_string_equal(all[GPUL_LINKS_MAX].rejection,
                        "beyond the first 8 addresses");
}

/* Eight RDMA cards hide neither the Ethernet by which the node has joined, nor
 * the other family. */
static void test_needed(void **state)
{
    (void)state;
    char name[8], address[16];
    count = 0;
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "ib%u", i);
        snprintf(address, sizeof(address), "10.1.0.%u", i);
        add(name, address)->is_rdma = true;
    }
    add("eth0", "10.0.0.1")->mbits = 1000;
    add("eth1", "10.0.0.2")->is_joined = true;
    add("eth1", "fd00::2");
    add("eth2", "fd00::3");
    assert_string_equal(
        sorted(""),
        "ib0 10.1.0.0, ib1 10.1.0.1, ib2 10.1.0.2, ib3 10.1.0.3, ib4 10.1.0.4, "
        "ib5 10.1.0.5, eth1 10.0.0.2, eth1 fd00::2, !ib6 10.1.0.6, !ib7 "
        "10.1.0.7, !eth0 10.0.0.1, !eth2 fd00::3");
}

static void test_explain(void **state)
{
    (void)state;
    char text[LINKPICK_TEXT_BYTES];
    size_t candidates;
    count = 0;
    linkpick_explain(text, all, 0, "");
    assert_string_equal(text, "it has no address at all");
    add_rejected("lo", "127.0.0.1", "loopback");
    add_rejected("docker0", "172.17.0.1", "down");
    linkpick_explain(text, all, count, "");
    assert_string_equal(text, "lo 127.0.0.1: loopback; docker0 172.17.0.1: "
                              "down");
    linkpick_sort(all, count, "eth7", &candidates);
    assert_int_equal(candidates, 0);
    linkpick_explain(text, all, count, "eth7");
    assert_string_equal(text,
                        "it has no interface or address of --interface eth7; "
                        "it has docker0 (172.17.0.1), lo (127.0.0.1)");
    for (size_t i = 0; i < 60; i++) {
        add_rejected("docker0", "2001:db8:1111:2222:3333:4444:5555:6666",
                     "a bridge without a port to the network");
    }
    linkpick_explain(text, all, count, "");
    assert_int_equal(strlen(text), sizeof(text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),    cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_too_many), cmocka_unit_test(test_needed),
        cmocka_unit_test(test_explain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
