/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/dossier_fields.h"
#include "launcher/dossier_json.h"

enum { TEXT_BYTES_MAX = 1 << 20, MANY = 1000 };

/* One item of each type: half of it known, and some of it odd. */
static void fill(struct dossier *d)
{
    const char *command[] = {"python", "--api-key", "s3cret", "HF_TOKEN=abc"};
    struct dossier_run *run = dossier_add(d, DOSSIER_RUN);
    run->schema_version = DOSSIER_SCHEMA_VERSION;
    run->version = "1.2";
    run->verb = "check";
    run->job_id = "j1";
    run->started_unix_s = 1800000000;
    run->node_count = 2;
    dossier_put_command(d, run, (char **)(uintptr_t)command, 4);
    struct dossier_node *node = dossier_add(d, DOSSIER_NODE);
    node->name = "a";
    node->node_rank = 0;
    dossier_append(d, &node->rejected, "docker0 172.17.0.1 (bridge): ...");
    dossier_put(d, &node->facts, "kernel.release", "6.1");
    dossier_put(d, &node->facts, "empty", "");
    dossier_put(d, &node->unknown, "gpu.driver", "no answer within 5 s");
    struct dossier_finding *f = dossier_add(d, DOSSIER_FINDING);
    f->id = "NET-101";
    f->severity = "warn";
    dossier_append(d, &f->nodes, "a");
    dossier_append(d, &f->nodes, "b");
    f->text = "a \"quoted\" \xc3\xa4";
    struct dossier_pair *pair = dossier_add(d, DOSSIER_PAIR);
    pair->round = 1;
    pair->a = "a";
    pair->b = "b";
    pair->a_to_b = 1.25e9;
    pair->error = "b to a: timed out";
    dossier_add(d, DOSSIER_VERDICT);
    struct dossier_bandwidth *bw = dossier_add(d, DOSSIER_BANDWIDTH);
    bw->bytes = 1 << 20;
    bw->median_s = 0.001;
    dossier_add(d, DOSSIER_SAMPLE);
    struct dossier_efficiency *e = dossier_add(d, DOSSIER_EFFICIENCY);
    e->is_comparable = true;
    struct dossier_fit *fit = dossier_add(d, DOSSIER_FIT);
    dossier_put_figure(d, &fit->parameters, "a", 0.25);
    dossier_put_figure(d, &fit->parameters, "b", 1e-9);
    struct dossier_prediction *p = dossier_add(d, DOSSIER_PREDICTION);
    dossier_put_figure(d, &p->from, NULL, 1);
    dossier_put_figure(d, &p->from, NULL, 2);
    struct dossier_end *end = dossier_add(d, DOSSIER_END);
    end->exit_code = 20;
    dossier_count_findings(d, end);
}

static char *print(struct gpul_buf *out, const struct dossier *d)
{
    gpul_buf_init(out, TEXT_BYTES_MAX);
    assert_int_equal(dossier_print(out, d), 0);
    return (char *)(uintptr_t)gpul_buf_text(out);
}

static void test_what_is_written_is_read(void **state)
{
    (void)state;
    struct dossier d, again;
    struct gpul_buf first, second;
    struct gpul_error err = {0};
    dossier_init(&d);
    dossier_init(&again);
    fill(&d);
    const char *text = print(&first, &d);
    assert_int_equal(dossier_read(&again, text, strlen(text), "x.jsonl", &err),
                     0);
    assert_string_equal(print(&second, &again), text);
    const struct dossier_pair *pair = dossier_at(&again, DOSSIER_PAIR, 0);
    assert_true(pair->a_to_b == 1.25e9 && isnan(pair->b_to_a));
    assert_null(pair->rail);
    const struct dossier_bandwidth *bw =
        dossier_at(&again, DOSSIER_BANDWIDTH, 0);
    assert_true(bw->bytes == 1 << 20 && bw->iterations == DOSSIER_UNKNOWN);
    assert_int_equal(dossier_end(&again)->warnings, 1);
    assert_int_equal(dossier_find_node(&again, "a")->facts.count, 2);
    assert_null(dossier_find_node(&again, "b"));
    gpul_buf_release(&first);
    gpul_buf_release(&second);
    dossier_release(&d);
    dossier_release(&again);
}

static void test_no_secret_of_the_command(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        const char *expected;
    } cases[] = {
        {{"a", "--token=1", "b", "c"}, "a --token=*** b c"},
        {{"a", "--token", "1", "c"}, "a --token *** c"},
        {{"a", "--token", "--b", "c"}, "a --token --b c"},
        {{"AWS_SECRET_ACCESS_KEY=1", "a", "b", "c"},
         "AWS_SECRET_ACCESS_KEY=*** a b c"},
        {{"sh", "-c", "x=1 key=2", "c"}, "sh -c x=1 key=2 c"},
        {{"a", "--lr=0.1", "key", "c"}, "a --lr=0.1 key c"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dossier d;
        char text[256] = "";
        dossier_init(&d);
        struct dossier_run *run = dossier_add(&d, DOSSIER_RUN);
        dossier_put_command(&d, run, (char **)(uintptr_t)cases[i].words, 4);
        for (size_t k = 0; k < run->command.count; k++) {
            strcat(text, k > 0 ? " " : "");
            strcat(text, run->command.items[k]);
        }
        assert_string_equal(text, cases[i].expected);
        dossier_release(&d);
    }
}

static void test_what_is_no_record(void **state)
{
    (void)state;
#define RUN "{\"type\":\"run\",\"schema_version\":1}\n"
    static const struct {
        const char *text;
        const char *words; /* NULL: it is one */
    } cases[] = {
        {"", "x: it is empty"},
        {"{}", "x: line 1: no object with a \"type\""},
        {"[1]", "x: line 1: no object"},
        {"{\"type\":\"run\"", "x: line 1, column 13: "},
        {"{\"type\":\"end\"}", "x: line 1: a record begins with a line of "},
        {"{\"type\":\"run\",\"schema_version\":2}", "schema_version is not 1"},
        {"{\"type\":\"run\"}", "schema_version is not 1"},
        {RUN "{\"type\":\"pair\",\"round\":\"1\"}",
         "x: line 2: \"round\" of a line of type \"pair\""},
        {RUN "{\"type\":\"pair\",\"round\":-1}", "\"round\""},
        {RUN "{\"type\":\"pair\",\"a\":7}", "\"a\""},
        {RUN "{\"type\":\"finding\",\"nodes\":[1]}", "\"nodes\""},
        {RUN "{\"type\":\"node\",\"facts\":{\"a\":1}}", "\"facts\""},
        {RUN "{\"type\":\"fit\",\"parameters\":[]}", "\"parameters\""},
        {RUN "{\"type\":\"end\",\"counts\":3}", "\"counts\""},
        {RUN "{\"type\":\"run\",\"type\":\"run\"}", "duplicate"},
        {RUN "\n{\"type\":\"of tomorrow\",\"x\":1}", NULL},
        {RUN "{\"type\":\"pair\",\"of tomorrow\":1}\n", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dossier d;
        struct gpul_error err = {0};
        dossier_init(&d);
        int rc =
            dossier_read(&d, cases[i].text, strlen(cases[i].text), "x", &err);
        if (cases[i].words == NULL) {
            assert_int_equal(rc, 0);
            assert_null(dossier_end(&d));
        } else if (rc == 0 || strstr(err.text, cases[i].words) == NULL) {
            fail_msg("case %zu: %d, %s", i, rc, err.text);
        }
        dossier_release(&d);
    }
#undef RUN
}

static void test_many_items(void **state)
{
    (void)state;
    struct dossier d;
    dossier_init(&d);
    struct dossier_node *node = dossier_add(&d, DOSSIER_NODE);
    for (int i = 0; i < MANY; i++) {
        char text[16];
        snprintf(text, sizeof(text), "k%d", i);
        dossier_put(&d, &node->facts, text, text + 1);
        dossier_append(&d, &node->rejected, text);
        struct dossier_pair *pair = dossier_add(&d, DOSSIER_PAIR);
        pair->round = i;
    }
    for (int i = 0; i < MANY; i++) {
        char text[16];
        snprintf(text, sizeof(text), "k%d", i);
        const struct dossier_pair *pair =
            dossier_at(&d, DOSSIER_PAIR, (size_t)i);
        assert_int_equal(pair->round, i);
        assert_string_equal(node->facts.keys[i], text);
        assert_string_equal(node->facts.values[i], text + 1);
        assert_string_equal(node->rejected.items[i], text);
    }
    assert_false(d.is_failed);
    dossier_release(&d);
}

/* ---- the published schema ---- */

static bool allows(const json_t *property, const char *kind)
{
    const json_t *type = json_object_get(property, "type");
    if (json_is_string(type)) {
        return strcmp(json_string_value(type), kind) == 0;
    }
    for (size_t i = 0; i < json_array_size(type); i++) {
        if (strcmp(json_string_value(json_array_get(type, i)), kind) == 0) {
            return true;
        }
    }
    const json_t *choices = json_object_get(property, "enum");
    return choices != NULL && strcmp(kind, "string") == 0;
}

static void test_the_schema_tells_the_same(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        [DOSSIER_TEXT] = "string",   [DOSSIER_COUNT] = "integer",
        [DOSSIER_FIGURE] = "number", [DOSSIER_FLAG] = "boolean",
        [DOSSIER_TEXTS] = "array",   [DOSSIER_COMMAND] = "array",
        [DOSSIER_MAP] = "object",    [DOSSIER_FIGURES] = "object",
        [DOSSIER_NUMBERS] = "array", [DOSSIER_SIMULATED] = "boolean",
        [DOSSIER_COUNTS] = "object",
    };
    json_error_t why;
    json_t *schema =
        json_load_file(SOURCE_DIR "/docs/record.schema.json", 0, &why);
    assert_non_null(schema);
    const json_t *defs = json_object_get(schema, "$defs");
    assert_int_equal(json_object_size(defs), DOSSIER_TYPE_COUNT);
    for (enum dossier_type type = 0; type < DOSSIER_TYPE_COUNT; type++) {
        const struct dossier_shape *shape = dossier_shape(type);
        const json_t *def = json_object_get(defs, shape->name);
        const json_t *properties = json_object_get(def, "properties");
        assert_int_equal(json_object_size(properties), shape->field_count + 1);
        for (size_t i = 0; i < shape->field_count; i++) {
            const struct dossier_field *f = &shape->fields[i];
            const json_t *p = json_object_get(properties, f->key);
            bool is_version = strcmp(f->key, "schema_version") == 0;
            if (!is_version && !allows(p, kinds[f->kind])) {
                fail_msg("%s of %s", f->key, shape->name);
            }
        }
    }
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_no_secret_of_the_command),
        cmocka_unit_test(test_what_is_no_record),
        cmocka_unit_test(test_many_items),
        cmocka_unit_test(test_the_schema_tells_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
