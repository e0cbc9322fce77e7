/* SPDX-License-Identifier: Apache-2.0
 *
 * What people write for durations, sizes and counts. Pure.
 */
#ifndef GPUL_COMMON_UNITS_H
#define GPUL_COMMON_UNITS_H

#include <stdint.h>

#include "common/error.h"

/* "90", "90s", "1500ms", "5m", "2h", "1.5h"; a bare number is seconds.
 * Errors: GPUL_EINVAL naming the forms. */
int gpul_parse_duration_ms(uint32_t *out, const char *text,
                           struct gpul_error *err);

/* "65536", "64K", "64KiB", "8M", "1GiB": binary, as in nccl-tests. */
int gpul_parse_size(uint64_t *out, const char *text, struct gpul_error *err);

/* A decimal count within [min, max]; the text of the error names both. */
int gpul_parse_count(uint32_t *out, const char *text, uint32_t min,
                     uint32_t max, struct gpul_error *err);

/* "850 ms", "12.3 s", "5 min", "2 h 10 min" into `text` (32 bytes). */
void gpul_format_duration(char *text, uint64_t ms);

/* The ending of a noun behind a number: "1 node", "2 nodes". */
static inline const char *gpul_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* "8 B", "1 KiB", "256 MiB" into `text` (32 bytes). */
void gpul_format_size(char *text, uint64_t bytes);

#endif
