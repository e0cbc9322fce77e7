/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "proto/interfaces.h"
#include "tests/lib/fakehost.h"

enum { UP = IFF_UP | IFF_RUNNING };

static char root[FAKEHOST_ROOT_BYTES];
static struct ifaddrs list[160];
static struct sockaddr_storage addresses[160];
static size_t count;

static int setup(void **state)
{
    (void)state;
    fakehost_make(root);
    count = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fakehost_remove(root);
    return 0;
}

static void add(const char *name, const char *address, unsigned flags)
{
    struct sockaddr_storage *to = &addresses[count];
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
        memcpy(to, &v4, sizeof(v4));
    } else {
        assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
        memcpy(to, &v6, sizeof(v6));
    }
    list[count] = (struct ifaddrs){
        .ifa_name = (char *)(uintptr_t)name,
        .ifa_flags = flags,
        .ifa_addr = (struct sockaddr *)to,
    };
    if (count > 0) {
        list[count - 1].ifa_next = &list[count];
    }
    count++;
}

static void put(const char *name, const char *entry, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, entry);
    fakehost_put(root, path, text);
}

static struct gpul_interface out[GPUL_INTERFACES_FOUND_MAX];

static const struct gpul_interface *find(size_t n, const char *address)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(out[i].address, address) == 0) {
            return &out[i];
        }
    }
    fail_msg("%s is not there", address);
    return NULL;
}

static void expect(size_t n, const char *address, const char *kind,
                   const char *rejection)
{
    const struct gpul_interface *i = find(n, address);
    assert_string_equal(i->kind, kind);
    assert_string_equal(i->rejection, rejection);
}

/* A host with cards, and all that containers and libvirt leave on one. */
static void test_host(void **state)
{
    (void)state;
    put("lo", "type", "772\n");
    add("lo", "127.0.0.1", UP | IFF_LOOPBACK);
    put("eth0", "type", "1\n");
    put("eth0", "device/vendor", "0x8086\n");
    put("eth0", "speed", "25000\n");
    add("eth0", "10.0.0.5", UP);
    add("eth0", "fe80::1", UP);
    add("eth0", "169.254.3.4", UP);
    put("ib0", "type", "32\n");
    put("ib0", "device/infiniband/mlx5_0/x", "");
    put("ib0", "speed", "400000\n");
    add("ib0", "10.1.0.5", UP);
    put("docker0", "type", "1\n");
    put("docker0", "bridge/bridge_id", "8000\n");
    put("docker0", "brif/veth9/port_id", "1\n");
    put("veth9", "type", "1\n");
    put("veth9", "iflink", "7\n");
    put("veth9", "ifindex", "8\n");
    put("veth9", "speed", "10000\n");
    put("veth9", "brport/port_id", "1\n");
    add("docker0", "172.17.0.1", UP);
    add("veth9", "172.17.0.9", UP);
    put("virbr0", "type", "1\n");
    put("virbr0", "bridge/bridge_id", "8000\n");
    add("virbr0", "192.168.122.1", IFF_UP);
    put("br0", "type", "1\n");
    put("br0", "bridge/bridge_id", "8000\n");
    put("br0", "brif/eth1/port_id", "1\n");
    put("eth1", "device/vendor", "0x8086\n");
    add("br0", "10.2.0.5", UP);
    put("eth2", "type", "1\n");
    put("eth2", "device/vendor", "0x8086\n");
    add("eth2", "10.3.0.5", IFF_UP);
    add("eth3", "10.4.0.5", 0);
    size_t n = gpul_interfaces_read(out, root, list);
    expect(n, "127.0.0.1", "loopback", "loopback");
    expect(n, "10.0.0.5", "ethernet", "");
    assert_int_equal(find(n, "10.0.0.5")->mbits, 25000);
    assert_false(find(n, "10.0.0.5")->is_rdma);
    expect(n, "10.1.0.5", "infiniband", "");
    assert_true(find(n, "10.1.0.5")->is_rdma);
    assert_int_equal(find(n, "10.1.0.5")->mbits, 400000);
    expect(n, "172.17.0.1", "bridge", "a bridge without a port to the network");
    expect(n, "172.17.0.9", "veth",
           "a port of a bridge, the host's end of a container");
    assert_int_equal(find(n, "172.17.0.9")->mbits, 0);
    expect(n, "192.168.122.1", "bridge",
           "a bridge without a port to the network");
    expect(n, "10.2.0.5", "bridge", "");
    expect(n, "10.3.0.5", "ethernet", "no carrier");
    expect(n, "10.4.0.5", "virtual", "down");
    assert_int_equal(n, 9); /* without those that are link-local */
}

/* In a pod or a namespace eth0 is a veth, and what there is. */
static void test_pod(void **state)
{
    (void)state;
    put("eth0", "type", "1\n");
    put("eth0", "iflink", "12\n");
    put("eth0", "ifindex", "2\n");
    put("eth0", "speed", "10000\n");
    add("eth0", "10.244.1.7", UP);
    put("wg0", "type", "65534\n");
    add("wg0", "10.9.0.1", UP);
    put("bond0", "type", "1\n");
    put("bond0", "bonding/mode", "802.3ad\n");
    put("bond0", "speed", "200000\n");
    put("bond0", "lower_ens1/device/infiniband/mlx5_1/x", "");
    put("ens1", "device/infiniband/mlx5_1/x", "");
    add("bond0", "fd00::7", UP);
    size_t n = gpul_interfaces_read(out, root, list);
    assert_int_equal(n, 3);
    expect(n, "10.244.1.7", "veth", "");
    expect(n, "10.9.0.1", "tunnel", "");
    assert_true(find(n, "10.9.0.1")->is_tunnel);
    expect(n, "fd00::7", "bond", "");
    assert_int_equal(find(n, "fd00::7")->mbits, 200000);
    assert_true(find(n, "fd00::7")->is_rdma);
}

/* Nothing but link-local addresses: then they are shown, and why they are of no
 * use. */
static void test_link_local(void **state)
{
    (void)state;
    add("lo", "127.0.0.1", UP | IFF_LOOPBACK);
    put("eth0", "type", "1\n");
    put("eth0", "device/vendor", "0x8086\n");
    add("eth0", "fe80::1", UP);
    add("eth0", "169.254.3.4", UP);
    size_t n = gpul_interfaces_read(out, root, list);
    assert_int_equal(n, 3);
    expect(n, "fe80::1", "ethernet", "a link-local address");
    expect(n, "169.254.3.4", "ethernet", "a link-local address");
}

/* A thousand service addresses on an interface that is down do not push the
 * others out. */
static void test_many(void **state)
{
    (void)state;
    char address[16];
    for (size_t i = 0; i < 150; i++) {
        snprintf(address, sizeof(address), "10.96.0.%zu", i);
        add("kube-ipvs0", address, 0);
    }
    put("eth0", "type", "1\n");
    add("eth0", "10.0.0.5", UP);
    size_t n = gpul_interfaces_read(out, root, list);
    assert_int_equal(n, GPUL_INTERFACES_FOUND_MAX / 2 + 1);
    expect(n, "10.0.0.5", "virtual", "");
}

/* This machine has a loopback interface. */
static void test_here(void **state)
{
    (void)state;
    size_t n = gpul_interfaces_read(out, "", NULL);
    expect(n, "127.0.0.1", "loopback", "loopback");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_host, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pod, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_local, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many, setup, teardown),
        cmocka_unit_test(test_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
