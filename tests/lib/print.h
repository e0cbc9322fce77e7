/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoded message as text, every field of it, for people and comparison.
 */
#ifndef TESTS_LIB_PRINT_H
#define TESTS_LIB_PRINT_H

#include <protobuf-c/protobuf-c.h>

#include "common/buf.h"

/* Append one line per field, nested messages indented by two blanks, bytes
 * that are not graphic ASCII as \xNN. */
void message_print(struct gpul_buf *out, const ProtobufCMessage *message);

#endif
