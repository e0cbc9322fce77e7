/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/option_table.h"

const char *option_default(enum option option)
{
    static const char *const defaults[OPTION_COUNT] = {
        [OPTION_NODES] = "1",
        [OPTION_PER_NODE] = "1",
        [OPTION_ROLES] = "all workers",
        [OPTION_DEVICES] = "auto",
        [OPTION_BIND] = "none",
        [OPTION_INTERFACE] = "what the others have reached",
        [OPTION_ADDRESS] = "by the routes to the nodes",
        [OPTION_ADVERTISE] = "none",
        [OPTION_PORT] = "one that is free",
        [OPTION_JOB] = "drawn",
        [OPTION_NAME] = "this machine's",
        [OPTION_WORKER_PATH] = "as here, else in PATH",
        [OPTION_SSH_COMMAND] = "ssh",
        [OPTION_SELF_TEST] = "quick",
        [OPTION_BACKEND] = "auto",
        [OPTION_NCCL_LIB] = "the one that the command would load",
        [OPTION_MINBYTES] = "the level's own",
        [OPTION_MAXBYTES] = "the level's own",
        [OPTION_STEPFACTOR] = "the level's own",
        [OPTION_ITERS] = "the level's own",
        [OPTION_WARMUP_ITERS] = "the level's own",
        [OPTION_CHECK] = "1",
        [OPTION_MIN_BUSBW] = "none",
        [OPTION_SELF_TEST_TIMEOUT] = "the phase's own",
        [OPTION_TIMEOUT] = "none",
        [OPTION_JOIN_TIMEOUT] = "10m",
        [OPTION_GRACE] = "30s",
        [OPTION_ORPHAN_TIMEOUT] = "60s",
        [OPTION_SIGNAL] = "none",
        [OPTION_HANG_TIMEOUT] = "auto",
        [OPTION_ON_HANG] = "report",
        [OPTION_SECRET_FILE] = "drawn for the job",
        [OPTION_TF_CONFIG] = "auto",
        [OPTION_TF_EVALUATOR] = "absent",
        [OPTION_STDIN] = "0",
        [OPTION_LABEL] = "auto",
        [OPTION_RANKS] = "all",
        [OPTION_FOLD] = "auto",
        [OPTION_LOG_DIR] = "the user's state directory",
        [OPTION_COLOR] = "auto",
    };
    return defaults[option];
}
