/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/survey.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/text.h"

enum {
    /* What a fact costs on the wire beside its texts, and more. */
    FACT_BYTES = 16,
    TEXT_BYTES = 8192,
    TEXTS = 3, /* of a fact */
};

static void release_fact(Gpul__Fact *fact)
{
    free(fact->key);
    free(fact->value);
    free(fact->unknown);
    free(fact);
}

void survey_release(struct survey *s)
{
    for (size_t i = 0; i < s->message.n_facts; i++) {
        release_fact(s->message.facts[i]);
    }
    free(s->message.facts);
    *s = (struct survey){0};
}

bool survey_has(const struct survey *s, const char *key)
{
    for (size_t i = 0; i < s->message.n_facts; i++) {
        if (strcmp(s->message.facts[i]->key, key) == 0) {
            return true;
        }
    }
    return false;
}

/* FNV-1a: to tell texts apart that are equal as far as they are shown. */
static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *text != 0; text++) {
        h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
    }
    return h;
}

/* A reason that is too long is only cut. */
static char *fit_reason(char *text)
{
    gpul_text_clean_line(text, GPUL_FACT_UNKNOWN_BYTES_MAX);
    return strdup(text);
}

static char *fit(char *text)
{
    enum { TAIL_BYTES = 32 };
    uint64_t number = hash(text);
    bool is_long = strlen(text) > GPUL_FACT_VALUE_BYTES_MAX;
    gpul_text_clean_line(text, is_long ? GPUL_FACT_VALUE_BYTES_MAX - TAIL_BYTES
                                       : GPUL_FACT_VALUE_BYTES_MAX);
    size_t n = strlen(text);
    char *copy = malloc(n + TAIL_BYTES);
    if (copy != NULL) {
        memcpy(copy, text, n + 1);
        if (is_long) {
            snprintf(copy + n, TAIL_BYTES, " ... #%016" PRIx64, number);
        }
    }
    return copy;
}

static Gpul__Fact *make_fact(const char *key, char *value, char *unknown)
{
    Gpul__Fact *fact = malloc(sizeof(*fact));
    if (fact == NULL) {
        return NULL;
    }
    gpul__fact__init(fact);
    fact->key = strdup(key);
    fact->value = fit(value);
    fact->unknown = fit_reason(unknown);
    if (fact->key == NULL || fact->value == NULL || fact->unknown == NULL) {
        release_fact(fact);
        return NULL;
    }
    return fact;
}

static bool has_room(const struct survey *s, const char *key)
{
    return s->message.n_facts < GPUL_FACTS_MAX &&
           s->bytes + strlen(key) + GPUL_FACT_VALUE_BYTES_MAX + FACT_BYTES <=
               GPUL_SURVEY_BYTES_MAX - FACT_BYTES &&
           strlen(key) <= GPUL_FACT_KEY_BYTES_MAX &&
           gpul_text_is_valid(key, GPUL_TEXT_NAME);
}

/* Either text is "". */
static void add(struct survey *s, const char *key, char *value, char *unknown)
{
    Gpul__Survey *m = &s->message;
    if (m->n_facts == 0) {
        gpul__survey__init(m);
    }
    if (key[0] == 0 || !has_room(s, key) || survey_has(s, key)) {
        return;
    }
    if (m->facts == NULL) {
        m->facts = calloc(GPUL_FACTS_MAX, sizeof(Gpul__Fact *));
    }
    Gpul__Fact *fact = m->facts != NULL ? make_fact(key, value, unknown) : NULL;
    if (fact == NULL) {
        s->is_short = true;
        return;
    }
    s->bytes += strlen(fact->key) + strlen(fact->value) +
                strlen(fact->unknown) + FACT_BYTES;
    m->facts[m->n_facts++] = fact;
    if (s->on_fact != NULL) {
        s->on_fact(s->arg, fact);
    }
}

void survey_say(struct survey *s, const char *key, const char *format, ...)
{
    char text[TEXT_BYTES];
    char none[] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (text[0] == 0) {
        survey_unknown(s, key, "it is empty");
        return;
    }
    add(s, key, text, none);
}

void survey_say_number(struct survey *s, const char *key, uint64_t value)
{
    survey_say(s, key, "%" PRIu64, value);
}

void survey_unknown(struct survey *s, const char *key, const char *format, ...)
{
    char text[TEXT_BYTES];
    char none[] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (text[0] == 0) {
        snprintf(text, sizeof(text), "no reason was given");
    }
    add(s, key, none, text);
}

/* ---- as bytes ------------------------------------------------------------ */

int survey_encode(struct gpul_buf *out, const Gpul__Fact *fact)
{
    const char *const texts[TEXTS] = {fact->key, fact->value, fact->unknown};
    int rc = 0;
    for (size_t i = 0; i < TEXTS && rc == 0; i++) {
        rc = gpul_buf_append(out, texts[i], strlen(texts[i]) + 1);
    }
    return rc;
}

/* The bytes of one whole fact at the beginning, 0: it is not whole. */
static size_t find_fact(const char *texts[TEXTS], const char *bytes, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < TEXTS; i++) {
        const char *end = memchr(bytes + at, 0, n - at);
        if (end == NULL) {
            return 0;
        }
        texts[i] = bytes + at;
        at = (size_t)(end - bytes) + 1;
    }
    return at;
}

size_t survey_decode(struct survey *s, const char *bytes, size_t n)
{
    const char *texts[TEXTS];
    size_t at = 0;
    for (size_t used; at < n && (used = find_fact(texts, bytes + at, n - at));
         at += used) {
        if ((texts[1][0] == 0) == (texts[2][0] == 0)) {
            return SIZE_MAX;
        }
        if (texts[1][0] != 0) {
            survey_say(s, texts[0], "%s", texts[1]);
        } else {
            survey_unknown(s, texts[0], "%s", texts[2]);
        }
    }
    return at;
}

/* ---- lists --------------------------------------------------------------- */

static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++) {
        if ((at == list || at[-1] == ' ') && (at[n] == 0 || at[n] == ' ')) {
            return true;
        }
    }
    return false;
}

void survey_list_add(struct survey_list *list, const char *format, ...)
{
    char word[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(word, sizeof(word), format, arguments);
    va_end(arguments);
    size_t used = strlen(list->text);
    if (word[0] != 0 && !list_has(list->text, word)) {
        snprintf(list->text + used, sizeof(list->text) - used, "%s%s",
                 used > 0 ? " " : "", word);
    }
}

const char *survey_list_text(const struct survey_list *list)
{
    return list->text[0] != 0 ? list->text : "none";
}
