/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli_manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/cli.h"
#include "launcher/cli_handon.h"
#include "launcher/cli_value.h"
#include "proto/limits.h"
#include "proto/text.h"

#define GROUP "The file"

enum own {
    OWN_NAME,
    OWN_IMAGE,
    OWN_NAMESPACE,
    OWN_SECRET_NAME,
    OWN_NODE_GPUS,
    OWN_GPU_RESOURCE,
    OWN_JOBSET,
    OWN_RUN_AS,
    OWN_RETRIES,
    OWN_COUNT,
};

static const struct gpul_option own_table[OWN_COUNT] = {
    [OWN_NAME] = {.name = "name",
                  .value = "NAME",
                  .group = GROUP,
                  .help = "Name of the job, and of what is made for it: "
                          "lower-case letters, digits and -. Default "
                          "gpulaunch."},
    [OWN_IMAGE] = {.name = "image",
                   .value = "IMAGE",
                   .group = GROUP,
                   .help = "kubernetes, compose: the image of the nodes, which "
                           "has the command and gpulaunch."},
    [OWN_NAMESPACE] = {.name = "namespace",
                       .value = "NAME",
                       .group = GROUP,
                       .help = "kubernetes: the namespace. Default: kubectl's "
                               "own."},
    [OWN_SECRET_NAME] = {.name = "secret-name",
                         .value = "NAME",
                         .group = GROUP,
                         .help = "kubernetes: the Secret that holds the job's "
                                 "secret under the key secret (default: "
                                 "NAME-secret). terraform: its name or ARN in "
                                 "AWS Secrets Manager (default: NAME)."},
    [OWN_NODE_GPUS] = {.name = "node-gpus",
                       .value = "K",
                       .group = GROUP,
                       .help = "kubernetes, slurm, compose: GPUs to ask for on "
                               "each node. Default: K of --gpus-per-node K, "
                               "else none."},
    [OWN_GPU_RESOURCE] = {.name = "gpu-resource",
                          .value = "NAME",
                          .group = GROUP,
                          .help = "kubernetes: the resource that these are. "
                                  "Default nvidia.com/gpu."},
    [OWN_JOBSET] = {.name = "jobset",
                    .group = GROUP,
                    .help = "kubernetes: a JobSet instead of a Job."},
    [OWN_RUN_AS] = {.name = "run-as",
                    .value = "UID",
                    .group = GROUP,
                    .help = "kubernetes: the number of the user that the "
                            "processes in a pod are of. Default 1000; with 0, "
                            "root, Kubernetes' \"restricted\" standard is not "
                            "kept."},
    [OWN_RETRIES] = {.name = "retries",
                     .value = "N",
                     .group = GROUP,
                     .help = "slurm, and kubernetes with --jobset: so often "
                             "all nodes are started again after exit codes "
                             "40, 41 and 75, a late or lost node. Default 0."},
};

enum {
    KUBERNETES = 1u << MANIFEST_KUBERNETES,
    SLURM = 1u << MANIFEST_SLURM,
    COMPOSE = 1u << MANIFEST_COMPOSE,
    TERRAFORM = 1u << MANIFEST_TERRAFORM,
    ALL = KUBERNETES | SLURM | COMPOSE | TERRAFORM,
};

static const unsigned own_kinds[OWN_COUNT] = {
    [OWN_NAME] = ALL,
    [OWN_IMAGE] = KUBERNETES | COMPOSE,
    [OWN_NAMESPACE] = KUBERNETES,
    [OWN_SECRET_NAME] = KUBERNETES | TERRAFORM,
    [OWN_NODE_GPUS] = KUBERNETES | SLURM | COMPOSE,
    [OWN_GPU_RESOURCE] = KUBERNETES,
    [OWN_JOBSET] = KUBERNETES,
    [OWN_RUN_AS] = KUBERNETES,
    [OWN_RETRIES] = KUBERNETES | SLURM,
};

/* Options of run that the file itself answers, or that mean nothing in it. */
static const struct {
    enum option option;
    const char *why;
} refused[] = {
    {OPTION_LOCAL, "the file is for other machines"},
    {OPTION_HOSTS, "the nodes are those that the file starts"},
    {OPTION_NODELIST, "the nodes are those that the file starts"},
    {OPTION_HOSTFILE, "the nodes are those that the file starts"},
    {OPTION_ADDRESS, "it is found out where the job runs"},
    {OPTION_ADVERTISE, "it is found out where the job runs"},
    {OPTION_JOB, "each run gets its own"},
    {OPTION_WORKER_PATH, "the nodes have gpulaunch in their PATH"},
    {OPTION_COPY_WORKER, "the nodes have gpulaunch in their PATH"},
    {OPTION_SSH_COMMAND, "no ssh is needed"},
    {OPTION_SECRET_FILE, "the file itself says where the secret is; its first "
                         "lines say how it gets there"},
    {OPTION_INSECURE, "the nodes are other machines"},
    {OPTION_DRY_RUN, "printing is all that manifest does"},
    {OPTION_RANK, "it is for gpulaunch env"},
    {OPTION_EXPLAIN, "printing is all that manifest does"},
};

struct parse {
    struct plan *plan;
    bool has_gpus;
};

const struct gpul_option *cli_manifest_options(size_t *count)
{
    *count = OWN_COUNT;
    return own_table;
}

/* ---- values -------------------------------------------------------------- */

static bool is_made_of(const char *text, const char *more, size_t bytes_max)
{
    size_t n = strlen(text);
    for (const char *c = text; *c != '\0'; c++) {
        bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        bool is_digit = *c >= '0' && *c <= '9';
        if (!is_letter && !is_digit && strchr(more, *c) == NULL) {
            return false;
        }
    }
    return n > 0 && n <= bytes_max && text[0] != '-';
}

static int set_name(const char **out, const char *value, const char *spelling,
                    struct gpul_error *err)
{
    if (!manifest_name_is_valid(value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is not 1 to %d lower-case letters, "
                         "digits and -, with a letter first and no - last",
                         spelling, value, MANIFEST_NAME_BYTES_MAX);
    }
    *out = value;
    return 0;
}

static int set_namespace(const char **out, const char *value,
                         const char *spelling, struct gpul_error *err)
{
    if (!manifest_namespace_is_valid(value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is not 1 to 63 lower-case letters, "
                         "digits and -, with no - first or last",
                         spelling, value);
    }
    *out = value;
    return 0;
}

/* Of Kubernetes; that of a cloud is made of other letters. */
static int set_secret(const char **out, const char *value, const char *spelling,
                      struct gpul_error *err)
{
    if (!manifest_secret_is_valid(value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is no name of a Secret: lower-case "
                         "letters, digits and -, with no - first or last, in "
                         "parts of up to 63 with . between, 253 in all",
                         spelling, value);
    }
    *out = value;
    return 0;
}

static int set_words(const char **out, const char *value, const char *more,
                     const char *spelling, struct gpul_error *err)
{
    if (!is_made_of(value, more, GPUL_NAME_BYTES_MAX)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is not 1 to %u letters, digits and %s",
                         spelling, value, GPUL_NAME_BYTES_MAX, more);
    }
    *out = value;
    return 0;
}

static int set_image(const char **out, const char *value, const char *spelling,
                     struct gpul_error *err)
{
    if (value[0] == '\0' || !gpul_text_is_valid(value, GPUL_TEXT_NAME)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s: \"%.80s\" is no name of an image", spelling,
                         value);
    }
    *out = value;
    return 0;
}

static int set_count(uint32_t *out, const char *value, uint32_t most,
                     const char *spelling, struct gpul_error *err)
{
    int rc = gpul_parse_count(out, value, 0, most, err);
    return rc == 0 ? 0 : gpul_wrap(err, rc, "%s", spelling);
}

static int set_own(struct parse *p, enum own option, const char *value,
                   const char *spelling, struct gpul_error *err)
{
    struct manifest *m = &p->plan->manifest;
    if ((own_kinds[option] & 1u << m->kind) == 0) {
        return gpul_fail(err, GPUL_EINVAL, "manifest %s has no option %s",
                         manifest_kind_name(m->kind), spelling);
    }
    switch (option) {
    case OWN_NAME:
        return set_name(&m->name, value, spelling, err);
    case OWN_IMAGE:
        return set_image(&m->image, value, spelling, err);
    case OWN_NAMESPACE:
        return set_namespace(&m->name_space, value, spelling, err);
    case OWN_SECRET_NAME:
        return m->kind == MANIFEST_KUBERNETES
                   ? set_secret(&m->secret, value, spelling, err)
                   : set_words(&m->secret, value, "-_/+=.@:", spelling, err);
    case OWN_NODE_GPUS:
        p->has_gpus = true;
        return set_count(&m->gpus, value, GPUL_RANKS_PER_NODE_MAX, spelling,
                         err);
    case OWN_GPU_RESOURCE:
        return set_words(&m->gpu_resource, value, "-._/", spelling, err);
    case OWN_JOBSET:
        m->is_jobset = true;
        return 0;
    case OWN_RUN_AS:
        return set_count(&m->user, value, MANIFEST_USER_MAX, spelling, err);
    default:
        return set_count(&m->retries, value, MANIFEST_RETRIES_MAX, spelling,
                         err);
    }
}

/* ---- options of run ------------------------------------------------------ */

/* The file says these itself. */
static bool is_in_file(enum manifest_kind kind, enum option option)
{
    return option == OPTION_NODES ||
           (option == OPTION_PORT && kind != MANIFEST_SLURM);
}

/* -x NAME takes the value that is there when the command runs: what is here
 * and now must not get into a file. */
static const char *get_nothing(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return "";
}

static int set_run(struct parse *p, enum option option, const char *value,
                   const char *spelling, struct gpul_error *err)
{
    size_t count;
    const char *name = option_table(&count)[option].name;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (refused[i].option == option) {
            return gpul_fail(err, GPUL_EINVAL, "manifest has no option %s: %s",
                             spelling, refused[i].why);
        }
    }
    struct plan_setting *setting = &p->plan->settings[option];
    setting->source = GPUL_SOURCE_FLAG;
    setting->value = value;
    snprintf(setting->spelling, sizeof(setting->spelling), "%s", spelling);
    int rc = cli_value_set(p->plan, option, value, get_nothing, NULL, err);
    if (rc != 0 || is_in_file(p->plan->manifest.kind, option)) {
        return rc;
    }
    return cli_hand_on(p->plan, name, value, err);
}

static int on_value(void *arg, size_t index, const char *value,
                    const char *spelling, enum gpul_option_source source,
                    struct gpul_error *err)
{
    struct parse *p = arg;
    size_t count;
    (void)source;
    if (index < OWN_COUNT) {
        return set_own(p, (enum own)index, value, spelling, err);
    }
    index -= OWN_COUNT;
    if (index >= OPTION_COUNT) {
        return gpul_fail(err, GPUL_EINVAL, "%s: %s", spelling,
                         option_table(&count)[index].help);
    }
    return set_run(p, (enum option)index, value, spelling, err);
}

/* ---- the whole ----------------------------------------------------------- */

static int take_kind(struct plan *plan, int argc, char *const argv[],
                     struct gpul_error *err)
{
    plan->manifest.kind = argc > 0 ? manifest_kind_find(argv[0]) : 0;
    if (plan->manifest.kind == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "manifest: of what kind%s%.40s%s? kubernetes, slurm, "
                         "compose or terraform, as in: gpulaunch manifest "
                         "slurm --nodes 2 -- python train.py",
                         argc > 0 ? ", for \"" : "", argc > 0 ? argv[0] : "",
                         argc > 0 ? "\" is none" : "");
    }
    plan->manifest.name = "gpulaunch";
    plan->manifest.user = MANIFEST_USER;
    plan->manifest.gpu_resource = "nvidia.com/gpu";
    return 0;
}

static int check_own(const struct manifest *m, struct gpul_error *err)
{
    const char *kind = manifest_kind_name(m->kind);
    if (m->image == NULL && (own_kinds[OWN_IMAGE] & 1u << m->kind) != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "manifest %s: which image do the nodes have? --image "
                         "IMAGE",
                         kind);
    }
    if (m->kind == MANIFEST_KUBERNETES && m->retries > 0 && !m->is_jobset) {
        return gpul_fail(err, GPUL_EINVAL,
                         "--retries needs --jobset: a Job starts only those "
                         "pods again that failed, and a job of gpulaunch "
                         "needs all of them");
    }
    return 0;
}

static int settle(struct parse *p, struct gpul_error *err)
{
    struct plan *plan = p->plan;
    struct manifest *m = &plan->manifest;
    const struct plan_setting *per_node = &plan->settings[OPTION_PER_NODE];
    bool is_counted = plan->per_node == PLAN_PER_NODE_COUNT;
    if (!plan_has(plan, OPTION_NODES)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "manifest: how many nodes? --nodes N");
    }
    plan->hosts_option = OPTION_COUNT;
    plan->is_open = true;
    int rc = cli_rules_apply(plan, err);
    if (rc == 0) {
        rc = check_own(m, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (!p->has_gpus && is_counted &&
        strcmp(per_node->spelling, "--gpus-per-node") == 0) {
        m->gpus = plan->ranks_per_node;
    }
    if (m->kind == MANIFEST_KUBERNETES && m->gpus == 0 &&
        plan->per_node == PLAN_PER_NODE_GPU) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s gpu: a pod has the GPUs that it asks for; say how "
                         "many with --node-gpus K",
                         per_node->spelling);
    }
    m->options = plan->handed_on;
    m->option_count = plan->handed_on_count;
    m->nodes = plan->node_count;
    m->port = plan->port != 0 ? plan->port : MANIFEST_PORT;
    m->grace_ms = plan->grace_ms;
    m->timeout_ms = plan->timeout_ms;
    m->join_timeout_ms = plan->join_timeout_ms;
    m->command = plan->command;
    m->command_count = plan->command_count;
    return 0;
}

int cli_manifest_parse(struct plan *plan, int argc, char *const argv[],
                       struct gpul_error *err)
{
    int rest = 0;
    bool has_separator = false;
    int rc = take_kind(plan, argc, argv, err);
    if (rc != 0) {
        return rc;
    }
    struct parse p = {.plan = plan};
    struct gpul_options options = {
        .stops_at_operand = true, .on_value = on_value, .arg = &p};
    struct cli_table tables[] = {{own_table, OWN_COUNT}, {NULL, 0}};
    tables[1].options = option_table(&tables[1].count);
    struct gpul_option *all = cli_tables_join(&options.count, tables, 2);
    if (all == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    options.table = all;
    rc = gpul_options_parse(&options, argc - 1, argv + 1, &rest, &has_separator,
                            err);
    free(all);
    if (rc != 0) {
        return rc;
    }
    plan->command = argv + 1 + rest;
    plan->command_count = (size_t)(argc - 1 - rest);
    if (plan->command_count > 0 && !has_separator) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not an option; put -- before the command",
                         plan->command[0]);
    }
    return settle(&p, err);
}

static const char head[] =
    "Usage: gpulaunch manifest KIND --nodes N [options] -- COMMAND...\n"
    "\n"
    "Print the file by which others start the nodes of a job, and gpulaunch\n"
    "with it:\n"
    "  kubernetes  a Service, a NetworkPolicy, and an Indexed Job or JobSet\n"
    "  slurm       a script for sbatch\n"
    "  compose     services of Docker Compose, to rehearse on one machine\n"
    "  terraform   GPU machines on AWS that join, and end themselves after it\n"
    "The first lines say how it is used, and where the secret of the job "
    "goes,\n"
    "which is not in it. Options of run (gpulaunch help run) are handed on to\n"
    "the gpulaunch in the file. Variables GPULAUNCH_* have no say.\n"
    "\n";

static const char tail[] =
    "\n"
    "Example: gpulaunch manifest kubernetes --nodes 4 --gpus-per-node 8 \\\n"
    "             --image registry/train:1 -- python train.py >job.yaml\n"
    "The manual: man gpulaunch\n";

int cli_manifest_help(struct gpul_buf *out)
{
    struct gpul_options options = {.table = own_table, .count = OWN_COUNT};
    gpul_buf_append_text(out, head);
    gpul_options_help(out, &options);
    return gpul_buf_append_text(out, tail);
}
