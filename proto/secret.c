/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/openssl.h"

enum { DIGITS = 2 * GPUL_SECRET_BYTES };

void gpul_wipe(void *memory, size_t n)
{
    OPENSSL_cleanse(memory, n);
}

int gpul_secret_draw(struct gpul_secret *out, struct gpul_error *err)
{
    /* Up to 256 bytes come in one piece, signals or not: random(4). */
    ssize_t n = getrandom(out->bytes, sizeof(out->bytes), 0);
    if (n != (ssize_t)sizeof(out->bytes)) {
        gpul_wipe(out, sizeof(*out));
        return gpul_fail_errno(err, errno, "no random bytes for a secret");
    }
    return 0;
}

/* ---- text --------------------------------------------------------------- */

void gpul_secret_format(char text[GPUL_SECRET_TEXT_BYTES],
                        const struct gpul_secret *secret)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < GPUL_SECRET_BYTES; i++) {
        text[2 * i] = digits[secret->bytes[i] >> 4];
        text[2 * i + 1] = digits[secret->bytes[i] & 15];
    }
    text[DIGITS] = '\n';
    text[DIGITS + 1] = 0;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool ends_well(const char *tail, size_t n)
{
    return n == 0 || (n == 1 && tail[0] == '\n') ||
           (n == 2 && memcmp(tail, "\r\n", 2) == 0);
}

/* All bytes alike: zeros, or what somebody typed to fill the file. */
static bool is_placeholder(const struct gpul_secret *secret)
{
    return memcmp(secret->bytes, secret->bytes + 1, GPUL_SECRET_BYTES - 1) == 0;
}

static bool read_digits(struct gpul_secret *out, const char *text, size_t n)
{
    if (n < DIGITS || !ends_well(text + DIGITS, n - DIGITS)) {
        return false;
    }
    for (size_t i = 0; i < GPUL_SECRET_BYTES; i++) {
        int high = digit_value(text[2 * i]);
        int low = digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out->bytes[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

int gpul_secret_parse(struct gpul_secret *out, const char *text, size_t n,
                      struct gpul_error *err)
{
    const char *fault = NULL;
    if (!read_digits(out, text, n)) {
        fault = "a secret is one line of 64 hexadecimal digits";
    } else if (is_placeholder(out)) {
        fault = "one byte repeated is no secret";
    }
    if (fault == NULL) {
        return 0;
    }
    gpul_wipe(out, sizeof(*out));
    return gpul_fail(err, GPUL_EINVAL, "%s; \"gpulaunch secret\" makes one",
                     fault);
}

/* ---- files -------------------------------------------------------------- */

/* Can only root have put it here, into a container? */
static bool is_mounted(int fd, const struct stat *st)
{
    struct statvfs fs;
    return st->st_uid == 0 && fstatvfs(fd, &fs) == 0 &&
           (fs.f_flag & ST_RDONLY) != 0;
}

static int judge_file(int fd, bool is_link, const char *path,
                      struct gpul_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return gpul_fail_errno(err, errno, "%s", path);
    }
    if (!S_ISREG(st.st_mode)) {
        return gpul_fail(err, GPUL_EINVAL, "%s is not a regular file", path);
    }
    if (st.st_size > (off_t)GPUL_SECRET_FILE_BYTES_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "%s has %lld bytes; a secret has 65",
                         path, (long long)st.st_size);
    }
    if (is_mounted(fd, &st)) {
        return 0;
    }
    if (is_link) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s is a symbolic link; name the file itself", path);
    }
    if (st.st_uid != geteuid()) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s belongs to user %u, not to you (user %u)", path,
                         st.st_uid, geteuid());
    }
    if ((st.st_mode & 077) != 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%s may be used by others (mode %03o): chmod 600 it, "
                         "and if others may have read it make a new one",
                         path, st.st_mode & 0777);
    }
    return 0;
}

/* The descriptor, or -1. It never waits for the writer of a FIFO. */
static int open_file(bool *is_link, const char *path)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = open(path, flags | O_NOFOLLOW);
    *is_link = fd < 0 && errno == ELOOP;
    return *is_link ? open(path, flags) : fd;
}

static int read_text(struct gpul_secret *out, int fd, const char *path,
                     struct gpul_error *err)
{
    char text[GPUL_SECRET_FILE_BYTES_MAX];
    size_t used = 0;
    ssize_t n;
    do {
        n = read(fd, text + used, sizeof(text) - used);
        used += n > 0 ? (size_t)n : 0;
    } while ((n > 0 && used < sizeof(text)) || (n < 0 && errno == EINTR));
    int rc = n < 0 ? gpul_fail_errno(err, errno, "%s", path)
                   : gpul_secret_parse(out, text, used, err);
    gpul_wipe(text, used);
    return n < 0 || rc == 0 ? rc : gpul_wrap(err, rc, "%s", path);
}

int gpul_secret_read_file(struct gpul_secret *out, const char *path,
                          struct gpul_error *err)
{
    bool is_link;
    gpul_wipe(out, sizeof(*out));
    int fd = open_file(&is_link, path);
    if (fd < 0) {
        return gpul_fail_errno(err, errno, "%s", path);
    }
    int rc = judge_file(fd, is_link, path, err);
    if (rc == 0) {
        rc = read_text(out, fd, path, err);
    }
    close(fd);
    return rc;
}

/* ---- keys --------------------------------------------------------------- */

/* OSSL_PARAM has no const; the KDF only reads. */
static OSSL_PARAM octets(const char *name, struct gpul_bytes bytes)
{
    return OSSL_PARAM_construct_octet_string(
        name, (void *)(uintptr_t)bytes.data, bytes.n);
}

static bool run_kdf(uint8_t *out, size_t n, const OSSL_PARAM *params)
{
    if (!gpul_openssl_begin()) {
        return false;
    }
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *context = kdf == NULL ? NULL : EVP_KDF_CTX_new(kdf);
    bool is_done =
        context != NULL && EVP_KDF_derive(context, out, n, params) == 1;
    EVP_KDF_CTX_free(context); /* wipes what it held */
    EVP_KDF_free(kdf);
    return is_done;
}

int gpul_hkdf(uint8_t *out, size_t n, struct gpul_bytes key,
              struct gpul_bytes salt, struct gpul_bytes info,
              struct gpul_error *err)
{
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        octets(OSSL_KDF_PARAM_KEY, key),
        octets(OSSL_KDF_PARAM_INFO, info),
        salt.n > 0 ? octets(OSSL_KDF_PARAM_SALT, salt)
                   : OSSL_PARAM_construct_end(),
        OSSL_PARAM_construct_end(),
    };
    ERR_clear_error();
    if (!run_kdf(out, n, params)) {
        gpul_wipe(out, n);
        if (gpul_openssl_is_short()) {
            return gpul_fail(err, GPUL_ENOMEM, "out of memory for a key");
        }
        return gpul_fail(err, GPUL_EINVAL, "OpenSSL cannot derive a key");
    }
    return 0;
}

int gpul_key_derive(struct gpul_key *out, const struct gpul_secret *secret,
                    const char *job_id, const char *context,
                    struct gpul_error *err)
{
    return gpul_hkdf(out->bytes, sizeof(out->bytes),
                     (struct gpul_bytes){secret->bytes, GPUL_SECRET_BYTES},
                     (struct gpul_bytes){job_id, strlen(job_id)},
                     (struct gpul_bytes){context, strlen(context)}, err);
}

int gpul_key_of_node(struct gpul_key *out, const struct gpul_secret *secret,
                     const char *job_id, const char *node_name,
                     struct gpul_error *err)
{
    char context[sizeof("gpulaunch/1 node/") + GPUL_NAME_BYTES_MAX];
    int n =
        snprintf(context, sizeof(context), "gpulaunch/1 node/%s", node_name);
    if (n < 0 || (size_t)n >= sizeof(context)) {
        gpul_wipe(out, sizeof(*out));
        return gpul_fail(err, GPUL_EINVAL, "a node's name has at most %u bytes",
                         GPUL_NAME_BYTES_MAX);
    }
    return gpul_key_derive(out, secret, job_id, context, err);
}
