/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user asked for, checked: the outcome of the command line and the
 * GPULAUNCH_* environment, and all that the rest of the front end goes by.
 */
#ifndef LAUNCHER_PLAN_H
#define LAUNCHER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hostport.h"
#include "common/options.h"
#include "common/rankset.h"
#include "common/rolemap.h"
#include "launcher/allocation.h"
#include "launcher/drawing.h"
#include "launcher/manifest.h"
#include "launcher/nodes.h"
#include "launcher/option_table.h"
#include "launcher/scaleplan.h"
#include "launcher/sruntask.h"
#include "proto/limits.h"

enum plan_verb {
    PLAN_RUN = 1,
    PLAN_ENV = 2,
    PLAN_HELP = 3,
    PLAN_VERSION = 4,
    PLAN_SECRET = 5,
    PLAN_JOIN = 6,
    PLAN_MANIFEST = 7,
    PLAN_CHECK = 8,
    PLAN_DOCTOR = 9, /* a check of this machine alone */
    PLAN_REPORT = 12,
    PLAN_DIFF = 13,
    PLAN_SCALE = 14,
};

enum plan_per_node {
    PLAN_PER_NODE_COUNT = 0,
    PLAN_PER_NODE_GPU = 1,  /* one rank per GPU */
    PLAN_PER_NODE_AUTO = 2, /* the same where there is a GPU, else one */
};

/* Values of gpul.SelfTest.Level. */
enum plan_self_test {
    PLAN_SELF_TEST_OFF = 0,
    PLAN_SELF_TEST_QUICK = 1,
    PLAN_SELF_TEST_FULL = 2,
};

/* Values of gpul.SelfTest.Backend. */
enum plan_backend {
    PLAN_BACKEND_AUTO = 0,
    PLAN_BACKEND_HOST = 1,
    PLAN_BACKEND_NCCL = 2,
};

/* In nccl-tests' terms. A field counts if its option has been given. */
struct plan_sweep {
    uint64_t bytes_min;
    uint64_t bytes_max;
    uint32_t factor;
    uint32_t iterations;
    uint32_t warmup;
    uint32_t check;
    double busbw_min_gbps;
};

/* Who reads what gpulaunch can read from its standard input. */
enum plan_input {
    PLAN_INPUT_RANK = 0, /* one rank */
    PLAN_INPUT_NONE = 1,
    PLAN_INPUT_ALL = 2,
};

enum plan_choice {
    PLAN_CHOICE_AUTO = 0,
    PLAN_CHOICE_YES = 1,
    PLAN_CHOICE_NO = 2,
};

/* -x NAME=VALUE. */
struct plan_variable {
    char *name; /* owned */
    const char *value;
    enum gpul_option_source source;
};

enum { PLAN_SPELLING_BYTES = 40 };

/* What the user wrote for an option, for --explain and for messages. */
struct plan_setting {
    enum gpul_option_source source;     /* NONE: the default holds */
    char spelling[PLAN_SPELLING_BYTES]; /* "--nnodes", "GPULAUNCH_NODES" */
    const char *value;                  /* NULL for a switch */
};

/* Strings are borrowed from the arguments and the environment unless said
 * otherwise. */
struct plan {
    enum plan_verb verb;
    enum plan_verb help_topic; /* of PLAN_HELP: 0, or another verb */
    bool is_local;
    bool is_open; /* the nodes come by themselves: nobody knows their names */
    enum option hosts_option;     /* that names the nodes; OPTION_COUNT: none */
    struct allocation allocation; /* of a scheduler, if that names them */
    struct sruntask sruntask;     /* which task of srun's this is, if one */
    /* A file that names the nodes and has to be read: then they are not known
     * until cli_settle. NULL: none. */
    const char *nodes_file;
    struct nodes nodes;              /* owned; node_count of them, in order */
    const char *address;             /* --address; NULL: by the routes */
    struct gpul_hostport advertised; /* --advertise; host "": none */
    uint16_t port;            /* of the coordinator; 0: one that is free */
    const char *job_id;       /* NULL: one is drawn; of join: not given */
    const char *node_name;    /* of join; NULL: this machine's */
    const char *join_address; /* of join, in the place of --address; NULL */
    struct gpul_hostport coordinators[GPUL_COORDINATORS_MAX]; /* of join */
    uint32_t coordinator_count;
    const char *worker_path; /* on the nodes; NULL: as here, else in PATH */
    bool copies_worker;
    const char *ssh_command; /* NULL: ssh */
    uint32_t node_count;
    enum plan_per_node per_node;
    uint32_t ranks_per_node; /* for PLAN_PER_NODE_COUNT */
    bool has_roles;
    struct gpul_rolemap roles;
    enum plan_self_test self_test;
    enum plan_backend backend;
    const char *nccl_library; /* NULL: to be searched for */
    struct plan_sweep sweep;
    uint32_t self_test_timeout_ms; /* 0: the phases' own */
    enum plan_choice label;
    bool has_timestamps;
    bool has_shown_ranks; /* else all are */
    struct gpul_rankset shown_ranks;
    enum plan_choice fold;
    const char *log_dir;     /* NULL: the default place */
    const char *result_path; /* NULL: none */
    bool wants_metrics;      /* of the ranks, for the result */
    uint32_t timeout_ms;     /* 0: none */
    bool has_limit;          /* that is a scheduler's */
    uint32_t join_timeout_ms;
    uint32_t grace_ms;
    uint32_t orphan_timeout_ms;
    uint32_t warning_signal; /* --signal; 0: none */
    uint32_t warning_ms;     /* so long before timeout_ms is over */
    enum plan_input input;
    uint32_t input_rank;    /* for PLAN_INPUT_RANK */
    uint32_t hang_watch;    /* gpul.Hang.Watch */
    uint32_t hang_limit_ms; /* 0: none is given */
    bool hang_stops_job;
    const char *secret_file; /* --secret-file; NULL: none */
    char *secret_text;       /* value of GPULAUNCH_SECRET; NULL: none */
    bool is_insecure;
    const char *secret_path;         /* verb secret; NULL: standard output */
    struct plan_variable *variables; /* owned */
    size_t variable_count;
    uint32_t tf_config; /* gpul.Environment.TfConfig */
    bool has_tf_evaluator;
    uint32_t devices;      /* gpul.Environment.Devices */
    uint32_t bind;         /* gpul.Bind */
    const char *interface; /* names and addresses, NULL: any */
    bool emulates_slurm;
    bool is_strict;       /* verb check: doubts fail it */
    const char *data_dir; /* absolute; NULL: none */
    bool is_dry_run;
    bool is_json;
    bool is_explained;
    bool is_verbose;
    bool is_quiet;
    enum plan_choice color;
    struct drawings drawings; /* of records */
    const char *records[2];   /* of report, the first; of diff */
    struct manifest manifest; /* of the verb */
    /* Options of run for the gpulaunch that runs the command, of manifest and
     * scale; owned, and what is in it. */
    char **handed_on;
    size_t handed_on_count;
    struct scaleplan scale; /* of the verb */
    bool has_rank;
    uint32_t rank; /* verb env */
    char *const *command;
    size_t command_count;
    struct plan_setting settings[OPTION_COUNT];
};

/* Free what the plan owns; fine on a zeroed or half-filled plan. */
void plan_release(struct plan *plan);

/* Is it a check, of however many nodes? */
bool plan_is_check(const struct plan *plan);

/* Has the user, by flag or environment, said anything on this option? */
bool plan_has(const struct plan *plan, enum option option);

/* nodes x ranks per node; 0 while it hangs on the GPUs of the nodes. */
uint32_t plan_world_size(const struct plan *plan);

#endif
