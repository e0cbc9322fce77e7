/* SPDX-License-Identifier: Apache-2.0
 *
 * In a network namespace of its own, where it may have one: then no other
 * job on the machine can come between, and the ephemeral range can be set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/portplan.h"
#include "worker/ports.h"

static bool is_isolated;

static const struct ports_request four = {
    .job_id = "job", .node_name = "node", .port_count = 4};

static void isolate(void)
{
    if (unshare(CLONE_NEWNET) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return;
    }
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    is_isolated = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    close(fd);
}

static void need_isolation(void)
{
    if (!is_isolated) {
        print_message("no network namespace to be had\n");
        skip();
    }
}

static uint16_t lease_and_release(const struct ports_request *request)
{
    struct ports_lease lease;
    assert_int_equal(ports_lease(&lease, request, NULL), 0);
    uint16_t first_port = lease.first_port;
    ports_release(&lease);
    assert_int_equal(lease.first_port, 0);
    return first_port;
}

/* A socket that listens on the literal; -1 if there is no such address. */
static int listen_on(const char *literal, uint16_t port)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    bool is_v6 = inet_pton(AF_INET6, literal, &v6.sin6_addr) == 1;
    if (!is_v6) {
        assert_int_equal(inet_pton(AF_INET, literal, &v4.sin_addr), 1);
    }
    int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    const struct sockaddr *address =
        is_v6 ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;
    if (bind(fd, address, is_v6 ? sizeof(v6) : sizeof(v4)) != 0 ||
        listen(fd, 1) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- contention ---------------------------------------------------------- */

enum { CHILDREN = 50 };

/* Wait for the start, lease, tell, hold until the end is told. */
static void child_main(int start, int tell, int end)
{
    char byte;
    struct ports_lease lease = {0};
    ssize_t n = read(start, &byte, 1);
    int rc = ports_lease(&lease, &four, NULL);
    n += write(tell, &lease.first_port, sizeof(lease.first_port));
    n += read(end, &byte, 1);
    _exit(rc == 0 && n == sizeof(lease.first_port) ? 0 : 1);
}

/* Fifty processes that want the very same ports at the same time get fifty
 * runs that do not overlap. */
static void test_contention(void **state)
{
    (void)state;
    int start[2];
    int tell[2];
    int end[2];
    pid_t pids[CHILDREN];
    assert_int_equal(pipe2(start, O_CLOEXEC), 0);
    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    assert_int_equal(pipe2(end, O_CLOEXEC), 0);
    for (int i = 0; i < CHILDREN; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0) {
            close(start[1]);
            close(end[1]);
            child_main(start[0], tell[1], end[0]);
        }
    }
    close(start[1]); /* go */
    close(tell[1]);
    bool is_taken[65536] = {false};
    for (int i = 0; i < CHILDREN; i++) {
        uint16_t first = 0;
        assert_int_equal(read(tell[0], &first, sizeof(first)), sizeof(first));
        assert_true(first >= 20000);
        for (uint32_t port = first; port < first + 4u; port++) {
            assert_false(is_taken[port]);
            is_taken[port] = true;
        }
    }
    close(end[1]);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    close(start[0]);
    close(tell[0]);
    close(end[0]);
}

/* ---- one process --------------------------------------------------------- */

/* A port that anybody listens on, on any address, is passed over; when it is
 * free again, the same run is found again. */
static void test_listener_avoided(void **state)
{
    (void)state;
    static const char *const literals[] = {"127.0.0.1", "0.0.0.0", "::1", "::"};
    need_isolation();
    uint16_t port = lease_and_release(&four);
    for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++) {
        assert_true(ports_check_free((uint16_t)(port + 3)));
        int fd = listen_on(literals[i], (uint16_t)(port + 3));
        if (fd < 0) {
            assert_non_null(strchr(literals[i], ':')); /* IPv6 may be off */
            continue;
        }
        assert_false(ports_check_free((uint16_t)(port + 3)));
        assert_true(ports_check_free(port));
        assert_int_not_equal(lease_and_release(&four), port);
        close(fd);
        assert_int_equal(lease_and_release(&four), port);
    }
}

/* A lease holds until it is released, and keeps no port bound. */
static void test_release(void **state)
{
    (void)state;
    struct ports_lease first;
    struct ports_lease second;
    need_isolation();
    assert_int_equal(ports_lease(&first, &four, NULL), 0);
    assert_false(first.is_ephemeral);
    for (uint16_t i = 0; i < 4; i++) {
        assert_true(ports_check_free((uint16_t)(first.first_port + i)));
    }
    uint16_t port = first.first_port;
    assert_int_equal(ports_lease(&second, &four, NULL), 0);
    assert_int_not_equal(second.first_port, port);
    ports_release(&first);
    ports_release(&first); /* nothing more happens */
    assert_int_equal(lease_and_release(&four), port);
    ports_release(&second);
}

/* Ports to avoid are avoided. */
static void test_avoided(void **state)
{
    (void)state;
    need_isolation();
    uint32_t avoid = lease_and_release(&four);
    struct ports_request request = four;
    request.avoid_ports = &avoid;
    request.avoid_count = 1;
    assert_int_not_equal(lease_and_release(&request), avoid);
}

/* A node with 4096 ranks gets one run over as many blocks as it takes; one
 * more on the same host still finds room. */
static void test_large_runs(void **state)
{
    (void)state;
    need_isolation();
    struct ports_request request = four;
    request.port_count = 4099;
    struct ports_lease leases[2];
    for (int i = 0; i < 2; i++) {
        struct gpul_error err = {0};
        assert_int_equal(ports_lease(&leases[i], &request, &err), 0);
        assert_int_equal(leases[i].fd_count, 257);
    }
    uint32_t a = leases[0].first_port;
    uint32_t b = leases[1].first_port;
    assert_true(a + 4099 <= b || b + 4099 <= a);
    ports_release(&leases[0]);
    ports_release(&leases[1]);
}

/* More ports than there are is a failure that says how many were wanted. */
static void test_too_many(void **state)
{
    (void)state;
    struct ports_request request = four;
    request.port_count = 65000;
    struct ports_lease lease;
    struct gpul_error err = {0};
    assert_int_equal(ports_lease(&lease, &request, &err), GPUL_ENOTFOUND);
    assert_string_equal(err.text,
                        "no 65000 consecutive ports are free on this host; "
                        "end other jobs or use fewer ranks per node");
    assert_null(lease.fds);
}

/* Out of descriptors is said as such, and none is kept. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest = dup(0);
    struct rlimit few = {.rlim_cur = (rlim_t)lowest + 3,
                         .rlim_max = before.rlim_max};
    close(lowest);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct ports_request request = four;
    request.port_count = 160;
    struct ports_lease lease;
    struct gpul_error err = {0};
    int rc = ports_lease(&lease, &request, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, GPUL_ESYS);
    assert_string_equal(
        err.text, "cannot lease ports: Too many open files; raise ulimit -n");
    assert_int_equal(dup(0), lowest);
    close(lowest);
}

/* Where the whole range is ephemeral, ports are found in it and the lease
 * says so. */
static void test_only_ephemeral(void **state)
{
    (void)state;
    need_isolation();
    int fd =
        open("/proc/sys/net/ipv4/ip_local_port_range", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "1024 65535", 10) != 10) {
        print_message("the ephemeral range cannot be set\n");
        skip();
    }
    struct ports_lease lease;
    assert_int_equal(ports_lease(&lease, &four, NULL), 0);
    assert_true(lease.is_ephemeral);
    ports_release(&lease);
    assert_int_equal(write(fd, "32768 60999", 11), 11);
    close(fd);
}

/* The lease of one that has died can be had again, unless someone has it. */
static void test_renew(void **state)
{
    (void)state;
    need_isolation();
    struct ports_lease lease;
    struct ports_lease again;
    assert_int_equal(ports_lease(&lease, &four, NULL), 0);
    uint16_t first_port = lease.first_port;
    assert_false(ports_renew(&again, first_port, 4));
    assert_int_equal(again.first_port, 0);
    ports_release(&lease);
    assert_true(ports_renew(&again, first_port, 4));
    assert_int_equal(again.first_port, first_port);
    assert_int_not_equal(lease_and_release(&four), first_port);
    ports_release(&again);
}

int main(void)
{
    isolate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contention),
        cmocka_unit_test(test_listener_avoided),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_renew),
        cmocka_unit_test(test_large_runs),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_only_ephemeral),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
