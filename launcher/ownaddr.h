/* SPDX-License-Identifier: Apache-2.0
 *
 * At which addresses can others find this machine? Where the nodes are not
 * known beforehand there is no route to ask for. Edge.
 *
 * The address of the default route first, then those of the other interfaces
 * that are up. Left out, since nobody else could use them: loopback,
 * link-local addresses, and bridges of virtual machines and containers (those
 * that no default route goes through). That is a choice of where to listen,
 * not of where the nodes come from: they try what they are told.
 */
#ifndef LAUNCHER_OWNADDR_H
#define LAUNCHER_OWNADDR_H

#include "common/error.h"
#include "launcher/listening.h"

/* Take in the address that the user has chosen; NULL: those found here, at
 * most GPUL_COORDINATORS_MAX. Errors: GPUL_ENOTFOUND (there is none),
 * GPUL_ESYS. */
int ownaddr_find(struct listening *l, const char *chosen,
                 struct gpul_error *err);

#endif
