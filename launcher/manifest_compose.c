/* SPDX-License-Identifier: Apache-2.0
 *
 * Services of Docker Compose on one machine, to rehearse a job before it gets
 * real nodes: one for each node, one for gpulaunch itself.
 *
 * Source: the Compose specification.
 */
#include <inttypes.h>

#include "launcher/manifest.h"
#include "launcher/quoting.h"

enum { GRACE_EXTRA_S = 5 };

static void append_head(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(out,
                     "# %s: a rehearsal on one machine. With this file:\n"
                     "#   gpulaunch secret %s.secret\n"
                     "#   docker compose -f FILE run --rm --use-aliases front\n"
                     "#   docker compose -f FILE down\n"
                     "# The first exits with the exit code of gpulaunch. The "
                     "image must have\n"
                     "# gpulaunch in its PATH, and /bin/sh.\n",
                     m->name, m->name);
}

/* The owner of the secret's file outside may be nobody in here, so it is
 * copied. */
static const char script[] =
    "  entrypoint:\n"
    "    - /bin/sh\n"
    "    - -c\n"
    "    - |\n"
    "      verb=$$1\n"
    "      shift\n"
    "      umask 077\n"
    "      cat /run/secrets/gpulaunch >/dev/shm/gpulaunch.secret || exit\n"
    "      exec gpulaunch \"$$verb\" --port %u --job %s \\\n"
    "          --secret-file /dev/shm/gpulaunch.secret \"$$@\"\n"
    "    - gpulaunch\n";

static int append_common(struct gpul_buf *out, const struct manifest *m,
                         struct gpul_error *err)
{
    gpul_buf_append_text(out, "version: \"3.8\"\n"
                              "x-node: &node\n"
                              "  image: ");
    int rc = quoting_yaml(out, m->image, QUOTING_DOLLAR_COMPOSE, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "--image");
    }
    gpul_buf_appendf(out,
                     "\n"
                     "  restart: \"no\"\n"
                     "  shm_size: 1g\n"
                     "  stop_grace_period: %" PRIu32 "s\n"
                     "  secrets: [gpulaunch]\n",
                     (m->grace_ms + 999) / 1000 + GRACE_EXTRA_S);
    gpul_buf_appendf(out, script, m->port, m->name);
    return 0;
}

/* Each node its own share of the machine's GPUs, as far as they go. */
static void append_devices(struct gpul_buf *out, const struct manifest *m,
                           uint32_t node)
{
    gpul_buf_append_text(out, "    deploy:\n"
                              "      resources:\n"
                              "        reservations:\n"
                              "          devices:\n"
                              "            - driver: nvidia\n"
                              "              capabilities: [gpu]\n"
                              "              device_ids: [");
    for (uint32_t i = 0; i < m->gpus; i++) {
        gpul_buf_appendf(out, "%s\"%" PRIu64 "\"", i > 0 ? ", " : "",
                         (uint64_t)node * m->gpus + i);
    }
    gpul_buf_append_text(out, "]\n");
}

static void append_node(struct gpul_buf *out, const struct manifest *m,
                        uint32_t node)
{
    gpul_buf_appendf(out,
                     "  node-%" PRIu32 ":\n"
                     "    <<: *node\n"
                     "    hostname: %s-%" PRIu32 "\n"
                     "    command: [join, front, --join-timeout=%" PRIu32
                     "s]\n",
                     node, m->name, node, (m->join_timeout_ms + 999) / 1000);
    if (m->gpus > 0) {
        append_devices(out, m, node);
    }
}

static int append_words(struct gpul_buf *out, char *const *words, size_t count,
                        struct gpul_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        gpul_buf_append_text(out, "      - ");
        rc = quoting_yaml(out, words[i], QUOTING_DOLLAR_COMPOSE, err);
        gpul_buf_append_text(out, "\n");
    }
    return rc;
}

static int append_front(struct gpul_buf *out, const struct manifest *m,
                        struct gpul_error *err)
{
    gpul_buf_appendf(out,
                     "  front:\n"
                     "    <<: *node\n"
                     "    hostname: %s-front\n"
                     "    depends_on:\n",
                     m->name);
    for (uint32_t i = 0; i < m->nodes; i++) {
        gpul_buf_appendf(out, "      - node-%" PRIu32 "\n", i);
    }
    gpul_buf_appendf(out,
                     "    command:\n"
                     "      - run\n"
                     "      - --nodes=%" PRIu32 "\n",
                     m->nodes);
    int rc = append_words(out, m->options, m->option_count, err);
    gpul_buf_append_text(out, "      - --\n");
    return rc != 0 ? rc : append_words(out, m->command, m->command_count, err);
}

int manifest_compose(struct gpul_buf *out, const struct manifest *m,
                     struct gpul_error *err)
{
    append_head(out, m);
    int rc = append_common(out, m, err);
    gpul_buf_append_text(out, "services:\n");
    for (uint32_t i = 0; i < m->nodes; i++) {
        append_node(out, m, i);
    }
    if (rc == 0) {
        rc = append_front(out, m, err);
    }
    gpul_buf_appendf(out,
                     "secrets:\n"
                     "  gpulaunch:\n"
                     "    file: ./%s.secret\n",
                     m->name);
    return rc;
}
