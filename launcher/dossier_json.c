/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/dossier_json.h"

#include <math.h>
#include <string.h>

#include "launcher/dossier_fields.h"
#include "launcher/json.h"

/* ---- writing ---- */

static json_t *count_json(int64_t count)
{
    return count == DOSSIER_UNKNOWN ? json_null() : json_integer(count);
}

static json_t *figure_json(double figure)
{
    return isfinite(figure) ? json_real(figure) : json_null();
}

static json_t *map_json(const struct dossier_map *map)
{
    json_t *o = json_object();
    for (size_t i = 0; i < map->count; i++) {
        const char *value = map->values[i];
        if (value[0] == '\0') {
            json_object_set_new(o, map->keys[i], json_string(""));
        } else {
            json_put_text(o, map->keys[i], value);
        }
    }
    return o;
}

static json_t *figures_json(const struct dossier_figures *figures)
{
    json_t *o = json_object();
    for (size_t i = 0; i < figures->count; i++) {
        json_object_set_new(o, figures->keys[i],
                            figure_json(figures->values[i]));
    }
    return o;
}

static json_t *numbers_json(const struct dossier_figures *figures)
{
    json_t *list = json_array();
    for (size_t i = 0; i < figures->count; i++) {
        json_array_append_new(list,
                              json_integer((json_int_t)figures->values[i]));
    }
    return list;
}

static json_t *counts_json(const struct dossier_end *end)
{
    json_t *o = json_object();
    json_object_set_new(o, "pass", count_json(end->passes));
    json_object_set_new(o, "warn", count_json(end->warnings));
    json_object_set_new(o, "fail", count_json(end->failures));
    json_object_set_new(o, "unknown", count_json(end->unknowns));
    return o;
}

static void put_texts(json_t *o, const char *key,
                      const struct dossier_texts *texts)
{
    json_put_words(o, key, (char *const *)(uintptr_t)texts->items,
                   texts->count);
}

static void put_field(json_t *o, const void *item,
                      const struct dossier_field *f)
{
    const void *at = (const char *)item + f->offset;
    const struct dossier_run *run = item; /* of COMMAND and SIMULATED */
    switch (f->kind) {
    case DOSSIER_TEXT:
        json_put_text(o, f->key, *(const char *const *)at);
        return;
    case DOSSIER_COUNT:
        json_object_set_new(o, f->key, count_json(*(const int64_t *)at));
        return;
    case DOSSIER_FIGURE:
        json_object_set_new(o, f->key, figure_json(*(const double *)at));
        return;
    case DOSSIER_FLAG:
        json_object_set_new(o, f->key, json_boolean(*(const bool *)at));
        return;
    case DOSSIER_TEXTS:
        put_texts(o, f->key, at);
        return;
    case DOSSIER_COMMAND:
        if (run->has_command) {
            put_texts(o, f->key, at);
        } else {
            json_object_set_new(o, f->key, json_null());
        }
        return;
    case DOSSIER_MAP:
        json_object_set_new(o, f->key, map_json(at));
        return;
    case DOSSIER_FIGURES:
        json_object_set_new(o, f->key, figures_json(at));
        return;
    case DOSSIER_NUMBERS:
        json_object_set_new(o, f->key, numbers_json(at));
        return;
    case DOSSIER_SIMULATED:
        json_object_set_new(o, f->key,
                            run->may_be_simulated
                                ? json_null()
                                : json_boolean(run->is_simulated));
        return;
    case DOSSIER_COUNTS:
        json_object_set_new(o, f->key, counts_json(item));
        return;
    }
}

static void put_item(json_t *o, const struct dossier_shape *shape,
                     const void *item)
{
    for (size_t i = 0; i < shape->field_count; i++) {
        put_field(o, item, &shape->fields[i]);
    }
}

static int print_item(struct gpul_buf *out, const struct dossier_shape *shape,
                      const void *item)
{
    json_t *o = json_object();
    json_object_set_new(o, "type", json_string(shape->name));
    put_item(o, shape, item);
    int rc = json_print(out, o);
    json_decref(o);
    return rc;
}

int dossier_print(struct gpul_buf *out, const struct dossier *d)
{
    int rc = d->is_failed ? GPUL_ENOMEM : 0;
    for (enum dossier_type type = 0; type < DOSSIER_TYPE_COUNT; type++) {
        for (size_t i = 0; i < dossier_count(d, type) && rc == 0; i++) {
            rc = print_item(out, dossier_shape(type), dossier_at(d, type, i));
        }
    }
    return rc;
}

static void put_list(json_t *o, const struct dossier *d, enum dossier_type type,
                     const char *key)
{
    json_t *list = json_array();
    for (size_t i = 0; i < dossier_count(d, type); i++) {
        json_t *item = json_object();
        put_item(item, dossier_shape(type), dossier_at(d, type, i));
        json_array_append_new(list, item);
    }
    json_object_set_new(o, key, list);
}

json_t *dossier_object(const struct dossier *d)
{
    static const struct {
        enum dossier_type type;
        const char *key;
    } lists[] = {
        {DOSSIER_NODE, "nodes"},
        {DOSSIER_FINDING, "findings"},
        {DOSSIER_PAIR, "pairs"},
        {DOSSIER_VERDICT, "verdicts"},
        {DOSSIER_BANDWIDTH, "bandwidths"},
        {DOSSIER_SAMPLE, "samples"},
        {DOSSIER_EFFICIENCY, "efficiencies"},
        {DOSSIER_FIT, "fits"},
        {DOSSIER_PREDICTION, "predictions"},
    };
    json_t *o = json_object();
    if (d->is_failed || o == NULL) {
        json_decref(o);
        return NULL;
    }
    if (dossier_run(d) != NULL) {
        put_item(o, dossier_shape(DOSSIER_RUN), dossier_run(d));
    }
    if (dossier_end(d) != NULL) {
        put_item(o, dossier_shape(DOSSIER_END), dossier_end(d));
    }
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        put_list(o, d, lists[i].type, lists[i].key);
    }
    return o;
}

/* ---- reading ---- */

/* Each take_ returns false for a value of another kind. A key that is not
 * there leaves the item as it was: nothing is known. */

static bool take_count(int64_t *out, const json_t *value)
{
    if (json_is_null(value)) {
        return true;
    }
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0;
}

static bool take_figure(double *out, const json_t *value)
{
    if (json_is_null(value)) {
        return true;
    }
    *out = json_number_value(value);
    return json_is_number(value);
}

static bool take_texts(struct dossier *d, struct dossier_texts *out,
                       const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *text = json_array_get(value, i);
        if (!json_is_string(text)) {
            return false;
        }
        dossier_append(d, out, json_string_value(text));
    }
    return json_is_array(value);
}

static bool take_map(struct dossier *d, struct dossier_map *out, json_t *value)
{
    const char *key;
    json_t *text;
    json_object_foreach(value, key, text)
    {
        if (!json_is_string(text)) {
            return false;
        }
        dossier_put(d, out, key, json_string_value(text));
    }
    return json_is_object(value);
}

static bool take_figures(struct dossier *d, struct dossier_figures *out,
                         json_t *value)
{
    const char *key;
    json_t *number;
    json_object_foreach(value, key, number)
    {
        double figure = (double)NAN;
        if (!take_figure(&figure, number)) {
            return false;
        }
        dossier_put_figure(d, out, key, figure);
    }
    return json_is_object(value);
}

static bool take_numbers(struct dossier *d, struct dossier_figures *out,
                         const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *number = json_array_get(value, i);
        if (!json_is_integer(number)) {
            return false;
        }
        dossier_put_figure(d, out, NULL, json_number_value(number));
    }
    return json_is_array(value);
}

static bool take_counts(struct dossier_end *end, const json_t *value)
{
    return json_is_object(value) &&
           take_count(&end->passes, json_object_get(value, "pass")) &&
           take_count(&end->warnings, json_object_get(value, "warn")) &&
           take_count(&end->failures, json_object_get(value, "fail")) &&
           take_count(&end->unknowns, json_object_get(value, "unknown"));
}

static bool take_text(struct dossier *d, const char **out, const json_t *value)
{
    *out = dossier_text(d, json_string_value(value));
    return json_is_string(value) || json_is_null(value);
}

static bool take_command(struct dossier *d, struct dossier_run *run,
                         const json_t *value)
{
    run->has_command = !json_is_null(value);
    return !run->has_command || take_texts(d, &run->command, value);
}

static bool take_simulated(struct dossier_run *run, const json_t *value)
{
    run->may_be_simulated = json_is_null(value);
    run->is_simulated = json_is_true(value);
    return json_is_boolean(value) || json_is_null(value);
}

static bool take_field(struct dossier *d, void *item,
                       const struct dossier_field *f, json_t *value)
{
    void *at = (char *)item + f->offset;
    switch (f->kind) {
    case DOSSIER_TEXT:
        return take_text(d, at, value);
    case DOSSIER_COUNT:
        return take_count(at, value);
    case DOSSIER_FIGURE:
        return take_figure(at, value);
    case DOSSIER_FLAG:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value);
    case DOSSIER_TEXTS:
        return take_texts(d, at, value);
    case DOSSIER_COMMAND:
        return take_command(d, item, value);
    case DOSSIER_MAP:
        return take_map(d, at, value);
    case DOSSIER_FIGURES:
        return take_figures(d, at, value);
    case DOSSIER_NUMBERS:
        return take_numbers(d, at, value);
    case DOSSIER_SIMULATED:
        return take_simulated(item, value);
    case DOSSIER_COUNTS:
        return take_counts(item, value);
    }
    return false;
}

struct place {
    const char *file;
    size_t line;
};

static int read_item(struct dossier *d, const json_t *o,
                     const struct dossier_shape *shape, void *item,
                     const struct place *place, struct gpul_error *err)
{
    for (size_t i = 0; i < shape->field_count; i++) {
        const struct dossier_field *f = &shape->fields[i];
        json_t *value = json_object_get(o, f->key);
        if (value != NULL && !take_field(d, item, f, value)) {
            return gpul_fail(err, GPUL_EINVAL,
                             "%s: line %zu: \"%s\" of a line of type \"%s\" "
                             "has a value of another kind than "
                             "docs/record.schema.json says",
                             place->file, place->line, f->key, shape->name);
        }
    }
    return 0;
}

static int check_version(const struct dossier *d, const struct place *place,
                         struct gpul_error *err)
{
    const struct dossier_run *run = dossier_run(d);
    if (run == NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: line %zu: a record begins with a line of type "
                         "\"run\"; is this one that --record wrote?",
                         place->file, place->line);
    }
    if (run->schema_version != DOSSIER_SCHEMA_VERSION) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: line %zu: schema_version is not %d: the record "
                         "is of another version of gpulaunch; read it with "
                         "that one",
                         place->file, place->line, DOSSIER_SCHEMA_VERSION);
    }
    return 0;
}

static int read_line(struct dossier *d, const char *text, size_t n,
                     const struct place *place, struct gpul_error *err)
{
    json_error_t why;
    json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    const char *name = json_string_value(json_object_get(o, "type"));
    int rc = 0;
    if (o == NULL) {
        rc = gpul_fail(err, GPUL_EINVAL, "%s: line %zu, column %d: %s",
                       place->file, place->line, why.column, why.text);
    } else if (name == NULL) {
        rc = gpul_fail(err, GPUL_EINVAL,
                       "%s: line %zu: no object with a \"type\"; is this a "
                       "record that --record wrote?",
                       place->file, place->line);
    } else if (dossier_find_type(name) != DOSSIER_TYPE_COUNT) {
        enum dossier_type type = dossier_find_type(name);
        void *item = dossier_add(d, type);
        rc = d->is_failed
                 ? gpul_fail(err, GPUL_ENOMEM, "out of memory")
                 : read_item(d, o, dossier_shape(type), item, place, err);
    }
    json_decref(o);
    return rc != 0 ? rc : check_version(d, place, err);
}

int dossier_read(struct dossier *d, const char *bytes, size_t n,
                 const char *name, struct gpul_error *err)
{
    struct place place = {.file = name};
    while (n > 0) {
        const char *newline = memchr(bytes, '\n', n);
        size_t line = newline != NULL ? (size_t)(newline - bytes) : n;
        size_t used = newline != NULL ? line + 1 : n;
        place.line++;
        int rc = line > 0 ? read_line(d, bytes, line, &place, err) : 0;
        if (rc != 0) {
            return rc;
        }
        bytes += used;
        n -= used;
    }
    if (place.line == 0) {
        return gpul_fail(err, GPUL_EINVAL, "%s: it is empty", name);
    }
    return d->is_failed ? gpul_fail(err, GPUL_ENOMEM, "out of memory") : 0;
}
