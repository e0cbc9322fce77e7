/* SPDX-License-Identifier: Apache-2.0 */
#include "common/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { TEXT_BYTES = 32, FRACTION_DIGITS_MAX = 9 };

struct unit {
    const char *name;
    uint64_t scale;
};

static const struct unit duration_units[] = {
    {"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60000}, {"h", 3600000},
};

static const struct unit size_units[] = {
    {"", 1},           {"B", 1},
    {"K", 1ull << 10}, {"KiB", 1ull << 10},
    {"M", 1ull << 20}, {"MiB", 1ull << 20},
    {"G", 1ull << 30}, {"GiB", 1ull << 30},
    {"T", 1ull << 40}, {"TiB", 1ull << 40},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Read at least one digit; what does not fit saturates. */
static bool read_digits(uint64_t *out, const char **text)
{
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        value =
            value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
    }
    bool is_there = at > *text;
    *text = at;
    *out = value;
    return is_there;
}

static uint64_t find_scale(const struct unit *units, size_t count,
                           const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(units[i].name, name) == 0) {
            return units[i].scale;
        }
    }
    return 0;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* ".75" of `scale`: digits over a power of ten. */
static bool read_fraction(uint64_t *digits, uint64_t *power, const char **text)
{
    *digits = 0;
    *power = 1;
    if (**text != '.') {
        return true;
    }
    const char *first = ++*text;
    if (!read_digits(digits, text) || *text - first > FRACTION_DIGITS_MAX) {
        return false;
    }
    for (const char *at = first; at < *text; at++) {
        *power *= 10;
    }
    return true;
}

int gpul_parse_duration_ms(uint32_t *out, const char *text,
                           struct gpul_error *err)
{
    const char *at = text;
    uint64_t whole;
    uint64_t digits;
    uint64_t power;
    uint64_t scale = 0;
    *out = 0;
    if (read_digits(&whole, &at) && read_fraction(&digits, &power, &at)) {
        scale = find_scale(duration_units, COUNT(duration_units), at);
    }
    if (scale == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not a duration; write 90, 90s, 1500ms, 5m "
                         "or 1.5h",
                         text);
    }
    uint64_t ms = multiply(whole, scale);
    uint64_t rest = digits * scale / power;
    if (ms > UINT32_MAX || ms + rest > UINT32_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is too long; at most 1193h (49 days)", text);
    }
    *out = (uint32_t)(ms + rest);
    return 0;
}

int gpul_parse_size(uint64_t *out, const char *text, struct gpul_error *err)
{
    const char *at = text;
    uint64_t value;
    uint64_t scale = 0;
    *out = 0;
    if (read_digits(&value, &at)) {
        scale = find_scale(size_units, COUNT(size_units), at);
    }
    if (scale == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not a size; write 65536, 64K, 64KiB, 8M or "
                         "1GiB",
                         text);
    }
    uint64_t bytes = multiply(value, scale);
    if (bytes == UINT64_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "\"%s\" is too large a size", text);
    }
    *out = bytes;
    return 0;
}

int gpul_parse_count(uint32_t *out, const char *text, uint32_t min,
                     uint32_t max, struct gpul_error *err)
{
    const char *at = text;
    uint64_t value;
    *out = 0;
    bool is_number = read_digits(&value, &at) && *at == 0;
    if (!is_number || value < min || value > max) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not a whole number from %" PRIu32
                         " to %" PRIu32,
                         text, min, max);
    }
    *out = (uint32_t)value;
    return 0;
}

/* "12 s" or "12.3 s": tenths are cut, not rounded, so that nothing is said
 * to have lasted longer than it did. */
static void format_tenths(char *text, uint64_t tenths, const char *unit)
{
    if (tenths % 10 == 0) {
        snprintf(text, TEXT_BYTES, "%" PRIu64 " %s", tenths / 10, unit);
    } else {
        snprintf(text, TEXT_BYTES, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10,
                 tenths % 10, unit);
    }
}

static void format_two(char *text, uint64_t large, const char *large_unit,
                       uint64_t small, const char *small_unit)
{
    if (small == 0) {
        snprintf(text, TEXT_BYTES, "%" PRIu64 " %s", large, large_unit);
    } else {
        snprintf(text, TEXT_BYTES, "%" PRIu64 " %s %" PRIu64 " %s", large,
                 large_unit, small, small_unit);
    }
}

void gpul_format_duration(char *text, uint64_t ms)
{
    uint64_t seconds = ms / 1000;
    if (ms < 1000) {
        snprintf(text, TEXT_BYTES, "%" PRIu64 " ms", ms);
    } else if (seconds < 60) {
        format_tenths(text, ms / 100, "s");
    } else if (seconds < 3600) {
        format_two(text, seconds / 60, "min", seconds % 60, "s");
    } else {
        format_two(text, seconds / 3600, "h", seconds / 60 % 60, "min");
    }
}

void gpul_format_size(char *text, uint64_t bytes)
{
    static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    size_t at = 0;
    while (at + 1 < COUNT(units) && bytes >> (10 * (at + 1)) > 0) {
        at++;
    }
    uint64_t unit = 1ull << (10 * at);
    uint64_t tenths = bytes / unit * 10 + bytes % unit * 10 / unit;
    format_tenths(text, tenths, units[at]);
}
