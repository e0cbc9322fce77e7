/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of this process alone, whose loopback interface has many
 * addresses: those of 10.77.0.0/16 are all this machine's, as on a real
 * network and unlike 127.0.0.0/8. What is started from here is in it too.
 */
#ifndef TESTS_LIB_NETROOM_H
#define TESTS_LIB_NETROOM_H

#include <stdbool.h>

#define NETROOM_ADDRESS "10.77.0.1"

/* False: this machine does not let us, and *why says what is missing. */
bool netroom_enter(const char **why);

#endif
