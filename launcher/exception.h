/* SPDX-License-Identifier: Apache-2.0
 *
 * The exception that ended a program, from the JSON file that torch writes
 * where main is decorated with `record`. Edge (jansson).
 *
 * Source of its form: record_exception in PyTorch's
 * torch/distributed/elastic/multiprocessing/errors/error_handler.py:
 * {"message": {"message": "ValueError: x", "extraInfo": {"py_callstack":
 * "Traceback ...", "timestamp": "..."}}}, or "message" as a plain string.
 */
#ifndef LAUNCHER_EXCEPTION_H
#define LAUNCHER_EXCEPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EXCEPTION_CLASS_BYTES = 128,
    EXCEPTION_MESSAGE_BYTES = 512,
    EXCEPTION_FRAME_BYTES = 512,
    EXCEPTION_TRACEBACK_BYTES = 17 << 10, /* of a file of 16 KiB */
};

/* Lines without control characters, cut where they are too long; "" where
 * the file does not say. */
struct exception {
    char type[EXCEPTION_CLASS_BYTES];
    char message[EXCEPTION_MESSAGE_BYTES];
    /* "train.py:12 in main": where the user's code was entered, and where it
     * was when the exception was raised. */
    char first[EXCEPTION_FRAME_BYTES];
    char last[EXCEPTION_FRAME_BYTES];
    char traceback[EXCEPTION_TRACEBACK_BYTES]; /* lines */
};

/* false: it is no such file, or it says nothing. */
bool exception_parse(struct exception *out, const uint8_t *json, size_t n);

#endif
