/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of this machine, what kind of interface each is on, and which
 * of them others may be able to reach, as the kernel tells. Edge.
 *
 * Sources: Linux, Documentation/ABI/testing/sysfs-class-net and -bonding,
 * include/uapi/linux/if_arp.h for the types. docs/links.md has the rules.
 */
#ifndef WORKER_INTERFACES_H
#define WORKER_INTERFACES_H

#include <ifaddrs.h>
#include <stddef.h>

#include "worker/linkpick.h"

/* Fill `out` with the addresses of `all`, or, where that is NULL, of this
 * machine; `root` stands before every path of /sys ("" in the program).
 * Beyond the room for each, candidates and others are left out; link-local
 * addresses too, where there are any of use. Returns their number. */
size_t interfaces_read(struct interface out[INTERFACES_MAX], const char *root,
                       const struct ifaddrs *all);

#endif
