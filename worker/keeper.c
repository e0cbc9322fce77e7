/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeper.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/children.h"
#include "common/clock.h"
#include "common/signals.h"
#include "worker/keeper_internal.h"

enum {
    /* Packets that are taken in a row before others have their turn. */
    MAILS_IN_A_ROW = 64,
    /* How long the undertaker may take to end, once told. */
    UNDERTAKER_MS = 1000,
    PAUSE_MS = 5,
};

/* Pages that are never touched cost nothing; see keeping.h. */
static struct keeper the_keeper;

void keeper_complain(const struct keeper *k, const char *format, ...)
{
    char text[1024];
    int used = snprintf(text, sizeof(text) - 1,
                        "gpulaunch-worker: %s: ", k->config->node_name);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof(text) - 1 - (size_t)used, format, args);
    va_end(args);
    size_t n = strlen(text);
    text[n] = '\n';
    if (write(STDERR_FILENO, text, n + 1) < 0) {
        return; /* nobody is there to be told */
    }
}

/* ---- the agent ----------------------------------------------------------- */

static void close_socket(struct keeper *k)
{
    if (k->socket >= 0) {
        close(k->socket);
        k->socket = -1;
    }
}

/* The child: nothing of the keeper's stays open in it. */
static void become_agent(struct keeper *k, int socket)
{
    close_socket(k);
    close(k->signals);
    undertaker_close(&k->undertaker);
    cgroup_close(&k->cgroup);
    cgroup_oom_close(&k->oom);
    keeper_close_kept(k);
    prctl(PR_SET_NAME, "gpulaunch-agent");
    sigprocmask(SIG_SETMASK, &k->before, NULL);
    exit(k->config->agent_main(k->config->arg, socket));
}

static pid_t fork_agent(struct keeper *k)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    k->socket = ends[0];
    pid_t pid = fork();
    if (pid == 0) {
        become_agent(k, ends[1]);
    }
    int fork_errno = errno;
    close(ends[1]);
    if (pid < 0) {
        close_socket(k);
    }
    errno = fork_errno;
    return pid;
}

static void start_agent(struct keeper *k)
{
    pid_t pid = fork_agent(k);
    if (pid < 0) {
        keeper_complain(k, "its agent cannot be started: %s", strerror(errno));
        pid = 0;
    }
    k->descendants.spared[SPARED_AGENT] = pid;
    struct keeping_event event = {.type = KEEPING_AGENT_STARTED, .pid = pid};
    keeper_step(k, &event);
}

static void kill_agent(const struct keeper *k)
{
    pid_t pid = k->descendants.spared[SPARED_AGENT];
    if (pid > 0) { /* not waited for yet, so it is that process still */
        kill(pid, SIGKILL);
    }
}

/* ---- actions ------------------------------------------------------------- */

static void list_one(void *arg, const char *text)
{
    struct keeper *k = arg;
    keeping_add_unclean(&k->core, text);
}

static void apply(struct keeper *k, const struct keeping_action *action)
{
    switch (action->type) {
    case KEEPING_DO_FORK_AGENT:
        start_agent(k);
        break;
    case KEEPING_DO_KILL_AGENT:
        kill_agent(k);
        break;
    case KEEPING_DO_BEGIN:
        keeper_begin_ranks(k);
        break;
    case KEEPING_DO_START:
        keeper_start_rank(k, action->slot);
        break;
    case KEEPING_DO_STOP:
        keeper_stop_ranks(k, action->signal);
        break;
    case KEEPING_DO_PASS:
        keeper_pass_signal(k, action->slot, action->signal);
        break;
    case KEEPING_DO_LIST:
        descendants_describe(&k->descendants, list_one, k);
        break;
    case KEEPING_DO_FINISH:
        k->descendants.signal = 0;
        keeper_finish_ranks(k);
        break;
    case KEEPING_DO_FORK_UNDERTAKER:
        keeper_fork_undertaker(k);
        break;
    case KEEPING_DO_CLOSE:
        keeper_close_input(k, action->slot);
        break;
    case KEEPING_DO_LEAVE:
        k->has_left = true;
        k->exit_code = action->exit_code;
        k->why = action->text;
        break;
    }
}

void keeper_step(struct keeper *k, struct keeping_event *event)
{
    struct keeping_actions actions;
    if (k->has_left) {
        return;
    }
    event->now_ms = gpul_clock_ms();
    keeping_step(&k->core, event, &actions);
    for (size_t i = 0; i < actions.count; i++) {
        apply(k, &actions.items[i]);
    }
}

static void step_type(struct keeper *k, enum keeping_event_type type)
{
    struct keeping_event event = {.type = type};
    keeper_step(k, &event);
}

/* ---- packets ------------------------------------------------------------- */

/* An agent that closes its end without a word, and lives, is of no use. */
static void on_closed(struct keeper *k)
{
    close_socket(k);
    if (k->core.state != KEEPING_LEAVING) {
        kill_agent(k);
    }
}

static bool receive(struct keeper *k);

/* As much as the agent takes; true: there is more. */
static bool send_packets(struct keeper *k)
{
    struct keeper_packet packet;
    while (k->socket >= 0 && keeping_next_packet(&k->core, &packet)) {
        bool has_fds = packet.type == KEEPER_RANK && packet.kept_fds > 0;
        const int *fds = has_fds ? k->kept[packet.slot] : NULL;
        int why = keeperwire_send(k->socket, &packet, fds, packet.kept_fds);
        if (why == EAGAIN || why == ENOBUFS || why == ENOMEM ||
            why == ETOOMANYREFS) {
            return true;
        }
        if (why != 0) {
            while (receive(k)) { /* its last words, and the end of them */
            }
            return false;
        }
        keeping_packet_sent(&k->core);
    }
    return false;
}

static void on_mail(struct keeper *k)
{
    struct keeping_event event = {.type = KEEPING_PACKET,
                                  .packet = &k->mail.packet};
    keeper_step(k, &event);
    keeperwire_close_fds(&k->mail);
}

/* false: there is no more now. */
static bool receive(struct keeper *k)
{
    if (k->socket < 0) {
        return false;
    }
    int why = keeperwire_receive(k->socket, &k->mail);
    k->mail_errno = why;
    if (why == 0 || why == EMFILE) {
        on_mail(k);
    } else if (why == EAGAIN) {
        return false;
    } else if (why != EBADMSG) {
        on_closed(k);
        return false;
    }
    return true;
}

static void receive_some(struct keeper *k)
{
    for (int i = 0; i < MAILS_IN_A_ROW && receive(k); i++) {
    }
}

/* ---- children ------------------------------------------------------------ */

/* That the same has happened again is told as a count, when it is over. */
static void tell_repeats(struct keeper *k)
{
    if (k->lost_agents > 1) {
        keeper_complain(k, "its agent %s, %u times", k->agent_end,
                        k->lost_agents);
    }
    k->lost_agents = 0;
}

static void tell_lost_agent(struct keeper *k, int status)
{
    char end[KEEPER_AGENT_END_BYTES];
    char name[GPUL_SIGNAL_TEXT_BYTES];
    if (k->core.state == KEEPING_LEAVING) {
        return;
    }
    if (WIFSIGNALED(status)) {
        snprintf(end, sizeof(end), "was ended by %s",
                 gpul_format_signal(name, (uint32_t)WTERMSIG(status)));
    } else {
        snprintf(end, sizeof(end), "ended with exit code %d",
                 WEXITSTATUS(status));
    }
    if (strcmp(end, k->agent_end) != 0) {
        tell_repeats(k);
        memcpy(k->agent_end, end, sizeof(end));
        keeper_complain(k, "its agent %s", end);
    }
    k->lost_agents++;
}

/* What it said before it ended counts, its LEAVE above all. */
static void on_agent_ended(struct keeper *k, int status)
{
    k->descendants.spared[SPARED_AGENT] = 0;
    while (receive(k)) {
    }
    close_socket(k);
    tell_lost_agent(k, status);
    step_type(k, KEEPING_AGENT_ENDED);
}

static void on_undertaker_ended(struct keeper *k)
{
    k->undertaker.pid = 0;
    k->descendants.spared[SPARED_UNDERTAKER] = 0;
    step_type(k, KEEPING_UNDERTAKER_ENDED);
}

static void on_child_ended(struct keeper *k, pid_t pid, int status,
                           const struct rusage *usage)
{
    if (pid == k->descendants.spared[SPARED_AGENT]) {
        on_agent_ended(k, status);
    } else if (pid == k->undertaker.pid) {
        on_undertaker_ended(k);
    } else {
        int64_t slot = keeping_find_slot(&k->core, pid);
        if (slot >= 0) {
            keeper_rank_ended(k, (uint32_t)slot, status, usage);
        }
    }
}

static void reap(struct keeper *k)
{
    int status;
    struct rusage usage;
    pid_t pid;
    while (!k->has_left && (pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        on_child_ended(k, pid, status, &usage);
    }
}

/* Orphans have become ours when their parent has been waited for: so this is
 * the time to find them. */
static void look(struct keeper *k)
{
    if (k->has_left || !keeping_wants_look(&k->core)) {
        return;
    }
    if (descendants_remain(&k->descendants)) {
        descendants_sweep(&k->descendants);
    } else {
        step_type(k, KEEPING_NONE_LEFT);
    }
}

static void read_signals(struct keeper *k)
{
    struct signalfd_siginfo info;
    while (read(k->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD) {
            struct keeping_event event = {.type = KEEPING_SIGNAL,
                                          .signal = (int)info.ssi_signo};
            keeper_step(k, &event);
        }
    }
    reap(k);
}

/* ---- the loop ------------------------------------------------------------ */

static struct timespec until(uint64_t deadline_ms)
{
    uint64_t now_ms = gpul_clock_ms();
    uint64_t ms = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    return (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
}

static void wait_for_events(struct keeper *k, bool has_more)
{
    uint64_t deadline_ms = keeping_next_deadline_ms(&k->core);
    struct timespec timeout = until(deadline_ms);
    struct pollfd fds[2] = {
        {.fd = k->signals, .events = POLLIN},
        {.fd = k->socket, .events = has_more ? POLLIN | POLLOUT : POLLIN},
    };
    int n = ppoll(fds, 2, deadline_ms != UINT64_MAX ? &timeout : NULL, NULL);
    if (n > 0 && fds[1].revents != 0) {
        receive_some(k);
    }
    if (n > 0 && fds[0].revents != 0) {
        read_signals(k);
    }
    if (gpul_clock_ms() >= keeping_next_deadline_ms(&k->core)) {
        step_type(k, KEEPING_TICK);
    }
}

static void run(struct keeper *k)
{
    step_type(k, KEEPING_TICK);
    while (!k->has_left) {
        bool has_more = send_packets(k);
        look(k);
        if (!k->has_left && !has_more) {
            has_more = send_packets(k); /* what the look has found */
        }
        if (!k->has_left) {
            wait_for_events(k, has_more);
        }
    }
}

/* ---- start and end ------------------------------------------------------- */

/* All that can be blocked without hiding a fault of ours: a stray signal must
 * not end the ranks. */
static int block_signals(struct keeper *k)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGABRT, SIGTRAP, SIGSYS, SIGTSTP,
                                 SIGTTIN, SIGTTOU, SIGCONT};
    static const int watched[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
    sigset_t blocked;
    sigset_t read;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(int); i++) {
        sigdelset(&blocked, faults[i]);
    }
    sigemptyset(&read);
    for (size_t i = 0; i < sizeof(watched) / sizeof(int); i++) {
        sigaddset(&read, watched[i]);
    }
    sigprocmask(SIG_SETMASK, &blocked, &k->before);
    return signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void complain_of(void *arg, const char *text)
{
    keeper_complain(arg, "still there: process %s", text);
}

static void await_undertaker(struct keeper *k)
{
    uint64_t end_ms = gpul_clock_ms() + UNDERTAKER_MS;
    while (k->undertaker.pid != 0 && gpul_clock_ms() < end_ms) {
        if (waitpid(k->undertaker.pid, NULL, WNOHANG) != 0) {
            k->undertaker.pid = 0;
        } else {
            poll(NULL, 0, PAUSE_MS);
        }
    }
}

static void leave(struct keeper *k)
{
    if (k->exit_code != KEEPING_EXIT_FAILED) { /* that has its own count */
        tell_repeats(k);
    }
    if (k->why != NULL) {
        keeper_complain(k, "%s", k->why);
    }
    keeper_finish_ranks(k);
    keeper_drop_cgroup(k);
    await_undertaker(k);
    descendants_describe(&k->descendants, complain_of, k);
    keeper_close_kept(k);
    close_socket(k);
    close(k->signals);
}

int keeper_run(const struct keeper_config *config)
{
    struct keeper *k = &the_keeper;
    uint64_t instance = 0;
    k->config = config;
    k->socket = -1;
    fflush(NULL); /* or each agent would write it once more */
    if (getrandom(&instance, sizeof(instance), 0) < 0) {
        keeper_complain(k, "random numbers: %s", strerror(errno));
        return KEEPING_EXIT_FAILED;
    }
    k->signals = block_signals(k);
    if (k->signals < 0) {
        keeper_complain(k, "signalfd: %s", strerror(errno));
        return KEEPING_EXIT_FAILED;
    }
    gpul_children_adopt();
    prctl(PR_SET_NAME, "gpulaunch-keepe");
    keeping_init(&k->core, instance);
    run(k);
    leave(k);
    return k->exit_code;
}
