/*
 * The pieces of the light locks: atomic steps and sleeping on a word. A test puts its own in their
 * place (tests/model.c) and so drives the very same algorithms through every interleaving.
 *
 * Steps that give a lock up or take it are acquire and release; those on the slow paths are
 * sequentially consistent, where their cost is nothing beside a system call.
 */
#ifndef WIRETAX_LIGHT_H
#define WIRETAX_LIGHT_H

#include "common.h"

#include <limits.h>

#ifndef WIRETAX_MODEL
#define LOAD(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define GLANCE(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define ADD(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define SUB(p, v) __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST)
#define XCHG(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define CAS(p, was, to)                                                                            \
    __atomic_compare_exchange_n(p, was, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)
#define SELF() ((uint64_t)pthread_self())

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb" ::: "memory")
#else
#define PAUSE() __asm__ volatile("" ::: "memory")
#endif

/* How often a thread looks again before it sleeps; 0 on a machine with one processor. */
extern int light_spins;
#define SPINS light_spins
#endif

/* A moment on a clock, at which waiting ends. */
struct moment {
    clockid_t clock; /* CLOCK_REALTIME or CLOCK_MONOTONIC */
    const struct timespec *at;
};

enum { READERS = 1, WRITERS = 2, ANYONE = -1 }; /* who sleeps on a word, as bits */

/* Sleeps while *word is `value`: 0 if woken (or for no reason), EAGAIN if it was another value,
 * ETIMEDOUT at `until` (NULL: never). */
int light_sleep(uint32_t *word, uint32_t value, int who, const struct moment *until);
/* Wakes up to `count` of those. Touches no memory: the lock may be gone already. */
void light_wake(uint32_t *word, int count, int who);

/* 0 if the moment is one that can be waited for, or EINVAL. */
static inline int moment_check(const struct moment *until)
{
    if (until->clock != CLOCK_REALTIME && until->clock != CLOCK_MONOTONIC)
        return EINVAL;
    return until->at->tv_nsec < 0 || until->at->tv_nsec >= 1000000000 ? EINVAL : 0;
}

int light_mutex_lock(pthread_mutex_t *m, const struct moment *until);
int light_mutex_unlock(pthread_mutex_t *m);

#endif
