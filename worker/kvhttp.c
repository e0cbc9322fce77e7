/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/kvhttp.h"

#include <string.h>
#include <strings.h>

#include "common/error.h"

/* A run of bytes in the request. */
struct slice {
    const char *text;
    size_t bytes;
};

/* What the headers said. */
struct headers {
    bool has_length;
    size_t length;
    bool is_chunked;
    bool says_close;
    bool says_keep_alive;
};

static bool equals(struct slice s, const char *word)
{
    return s.bytes == strlen(word) && memcmp(s.text, word, s.bytes) == 0;
}

static bool equals_ignoring_case(struct slice s, const char *word)
{
    return s.bytes == strlen(word) && strncasecmp(s.text, word, s.bytes) == 0;
}

/* Cut the text up to `end` off, and `end` itself; false if it is not there. */
static bool cut(struct slice *rest, char end, struct slice *out)
{
    const char *at = memchr(rest->text, end, rest->bytes);
    if (at == NULL) {
        return false;
    }
    *out = (struct slice){rest->text, (size_t)(at - rest->text)};
    rest->bytes -= out->bytes + 1;
    rest->text = at + 1;
    return true;
}

static struct slice trim(struct slice s)
{
    while (s.bytes > 0 && (s.text[0] == ' ' || s.text[0] == '\t')) {
        s.text++;
        s.bytes--;
    }
    while (s.bytes > 0 &&
           (s.text[s.bytes - 1] == ' ' || s.text[s.bytes - 1] == '\t')) {
        s.bytes--;
    }
    return s;
}

/* ---- the request line ---------------------------------------------------- */

/* Judge the first word as soon as it is there, so that a stranger who speaks
 * something else need not be waited for. 0: no objection so far. */
static unsigned int check_method(enum kvhttp_method *method, const char *data,
                                 size_t n)
{
    static const char *const words[] = {"GET", "PUT", "DELETE"};
    enum { LONGEST = 6 };
    size_t bytes = 0;
    while (bytes < n && bytes <= LONGEST && data[bytes] >= 'A' &&
           data[bytes] <= 'Z') {
        bytes++;
    }
    if (bytes > LONGEST) {
        return 405;
    }
    if (bytes == n) {
        return 0;
    }
    if (bytes == 0 || data[bytes] != ' ') {
        return 400;
    }
    for (int i = 0; i < 3; i++) {
        if (equals((struct slice){data, bytes}, words[i])) {
            *method = (enum kvhttp_method)(i + 1);
            return 0;
        }
    }
    return 405;
}

/* "/scope/key" of printable bytes; the key may be empty to delete a scope. */
static unsigned int parse_path(struct kvhttp_request *out, struct slice path)
{
    if (path.bytes > 1 + KVHTTP_NAME_BYTES_MAX) {
        return 414;
    }
    if (path.bytes < 2 || path.text[0] != '/' || path.text[1] == '/') {
        return 400;
    }
    for (size_t i = 0; i < path.bytes; i++) {
        if (path.text[i] <= ' ' || path.text[i] > '~') {
            return 400;
        }
    }
    const char *slash = memchr(path.text + 1, '/', path.bytes - 1);
    if (slash == NULL) {
        return 400;
    }
    out->name = (struct kvstore_name){
        .text = path.text + 1,
        .bytes = path.bytes - 1,
        .scope_bytes = (size_t)(slash - path.text - 1),
    };
    bool has_key = out->name.bytes > out->name.scope_bytes + 1;
    return has_key || out->method == KVHTTP_DELETE ? 0 : 400;
}

static unsigned int parse_request_line(struct kvhttp_request *out,
                                       struct slice line)
{
    struct slice method;
    struct slice path;
    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &path)) {
        return 400;
    }
    unsigned int status = parse_path(out, path);
    if (status != 0) {
        return status;
    }
    out->keeps_alive = equals(line, "HTTP/1.1");
    return out->keeps_alive || equals(line, "HTTP/1.0") ? 0 : 505;
}

/* ---- headers ------------------------------------------------------------- */

/* Digits only; what is beyond any limit saturates. Two lengths must agree,
 * else a proxy and we might see different requests. */
static unsigned int parse_length(struct headers *h, struct slice value)
{
    size_t length = 0;
    for (size_t i = 0; i < value.bytes; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            return 400;
        }
        if (length <= KVHTTP_VALUE_BYTES_MAX) {
            length = length * 10 + (size_t)(value.text[i] - '0');
        }
    }
    if (value.bytes == 0 || (h->has_length && h->length != length)) {
        return 400;
    }
    h->has_length = true;
    h->length = length;
    return 0;
}

static unsigned int parse_header(struct headers *h, struct slice line)
{
    struct slice name;
    if (!cut(&line, ':', &name) || name.bytes == 0 ||
        trim(name).bytes != name.bytes) {
        return 400; /* a folded line, too, begins with a blank */
    }
    struct slice value = trim(line);
    if (equals_ignoring_case(name, "Content-Length")) {
        return parse_length(h, value);
    }
    if (equals_ignoring_case(name, "Transfer-Encoding")) {
        h->is_chunked = true;
    } else if (equals_ignoring_case(name, "Connection")) {
        h->says_close |= equals_ignoring_case(value, "close");
        h->says_keep_alive |= equals_ignoring_case(value, "keep-alive");
    }
    return 0;
}

/* Take one line off; false if it does not end as it must, or has bytes that
 * no header may have. */
static bool cut_line(struct slice *rest, struct slice *line)
{
    if (!cut(rest, '\n', line) || line->bytes == 0 ||
        line->text[line->bytes - 1] != '\r') {
        return false;
    }
    line->bytes--;
    for (size_t i = 0; i < line->bytes; i++) {
        unsigned char c = (unsigned char)line->text[i];
        if ((c < ' ' && c != '\t') || c == 127) {
            return false;
        }
    }
    return true;
}

static unsigned int parse_head(struct kvhttp_request *out, struct headers *h,
                               struct slice head)
{
    struct slice line;
    if (!cut_line(&head, &line)) {
        return 400;
    }
    unsigned int status = parse_request_line(out, line);
    while (status == 0 && head.bytes > 0) {
        status = cut_line(&head, &line) ? parse_header(h, line) : 400;
    }
    return status;
}

/* ---- the whole ----------------------------------------------------------- */

/* Bytes of the head with its empty line; 0 if that is not there. */
static size_t head_bytes(const char *data, size_t n)
{
    size_t seen = n < KVHTTP_HEAD_BYTES_MAX ? n : KVHTTP_HEAD_BYTES_MAX;
    const char *end = memmem(data, seen, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - data) + 4;
}

unsigned int kvhttp_parse(struct kvhttp_request *out, const void *data,
                          size_t n)
{
    struct headers h = {0};
    *out = (struct kvhttp_request){0};
    unsigned int status = check_method(&out->method, data, n);
    if (status != 0 || n == 0) {
        return status;
    }
    size_t head = head_bytes(data, n);
    if (head == 0) {
        return n < KVHTTP_HEAD_BYTES_MAX ? 0 : 431;
    }
    status = parse_head(out, &h, (struct slice){data, head - 2});
    if (status != 0) {
        return status;
    }
    if (h.is_chunked || (out->method == KVHTTP_PUT && !h.has_length)) {
        return 411;
    }
    if (h.length > KVHTTP_VALUE_BYTES_MAX) {
        return 413;
    }
    out->body = (const char *)data + head;
    out->body_bytes = h.length;
    out->bytes = head + h.length;
    out->keeps_alive = !h.says_close && (out->keeps_alive || h.says_keep_alive);
    return n < out->bytes ? 0 : 200;
}

static const char *reason(unsigned int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 411:
        return "Length Required";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    case 507:
        return "Insufficient Storage";
    default:
        return "Bad Request";
    }
}

static int respond(struct gpul_buf *out, unsigned int status, bool keeps_alive,
                   const void *body, size_t bytes)
{
    int rc = gpul_buf_appendf(
        out, "HTTP/1.1 %u %s\r\nContent-Length: %zu\r\nConnection: %s\r\n\r\n",
        status, reason(status), bytes, keeps_alive ? "keep-alive" : "close");
    return rc == 0 ? gpul_buf_append(out, body, bytes) : rc;
}

int kvhttp_answer(struct gpul_buf *out, struct kvstore *store,
                  const struct kvhttp_request *request)
{
    const void *value = "";
    size_t bytes = 0;
    unsigned int status = 200;
    switch (request->method) {
    case KVHTTP_GET:
        value = kvstore_get(store, &request->name, &bytes);
        status = value != NULL ? 200 : 404;
        break;
    case KVHTTP_PUT:
        if (kvstore_put(store, &request->name, request->body,
                        request->body_bytes) != 0) {
            status = 507;
        }
        break;
    case KVHTTP_DELETE:
        kvstore_delete(store, &request->name);
        break;
    }
    return respond(out, status, request->keeps_alive, value, bytes);
}

int kvhttp_refuse(struct gpul_buf *out, unsigned int status)
{
    return respond(out, status, false, "", 0);
}
