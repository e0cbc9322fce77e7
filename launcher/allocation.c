/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables of schedulers.
 */
#include "launcher/allocation.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/units.h"
#include "launcher/variables.h"
#include "proto/limits.h"

enum { VALUE_SHOWN = 80 };

static const char *get_either(const struct variables *v, const char *name,
                              const char *older)
{
    const char *value = variables_get(v, name);
    return value != NULL ? value : variables_get(v, older);
}

/* A number, if the variable is set; else *out stays. */
static int get_count(const struct variables *v, uint32_t *out, bool *has,
                     const char *name, uint32_t min, uint32_t max)
{
    const char *value = variables_get(v, name);
    *has = value != NULL;
    if (value == NULL) {
        return 0;
    }
    int rc = gpul_parse_count(out, value, min, max, v->err);
    return rc == 0 ? 0 : gpul_wrap(v->err, rc, "%s", name);
}

/* A job of this kind must say which nodes it has. */
static int refuse_missing(const struct variables *v, const char *kind,
                          const char *found, const char *missing)
{
    return gpul_fail(v->err, GPUL_EINVAL,
                     "%s is set, so this is a job of %s, but %s is not, so its "
                     "nodes are unknown; name them with --hosts or --hostfile, "
                     "or unset %s",
                     found, kind, missing, found);
}

static void take(struct allocation *a, enum allocation_shape shape,
                 const char *variable, const char *value)
{
    a->shape = shape;
    a->variable = variable;
    a->value = value;
}

/* ---- one function a scheduler: a->source is set if it is there ----------- */

/* The variables do not name the nodes; `flux hostlist` would. */
static int find_flux(struct allocation *a, const struct variables *v)
{
    bool has_count;
    const char *job_id = variables_get(v, "FLUX_JOB_ID");
    if (job_id == NULL || variables_get(v, "FLUX_URI") == NULL) {
        return 0;
    }
    a->source = NODES_FLUX;
    a->job_id = job_id;
    take(a, ALLOCATION_COUNT, "FLUX_JOB_NNODES",
         variables_get(v, "FLUX_JOB_NNODES"));
    return get_count(v, &a->node_count, &has_count, "FLUX_JOB_NNODES", 1,
                     GPUL_NODES_MAX);
}

static int find_slurm(struct allocation *a, const struct variables *v)
{
    bool has;
    a->job_id = get_either(v, "SLURM_JOB_ID", "SLURM_JOBID");
    if (a->job_id == NULL) {
        return 0;
    }
    a->source = NODES_SLURM;
    take(a, ALLOCATION_EXPRESSION, "SLURM_JOB_NODELIST",
         get_either(v, "SLURM_JOB_NODELIST", "SLURM_NODELIST"));
    if (a->value == NULL) {
        return refuse_missing(v, "Slurm", "SLURM_JOB_ID", "SLURM_JOB_NODELIST");
    }
    const char *count_name = variables_get(v, "SLURM_JOB_NUM_NODES") != NULL
                                 ? "SLURM_JOB_NUM_NODES"
                                 : "SLURM_NNODES";
    int rc = get_count(v, &a->node_count, &has, count_name, 1, GPUL_NODES_MAX);
    if (rc == 0) {
        rc = get_count(v, &a->slots, &has, "SLURM_NTASKS_PER_NODE", 1,
                       GPUL_RANKS_PER_NODE_MAX);
    }
    return rc != 0 ? rc
                   : get_count(v, &a->end_s, &has, "SLURM_JOB_END_TIME", 0,
                               UINT32_MAX);
}

static int find_pbs(struct allocation *a, const struct variables *v)
{
    a->job_id = variables_get(v, "PBS_JOBID");
    if (a->job_id == NULL) {
        return 0;
    }
    a->source = NODES_PBS;
    take(a, ALLOCATION_LINES, "PBS_NODEFILE", variables_get(v, "PBS_NODEFILE"));
    return a->value != NULL
               ? 0
               : refuse_missing(v, "PBS", "PBS_JOBID", "PBS_NODEFILE");
}

/* LSF cuts its lists at about 4000 bytes; the file is whole. */
static int find_lsf(struct allocation *a, const struct variables *v)
{
    static const struct {
        const char *name;
        enum allocation_shape shape;
    } ways[] = {
        {"LSB_DJOB_HOSTFILE", ALLOCATION_LINES},
        {"LSB_MCPU_HOSTS", ALLOCATION_PAIRS},
        {"LSB_HOSTS", ALLOCATION_WORDS},
    };
    a->job_id = variables_get(v, "LSB_JOBID");
    if (a->job_id == NULL) {
        return 0;
    }
    a->source = NODES_LSF;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        const char *value = variables_get(v, ways[i].name);
        if (value != NULL) {
            take(a, ways[i].shape, ways[i].name, value);
            return 0;
        }
    }
    return refuse_missing(v, "LSF", "LSB_JOBID", "LSB_DJOB_HOSTFILE");
}

/* JOB_ID and ARC are anybody's names; only all four are Grid Engine's, and
 * only a job with a parallel environment has the last. */
static int find_grid_engine(struct allocation *a, const struct variables *v)
{
    const char *job_id = variables_get(v, "JOB_ID");
    const char *file = variables_get(v, "PE_HOSTFILE");
    if (job_id == NULL || file == NULL ||
        variables_get(v, "SGE_ROOT") == NULL ||
        variables_get(v, "ARC") == NULL) {
        return 0;
    }
    a->source = NODES_GRID_ENGINE;
    a->job_id = job_id;
    take(a, ALLOCATION_PE_HOSTFILE, "PE_HOSTFILE", file);
    return 0;
}

static int find_aws_batch(struct allocation *a, const struct variables *v)
{
    static const char address_name[] =
        "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS";
    struct in_addr unused;
    uint32_t main_index = 0;
    bool has_count, has_main;
    int rc = get_count(v, &a->node_count, &has_count, "AWS_BATCH_JOB_NUM_NODES",
                       1, GPUL_NODES_MAX);
    if (rc != 0 || !has_count) {
        return rc;
    }
    a->source = NODES_AWS_BATCH;
    a->job_id = variables_get(v, "AWS_BATCH_JOB_ID");
    take(a, ALLOCATION_COUNT, "AWS_BATCH_JOB_NUM_NODES", NULL);
    rc = get_count(v, &a->index, &a->has_index, "AWS_BATCH_JOB_NODE_INDEX", 0,
                   a->node_count - 1);
    if (rc == 0) {
        rc = get_count(v, &main_index, &has_main,
                       "AWS_BATCH_JOB_MAIN_NODE_INDEX", 0, a->node_count - 1);
    }
    if (rc != 0) {
        return rc;
    }
    if (!a->has_index) {
        return refuse_missing(v, "AWS Batch", "AWS_BATCH_JOB_NUM_NODES",
                              "AWS_BATCH_JOB_NODE_INDEX");
    }
    /* It is not set on the main node itself. */
    a->first_address = variables_get(v, address_name);
    if (a->first_address == NULL && a->index != main_index) {
        return refuse_missing(v, "AWS Batch", "AWS_BATCH_JOB_NUM_NODES",
                              address_name);
    }
    if (a->first_address != NULL &&
        inet_pton(AF_INET, a->first_address, &unused) != 1) {
        return gpul_fail(v->err, GPUL_EINVAL, "%s: \"%.*s\" is no IPv4 address",
                         address_name, VALUE_SHOWN, a->first_address);
    }
    return 0;
}

static bool is_host(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_:%";
    size_t bytes = strlen(text);
    return bytes <= GPUL_NAME_BYTES_MAX && text[0] != '-' &&
           strspn(text, allowed) == bytes;
}

/* PET_NNODES may be torchrun's MIN:MAX: then the count is not known. */
static int find_kubernetes(struct allocation *a, const struct variables *v)
{
    bool has_count = false;
    const char *count = variables_get(v, "PET_NNODES");
    int rc = get_count(v, &a->index, &a->has_index, "JOB_COMPLETION_INDEX", 0,
                       GPUL_NODES_MAX - 1);
    if (rc != 0 || !a->has_index) {
        return rc;
    }
    a->source = NODES_KUBERNETES;
    take(a, ALLOCATION_COUNT, "JOB_COMPLETION_INDEX", NULL);
    if (count != NULL && strchr(count, ':') == NULL) {
        rc = get_count(v, &a->node_count, &has_count, "PET_NNODES", 1,
                       GPUL_NODES_MAX);
    }
    if (rc == 0 && has_count && a->index >= a->node_count) {
        rc = gpul_fail(v->err, GPUL_EINVAL,
                       "JOB_COMPLETION_INDEX is %u, but PET_NNODES is %u: the "
                       "completions of the Job and the nodes of the training "
                       "do not fit; make them equal",
                       a->index, a->node_count);
    }
    a->first_address = variables_get(v, "PET_MASTER_ADDR");
    if (rc == 0 && a->first_address != NULL && !is_host(a->first_address)) {
        rc = gpul_fail(v->err, GPUL_EINVAL,
                       "PET_MASTER_ADDR: \"%.*s\" is no host", VALUE_SHOWN,
                       a->first_address);
    }
    return rc;
}

/* ---- all ----------------------------------------------------------------- */

int allocation_find(struct allocation *a, gpul_getenv_fn getenv,
                    void *getenv_arg, struct gpul_error *err)
{
    static int (*const finders[])(struct allocation *,
                                  const struct variables *) = {
        find_flux,        find_slurm,     find_pbs,        find_lsf,
        find_grid_engine, find_aws_batch, find_kubernetes,
    };
    const struct variables v = {getenv, getenv_arg, err};
    for (size_t i = 0; i < sizeof(finders) / sizeof(finders[0]); i++) {
        *a = (struct allocation){0};
        int rc = finders[i](a, &v);
        if (rc != 0) {
            *a = (struct allocation){0};
            return rc;
        }
        if (a->source != NODES_NONE) {
            a->job_id = a->job_id != NULL ? a->job_id : "";
            return 0;
        }
    }
    *a = (struct allocation){0};
    return 0;
}

const char *allocation_file(const struct allocation *a)
{
    bool is_file =
        a->shape == ALLOCATION_LINES || a->shape == ALLOCATION_PE_HOSTFILE;
    return is_file ? a->value : NULL;
}
