/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/secret.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char good_text[] =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

static struct gpul_secret good_secret(void)
{
    struct gpul_secret s;
    for (size_t i = 0; i < sizeof(s.bytes); i++) {
        s.bytes[i] = (uint8_t)i;
    }
    return s;
}

static void assert_wiped(const void *memory, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(((const uint8_t *)memory)[i], 0);
    }
}

static size_t from_hex(uint8_t *out, const char *hex)
{
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return n;
}

/* ---- text --------------------------------------------------------------- */

static void test_text(void **state)
{
    (void)state;
    struct gpul_secret s = good_secret(), back;
    char text[GPUL_SECRET_TEXT_BYTES];
    gpul_secret_format(text, &s);
    assert_string_equal(text, good_text);
    assert_int_equal(gpul_secret_parse(&back, text, strlen(text), NULL), 0);
    assert_memory_equal(&back, &s, sizeof(s));
}

/* The ends of a line that editors and tools leave, and either case. */
static void test_parse_good(void **state)
{
    (void)state;
    char text[80];
    struct gpul_secret s, want = good_secret();
    static const char *const ends[] = {"", "\n", "\r\n"};
    for (size_t i = 0; i < COUNT(ends); i++) {
        int n = snprintf(text, sizeof(text), "%.64s%s", good_text, ends[i]);
        assert_int_equal(gpul_secret_parse(&s, text, (size_t)n, NULL), 0);
        assert_memory_equal(&s, &want, sizeof(s));
    }
    text[21] = 'A';
    assert_int_equal(gpul_secret_parse(&s, text, 64, NULL), 0);
    assert_memory_equal(&s, &want, sizeof(s));
}

/* Nothing else is a secret, and what was given is in no error. */
static void test_parse_bad(void **state)
{
    (void)state;
    static const char *const ends[] = {"0",    " ",   "\n\n", "\r",
                                       "\n\r", "\nx", " \n",  "\r\n\n"};
    struct gpul_error err = {0};
    struct gpul_secret s;
    char text[80];
    for (size_t n = 0; n < 64; n++) {
        memset(&s, 1, sizeof(s));
        assert_int_equal(gpul_secret_parse(&s, good_text, n, &err),
                         GPUL_EINVAL);
        assert_wiped(&s, sizeof(s));
        assert_null(strstr(err.text, "0001"));
    }
    for (size_t i = 0; i < COUNT(ends); i++) {
        int n = snprintf(text, sizeof(text), "%.64s%s", good_text, ends[i]);
        assert_int_equal(gpul_secret_parse(&s, text, (size_t)n, &err),
                         GPUL_EINVAL);
    }
    for (unsigned c = 0; c < 256; c++) {
        memcpy(text, good_text, 65);
        text[c % 64] = (char)c;
        int want = c != 0 && strchr("0123456789abcdefABCDEF", (int)c) != NULL
                       ? 0
                       : GPUL_EINVAL;
        assert_int_equal(gpul_secret_parse(&s, text, 65, &err), want);
    }
    assert_string_equal(err.text,
                        "a secret is one line of 64 hexadecimal digits; "
                        "\"gpulaunch secret\" makes one");
}

static void test_placeholder(void **state)
{
    (void)state;
    struct gpul_error err = {0};
    struct gpul_secret s;
    char text[64];
    memset(text, '0', sizeof(text));
    assert_int_equal(gpul_secret_parse(&s, text, 64, &err), GPUL_EINVAL);
    assert_string_equal(err.text, "one byte repeated is no secret; "
                                  "\"gpulaunch secret\" makes one");
    text[63] = '1';
    assert_int_equal(gpul_secret_parse(&s, text, 64, &err), 0);
}

/* Two are never alike, and every bit is drawn. */
static void test_draw(void **state)
{
    (void)state;
    struct gpul_secret ones = {{0}}, zeros = {{0}}, last = {{0}};
    for (int i = 0; i < 64; i++) {
        struct gpul_secret s;
        assert_int_equal(gpul_secret_draw(&s, NULL), 0);
        assert_memory_not_equal(&s, &last, sizeof(s));
        last = s;
        for (size_t k = 0; k < sizeof(s.bytes); k++) {
            ones.bytes[k] |= s.bytes[k];
            zeros.bytes[k] |= (uint8_t)~s.bytes[k];
        }
    }
    for (size_t k = 0; k < sizeof(ones.bytes); k++) {
        assert_int_equal(ones.bytes[k] & zeros.bytes[k], 0xff);
    }
}

/* ---- keys --------------------------------------------------------------- */

/* RFC 5869, appendix A.1 to A.3. */
static void test_rfc_5869(void **state)
{
    (void)state;
    static const struct {
        const char *key, *salt, *info, *out;
    } rows[] = {
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b",
         "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
         "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
         "34007208d5b887185865"},
        {"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
         "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
         "404142434445464748494a4b4c4d4e4f",
         "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f"
         "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"
         "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
         "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecf"
         "d0d1d2d3d4d5d6d7d8d9dadbdcdddedfe0e1e2e3e4e5e6e7e8e9eaebecedeeef"
         "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
         "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
         "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
         "cc30c58179ec3e87c14c01d5c1f3434f1d87"},
        {"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
         "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
         "9d201395faa4b61a96c8"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t key[80], salt[80], info[80], want[82], out[82];
        struct gpul_bytes k = {key, from_hex(key, rows[i].key)};
        struct gpul_bytes s = {salt, from_hex(salt, rows[i].salt)};
        struct gpul_bytes f = {info, from_hex(info, rows[i].info)};
        size_t n = from_hex(want, rows[i].out);
        assert_int_equal(gpul_hkdf(out, n, k, s, f, NULL), 0);
        assert_memory_equal(out, want, n);
    }
}

/* More than HKDF can give is refused, and leaves nothing. */
static void test_hkdf_fails(void **state)
{
    (void)state;
    static uint8_t out[255 * 32 + 1];
    struct gpul_bytes k = {"key", 3}, none = {"", 0};
    struct gpul_error err = {0};
    memset(out, 1, sizeof(out));
    assert_int_equal(gpul_hkdf(out, sizeof(out), k, none, none, &err),
                     GPUL_EINVAL);
    assert_string_equal(err.text, "OpenSSL cannot derive a key");
    assert_wiped(out, sizeof(out));
    assert_int_equal(gpul_hkdf(out, sizeof(out) - 1, k, none, none, &err), 0);
}

/* The keys of a known secret, by an independent implementation; each role,
 * node and job has its own. */
static void test_keys(void **state)
{
    (void)state;
    struct gpul_secret s = good_secret();
    static const char *const want[] = {
        "1a3681858ad10d3b5a7be43461fc1ddefe3e8a18d2cce8dc42e367c8411d223e",
        "cd53e29c68cb0d805c47f5d33dc7344fcf0dc39b72f9dbf58bc65cbc606689c9",
        "81431e34484281705c5c8b7d39b8067d8c75db1c42f67b0bc5726318d729c053",
    };
    struct gpul_key keys[5];
    assert_int_equal(gpul_key_of_node(&keys[0], &s, "job-1", "alpha", NULL), 0);
    assert_int_equal(
        gpul_key_derive(&keys[1], &s, "job-1", GPUL_CONTEXT_OPERATOR, NULL), 0);
    assert_int_equal(
        gpul_key_derive(&keys[2], &s, "job-1", GPUL_CONTEXT_NCCL_MAGIC, NULL),
        0);
    assert_int_equal(gpul_key_of_node(&keys[3], &s, "job-2", "alpha", NULL), 0);
    assert_int_equal(gpul_key_of_node(&keys[4], &s, "job-1", "alph", NULL), 0);
    for (size_t i = 0; i < COUNT(want); i++) {
        uint8_t bytes[GPUL_KEY_BYTES];
        from_hex(bytes, want[i]);
        assert_memory_equal(keys[i].bytes, bytes, sizeof(bytes));
    }
    for (size_t i = 0; i < COUNT(keys); i++) {
        for (size_t k = 0; k < i; k++) {
            assert_memory_not_equal(&keys[i], &keys[k], sizeof(keys[0]));
        }
    }
}

static void test_long_name(void **state)
{
    (void)state;
    struct gpul_secret s = good_secret();
    struct gpul_key key;
    struct gpul_error err = {0};
    char name[GPUL_NAME_BYTES_MAX + 2] = {0};
    memset(name, 'n', GPUL_NAME_BYTES_MAX);
    assert_int_equal(gpul_key_of_node(&key, &s, "j", name, &err), 0);
    name[GPUL_NAME_BYTES_MAX] = 'n';
    assert_int_equal(gpul_key_of_node(&key, &s, "j", name, &err), GPUL_EINVAL);
    assert_string_equal(err.text, "a node's name has at most 253 bytes");
    assert_wiped(&key, sizeof(key));
}

/* ---- files -------------------------------------------------------------- */

struct folder {
    char name[64];
    char file[128];
    char link[128];
};

static void write_file(const struct folder *f, const char *text, mode_t mode)
{
    unlink(f->file);
    int fd = open(f->file, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static int set_up(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    strcpy(f->name, "/tmp/test_secret.XXXXXX");
    if (mkdtemp(f->name) == NULL) {
        return 1;
    }
    snprintf(f->file, sizeof(f->file), "%s/file", f->name);
    snprintf(f->link, sizeof(f->link), "%s/link", f->name);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct folder *f = *state;
    unlink(f->file);
    unlink(f->link);
    int rc = rmdir(f->name);
    free(f);
    return rc;
}

static void assert_read(const char *path)
{
    struct gpul_secret s, want = good_secret();
    struct gpul_error err = {0};
    if (gpul_secret_read_file(&s, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_memory_equal(&s, &want, sizeof(s));
}

static void assert_refused(const char *path, int status, const char *text)
{
    struct gpul_secret s;
    struct gpul_error err = {0};
    memset(&s, 1, sizeof(s));
    assert_int_equal(gpul_secret_read_file(&s, path, &err), status);
    assert_memory_equal(err.text, path, strlen(path));
    assert_string_equal(err.text + strlen(path), text);
    assert_wiped(&s, sizeof(s));
}

static void test_modes(void **state)
{
    struct folder *f = *state;
    write_file(f, good_text, 0600);
    assert_read(f->file);
    write_file(f, good_text, 0400);
    assert_read(f->file);
    for (unsigned bit = 1; bit <= 040; bit *= 2) {
        char text[128];
        snprintf(text, sizeof(text),
                 " may be used by others (mode %03o): chmod 600 it, and if "
                 "others may have read it make a new one",
                 0600 | bit);
        write_file(f, good_text, (mode_t)(0600 | bit));
        assert_refused(f->file, GPUL_EINVAL, text);
    }
}

static void test_other_things(void **state)
{
    struct folder *f = *state;
    assert_refused(f->file, GPUL_ESYS, ": No such file or directory");
    assert_refused(f->name, GPUL_EINVAL, " is not a regular file");
    assert_int_equal(mkfifo(f->file, 0600), 0);
    assert_refused(f->file, GPUL_EINVAL, " is not a regular file");
    write_file(f, good_text, 0600);
    assert_int_equal(symlink(f->file, f->link), 0);
    assert_refused(f->link, GPUL_EINVAL,
                   " is a symbolic link; name the file itself");
    unlink(f->file);
    assert_refused(f->link, GPUL_ESYS, ": No such file or directory");
}

static void test_contents(void **state)
{
    struct folder *f = *state;
    static const char bad[] = ": a secret is one line of 64 hexadecimal "
                              "digits; \"gpulaunch secret\" makes one";
    static char large[GPUL_SECRET_FILE_BYTES_MAX + 2];
    write_file(f, "", 0600);
    assert_refused(f->file, GPUL_EINVAL, bad);
    memset(large, 'a', GPUL_SECRET_FILE_BYTES_MAX);
    write_file(f, large, 0600);
    assert_refused(f->file, GPUL_EINVAL, bad);
    large[GPUL_SECRET_FILE_BYTES_MAX] = 'a';
    write_file(f, large, 0600);
    assert_refused(f->file, GPUL_EINVAL, " has 4097 bytes; a secret has 65");
}

static void test_owner(void **state)
{
    struct folder *f = *state;
    if (geteuid() != 0) {
        skip();
    }
    write_file(f, good_text, 0600);
    assert_int_equal(chown(f->file, 65534, 65534), 0);
    assert_refused(f->file, GPUL_EINVAL,
                   " belongs to user 65534, not to you (user 0)");
}

/* What kubelet makes of a Secret: a tmpfs that is read-only in the container,
 * in it a link to a link to the file, all of root, readable by everybody. */
static void test_mounted(void **state)
{
    struct folder *f = *state;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", f->name, "tmpfs", 0, "size=64k") != 0) {
        skip();
    }
    write_file(f, good_text, 0644);
    assert_int_equal(symlink("file", f->link), 0);
    assert_refused(f->link, GPUL_EINVAL,
                   " is a symbolic link; name the file itself");
    assert_int_equal(mount("none", f->name, NULL, MS_REMOUNT | MS_RDONLY, NULL),
                     0);
    assert_read(f->link);
    assert_read(f->file);
    assert_int_equal(seteuid(65534), 0);
    assert_read(f->link);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(umount(f->name), 0);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_parse_good),
        cmocka_unit_test(test_parse_bad),
        cmocka_unit_test(test_placeholder),
        cmocka_unit_test(test_draw),
        cmocka_unit_test(test_rfc_5869),
        cmocka_unit_test(test_hkdf_fails),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_long_name),
        FILE_TEST(test_modes),
        FILE_TEST(test_other_things),
        FILE_TEST(test_contents),
        FILE_TEST(test_owner),
        FILE_TEST(test_mounted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
