/* SPDX-License-Identifier: Apache-2.0
 *
 * Any text as one value of another language. Pure.
 *
 * What each writes is one line of printable ASCII, or of UTF-8 for YAML, and
 * is read back byte for byte: by bash and ksh (POSIX sh where the text is
 * printable ASCII), by YAML 1.1 and 1.2, by HCL 2 (Terraform).
 */
#ifndef LAUNCHER_QUOTING_H
#define LAUNCHER_QUOTING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"

/* One word of a shell, not its first, whatever its bytes are. Returns as
 * gpul_buf_append. */
int quoting_shell(struct gpul_buf *out, const char *text);

/* One word for whatever shell may be somebody's login shell: POSIX ones, csh,
 * fish. `text` is printable ASCII. */
int quoting_any_shell(struct gpul_buf *out, const char *text);

/* quoting_shell for several, each behind a space. */
int quoting_shell_words(struct gpul_buf *out, char *const *words, size_t count);

/* What the reader of a YAML file does with a dollar afterwards. */
enum quoting_dollar {
    QUOTING_DOLLAR_PLAIN = 0,
    QUOTING_DOLLAR_KUBERNETES = 1, /* replaces $(NAME), $$ is a dollar */
    QUOTING_DOLLAR_COMPOSE = 2,    /* replaces $NAME and ${NAME} as well */
};

/* A scalar in double quotes. Errors: GPUL_EINVAL if it is not UTF-8, which
 * YAML cannot have. That `out` could not hold it, only out->is_failed says. */
int quoting_yaml(struct gpul_buf *out, const char *text,
                 enum quoting_dollar dollar, struct gpul_error *err);

/* A template without interpolation, in double quotes. Errors: GPUL_EINVAL if
 * it is not ASCII: Terraform brings all else into Unicode's form NFC. As for
 * YAML, `out` tells of the rest. */
int quoting_hcl(struct gpul_buf *out, const char *text, struct gpul_error *err);

#endif
