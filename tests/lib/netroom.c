/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/netroom.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void put_address(struct ifreq *request, const char *literal)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    inet_pton(AF_INET, literal, &at.sin_addr);
    memcpy(&request->ifr_addr, &at, sizeof(at));
}

/* Of the loopback interface: the address beside its own, and up. */
static bool configure(void)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:1");
    put_address(&request, NETROOM_ADDRESS);
    bool is_good = ioctl(fd, SIOCSIFADDR, &request) == 0;
    put_address(&request, "255.255.0.0");
    is_good = is_good && ioctl(fd, SIOCSIFNETMASK, &request) == 0;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "lo");
    request.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    is_good = is_good && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return is_good;
}

bool netroom_enter(const char **why)
{
    if (unshare(CLONE_NEWNET) != 0 &&
        unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        *why = "no network namespace may be made here";
        return false;
    }
    *why = "the loopback interface of a new network cannot be set up";
    return configure();
}
