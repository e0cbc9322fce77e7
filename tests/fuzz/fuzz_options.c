/* SPDX-License-Identifier: Apache-2.0
 *
 * Any command line and environment is either read, each value going to an
 * option that takes one, or refused with a reason; and always the same way.
 *
 * Input: 1 byte (odd: the first operand ends the options), then lines. Each
 * is an argument; one that begins with GPULAUNCH_NAME= is also what the
 * environment has under that name.
 */
#include <stdbool.h>
#include <string.h>

#include "common/options.h"
#include "tests/lib/fuzz.h"

static const struct gpul_option table[] = {
    {.name = "nodes",
     .aliases = "nnodes",
     .letter = 'N',
     .value = "N",
     .environment = "GPULAUNCH_NODES",
     .group = "Nodes",
     .help = "How many."},
    {.name = "per-node",
     .aliases = "nproc-per-node gpus-per-node",
     .value = "K",
     .environment = "GPULAUNCH_PER_NODE",
     .group = "Nodes",
     .help = "Ranks of each."},
    {.name = "env",
     .letter = 'x',
     .value = "NAME[=VALUE]",
     .group = "Command",
     .help = "Set a variable.",
     .repeats = true},
    {.name = "verbose",
     .letter = 'v',
     .environment = "GPULAUNCH_VERBOSE",
     .group = "Output",
     .help = "Say more.",
     .repeats = true},
    {.name = "quiet", .letter = 'q', .group = "Output", .help = "Say less."},
};
enum { OPTION_COUNT = sizeof(table) / sizeof(table[0]), LINES_MAX = 64 };

struct input {
    char *lines[LINES_MAX];
    int count;
    uint64_t digest; /* of all values, in order */
};

static const char *get_variable(void *arg, const char *name)
{
    const struct input *in = arg;
    size_t n = strlen(name);
    for (int i = 0; i < in->count; i++) {
        if (strncmp(in->lines[i], name, n) == 0 && in->lines[i][n] == '=') {
            return in->lines[i] + n + 1;
        }
    }
    return NULL;
}

static void digest(struct input *in, const char *text)
{
    for (; *text != 0; text++) {
        in->digest =
            (in->digest ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
}

static int take_value(void *arg, size_t index, const char *value,
                      const char *spelling, enum gpul_option_source source,
                      struct gpul_error *err)
{
    struct input *in = arg;
    FUZZ_CHECK(index < OPTION_COUNT);
    FUZZ_CHECK((value != NULL) == (table[index].value != NULL));
    FUZZ_CHECK(spelling != NULL && spelling[0] != 0);
    FUZZ_CHECK(source == GPUL_SOURCE_ENVIRONMENT || source == GPUL_SOURCE_FLAG);
    digest(in, table[index].name);
    digest(in, value == NULL ? "" : value);
    if (value != NULL && strcmp(value, "refused") == 0) {
        return gpul_fail(err, GPUL_EINVAL, "refused");
    }
    return 0;
}

static int parse(struct input *in, bool stops_at_operand)
{
    const struct gpul_options options = {
        .table = table,
        .count = OPTION_COUNT,
        .stops_at_operand = stops_at_operand,
        .on_value = take_value,
        .getenv = get_variable,
        .arg = in,
    };
    int rest = -1;
    bool has_separator = true;
    struct gpul_error err = {0};
    in->digest = 0;
    int rc = gpul_options_parse(&options, in->count, in->lines, &rest,
                                &has_separator, &err);
    if (rc == 0) {
        FUZZ_CHECK(rest >= 0 && rest <= in->count);
        FUZZ_CHECK(!has_separator || strcmp(in->lines[rest - 1], "--") == 0);
        FUZZ_CHECK(has_separator || stops_at_operand || rest == in->count);
    } else {
        FUZZ_CHECK(rest == 0 && !has_separator);
        FUZZ_CHECK(err.text[0] != 0);
    }
    return rc;
}

/* Cut `text` into lines, in place. */
static void split(struct input *in, char *text)
{
    char *rest = text;
    char *line;
    in->count = 0;
    while (in->count < LINES_MAX && (line = strsep(&rest, "\n")) != NULL) {
        in->lines[in->count++] = line;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 1) {
        return 0;
    }
    char *text = malloc(n);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data + 1, n - 1);
    text[n - 1] = 0;
    struct input in;
    split(&in, text);
    bool stops_at_operand = (data[0] & 1) != 0;
    int rc = parse(&in, stops_at_operand);
    uint64_t first = in.digest;
    FUZZ_CHECK(parse(&in, stops_at_operand) == rc);
    FUZZ_CHECK(in.digest == first);
    free(text);
    return 0;
}
