/* SPDX-License-Identifier: Apache-2.0
 *
 * How a rank ended, as an object of the result; docs/operations.md has its
 * keys. Edge (jansson).
 */
#ifndef LAUNCHER_FAILURE_JSON_H
#define LAUNCHER_FAILURE_JSON_H

#include <jansson.h>

#include "launcher/record.h"

json_t *failure_json(const struct record *r, const Gpul__Exit *e);

#endif
