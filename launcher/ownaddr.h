/* SPDX-License-Identifier: Apache-2.0
 *
 * At which addresses can others find this machine? Where the nodes are not
 * known beforehand there is no route to ask for. Edge.
 *
 * The address of the default route first, then those that a node would offer
 * to the others (proto/interfaces.h, docs/links.md): not loopback, link-local
 * addresses, or bridges of virtual machines and containers. That is a choice of
 * where to listen, not of where the nodes come from: they try what they are
 * told.
 */
#ifndef LAUNCHER_OWNADDR_H
#define LAUNCHER_OWNADDR_H

#include "common/error.h"
#include "launcher/listening.h"

/* Take in the address that the user has chosen; NULL: those found here, at
 * most GPUL_COORDINATORS_MAX. Errors: GPUL_ENOTFOUND (there is none),
 * GPUL_ENOMEM. */
int ownaddr_find(struct listening *l, const char *chosen,
                 struct gpul_error *err);

#endif
