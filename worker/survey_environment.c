/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings: "env", "environment" and "nccl".
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "proto/limits.h"
#include "proto/openssl.h"
#include "worker/survey_themes.h"
#include "worker/survey_variables.h"

/* A value that is longer is a digest. */
enum { VALUE_BYTES_MAX = 256 };

void survey_digest(char out[SURVEY_DIGEST_BYTES], const char *salt,
                   const char *name, const void *bytes, size_t n)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *context = gpul_openssl_begin() ? EVP_MD_CTX_new() : NULL;
    snprintf(out, SURVEY_DIGEST_BYTES, "unknown");
    /* Each with the zero at its end, so that none runs into the next. */
    if (context != NULL &&
        EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
        EVP_DigestUpdate(context, salt, strlen(salt) + 1) == 1 &&
        EVP_DigestUpdate(context, name, strlen(name) + 1) == 1 &&
        EVP_DigestUpdate(context, bytes, n) == 1 &&
        EVP_DigestFinal_ex(context, digest, NULL) == 1) {
        for (size_t i = 0; i < (SURVEY_DIGEST_BYTES - 1) / 2; i++) {
            snprintf(out + 2 * i, 3, "%02x", digest[i]);
        }
    }
    EVP_MD_CTX_free(context);
}

/* ---- variables ----------------------------------------------------------- */

static void say_variable(struct survey *s, const struct survey_request *r,
                         const char *name, size_t n, const char *value)
{
    char key[GPUL_FACT_KEY_BYTES_MAX + 1];
    char digest[SURVEY_DIGEST_BYTES];
    snprintf(key, sizeof(key), "env.%.*s", (int)n, name);
    if (survey_is_secret(name, n) || strlen(value) > VALUE_BYTES_MAX) {
        survey_digest(digest, r->salt, key, value, strlen(value));
        survey_say(s, key, "digest %s", digest);
    } else {
        survey_say(s, key, "%s", value[0] != 0 ? value : "empty");
    }
}

static void survey_variables(struct survey *s, const struct survey_request *r)
{
    uint32_t count = 0;
    for (size_t i = 0; r->environment != NULL && r->environment[i] != NULL;
         i++) {
        const char *name = r->environment[i];
        size_t n = strcspn(name, "=");
        if (name[n] == '=' && survey_compares(name, n)) {
            say_variable(s, r, name, n, name + n + 1);
            count++;
        }
    }
    survey_say_number(s, "environment.count", count);
}

/* ---- files --------------------------------------------------------------- */

/* NCCL's documentation, "Environment variables": lines of NAME=value. */
static void say_file(struct survey *s, const struct survey_request *r,
                     const char *key, const char *root, const char *path)
{
    char text[SURVEY_FILE_BYTES];
    char digest[SURVEY_DIGEST_BYTES];
    struct survey_list names = {""};
    int why = survey_file(text, sizeof(text), root, "%s", path);
    if (why == ENOENT || why == ENOTDIR) {
        survey_say(s, key, "none");
        return;
    }
    if (why != 0) {
        survey_unknown(s, key, "%s: %s", path, strerror(why));
        return;
    }
    survey_digest(digest, r->salt, key, text, strlen(text));
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        size_t n = strcspn(line, "=");
        if (line[0] != '#' && line[n] == '=') {
            survey_list_add(&names, "%.*s", (int)n, line);
        }
    }
    survey_say(s, key, "sets %.256s, digest %s", survey_list_text(&names),
               digest);
}

void survey_environment(struct survey *s, const struct survey_request *r)
{
    char path[PATH_MAX];
    const char *home = survey_variable(r, "HOME");
    const char *chosen = survey_variable(r, "NCCL_CONF_FILE");
    survey_variables(s, r);
    say_file(s, r, "nccl.conf.etc", r->root, "/etc/nccl.conf");
    if (chosen == NULL && home == NULL) {
        survey_say(s, "nccl.conf.user", "none");
        return;
    }
    snprintf(path, sizeof(path), "%s%s", chosen != NULL ? chosen : home,
             chosen != NULL ? "" : "/.nccl.conf");
    /* Folders of users are where they are, whatever the root. */
    say_file(s, r, "nccl.conf.user", "", path);
}
