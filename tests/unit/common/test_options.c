/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/options.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct gpul_option table[] = {
    {.name = "nodes",
     .aliases = "nnodes",
     .letter = 'N',
     .value = "N",
     .environment = "T_NODES",
     .group = "Where",
     .help = "How many nodes take part."},
    {.name = "per-node",
     .aliases = "nproc-per-node gpus-per-node",
     .value = "K|gpu",
     .environment = "T_PER_NODE",
     .group = "Where",
     .help = "Ranks on each node: a number, or gpu for one on each device "
             "that the node has."},
    {.name = "env",
     .letter = 'x',
     .value = "NAME[=VALUE]",
     .environment = "T_ENV",
     .group = "What",
     .help = "Set a variable for every rank.",
     .repeats = true},
    {.name = "an-option-with-a-long-name",
     .value = "VALUE",
     .group = "What",
     .help = "Its text begins on a line of its own."},
    {.name = "verbose",
     .letter = 'v',
     .environment = "T_VERBOSE",
     .group = "What",
     .help = "Say more."},
    {.name = "quiet", .letter = 'q', .group = "What", .help = "Say less."},
    {.name = "secret",
     .value = "X",
     .group = "What",
     .help = "Not shown.",
     .is_hidden = true},
};

/* What the parser handed over, as text: "nodes=4(--nnodes,flag) ...". */
struct trace {
    struct gpul_buf text;
    const char *const (*environment)[2]; /* ends with a NULL name */
    const char *refuses;                 /* name of an option, or NULL */
};

static int on_value(void *arg, size_t index, const char *value,
                    const char *spelling, enum gpul_option_source source,
                    struct gpul_error *err)
{
    struct trace *t = arg;
    const char *name = table[index].name;
    if (t->refuses != NULL && strcmp(name, t->refuses) == 0) {
        return gpul_fail(err, GPUL_EINVAL, "%s: refused", spelling);
    }
    gpul_buf_appendf(&t->text, "%s%s%s(%s,%s) ", name, value != NULL ? "=" : "",
                     value != NULL ? value : "", spelling,
                     source == GPUL_SOURCE_FLAG ? "flag" : "env");
    return 0;
}

static const char *look_up(void *arg, const char *name)
{
    struct trace *t = arg;
    for (size_t i = 0; t->environment != NULL && t->environment[i][0]; i++) {
        if (strcmp(t->environment[i][0], name) == 0) {
            return t->environment[i][1];
        }
    }
    return NULL;
}

enum { ARGUMENTS_MAX = 8 };

struct result {
    int rc;
    int rest;
    bool has_separator;
    struct gpul_error err;
};

/* Parse `line`, split at single spaces. */
static struct result parse(struct trace *t, const char *line,
                           bool stops_at_operand)
{
    char copy[256];
    char *argv[ARGUMENTS_MAX];
    int argc = 0;
    char *rest = copy;
    assert_true(strlen(line) < sizeof(copy));
    strcpy(copy, line);
    while (line[0] != 0 && rest != NULL) {
        assert_true(argc < ARGUMENTS_MAX);
        argv[argc++] = strsep(&rest, " ");
    }
    struct gpul_options o = {.table = table,
                             .count = COUNT(table),
                             .stops_at_operand = stops_at_operand,
                             .on_value = on_value,
                             .getenv = look_up,
                             .arg = t};
    struct result r = {.rest = -1};
    r.rc =
        gpul_options_parse(&o, argc, argv, &r.rest, &r.has_separator, &r.err);
    return r;
}

/* Every accepted spelling of names and values reaches the same option, and
 * what is left is found. */
static void test_spellings(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *trace;
        int rest;
        bool has_separator;
    } rows[] = {
        {"", "", 0, false},
        {"--nodes 4", "nodes=4(--nodes,flag) ", 2, false},
        {"--nodes=4", "nodes=4(--nodes,flag) ", 1, false},
        {"--nodes=", "nodes=(--nodes,flag) ", 1, false},
        {"--nnodes=4", "nodes=4(--nnodes,flag) ", 1, false},
        {"--nproc_per_node=gpu", "per-node=gpu(--nproc_per_node,flag) ", 1,
         false},
        {"--per_node 2 -v", "per-node=2(--per_node,flag) verbose(-v,flag) ", 3,
         false},
        {"-N4", "nodes=4(-N,flag) ", 1, false},
        {"-N=4", "nodes=4(-N,flag) ", 1, false},
        {"-N 4", "nodes=4(-N,flag) ", 2, false},
        {"-N -1", "nodes=-1(-N,flag) ", 2, false},
        {"-vqN 4", "verbose(-v,flag) quiet(-q,flag) nodes=4(-N,flag) ", 2,
         false},
        {"-x A=1 --env=B", "env=A=1(-x,flag) env=B(--env,flag) ", 3, false},
        {"-x A=1 -x A=2", "env=A=1(-x,flag) env=A=2(-x,flag) ", 4, false},
        {"--nodes 4 -N4", "nodes=4(--nodes,flag) ", 3, false},
        {"-v --verbose", "verbose(-v,flag) ", 2, false},
        {"-v -- -q", "verbose(-v,flag) ", 2, true},
        {"--secret 1", "secret=1(--secret,flag) ", 2, false},
        {"-v run -q", "verbose(-v,flag) ", 1, false},
        {"- -q", "", 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct trace t = {0};
        gpul_buf_init(&t.text, 1000);
        struct result r = parse(&t, rows[i].line, true);
        assert_string_equal(r.err.text, "");
        assert_int_equal(r.rc, 0);
        assert_string_equal(gpul_buf_text(&t.text), rows[i].trace);
        assert_int_equal(r.rest, rows[i].rest);
        assert_int_equal(r.has_separator, rows[i].has_separator);
        gpul_buf_release(&t.text);
    }
}

/* Every mistake has its sentence, and the nearest option where there is one. */
static void test_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"--node 4", "unknown option --node; did you mean --nodes?"},
        {"--ndoes=4", "unknown option --ndoes; did you mean --nodes?"},
        {"--perr_node=4", "unknown option --perr_node; did you mean "
                          "--per-node?"},
        {"--verb", "unknown option --verb; did you mean --verbose?"},
        {"--frobnicate", "unknown option --frobnicate; see --help"},
        {"--secre", "unknown option --secre; see --help"},
        {"--=4", "unknown option --; see --help"},
        {"-Z", "unknown option -Z; see --help"},
        {"-vZ", "unknown option -Z; see --help"},
        {"-nodes=4", "unknown option -nodes; did you mean --nodes?"},
        {"--nodes", "option --nodes needs a value: --nodes N"},
        {"-N", "option -N needs a value: -N N"},
        {"--nproc_per_node --nodes 4",
         "option --nproc_per_node needs a value: --nproc_per_node K|gpu"},
        {"--nodes -- true", "option --nodes needs a value: --nodes N"},
        {"--verbose=1", "option --verbose takes no value"},
        {"--nodes 2 --nnodes=4",
         "option --nodes is given twice, as \"2\" and as \"4\""},
        {"-v python", "unexpected argument \"python\""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct trace t = {0};
        gpul_buf_init(&t.text, 1000);
        struct result r = parse(&t, rows[i][0], false);
        assert_string_equal(r.err.text, rows[i][1]);
        assert_int_equal(r.rc, GPUL_EINVAL);
        assert_int_equal(r.rest, 0);
        assert_false(r.has_separator);
        gpul_buf_release(&t.text);
    }
}

/* The environment comes first, so that a flag can win over it. */
static void test_environment(void **state)
{
    (void)state;
    static const char *const environment[][2] = {
        {"T_NODES", "8"}, {"T_PER_NODE", ""},       {"T_VERBOSE", "Yes"},
        {"T_ENV", "A=1"}, {"T_UNKNOWN", "ignored"}, {NULL, NULL},
    };
    struct trace t = {.environment = environment};
    gpul_buf_init(&t.text, 1000);
    assert_int_equal(parse(&t, "--nodes 4", true).rc, 0);
    assert_string_equal(gpul_buf_text(&t.text),
                        "nodes=8(T_NODES,env) env=A=1(T_ENV,env) "
                        "verbose(T_VERBOSE,env) nodes=4(--nodes,flag) ");
    gpul_buf_release(&t.text);
}

/* A switch in the environment is on or off, or the parse fails. */
static void test_environment_switch(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        const char *trace;
        const char *fault;
    } rows[] = {
        {"1", "verbose(T_VERBOSE,env) ", ""},
        {"on", "verbose(T_VERBOSE,env) ", ""},
        {"0", "", ""},
        {"FALSE", "", ""},
        {"maybe", "", "T_VERBOSE is \"maybe\"; write 1 or 0"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const environment[][2] = {{"T_VERBOSE", rows[i].value},
                                              {NULL, NULL}};
        struct trace t = {.environment = environment};
        gpul_buf_init(&t.text, 1000);
        struct result r = parse(&t, "", true);
        assert_string_equal(r.err.text, rows[i].fault);
        assert_int_equal(r.rc, rows[i].fault[0] ? GPUL_EINVAL : 0);
        assert_string_equal(gpul_buf_text(&t.text), rows[i].trace);
        gpul_buf_release(&t.text);
    }
}

/* A value that the caller refuses ends the parse with the caller's text. */
static void test_refused_value(void **state)
{
    (void)state;
    struct trace t = {.refuses = "nodes"};
    gpul_buf_init(&t.text, 1000);
    struct result r = parse(&t, "-v -N0 -q", true);
    assert_int_equal(r.rc, GPUL_EINVAL);
    assert_string_equal(r.err.text, "-N: refused");
    assert_string_equal(gpul_buf_text(&t.text), "verbose(-v,flag) ");
    gpul_buf_release(&t.text);
}

/* The help, to the letter: groups, columns, wrapping, aliases, no hidden. */
static void test_help(void **state)
{
    (void)state;
    static const char expected[] =
        "Where:\n"
        "  -N, --nodes N           How many nodes take part. Also --nnodes.\n"
        "      --per-node K|gpu    Ranks on each node: a number, or gpu for "
        "one on each\n"
        "                          device that the node has. Also "
        "--nproc-per-node,\n"
        "                          --gpus-per-node.\n"
        "\n"
        "What:\n"
        "  -x, --env NAME[=VALUE]  Set a variable for every rank.\n"
        "      --an-option-with-a-long-name VALUE\n"
        "                          Its text begins on a line of its own.\n"
        "  -v, --verbose           Say more.\n"
        "  -q, --quiet             Say less.\n";
    struct gpul_options o = {.table = table, .count = COUNT(table)};
    struct gpul_buf text;
    gpul_buf_init(&text, 4000);
    assert_int_equal(gpul_options_help(&text, &o), 0);
    assert_string_equal(gpul_buf_text(&text), expected);
    gpul_buf_release(&text);
    gpul_buf_init(&text, 100);
    assert_int_equal(gpul_options_help(&text, &o), GPUL_ELIMIT);
    gpul_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_environment_switch),
        cmocka_unit_test(test_refused_value),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
