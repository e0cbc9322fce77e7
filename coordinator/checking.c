/* SPDX-License-Identifier: Apache-2.0
 *
 * Mode CHECK, docs/check.md: SURVEY, in which every node says what it is and
 * its clock is compared, and what a check makes of the phases that it shares
 * with a run: a failure is a finding, and the worst of all decides at the end.
 *
 * Happy path: checking_survey -> checking_surveyed and checking_pong of each
 * node -> linking_begin -> ... -> checking_conclude in the place of a launch.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"
#include "coordinator/core.h"

/* A survey gives up so long before its phase does: its agent may have to kill
 * it, and is to say so. */
enum {
    SURVEY_SLACK_MS = 4000,
    ID_BYTES = GPUL_CHECK_ID_BYTES_MAX + 1,
    PAIRS_MAX = 256, /* that do not reach each other, one by one */
};

static void out_of_memory(struct rendezvous *r)
{
    outbox_fail(&r->out, GPUL_ENOMEM, "out of memory for what was found");
}

void checking_release(struct rendezvous *r)
{
    findings_release(&r->checking.findings);
    checks_release(&r->checking.checks);
    surveys_release(&r->checking.surveys);
}

/* ---- findings ------------------------------------------------------------ */

void checking_tell(struct rendezvous *r)
{
    Gpul__Finding **page;
    size_t n;
    while ((n = findings_next(&r->checking.findings, &page,
                              GPUL_CHECK_PAGE_MAX)) > 0) {
        Gpul__Event event = GPUL__EVENT__INIT;
        event.kind = GPUL__EVENT__KIND__FINDINGS;
        event.findings = page;
        event.n_findings = n;
        core_tell_event(r, &event);
    }
}

void checking_add(struct rendezvous *r, const struct finding *finding)
{
    if (findings_add(&r->checking.findings, finding) != 0) {
        out_of_memory(r);
    }
}

/* A text of the self-test may begin with an id of its own: "VER-301: ...",
 * "GPU-202 ...". Returns what is behind it; NULL: it has none. */
static const char *split_id(char id[ID_BYTES], const char *text)
{
    size_t letters = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t digits =
        text[letters] == '-' ? strspn(text + letters + 1, "0123456789") : 0;
    size_t n = letters + 1 + digits;
    if (letters == 0 || digits != 3 || n >= ID_BYTES) {
        return NULL;
    }
    snprintf(id, ID_BYTES, "%.*s", (int)n, text);
    text += n + (text[n] == ':');
    return text[0] == ' ' ? text + 1 : NULL;
}

static const char *id_of(enum outcome_code code)
{
    switch (code) {
    case OUTCOME_WRONG_DATA:
        return "DATA-801";
    case OUTCOME_SLOW:
        return "PERF-705";
    case OUTCOME_DEADLINE:
        return "INIT-901";
    case OUTCOME_LOST_EARLY:
        return "INIT-902";
    default:
        return "TEST-601";
    }
}

static void add_failure(struct rendezvous *r, enum outcome_code code,
                        const struct node *node, const char *why)
{
    char id[ID_BYTES], nodes[GPUL_CHECK_NODES_BYTES_MAX + 1] = "";
    const char *text = split_id(id, why);
    if (text == NULL) {
        text = why;
        snprintf(id, sizeof(id), "%s", id_of(code));
    }
    if (node != NULL) {
        const char *const names[] = {node->name};
        finding_fold(nodes, names, 1);
    }
    const struct finding finding = {
        .id = id,
        .severity = GPUL__FINDING__SEVERITY__FAIL,
        .nodes = nodes,
        .text = text,
    };
    checking_add(r, &finding);
}

void checking_failed(struct rendezvous *r, enum outcome_code code,
                     const struct node *node, const char *why)
{
    add_failure(r, code, node, why);
    checking_conclude(r);
}

bool checking_noticed(struct rendezvous *r, const char *text)
{
    char id[ID_BYTES];
    const char *rest = split_id(id, text);
    if (rest != NULL) {
        const struct finding finding = {
            .id = id,
            .severity = GPUL__FINDING__SEVERITY__WARN,
            .text = rest,
        };
        checking_add(r, &finding);
    }
    return rest != NULL;
}

void checking_untested(struct rendezvous *r, const char *why)
{
    struct text text;
    text_format(&text, "the self-test was not run: %s", why);
    const struct finding finding = {
        .id = "TEST-601",
        .severity = GPUL__FINDING__SEVERITY__UNKNOWN,
        .text = text.bytes,
    };
    checking_add(r, &finding);
}

static void add_pair(struct rendezvous *r, const char *nodes, const char *text)
{
    const struct finding finding = {
        .id = "NET-110",
        .severity = GPUL__FINDING__SEVERITY__FAIL,
        .nodes = nodes,
        .text = text,
        .remedy = "open all TCP ports between the nodes, the ephemeral ones "
                  "too (net.ipv4.ip_local_port_range), in firewalls, security "
                  "groups and network policies",
    };
    checking_add(r, &finding);
}

/* Returns how many. */
static uint32_t add_pairs(struct rendezvous *r)
{
    struct links_pair pair = {0};
    struct text text;
    uint32_t count = 0;
    while (links_next_pair(&r->links, &text, &pair, &r->roster)) {
        char nodes[GPUL_CHECK_NODES_BYTES_MAX + 1];
        const char *const names[] = {r->roster.nodes[pair.from].name,
                                     r->roster.nodes[pair.to].name};
        if (++count <= PAIRS_MAX) {
            finding_fold(nodes, names, 2);
            add_pair(r, nodes, text.bytes);
        }
    }
    if (count > PAIRS_MAX) {
        text_format(&text, "and %u more pairs of nodes", count - PAIRS_MAX);
        add_pair(r, "", text.bytes);
    }
    return count;
}

void checking_unlinked(struct rendezvous *r, const struct node *node,
                       const char *why)
{
    char nodes[GPUL_CHECK_NODES_BYTES_MAX + 1] = "";
    if (node != NULL) {
        const char *const names[] = {node->name};
        finding_fold(nodes, names, 1);
    }
    if (node != NULL || add_pairs(r) == 0) {
        add_pair(r, nodes, why);
    }
    if (r->job.self_test != GPUL__SELF_TEST__LEVEL__OFF) {
        checking_untested(r, "it needs all nodes to reach each other");
    }
    checking_conclude(r);
}

/* ---- the end ------------------------------------------------------------- */

static const char *reason_of(enum outcome_code code)
{
    switch (code) {
    case OUTCOME_SUCCESS:
        return "success";
    case OUTCOME_WRONG_DATA:
        return "check_wrong_data";
    case OUTCOME_SLOW:
        return "check_slow";
    case OUTCOME_INTERNAL:
        return "check_bad_test";
    default:
        return "check_failed";
    }
}

static void append_counts(struct text *out, const struct findings *f)
{
    Gpul__FindingCounts counts;
    findings_fill(f, &counts);
    text_append(out, "%u passed, %u warning%s, %u failed, %u unknown",
                counts.passed, counts.warned, gpul_plural(counts.warned),
                counts.failed, counts.unknown);
}

void checking_conclude(struct rendezvous *r)
{
    struct text text;
    enum outcome_code code =
        findings_code(&r->checking.findings, r->job.check.is_strict);
    const Gpul__Finding *cause = findings_cause(&r->checking.findings, code);
    text_format(&text, "%s: ",
                code == OUTCOME_SUCCESS ? "the check passed"
                                        : "the check failed");
    append_counts(&text, &r->checking.findings);
    if (cause != NULL) {
        text_append(&text, "; %s %s%s%s", cause->id, cause->nodes,
                    cause->nodes[0] != 0 ? ": " : "", cause->text);
    }
    checking_tell(r);
    outcome_decide(&r->outcome, code, reason_of(code), NULL, "%s", text.bytes);
    ending_begin(r, SIGTERM);
}

/* The job ends by something else than a finding: it is one all the same. */
void checking_interrupted(struct rendezvous *r)
{
    uint32_t code = r->outcome.exit_code;
    if (code == OUTCOME_DEADLINE || code == OUTCOME_LOST_EARLY) {
        add_failure(r, (enum outcome_code)code, r->outcome.node,
                    r->outcome.text.bytes);
    }
    checking_tell(r);
}

/* ---- facts --------------------------------------------------------------- */

uint32_t checking_bound_ms(const struct rendezvous *r)
{
    return r->job.check.survey_deadline_ms;
}

static void ping(struct rendezvous *r, struct node *node)
{
    Gpul__ClockPing message;
    if (surveys_ping(&r->checking.surveys, roster_index(&r->roster, node),
                     r->real_ns, &message)) {
        Gpul__Frame frame = core_frame(r);
        frame.body_case = GPUL__FRAME__BODY_CLOCK_PING;
        frame.clock_ping = &message;
        core_send(r, node, &frame);
    }
}

static uint32_t node_ranks_max(const struct rendezvous *r)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < r->roster.count; i++) {
        uint32_t ranks = r->roster.nodes[i].rank_count;
        most = ranks > most ? ranks : most;
    }
    return most;
}

void checking_survey(struct rendezvous *r, const char *why)
{
    uint32_t bound_ms = checking_bound_ms(r);
    uint32_t half_ms = bound_ms / 2;
    core_enter(r, PHASE_SURVEY, bound_ms, "%s", why);
    core_await_all(r);
    surveys_release(&r->checking.surveys);
    checks_release(&r->checking.checks);
    const struct checks_need need = {
        .job_ranks = r->world_size,
        .node_ranks = node_ranks_max(r),
    };
    if (surveys_init(&r->checking.surveys, r->roster.count) != 0 ||
        checks_init(&r->checking.checks, r->roster.count, &need) != 0) {
        out_of_memory(r);
        return;
    }
    core_tell_text(r, GPUL__EVENT__KIND__SURVEYING, NULL, "%s", "");
    Gpul__SurveyStart start = GPUL__SURVEY_START__INIT;
    start.deadline_ms =
        bound_ms - (half_ms < SURVEY_SLACK_MS ? half_ms : SURVEY_SLACK_MS);
    Gpul__Frame frame = core_frame(r);
    frame.body_case = GPUL__FRAME__BODY_SURVEY_START;
    frame.survey_start = &start;
    core_send_all(r, &frame);
    for (uint32_t i = 0; i < r->roster.count; i++) {
        ping(r, &r->roster.nodes[i]);
    }
}

static void tell_facts(struct rendezvous *r, const struct node *node,
                       const Gpul__Survey *survey)
{
    Gpul__Event event = GPUL__EVENT__INIT;
    event.kind = GPUL__EVENT__KIND__FACTS;
    event.node_name = wire_text(node->name);
    event.hostname = wire_text(node_hostname(node));
    event.facts = survey->facts;
    event.n_facts = survey->n_facts;
    core_tell_event(r, &event);
}

/* One of the judge's findings, its nodes by name. */
static void add_check(struct rendezvous *r, const struct checks_finding *f,
                      const char **names)
{
    char nodes[GPUL_CHECK_NODES_BYTES_MAX + 1];
    size_t count = 0;
    for (uint32_t i = 0; f->nodes != NULL && i < r->roster.count; i++) {
        if (checks_names(f, i)) {
            names[count++] = r->roster.nodes[i].name;
        }
    }
    finding_fold(nodes, names, count);
    const struct finding finding = {
        .id = check_id(f->check),
        .severity = (Gpul__Finding__Severity)f->severity,
        .nodes = nodes,
        .text = f->text,
        .value = f->value,
        .expected = f->expected,
        .remedy = checks_remedy(f),
    };
    checking_add(r, &finding);
}

static void add_checks(struct rendezvous *r)
{
    struct checks *c = &r->checking.checks;
    const char **names =
        outbox_alloc(&r->out, r->roster.count * sizeof(*names));
    if (names == NULL || checks_judge(c, &r->roster) != 0) {
        out_of_memory(r);
        return;
    }
    for (size_t i = 0; i < c->finding_count; i++) {
        add_check(r, &c->findings[i], names);
    }
    checks_release(c);
}

static void judge_facts(struct rendezvous *r)
{
    add_checks(r);
    if (surveys_judge_clocks(&r->checking.surveys, &r->roster, r->real_ns,
                             &r->checking.findings) != 0) {
        out_of_memory(r);
        return;
    }
    checking_tell(r);
    linking_begin(r, "every node has told its facts");
}

static void answer(struct rendezvous *r, struct node *node)
{
    if (surveys_is_whole(&r->checking.surveys,
                         roster_index(&r->roster, node)) &&
        core_answer(r, node)) {
        judge_facts(r);
    }
}

void checking_surveyed(struct rendezvous *r, struct node *node,
                       const Gpul__Survey *survey)
{
    uint32_t node_rank = roster_index(&r->roster, node);
    if (r->phase != PHASE_SURVEY ||
        r->checking.surveys.nodes[node_rank].has_facts) {
        return;
    }
    r->checking.surveys.nodes[node_rank].has_facts = true;
    if (checks_add(&r->checking.checks, node_rank, survey) != 0) {
        out_of_memory(r);
        return;
    }
    tell_facts(r, node, survey);
    answer(r, node);
}

void checking_pong(struct rendezvous *r, struct node *node,
                   const Gpul__ClockPong *pong)
{
    uint32_t node_rank = roster_index(&r->roster, node);
    if (r->phase != PHASE_SURVEY ||
        !surveys_pong(&r->checking.surveys, node_rank, pong, r->real_ns)) {
        return;
    }
    ping(r, node);
    answer(r, node);
}
