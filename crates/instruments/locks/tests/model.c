/*
 * Drives the light locks' own code (interpose/light_*.h) through interleavings of two to four
 * threads: every order of their atomic steps and sleeps with at most BOUND switches away from a
 * thread that could go on (a switch from one that sleeps or has ended is free), and every point at
 * which a timed wait may end. Checked in each: mutual exclusion, nobody sleeps for ever, the memory
 * of a lock is not touched after the step that lets it go, all is free at the end.
 *
 * Steps are sequentially consistent here, and sleepers are woken first come first, as the kernel does.
 *
 * usage: model [SCENARIO]; prints the number of runs of each.
 */
#define WIRETAX_MODEL
#include "../interpose/common.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* ---- the primitives that interpose/light.h names ---- */

static void step(const void *touched);
static uint32_t load(uint32_t *p)
{
    step(p);
    return *p;
}
static uint32_t add(uint32_t *p, uint32_t v)
{
    step(p);
    *p += v;
    return *p - v;
}
static uint32_t xchg(uint32_t *p, uint32_t v)
{
    step(p);
    uint32_t was = *p;
    *p = v;
    return was;
}
static int cas(uint32_t *p, uint32_t *was, uint32_t to)
{
    step(p);
    if (*p != *was) {
        *was = *p;
        return 0;
    }
    *p = to;
    return 1;
}
#define LOAD(p) load(p)
#define GLANCE(p) load(p)
#define ADD(p, v) add(p, v)
#define SUB(p, v) add(p, 0u - (v))
#define XCHG(p, v) xchg(p, v)
#define CAS(p, was, to) cas(p, was, to)
#define PAUSE() ((void)0)
#define SPINS 1

#include "../interpose/light_rwlock.h"
#include "../interpose/light_mutex.h"
#include "../interpose/light_cond.h"

/* ---- threads, and the search ---- */

enum { THREADS = 4, STACK = 64 * 1024, STEPS = 5000, CHOICES = STEPS * THREADS };

struct thread {
    ucontext_t first;
    jmp_buf at;
    int begun, done, asleep, timed, timed_out;
    uint32_t *word;
    int who;
    unsigned queued;
    void (*body)(int);
    char *stack;
};

static struct thread threads[THREADS];
static int count, current, switches, bound, steps;
static unsigned tickets;
static jmp_buf scheduler;
static const char *scenario;

static struct {
    unsigned char taken, of;
} trail[CHOICES];
static int depth, replayed;

static uint32_t word, extra; /* the lock */
static struct cond condition;
static int readers, writers, items, gone;

static void fail(const char *what)
{
    printf("%s: %s after", scenario, what);
    for (int i = 0; i < depth && i < 200; i++)
        printf(" %d", trail[i].taken);
    printf("\n");
    exit(1);
}

/* Takes the next of `of` alternatives; all are taken in the end. */
static int choose(int of)
{
    if (of == 1)
        return 0;
    if (depth == CHOICES)
        fail("too many choices");
    if (depth == replayed) {
        trail[depth].taken = 0;
        trail[depth].of = (unsigned char)of;
        replayed++;
    }
    return trail[depth++].taken;
}

static void yield(void)
{
    if (_setjmp(threads[current].at) == 0)
        _longjmp(scheduler, 1);
}

static void step(const void *touched)
{
    if (gone && (touched == &word || touched == &extra))
        fail("freed memory was touched");
    if (++steps > STEPS)
        fail("no end");
    yield();
}

int light_sleep(uint32_t *on, uint32_t value, int who, const struct moment *until)
{
    struct thread *me = &threads[current];
    step(on);
    if (*on != value)
        return EAGAIN;
    me->asleep = 1;
    me->timed = until != NULL;
    me->timed_out = 0;
    me->word = on;
    me->who = who;
    me->queued = tickets++;
    yield();
    return me->timed_out ? ETIMEDOUT : 0;
}

void light_wake(uint32_t *on, int most, int who)
{
    step(NULL);
    while (most-- > 0) {
        struct thread *next = NULL;
        for (int i = 0; i < count; i++) {
            struct thread *t = &threads[i];
            if (t->asleep && t->word == on && (t->who & who) && (!next || t->queued < next->queued))
                next = t;
        }
        if (!next)
            return;
        next->asleep = 0;
    }
}

int light_mutex_lock(pthread_mutex_t *m, const struct moment *until)
{
    return word_lock((uint32_t *)(void *)m, until);
}

int light_mutex_unlock(pthread_mutex_t *m)
{
    word_unlock((uint32_t *)(void *)m);
    return 0;
}

static void enter(void)
{
    threads[current].body(current);
    threads[current].done = 1;
    _longjmp(scheduler, 1);
}

/* Which thread goes on: -1 when all have ended. The one that ran comes first, at no cost. */
static int pick(void)
{
    int can[THREADS], found = 0, free_switch = 1;
    struct thread *last = &threads[current];
    if (!last->done && !last->asleep) {
        can[found++] = current;
        free_switch = 0;
    }
    if (free_switch || switches < bound)
        for (int i = 0; i < count; i++)
            if (i != current && !threads[i].done && (!threads[i].asleep || threads[i].timed))
                can[found++] = i;
    if (free_switch && last->asleep && last->timed)
        can[found++] = current;
    if (!found) {
        for (int i = 0; i < count; i++)
            if (!threads[i].done)
                fail("asleep for ever");
        return -1;
    }
    int chosen = can[choose(found)];
    if (!free_switch && chosen != current)
        switches++;
    if (threads[chosen].asleep) {
        threads[chosen].asleep = 0;
        threads[chosen].timed_out = 1;
    }
    return chosen;
}

static void run_once(void)
{
    for (int i = 0; i < count; i++) {
        struct thread *t = &threads[i];
        t->begun = t->done = t->asleep = 0;
        getcontext(&t->first);
        t->first.uc_stack.ss_sp = t->stack;
        t->first.uc_stack.ss_size = STACK;
        makecontext(&t->first, enter, 0);
    }
    current = switches = steps = depth = 0;
    tickets = 0;
    for (;;) {
        if (_setjmp(scheduler) != 0)
            continue; /* a thread has come back: pick the next */
        int next = pick();
        if (next < 0)
            return;
        current = next;
        if (threads[next].begun)
            _longjmp(threads[next].at, 1);
        threads[next].begun = 1;
        setcontext(&threads[next].first);
    }
}

static void check_end(void)
{
    if (readers || writers)
        fail("a section was not left");
    if (!gone && (word & HELD) && word != 2)
        fail("the lock is still held");
}

static unsigned long search(void)
{
    unsigned long runs = 0;
    replayed = 0;
    for (;;) {
        word = extra = 0;
        readers = writers = items = gone = 0;
        memset(&condition, 0, sizeof condition);
        run_once();
        check_end();
        runs++;
        while (replayed > 0 && trail[replayed - 1].taken + 1 == trail[replayed - 1].of)
            replayed--;
        if (!replayed)
            return runs;
        trail[replayed - 1].taken++;
    }
}

/* ---- what the threads do ---- */

#include "model_threads.h"

static const struct {
    const char *name;
    int bound;
    void (*bodies[THREADS])(int);
} scenarios[] = {
    {"rwlock-writers", 4, {writer, writer, writer}},
    {"rwlock-writers-twice", 6, {twice_writer, twice_writer}},
    {"rwlock-mixed", 3, {writer, reader, writer, reader}},
    {"rwlock-readers", 4, {twice_reader, twice_writer, reader}},
    {"rwlock-nested", 4, {nested_reader, writer, writer}},
    {"rwlock-late-writer", 3, {writer, late_writer, writer, reader}},
    {"rwlock-late-writers", 3, {late_writer, reader, late_writer, writer}},
    {"rwlock-late-reader", 3, {twice_writer, late_reader, writer}},
    {"rwlock-late-readers", 2, {writer, late_reader, late_reader, late_writer}},
    {"rwlock-try", 3, {trier, writer, reader}},
    {"rwlock-free", 8, {rwlock_and_free, rwlock_and_free}},
    {"rwlock-mixed-free", 8, {read_and_free, rwlock_and_free}},
    {"mutex", 4, {locker, locker, locker}},
    {"mutex-four", 3, {locker, locker, locker, locker}},
    {"mutex-twice", 6, {twice_locker, twice_locker}},
    {"mutex-late", 4, {locker, late_locker, locker}},
    {"mutex-late-two", 3, {late_locker, locker, late_locker, locker}},
    {"mutex-try", 4, {try_locker, locker, locker}},
    {"mutex-free", 8, {mutex_and_free, mutex_and_free}},
    {"cond-signal", 3, {taker, giver, giver, taker}},
    {"cond-outside", 4, {taker, taker, twice_giver}},
    {"cond-broadcast", 4, {taker, taker, broadcaster}},
    {"cond-late", 3, {taker, late_taker, twice_giver}},
    {"cond-ping-pong", 6, {ping_pong, ping_pong}},
};

int main(int arguments, char **values)
{
    for (int i = 0; i < THREADS; i++)
        threads[i].stack = malloc(STACK);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        scenario = scenarios[i].name;
        if (arguments > 1 && strcmp(values[1], scenario) != 0)
            continue;
        bound = scenarios[i].bound;
        for (count = 0; count < THREADS && scenarios[i].bodies[count]; count++)
            threads[count].body = scenarios[i].bodies[count];
        printf("%s: %lu runs\n", scenario, search());
        fflush(stdout);
    }
    return 0;
}
