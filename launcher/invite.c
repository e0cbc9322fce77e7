/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/invite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "launcher/quoting.h"

int invite_prepare(struct invite *invite, const struct plan *plan,
                   const struct gpul_secret *secret, const char *job_id,
                   struct gpul_error *err)
{
    char text[GPUL_SECRET_TEXT_BYTES];
    *invite = (struct invite){.secret_path = ""};
    if (secret == NULL) {
        return 0;
    }
    if (plan->secret_file != NULL) {
        char *path = realpath(plan->secret_file, NULL);
        snprintf(invite->secret_path, sizeof(invite->secret_path), "%s",
                 path != NULL ? path : plan->secret_file);
        free(path);
        return 0;
    }
    gpul_secret_format(text, secret);
    int rc =
        jobfile_create(&invite->file, NULL, job_id, text, strlen(text), err);
    gpul_wipe(text, sizeof(text));
    if (rc != 0) {
        return gpul_wrap(err, rc, "a file for the secret of the job");
    }
    memcpy(invite->secret_path, invite->file.path, sizeof(invite->secret_path));
    return 0;
}

int invite_append(struct gpul_buf *out, const struct invite *invite,
                  const struct plan *plan, const struct listening *listening,
                  const char *job_id)
{
    struct gpul_hostport at[GPUL_COORDINATORS_MAX];
    uint32_t count = listening_told(listening, at);
    bool has_secret = invite->secret_path[0] != '\0';
    gpul_buf_appendf(out,
                     "gpulaunch: waiting for %u node%s to join; on each%s "
                     "run%s:\n",
                     plan->node_count, gpul_plural(plan->node_count),
                     has_secret ? ", with a copy of the secret's file (mode "
                                  "0600),"
                                : "",
                     count > 1 ? " the line whose address it can reach" : "");
    for (uint32_t i = 0; i < count; i++) {
        gpul_buf_append_text(out, "  gpulaunch join ");
        gpul_hostport_append(out, at[i].host, at[i].port);
        gpul_buf_appendf(out, " --job %s ", job_id);
        if (has_secret) {
            gpul_buf_append_text(out, "--secret-file ");
            quoting_shell(out, invite->secret_path);
        } else {
            gpul_buf_append_text(out, "--insecure");
        }
        gpul_buf_append_text(out, "\n");
    }
    return out->is_failed ? GPUL_ELIMIT : 0;
}

void invite_release(struct invite *invite)
{
    jobfile_remove(&invite->file);
}
