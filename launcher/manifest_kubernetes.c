/* SPDX-License-Identifier: Apache-2.0
 *
 * A headless Service, a NetworkPolicy, and an Indexed Job; or a JobSet, which
 * starts all nodes again. Every pod is a node; the one of index 0 is also
 * where gpulaunch itself runs.
 *
 * Sources: the reference of the Kubernetes API (batch/v1, core/v1,
 * networking.k8s.io/v1) and of jobset.x-k8s.io/v1alpha2.
 */
#include <inttypes.h>
#include <stdio.h>

#include "common/units.h"
#include "launcher/manifest.h"
#include "launcher/quoting.h"

enum {
    GRACE_EXTRA_S = 15, /* to end the nodes after the ranks */
    LINES_BYTES_MAX = 16 << 20,
    NAME_BYTES = 256,
};

/* The pods are NAME-0, NAME-1 and so on; in a JobSet NAME-node-0-0. */
static const char *infix(const struct manifest *m)
{
    return m->is_jobset ? "-node-0" : "";
}

static void append_head(struct gpul_buf *out, const struct manifest *m,
                        const char *secret)
{
    char space[NAME_BYTES] = "";
    if (m->name_space != NULL) {
        snprintf(space, sizeof(space), " -n %s", m->name_space);
    }
    gpul_buf_appendf(
        out,
        "# %s: %" PRIu32 " node%s of gpulaunch%s.\n"
        "#\n"
        "# Once, the secret of the job, which only its nodes get to know:\n"
        "#   gpulaunch secret %s\n"
        "#   kubectl%s create secret generic %s --from-file=secret=%s\n"
        "#\n"
        "# Then, with this file, and to see its output, which pod 0 has:\n"
        "#   kubectl%s apply -f FILE\n"
        "#   kubectl%s logs -f -l app.kubernetes.io/instance=%s,"
        "batch.kubernetes.io/job-completion-index=0\n"
        "#\n"
        "# The image must have gpulaunch in its PATH, and /bin/sh and grep.\n",
        m->name, m->nodes, gpul_plural(m->nodes),
        m->is_jobset ? " as a JobSet, whose controller must be installed" : "",
        secret, space, secret, secret, space, space, m->name);
}

static void append_metadata(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(out, "metadata:\n  name: \"%s\"\n", m->name);
    if (m->name_space != NULL) {
        gpul_buf_appendf(out, "  namespace: \"%s\"\n", m->name_space);
    }
    gpul_buf_appendf(out,
                     "  labels:\n"
                     "    app.kubernetes.io/name: gpulaunch\n"
                     "    app.kubernetes.io/instance: \"%s\"\n",
                     m->name);
}

/* A name must be known before its pod is ready, since it is ready only once
 * it has joined. */
static void append_service(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_append_text(out, "apiVersion: v1\nkind: Service\n");
    append_metadata(out, m);
    gpul_buf_appendf(out,
                     "spec:\n"
                     "  clusterIP: None\n"
                     "  publishNotReadyAddresses: true\n"
                     "  selector:\n"
                     "    app.kubernetes.io/name: gpulaunch\n"
                     "    app.kubernetes.io/instance: \"%s\"\n"
                     "  ports:\n"
                     "    - name: gpulaunch\n"
                     "      port: %u\n"
                     "---\n",
                     m->name, m->port);
}

static void append_policy(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_append_text(out, "apiVersion: networking.k8s.io/v1\n"
                              "kind: NetworkPolicy\n");
    append_metadata(out, m);
    gpul_buf_appendf(
        out,
        "spec:\n"
        "  podSelector:\n"
        "    matchLabels:\n"
        "      app.kubernetes.io/name: gpulaunch\n"
        "      app.kubernetes.io/instance: \"%s\"\n"
        "  policyTypes: [Ingress]\n"
        "  ingress:\n"
        "    # Only the pods of this job reach each other. On all ports: NCCL\n"
        "    # and the frameworks take what is free.\n"
        "    - from:\n"
        "        - podSelector:\n"
        "            matchLabels:\n"
        "              app.kubernetes.io/name: gpulaunch\n"
        "              app.kubernetes.io/instance: \"%s\"\n"
        "---\n",
        m->name, m->name);
}

/* Why a job failed can be told: after 75, after 40 and 41 (a pod that came late
 * or was lost while all got ready), and where Kubernetes has taken a pod away,
 * the reason is BackoffLimitExceeded; else PodFailurePolicy. */
static void append_job(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        "spec:\n"
        "  completions: %" PRIu32 "\n"
        "  parallelism: %" PRIu32 "\n"
        "  completionMode: Indexed\n"
        "  # A node alone cannot be tried again, only all of them.\n"
        "  backoffLimit: 0\n"
        "  podFailurePolicy:\n"
        "    rules:\n"
        "      # The infrastructure's fault, trying again makes sense: the "
        "Job\n"
        "      # fails by its backoffLimit.\n"
        "      - action: Count\n"
        "        onPodConditions:\n"
        "          - type: DisruptionTarget\n"
        "            status: \"True\"\n"
        "      - action: Count\n"
        "        onExitCodes:\n"
        "          containerName: node\n"
        "          operator: In\n"
        "          values: [40, 41, 75]\n"
        "      # Everything else does not get better: the command's own "
        "codes,\n"
        "      # 93, 124 (--timeout), 125 to 127.\n"
        "      - action: FailJob\n"
        "        onExitCodes:\n"
        "          containerName: node\n"
        "          operator: NotIn\n"
        "          values: [40, 41, 75]\n",
        m->nodes, m->nodes);
}

static const char pod[] = "      restartPolicy: Never\n"
                          "      automountServiceAccountToken: false\n"
                          "      enableServiceLinks: false\n";

/* Index 0 is a node as well, so its own gpulaunch runs beside it. */
static void append_script(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        "          command:\n"
        "            - /bin/sh\n"
        "            - -c\n"
        "            - |\n"
        "              node=%s%s-$JOB_COMPLETION_INDEX\n"
        "              enter() {\n"
        "                  exec gpulaunch join \"$1\" --port %u \\\n"
        "                      --job \"$JOB_UID\" --name \"$node\" \\\n"
        "                      --join-timeout %" PRIu32 "s \\\n"
        "                      --secret-file /run/secrets/gpulaunch/secret\n"
        "              }\n"
        "              [ \"$JOB_COMPLETION_INDEX\" = 0 ] || enter %s%s-0.%s\n"
        "              enter \"$POD_IP\" &\n"
        "              exec gpulaunch --address \"$POD_IP\" --job \"$JOB_UID\" "
        "\\\n"
        "                  --secret-file /run/secrets/gpulaunch/secret \"$@\"\n"
        "            - gpulaunch\n",
        m->name, infix(m), m->port, (m->join_timeout_ms + 999) / 1000, m->name,
        infix(m), m->name);
}

static int append_arguments(struct gpul_buf *out, const struct manifest *m,
                            struct gpul_error *err)
{
    int rc = 0;
    gpul_buf_appendf(out,
                     "          args:\n"
                     "            - --nodes=%" PRIu32 "\n"
                     "            - --port=%u\n",
                     m->nodes, m->port);
    for (size_t i = 0; rc == 0 && i < m->option_count; i++) {
        gpul_buf_append_text(out, "            - ");
        rc = quoting_yaml(out, m->options[i], QUOTING_DOLLAR_KUBERNETES, err);
        gpul_buf_append_text(out, "\n");
    }
    gpul_buf_append_text(out, "            - --\n");
    for (size_t i = 0; rc == 0 && i < m->command_count; i++) {
        gpul_buf_append_text(out, "            - ");
        rc = quoting_yaml(out, m->command[i], QUOTING_DOLLAR_KUBERNETES, err);
        gpul_buf_append_text(out, "\n");
    }
    return rc;
}

/* Ready: the control port listens (pod 0, state 0A), or a connection to it
 * stands (01). Looked up, not dialled, so that no stranger is at the door. */
static void append_probe(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        "          # Ready is a node that has reached the coordinator. There\n"
        "          # is no livenessProbe: gpulaunch itself watches the ranks,\n"
        "          # and a restarted container could not go on.\n"
        "          readinessProbe:\n"
        "            exec:\n"
        "              command:\n"
        "                - grep\n"
        "                - -Eqs\n"
        "                - \":%04X [0-9A-F]+:[0-9A-F]{4} 0A|:%04X 01\"\n"
        "                - /proc/net/tcp\n"
        "                - /proc/net/tcp6\n"
        "            periodSeconds: 10\n",
        m->port, m->port);
}

static void append_resources(struct gpul_buf *out, const struct manifest *m)
{
    if (m->gpus > 0) {
        gpul_buf_appendf(out,
                         "          resources:\n"
                         "            limits:\n"
                         "              \"%s\": \"%" PRIu32 "\"\n",
                         m->gpu_resource, m->gpus);
    }
    gpul_buf_appendf(out,
                     "          ports:\n"
                     "            - name: gpulaunch\n"
                     "              containerPort: %u\n"
                     "          securityContext:\n"
                     "            allowPrivilegeEscalation: false\n"
                     "            capabilities:\n"
                     "              drop: [ALL]\n"
                     "          volumeMounts:\n"
                     "            - name: secret\n"
                     "              mountPath: /run/secrets/gpulaunch\n"
                     "              readOnly: true\n"
                     "            - name: shm\n"
                     "              mountPath: /dev/shm\n",
                     m->port);
}

static void append_volumes(struct gpul_buf *out, const char *secret)
{
    gpul_buf_appendf(
        out,
        "      volumes:\n"
        "        - name: secret\n"
        "          secret:\n"
        "            secretName: \"%s\"\n"
        "            # 0444: of root, and only in this pod, for any user in "
        "it.\n"
        "            defaultMode: 292\n"
        "        # NCCL and data loaders need more than the usual 64 MiB.\n"
        "        - name: shm\n"
        "          emptyDir:\n"
        "            medium: Memory\n",
        secret);
}

/* What Kubernetes' Pod Security Standard "restricted" asks for, together with
 * the container's; as root only "baseline" is kept. */
static void append_security(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_append_text(out, "      securityContext:\n"
                              "        seccompProfile:\n"
                              "          type: RuntimeDefault\n");
    if (m->user != 0) {
        gpul_buf_appendf(out,
                         "        runAsNonRoot: true\n"
                         "        runAsUser: %" PRIu32 "\n"
                         "        runAsGroup: %" PRIu32 "\n",
                         m->user, m->user);
    }
}

/* Most images do not know this user: without a home of it, and a name, Python
 * libraries look for a cache in / and end. */
static void append_home(struct gpul_buf *out, const struct manifest *m)
{
    if (m->user != 0) {
        gpul_buf_append_text(out, "            - name: HOME\n"
                                  "              value: /tmp\n"
                                  "            - name: USER\n"
                                  "              value: gpulaunch\n");
    }
}

/* The Job's own, so no two runs have one id. */
static const char variables[] =
    "          env:\n"
    "            - name: POD_IP\n"
    "              valueFrom:\n"
    "                fieldRef:\n"
    "                  fieldPath: status.podIP\n"
    "            - name: JOB_UID\n"
    "              valueFrom:\n"
    "                fieldRef:\n"
    "                  fieldPath: "
    "metadata.labels['batch.kubernetes.io/controller-uid']\n";

static int append_template(struct gpul_buf *out, const struct manifest *m,
                           const char *secret, struct gpul_error *err)
{
    gpul_buf_appendf(out,
                     "  template:\n"
                     "    metadata:\n"
                     "      labels:\n"
                     "        app.kubernetes.io/name: gpulaunch\n"
                     "        app.kubernetes.io/instance: \"%s\"\n"
                     "    spec:\n"
                     "      subdomain: \"%s\"\n"
                     "%s"
                     "      terminationGracePeriodSeconds: %" PRIu32 "\n",
                     m->name, m->name, pod,
                     (m->grace_ms + 999) / 1000 + GRACE_EXTRA_S);
    append_security(out, m);
    gpul_buf_append_text(out, "      containers:\n"
                              "        - name: node\n"
                              "          image: ");
    int rc = quoting_yaml(out, m->image, QUOTING_DOLLAR_PLAIN, err);
    if (rc != 0) {
        return gpul_wrap(err, rc, "--image");
    }
    gpul_buf_append_text(out, "\n");
    append_script(out, m);
    rc = append_arguments(out, m, err);
    gpul_buf_append_text(out, variables);
    append_home(out, m);
    append_probe(out, m);
    append_resources(out, m);
    append_volumes(out, secret);
    return rc;
}

static void append_jobset(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_append_text(out, "apiVersion: jobset.x-k8s.io/v1alpha2\n"
                              "kind: JobSet\n");
    append_metadata(out, m);
    gpul_buf_appendf(
        out,
        "spec:\n"
        "  # Its Service is the one above.\n"
        "  network:\n"
        "    enableDNSHostnames: false\n"
        "  failurePolicy:\n"
        "    # All nodes again, after these exit codes and lost pods.\n"
        "    maxRestarts: %" PRIu32 "\n"
        "    rules:\n"
        "      - name: own\n"
        "        action: FailJobSet\n"
        "        onJobFailureReasons: [PodFailurePolicy]\n"
        "  replicatedJobs:\n"
        "    - name: node\n"
        "      replicas: 1\n"
        "      template:\n",
        m->retries);
}

/* The lines of `from`, each that far further in. */
static void append_indented(struct gpul_buf *out, struct gpul_buf *from,
                            const char *indent)
{
    const char *at = gpul_buf_text(from);
    for (const char *begin = at; at != NULL && *at != '\0'; at++) {
        if (*at == '\n') {
            gpul_buf_append_text(out, indent);
            gpul_buf_append(out, begin, (size_t)(at - begin) + 1);
            begin = at + 1;
        }
    }
    out->is_failed = out->is_failed || from->is_failed;
}

int manifest_kubernetes(struct gpul_buf *out, const struct manifest *m,
                        struct gpul_error *err)
{
    char secret[NAME_BYTES + 8];
    struct gpul_buf job;
    gpul_buf_init(&job, LINES_BYTES_MAX);
    snprintf(secret, sizeof(secret), "%s%s",
             m->secret != NULL ? m->secret : m->name,
             m->secret != NULL ? "" : "-secret");
    append_head(out, m, secret);
    append_service(out, m);
    append_policy(out, m);
    append_job(&job, m);
    int rc = append_template(&job, m, secret, err);
    if (m->is_jobset) {
        append_jobset(out, m);
    } else {
        gpul_buf_append_text(out, "apiVersion: batch/v1\nkind: Job\n");
        append_metadata(out, m);
    }
    append_indented(out, &job, m->is_jobset ? "        " : "");
    gpul_buf_release(&job);
    return rc;
}
