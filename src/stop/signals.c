/* SPDX-License-Identifier: BSD-3-Clause */
/* signals - which signals the process has had. */
#include "stop/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

#define NUMBERS 64
#define LAYERS  2

/* ---- Names ---- */

enum kind { FINE, FORCED, FAULT };

static const struct {
    const char *name; /* with SIG, as it is shown */
    int number;
    enum kind kind;
} names[] = {
    {"SIGUSR1", SIGUSR1, FINE},   {"SIGUSR2", SIGUSR2, FINE},   {"SIGTERM", SIGTERM, FINE},
    {"SIGINT", SIGINT, FINE},     {"SIGHUP", SIGHUP, FINE},     {"SIGQUIT", SIGQUIT, FINE},
    {"SIGALRM", SIGALRM, FINE},   {"SIGXCPU", SIGXCPU, FINE},   {"SIGXFSZ", SIGXFSZ, FINE},
    {"SIGCONT", SIGCONT, FINE},   {"SIGTSTP", SIGTSTP, FINE},   {"SIGTTIN", SIGTTIN, FINE},
    {"SIGTTOU", SIGTTOU, FINE},   {"SIGCHLD", SIGCHLD, FINE},   {"SIGPIPE", SIGPIPE, FINE},
    {"SIGURG", SIGURG, FINE},     {"SIGPROF", SIGPROF, FINE},   {"SIGVTALRM", SIGVTALRM, FINE},
    {"SIGWINCH", SIGWINCH, FINE}, {"SIGIO", SIGIO, FINE},       {"SIGPWR", SIGPWR, FINE},
    {"SIGKILL", SIGKILL, FORCED}, {"SIGSTOP", SIGSTOP, FORCED}, {"SIGABRT", SIGABRT, FAULT},
    {"SIGBUS", SIGBUS, FAULT},    {"SIGFPE", SIGFPE, FAULT},    {"SIGILL", SIGILL, FAULT},
    {"SIGSEGV", SIGSEGV, FAULT},  {"SIGSYS", SIGSYS, FAULT},    {"SIGTRAP", SIGTRAP, FAULT},
};

#define NAMES (sizeof (names) / sizeof (*names))

static uint64_t bit_of (int number)
{
    return UINT64_C (1) << (number - 1);
}

/* Of which of [names] this word of [length] is one, with or without SIG; NAMES: of none. */
static size_t find_signal (const char *word, size_t length)
{
    size_t i = 0;

    for (; i < NAMES; i++)
        for (int without = 0; without < 2; without++) {
            const char *name = names[i].name + 3 * without;
            if (strlen (name) == length && !strncasecmp (name, word, length))
                return i;
        }
    return i;
}

static gs_status_t parse_word (const char *caller, const char *list, const char *word,
                               size_t length, uint64_t *mask)
{
    size_t i = find_signal (word, length);

    if (i < NAMES && names[i].kind == FINE) {
        *mask |= bit_of (names[i].number);
        return GS_OK;
    }
    if (i < NAMES)
        return gsi_fail (GS_ERR_ARG, "%s: signals '%.80s': %s %s: choose another", caller, list,
                         names[i].name,
                         names[i].kind == FORCED
                             ? "cannot be caught"
                             : "says that the program has failed, which cannot go on then");
    return gsi_fail (GS_ERR_ARG,
                     "%s: signals '%.80s': '%.*s' is no name of a signal: give names as of kill "
                     "-l with commas between them, USR1,TERM for example, or none",
                     caller, list, length < 40 ? (int) length : 40, word);
}

gs_status_t gsi_signals_parse (const char *caller, const char *list, uint64_t *mask)
{
    gs_status_t st = GS_OK;
    const char *word = list;

    *mask = 0;
    if (!strcasecmp (list, "none"))
        return GS_OK;
    while (!st) {
        size_t field = strcspn (word, ","), blanks = strspn (word, " "), length;
        if (blanks > field)
            blanks = field;
        for (length = field - blanks; length && word[blanks + length - 1] == ' '; length--)
            ;
        st = parse_word (caller, list, word + blanks, length, mask);
        if (!word[field])
            break;
        word += field + 1;
    }
    return st;
}

const char *gsi_signals_name (uint64_t mask)
{
    for (size_t i = 0; i < NAMES && mask; i++)
        if (bit_of (names[i].number) == (mask & -mask))
            return names[i].name;
    return NULL;
}

void gsi_signals_describe (uint64_t mask, char *text, size_t room)
{
    size_t used = 0;

    snprintf (text, room, "none");
    for (; mask; mask &= mask - 1)
        used += (size_t) snprintf (text + used, room - used, "%s%s", used ? "," : "",
                                   gsi_signals_name (mask) + 3);
}

/* ---- The handler ---- */

/* A signal. [before] is what was there before our handler; then, if somebody has replaced ours
 * and we have replaced that, what this was. */
static struct watched {
    int users;
    bool warned;
    atomic_int has_come;
    atomic_int layers;  /* of [before] */
    atomic_long caller; /* the thread that is in the second of them; 0: none */
    struct sigaction before[LAYERS];
} table[NUMBERS];

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* who changes the table */

static bool is_called (const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) ||
           (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static void call_handler (const struct sigaction *action, int number, siginfo_t *info,
                          void *context)
{
    if (!is_called (action))
        return;
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction (number, info, context);
    else
        action->sa_handler (number);
}

/*
 * Who has replaced this handler may call it from his own, which this one has called: then it is
 * the turn of the one before. N.B. No TLS: with the only model of it that is safe in a handler
 * the library could not be loaded at run time.
 */
static void note_signal (int number, siginfo_t *info, void *context)
{
    struct watched *w = &table[number - 1];
    long self = syscall (SYS_gettid);

    atomic_store (&w->has_come, 1);
    if (atomic_load (&w->layers) < LAYERS || atomic_load (&w->caller) == self) {
        call_handler (&w->before[0], number, info, context);
        return;
    }
    atomic_store (&w->caller, self);
    call_handler (&w->before[1], number, info, context);
    atomic_compare_exchange_strong (&w->caller, &self, 0);
}

static bool is_our_handler (const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == note_signal;
}

static bool is_same_action (const struct sigaction *a, const struct sigaction *b)
{
    if ((a->sa_flags ^ b->sa_flags) & SA_SIGINFO)
        return false;
    return a->sa_flags & SA_SIGINFO ? a->sa_sigaction == b->sa_sigaction
                                    : a->sa_handler == b->sa_handler;
}

/* Sees to it that the handler is there; whether it was not. */
static bool install_handler (int number)
{
    struct watched *w = &table[number - 1];
    struct sigaction now,
        ours = {.sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    int layers = atomic_load (&w->layers);

    sigaction (number, NULL, &now);
    if (is_our_handler (&now))
        return false;
    if (!layers || !is_same_action (&now, &w->before[layers - 1])) {
        if (layers == LAYERS)
            atomic_store (&w->layers, --layers);
        w->before[layers] = now;
        atomic_store (&w->layers, layers + 1);
    }
    sigemptyset (&ours.sa_mask);
    if (is_called (&now)) {
        ours.sa_mask = now.sa_mask;
        ours.sa_flags = SA_SIGINFO | (now.sa_flags & (SA_RESTART | SA_ONSTACK | SA_NODEFER));
    }
    sigaction (number, &ours, NULL);
    return true;
}

/* Puts back what was there. It may call our handler, which then calls those before it. */
static void remove_handler (int number)
{
    struct watched *w = &table[number - 1];
    int layers = atomic_load (&w->layers);
    struct sigaction now;

    sigaction (number, NULL, &now);
    if (is_our_handler (&now))
        sigaction (number, &w->before[layers - 1], NULL);
    atomic_store (&w->layers, 1);
}

/* ---- For users ---- */

void gsi_signals_open (uint64_t mask)
{
    pthread_mutex_lock (&guard);
    for (int n = 1; n <= NUMBERS; n++)
        if (mask & bit_of (n) && !table[n - 1].users++)
            install_handler (n);
    pthread_mutex_unlock (&guard);
}

void gsi_signals_close (uint64_t mask)
{
    pthread_mutex_lock (&guard);
    for (int n = 1; n <= NUMBERS; n++)
        if (mask & bit_of (n) && !--table[n - 1].users)
            remove_handler (n);
    pthread_mutex_unlock (&guard);
}

uint64_t gsi_signals_seen (uint64_t mask)
{
    uint64_t seen = 0, warned = 0;

    pthread_mutex_lock (&guard);
    for (uint64_t left = mask; left; left &= left - 1) {
        struct watched *w = &table[__builtin_ctzll (left)];
        if (install_handler ((int) (w - table) + 1) && !w->warned) {
            w->warned = true;
            warned |= left & -left;
        }
        if (atomic_load (&w->has_come))
            seen |= left & -left;
    }
    pthread_mutex_unlock (&guard);
    for (uint64_t left = warned; left; left &= left - 1)
        gsi_log (GS_LOG_WARN, "ckpt",
                 "somebody has replaced gradsync's handler of %s; it is put back, and calls the "
                 "other one",
                 gsi_signals_name (left));
    return seen;
}
