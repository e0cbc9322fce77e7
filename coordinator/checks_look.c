/* SPDX-License-Identifier: Apache-2.0
 *
 * A survey as rules look at it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/checks_inside.h"

const Gpul__Fact *look_fact(const Gpul__Survey *survey, const char *key)
{
    for (size_t i = 0; i < survey->n_facts; i++) {
        if (strcmp(survey->facts[i]->key, key) == 0) {
            return survey->facts[i];
        }
    }
    return NULL;
}

/* A part of a survey that did not end says so as "survey.AREA"; a node where
 * there was none at all, as "survey". */
static const Gpul__Fact *find_fault(const Gpul__Survey *survey, const char *key)
{
    struct text area;
    text_format(&area, "survey.%.*s", (int)strcspn(key, "."), key);
    const Gpul__Fact *fact = look_fact(survey, area.bytes);
    return fact != NULL ? fact : look_fact(survey, "survey");
}

bool look_was_asked(const Gpul__Survey *survey, const char *key)
{
    return look_fact(survey, key) != NULL || find_fault(survey, key) != NULL;
}

const char *look_reason(const Gpul__Survey *survey, const char *key)
{
    const Gpul__Fact *fact = look_fact(survey, key);
    if (fact == NULL) {
        fact = find_fault(survey, key);
    }
    return fact != NULL && fact->unknown[0] != 0 ? fact->unknown
                                                 : "it did not say";
}

const char *look_text(struct look *look, const char *key)
{
    const Gpul__Fact *fact = look_fact(look->survey, key);
    if (fact != NULL && fact->unknown[0] == 0) {
        return fact->value;
    }
    text_format(&look->value, "%s: %s", key, look_reason(look->survey, key));
    return NULL;
}

bool look_number(struct look *look, double *out, const char *key)
{
    const char *text = look_text(look, key);
    char *end;
    *out = NAN;
    if (text == NULL) {
        return false;
    }
    if (strcmp(text, "none") == 0 || strcmp(text, "unlimited") == 0) {
        *out = INFINITY;
        return true;
    }
    double number = strtod(text, &end);
    if (end == text || *end != 0 || isnan(number)) {
        text_format(&look->value, "%s: \"%.40s\" is no number", key, text);
        return false;
    }
    *out = number;
    return true;
}

void look_size(struct text *out, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    if (isinf(bytes)) {
        text_format(out, "unlimited");
        return;
    }
    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    text_format(out, bytes == floor(bytes) ? "%.0f %s" : "%.1f %s", bytes,
                units[unit]);
}
