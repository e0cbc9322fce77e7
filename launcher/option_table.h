/* SPDX-License-Identifier: Apache-2.0
 *
 * The one table of options: the parser, the help, the environment names and
 * the test of the man page all read it. Entries from OPTION_COUNT on are
 * hidden: flags of other launchers that this version does not have, kept so
 * that the answer can be a hint; their `help` is that hint.
 */
#ifndef LAUNCHER_OPTION_TABLE_H
#define LAUNCHER_OPTION_TABLE_H

#include <stddef.h>

#include "common/options.h"

enum option {
    OPTION_LOCAL,
    OPTION_HOSTS,
    OPTION_NODELIST,
    OPTION_HOSTFILE,
    OPTION_NODES,
    OPTION_PER_NODE,
    OPTION_ROLES,
    OPTION_DEVICES,
    OPTION_BIND,
    OPTION_INTERFACE,
    OPTION_ADDRESS,
    OPTION_ADVERTISE,
    OPTION_PORT,
    OPTION_JOB,
    OPTION_NAME,
    OPTION_WORKER_PATH,
    OPTION_COPY_WORKER,
    OPTION_SSH_COMMAND,
    OPTION_SELF_TEST,
    OPTION_BACKEND,
    OPTION_NCCL_LIB,
    OPTION_MINBYTES,
    OPTION_MAXBYTES,
    OPTION_STEPFACTOR,
    OPTION_ITERS,
    OPTION_WARMUP_ITERS,
    OPTION_CHECK,
    OPTION_MIN_BUSBW,
    OPTION_SELF_TEST_TIMEOUT,
    OPTION_STRICT,
    OPTION_DATA_DIR,
    OPTION_RECORD,
    OPTION_HTML,
    OPTION_JUNIT,
    OPTION_PROMETHEUS,
    OPTION_TIMEOUT,
    OPTION_JOIN_TIMEOUT,
    OPTION_GRACE,
    OPTION_ORPHAN_TIMEOUT,
    OPTION_SIGNAL,
    OPTION_HANG_TIMEOUT,
    OPTION_ON_HANG,
    OPTION_SECRET_FILE,
    OPTION_INSECURE,
    OPTION_ENV,
    OPTION_TF_CONFIG,
    OPTION_TF_EVALUATOR,
    OPTION_EMULATE,
    OPTION_STDIN,
    OPTION_LABEL,
    OPTION_NO_LABEL,
    OPTION_TIMESTAMPS,
    OPTION_RANKS,
    OPTION_FOLD,
    OPTION_LOG_DIR,
    OPTION_RESULT,
    OPTION_METRICS,
    OPTION_JSON,
    OPTION_COLOR,
    OPTION_VERBOSE,
    OPTION_QUIET,
    OPTION_DRY_RUN,
    OPTION_RANK,
    OPTION_EXPLAIN,
    OPTION_HELP,
    OPTION_VERSION,
    OPTION_COUNT,
};

/* What holds when an option is not given, in words; NULL: nothing, off. */
const char *option_default(enum option option);

/* The whole table; *count includes the hidden entries. */
const struct gpul_option *option_table(size_t *count);

#endif
