/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli.h"

#include <stdio.h>
#include <string.h>

#include "launcher/cli_manifest.h"
#include "launcher/cli_report.h"
#include "launcher/cli_scale.h"
#include "launcher/cli_value.h"
#include "proto/limits.h"

enum {
    JOIN_TIMEOUT_MS = 600000,
    GRACE_MS = 30000,
};

static const struct {
    const char *word;
    enum plan_verb verb;
} verbs[] = {
    {"run", PLAN_RUN},           {"check", PLAN_CHECK},
    {"doctor", PLAN_DOCTOR},     {"env", PLAN_ENV},
    {"secret", PLAN_SECRET},     {"join", PLAN_JOIN},
    {"manifest", PLAN_MANIFEST}, {"report", PLAN_REPORT},
    {"diff", PLAN_DIFF},         {"scale", PLAN_SCALE},
    {"help", PLAN_HELP},
};
enum { VERB_COUNT = sizeof(verbs) / sizeof(verbs[0]) };

struct parse {
    struct plan *plan;
    gpul_getenv_fn getenv;
    void *getenv_arg;
};

/* Letters of nccl-tests that other launchers have taken: said beside their
 * hint, since what was meant cannot be told. */
static const char *nccl_tests_name(const char *spelling)
{
    static const struct {
        const char *spelling;
        const char *name;
    } letters[] = {
        {"-n", "--iters"},
        {"-c", "--check"},
    };
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
        if (strcmp(spelling, letters[i].spelling) == 0) {
            return letters[i].name;
        }
    }
    return NULL;
}

static int refuse_foreign(const struct gpul_option *option,
                          const char *spelling, struct gpul_error *err)
{
    const char *name = nccl_tests_name(spelling);
    if (name == NULL) {
        return gpul_fail(err, GPUL_EINVAL, "%s: %s", spelling, option->help);
    }
    return gpul_fail(err, GPUL_EINVAL, "%s: %s (%s of nccl-tests: use %s)",
                     spelling, option->help, spelling, name);
}

/* A flag is meant; a variable may be there for another verb. */
static int refuse_elsewhere(enum plan_verb verb, enum option option,
                            const char *spelling,
                            enum gpul_option_source source,
                            struct gpul_error *err)
{
    if (source != GPUL_SOURCE_FLAG) {
        return 0;
    }
    if (verb == PLAN_JOIN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "join: no option %s; the gpulaunch that waits for "
                         "its nodes says what runs on them",
                         spelling);
    }
    if (verb == PLAN_CHECK || verb == PLAN_DOCTOR) {
        return gpul_fail(err, GPUL_EINVAL, "%s: no option %s; %s",
                         verb == PLAN_CHECK ? "check" : "doctor", spelling,
                         verb == PLAN_CHECK ? "nothing is started there"
                                            : "it looks at this machine only");
    }
    bool is_of_check = cli_check_has(PLAN_CHECK, option);
    return gpul_fail(err, GPUL_EINVAL, "%s is an option of gpulaunch %s only",
                     spelling, is_of_check ? "check" : "join");
}

/* Letters of nccl-tests for which there is no other meaning in a check. */
static size_t renamed(enum plan_verb verb, size_t index, const char *spelling)
{
    if (verb != PLAN_CHECK || index < OPTION_COUNT) {
        return index;
    }
    return strcmp(spelling, "-n") == 0   ? OPTION_ITERS
           : strcmp(spelling, "-c") == 0 ? OPTION_CHECK
                                         : index;
}

static int on_value(void *arg, size_t index, const char *value,
                    const char *spelling, enum gpul_option_source source,
                    struct gpul_error *err)
{
    struct parse *p = arg;
    index = renamed(p->plan->verb, index, spelling);
    if (index >= OPTION_COUNT) {
        size_t count = 0;
        const struct gpul_option *table = option_table(&count);
        return refuse_foreign(&table[index], spelling, err);
    }
    if (!cli_verb_has(p->plan->verb, (enum option)index)) {
        return refuse_elsewhere(p->plan->verb, (enum option)index, spelling,
                                source, err);
    }
    struct plan_setting *setting = &p->plan->settings[index];
    setting->source = source;
    setting->value = value;
    snprintf(setting->spelling, sizeof(setting->spelling), "%s", spelling);
    return cli_value_set(p->plan, (enum option)index, value, p->getenv,
                         p->getenv_arg, err);
}

static const char *on_getenv(void *arg, const char *name)
{
    struct parse *p = arg;
    return p->getenv != NULL ? p->getenv(p->getenv_arg, name) : NULL;
}

/* The verb of that name; 0: there is none. */
static enum plan_verb find_verb(const char *word)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        if (strcmp(word, verbs[i].word) == 0) {
            return verbs[i].verb;
        }
    }
    return 0;
}

static int parse_topic(struct plan *plan, int argc, char *const argv[],
                       struct gpul_error *err)
{
    plan->verb = PLAN_HELP;
    if (argc == 0) {
        return 0;
    }
    enum plan_verb topic = argc == 1 ? find_verb(argv[0]) : 0;
    if (topic == 0 || topic == PLAN_HELP) {
        return gpul_fail(
            err, GPUL_EINVAL,
            "help: no such topic \"%s\"; there are run, check, doctor, env, "
            "secret, join, manifest, report, diff and scale",
            argv[argc == 1 ? 0 : 1]);
    }
    plan->help_topic = topic;
    return 0;
}

/* Nothing of a run matters here, neither its options nor their variables. */
static int parse_secret(struct plan *plan, int argc, char *const argv[],
                        struct gpul_error *err)
{
    bool has_separator = argc > 0 && strcmp(argv[0], "--") == 0;
    argc -= has_separator;
    argv += has_separator;
    if (argc > 0 && !has_separator && argv[0][0] == '-') {
        return gpul_fail(err, GPUL_EINVAL,
                         "secret: no option %.80s; it takes the name of a new "
                         "file, or nothing",
                         argv[0]);
    }
    if (argc > 1 || (argc == 1 && argv[0][0] == '\0')) {
        return gpul_fail(err, GPUL_EINVAL,
                         "secret: give the name of one file, or none");
    }
    return argc == 1
               ? cli_set_secret_file(&plan->secret_path, argv[0], "secret", err)
               : 0;
}

static int unknown_verb(const char *word, struct gpul_error *err)
{
    const char *words[VERB_COUNT];
    for (size_t i = 0; i < VERB_COUNT; i++) {
        words[i] = verbs[i].word;
    }
    const char *near = gpul_nearest(word, words, VERB_COUNT);
    if (near != NULL) {
        return gpul_fail(err, GPUL_EINVAL,
                         "unknown verb \"%s\"; did you mean %s? (a command to "
                         "run goes after --)",
                         word, near);
    }
    return gpul_fail(
        err, GPUL_EINVAL,
        "unknown verb \"%s\"; there are run, check, doctor, env, secret, "
        "join, manifest, report, diff, scale and help, and a command to "
        "run goes after --",
        word);
}

/* Consumes the verb, if there is one. */
static int parse_verb(struct plan *plan, int *consumed, int argc,
                      char *const argv[], struct gpul_error *err)
{
    plan->verb = PLAN_RUN;
    *consumed = 0;
    if (argc == 0 || argv[0][0] == '-') {
        return 0;
    }
    *consumed = 1;
    plan->verb = find_verb(argv[0]);
    if (plan->verb == PLAN_HELP) {
        return parse_topic(plan, argc - 1, argv + 1, err);
    }
    return plan->verb != 0 ? 0 : unknown_verb(argv[0], err);
}

/* --help and --version win over anything else that is wrong, so they are
 * looked for by themselves: only among the options, before "--". */
static bool take_information(struct plan *plan, int argc, char *const argv[])
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_help =
            strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        if (is_help) {
            plan->help_topic = argc > 0 && argv[0][0] != '-' ? plan->verb : 0;
            plan->verb = PLAN_HELP;
            return true;
        }
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            plan->verb = PLAN_VERSION;
            return true;
        }
    }
    return false;
}

static int parse_options(struct parse *p, int argc, char *const argv[],
                         struct gpul_error *err)
{
    struct gpul_options options = {.stops_at_operand = true,
                                   .on_value = on_value,
                                   .getenv = on_getenv,
                                   .arg = p};
    options.table = option_table(&options.count);
    int rest = 0;
    bool has_separator = false;
    int rc =
        gpul_options_parse(&options, argc, argv, &rest, &has_separator, err);
    if (rc != 0) {
        return rc;
    }
    if (rest < argc && !has_separator && p->plan->verb != PLAN_JOIN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not an option; put -- before the command: "
                         "gpulaunch [options] -- %s ...",
                         argv[rest], argv[rest]);
    }
    p->plan->command = argv + rest;
    p->plan->command_count = (size_t)(argc - rest);
    return 0;
}

/* join [options] ADDR [options]: the rest is options only. */
static int parse_join(struct parse *p, int argc, char *const argv[],
                      struct gpul_error *err)
{
    int rc = 0;
    while (rc == 0) {
        rc = parse_options(p, argc, argv, err);
        size_t left = p->plan->command_count;
        if (rc != 0 || left == 0) {
            break;
        }
        if (p->plan->join_address != NULL) {
            return gpul_fail(err, GPUL_EINVAL,
                             "join: \"%.80s\" is one argument too many; it "
                             "takes one address, and no command",
                             p->plan->command[0]);
        }
        p->plan->join_address = p->plan->command[0];
        p->plan->settings[OPTION_ADDRESS] = (struct plan_setting){
            .source = GPUL_SOURCE_FLAG,
            .spelling = "ADDR",
            .value = p->plan->join_address,
        };
        argv += argc - (int)left + 1;
        argc = (int)left - 1;
        p->getenv = NULL; /* it has been asked */
    }
    return rc != 0 ? rc : cli_join_apply(p->plan, err);
}

int cli_parse(struct plan *plan, int argc, char *const argv[],
              gpul_getenv_fn getenv, void *getenv_arg, struct gpul_error *err)
{
    memset(plan, 0, sizeof(*plan));
    plan->node_count = 1;
    plan->ranks_per_node = 1;
    plan->self_test = PLAN_SELF_TEST_QUICK;
    plan->join_timeout_ms = JOIN_TIMEOUT_MS;
    plan->grace_ms = GRACE_MS;
    plan->orphan_timeout_ms = GPUL_ORPHAN_TIMEOUT_MS;

    int consumed = 0;
    int rc = parse_verb(plan, &consumed, argc, argv, err);
    if (rc != 0 || plan->verb == PLAN_HELP) {
        return rc;
    }
    if (take_information(plan, argc, argv)) {
        return 0;
    }
    if (argc == 0) {
        plan->verb = PLAN_HELP;
        return gpul_fail(err, GPUL_EINVAL,
                         "nothing to do; try gpulaunch --help, or: gpulaunch "
                         "--local --nodes 2 -- python train.py");
    }
    if (plan->verb == PLAN_SECRET) {
        return parse_secret(plan, argc - consumed, argv + consumed, err);
    }
    if (plan->verb == PLAN_MANIFEST) {
        return cli_manifest_parse(plan, argc - consumed, argv + consumed, err);
    }
    if (plan->verb == PLAN_REPORT || plan->verb == PLAN_DIFF) {
        return cli_report_parse(plan, argc - consumed, argv + consumed, err);
    }
    if (plan->verb == PLAN_SCALE) {
        return cli_scale_parse(plan, argc - consumed, argv + consumed, getenv,
                               getenv_arg, err);
    }
    struct parse p = {plan, getenv, getenv_arg};
    if (plan->verb == PLAN_JOIN) {
        return parse_join(&p, argc - consumed, argv + consumed, err);
    }
    rc = parse_options(&p, argc - consumed, argv + consumed, err);
    if (rc == 0 && plan->verb == PLAN_DOCTOR) {
        cli_doctor_apply(plan);
    } else if (rc == 0) {
        rc = cli_nodes_find(plan, getenv, getenv_arg, err);
    }
    return rc != 0 || plan->nodes_file != NULL ? rc
                                               : cli_rules_apply(plan, err);
}

int cli_settle(struct plan *plan, const char *file, size_t bytes,
               struct gpul_error *err)
{
    int rc = cli_nodes_read(plan, file, bytes, err);
    return rc != 0 ? rc : cli_rules_apply(plan, err);
}

const char *cli_nearest_variable(const char *name)
{
    static const char prefix[] = "GPULAUNCH_";
    static const char secret[] = "GPULAUNCH_SECRET"; /* of no option */
    const size_t skipped = sizeof(prefix) - 1;
    const char *candidates[OPTION_COUNT + 1] = {secret + skipped};
    size_t count = 0, used = 1;
    const struct gpul_option *table = option_table(&count);
    if (strncmp(name, prefix, skipped) != 0 || strcmp(name, secret) == 0) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (table[i].environment == NULL) {
            continue;
        }
        if (strcmp(table[i].environment, name) == 0) {
            return NULL;
        }
        candidates[used++] = table[i].environment + skipped;
    }
    const char *near = gpul_nearest(name + skipped, candidates, used);
    return near != NULL ? near - skipped : NULL;
}
