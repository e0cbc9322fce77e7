/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: plan the order of runs, lease every block of the first, bind
 * every port of it for a moment, keep the leases. Failures: a block is
 * leased by another job, or a port is bound by anybody: give the run's leases
 * back and try the next; out of descriptors or memory: end with the reason.
 */
#include "worker/ports.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "worker/portplan.h"

/* Bind one socket to the port on every address of the family. An IPv6 socket
 * stands for IPv4 too. Returns 0 or an errno value. */
static int try_bind(int family, uint16_t port, bool reuses_address)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return errno;
    }
    const int off = 0;
    const int reuse = reuses_address;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons(port)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    int rc;
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        rc = bind(fd, (const struct sockaddr *)&v6, sizeof(v6));
    } else {
        rc = bind(fd, (const struct sockaddr *)&v4, sizeof(v4));
    }
    int bind_errno = rc == 0 ? 0 : errno;
    close(fd);
    return bind_errno;
}

static int probe(uint16_t port, bool reuses_address)
{
    int failure = try_bind(AF_INET6, port, reuses_address);
    bool has_no_v6 = failure == EAFNOSUPPORT || failure == EADDRNOTAVAIL;
    return has_no_v6 ? try_bind(AF_INET, port, reuses_address) : failure;
}

bool ports_check_free(uint16_t port)
{
    return probe(port, true) == 0;
}

/* A socket that holds the block, or the negative errno value. */
static int lease_block(unsigned int block)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
                     "gpulaunch-ports-%u", block);
    size_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (bind(fd, (const struct sockaddr *)&address, (socklen_t)bytes) != 0) {
        int bind_errno = errno;
        close(fd);
        return -bind_errno;
    }
    return fd;
}

static void give_back(struct ports_lease *lease)
{
    while (lease->fd_count > 0) {
        close(lease->fds[--lease->fd_count]);
    }
}

static size_t blocks_of(uint32_t port_count)
{
    return (port_count - 1) / PORTPLAN_BLOCK_PORTS + 1;
}

static int take_blocks(struct ports_lease *lease, uint16_t first_port,
                       size_t block_count)
{
    unsigned int block = first_port / PORTPLAN_BLOCK_PORTS;
    int failure = 0;
    for (size_t i = 0; i < block_count && failure == 0; i++) {
        int fd = lease_block(block + (unsigned int)i);
        if (fd < 0) {
            failure = -fd;
        } else {
            lease->fds[lease->fd_count++] = fd;
        }
    }
    return failure;
}

/* Lease and probe one run. Returns 0, or why not, as an errno value; the
 * lease is then without descriptors. */
static int take_run(struct ports_lease *lease, uint16_t first_port,
                    uint32_t port_count, size_t block_count)
{
    int failure = take_blocks(lease, first_port, block_count);
    for (uint32_t i = 0; i < port_count && failure == 0; i++) {
        failure = probe((uint16_t)(first_port + i), false);
    }
    if (failure != 0) {
        give_back(lease);
    }
    return failure;
}

/* Would the next run fail in the same way? */
static bool is_fatal(int failure)
{
    return failure == EMFILE || failure == ENFILE || failure == ENOMEM ||
           failure == ENOBUFS || failure == EPERM || failure == EAFNOSUPPORT;
}

static void read_ephemeral_range(uint32_t *first, uint32_t *last)
{
    *first = 32768; /* Linux's own default */
    *last = 60999;
    FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (f == NULL) {
        return;
    }
    uint32_t low;
    uint32_t high;
    if (fscanf(f, "%u %u", &low, &high) == 2) {
        *first = low;
        *last = high;
    }
    fclose(f);
}

static int search(struct ports_lease *out, const struct ports_request *request,
                  const struct portplan *plan, size_t block_count,
                  struct gpul_error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        uint16_t first_port = plan->first_ports[i];
        int failure =
            take_run(out, first_port, request->port_count, block_count);
        if (failure == 0) {
            out->first_port = first_port;
            out->is_ephemeral = i >= plan->ephemeral_from;
            return 0;
        }
        if (is_fatal(failure)) {
            return gpul_fail_errno(err, failure, "cannot lease ports");
        }
    }
    return gpul_fail(err, GPUL_ENOTFOUND,
                     "no %u consecutive port%s free on this host; end "
                     "other jobs or use fewer ranks per node",
                     request->port_count,
                     request->port_count == 1 ? " is" : "s are");
}

int ports_lease(struct ports_lease *out, const struct ports_request *request,
                struct gpul_error *err)
{
    assert(request->port_count > 0);
    struct portplan_input in = {
        .port_count = request->port_count,
        .seed = portplan_seed(request->job_id, request->node_name),
        .avoid_ports = request->avoid_ports,
        .avoid_count = request->avoid_count,
    };
    size_t block_count = blocks_of(in.port_count);
    *out = (struct ports_lease){0};
    struct portplan *plan = malloc(sizeof(*plan));
    out->fds = malloc(block_count * sizeof(*out->fds));
    int rc;
    if (plan == NULL || out->fds == NULL) {
        rc = gpul_fail(err, GPUL_ENOMEM, "no memory to lease ports");
    } else {
        read_ephemeral_range(&in.ephemeral_first, &in.ephemeral_last);
        portplan_make(plan, &in);
        rc = search(out, request, plan, block_count, err);
    }
    free(plan);
    if (rc != 0) {
        ports_release(out);
    }
    return rc;
}

bool ports_renew(struct ports_lease *out, uint16_t first_port,
                 uint32_t port_count)
{
    size_t block_count = blocks_of(port_count);
    *out = (struct ports_lease){.first_port = first_port};
    out->fds = malloc(block_count * sizeof(*out->fds));
    bool is_ours =
        out->fds != NULL && take_blocks(out, first_port, block_count) == 0;
    if (!is_ours) {
        ports_release(out);
    }
    return is_ours;
}

void ports_release(struct ports_lease *lease)
{
    give_back(lease);
    free(lease->fds);
    *lease = (struct ports_lease){0};
}
