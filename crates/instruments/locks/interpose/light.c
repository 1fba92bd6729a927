/*
 * Small locks in the place of the C library's, put there by preloading: pthread_rwlock_*,
 * pthread_mutex_* and, as they go with mutexes, pthread_cond_*.
 *
 * Ours: every object that is not named below, the statically initialised ones too (all zero; the
 * mutex's kind stands where the C library has it).
 * The C library's, forwarded to it: mutexes that are process-shared, robust or have a priority
 * protocol; reader-writer locks that are process-shared or put writers first by their attributes;
 * condition variables that are process-shared. With a mutex of ours such a condition variable wakes
 * for no reason once a millisecond, as POSIX allows.
 * Left to the C library and apart from these: spin locks, barriers, semaphores, C11's mtx_* and cnd_*.
 *
 * Not as in the C library: a thread that locks a reader-writer lock which it holds for writing waits
 * for itself and gets no EDEADLK; PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP puts readers first.
 */
#include "light_rwlock.h"
#include "light_mutex.h"
#include "light_cond.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

int light_spins;

typedef const struct timespec *until_t;

EXPORT int wiretax_locks_object(void)
{
    return OBJECT_LIGHT;
}

__attribute__((constructor)) static void begin(void)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1)
        light_spins = 60; /* of a pause each: some microseconds, about what sleeping costs */
}

/* ---- sleeping ---- */

int light_sleep(uint32_t *word, uint32_t value, int who, const struct moment *until)
{
    int saved = errno, result = 0;
    int operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
    if (until && until->clock == CLOCK_REALTIME)
        operation |= FUTEX_CLOCK_REALTIME;
    if (until && until->at->tv_sec < 0)
        return ETIMEDOUT; /* before 1970: the kernel would take it for a mistake */
    if (syscall(SYS_futex, word, operation, value, until ? until->at : NULL, NULL, who) != 0)
        result = errno;
    errno = saved;
    return result == ETIMEDOUT || result == EAGAIN ? result : 0;
}

void light_wake(uint32_t *word, int count, int who)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, count, NULL, NULL, who);
    errno = saved;
}

/* ---- the C library's, for the objects that stay its own ---- */

/* Called so seldom that the look-up may stay in the call. The newest version of a symbol: old ones of
 * pthread_cond_* have other objects. */
static COLD void *real(const char *name)
{
    void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found ? found : dlsym(RTLD_NEXT, name);
}

#define REAL(function, ...) ((__typeof__(function) *)real(#function))(__VA_ARGS__)

/* ---- reader-writer locks ---- */

_Static_assert(sizeof(pthread_rwlock_t) >= 32, "the word, and the C library's fields that we read");

#define WORD(l) (&(l)->__data.__readers)
/* __pad3 is unused by the C library: we mark there that it is in charge. */
#define FOREIGN_LOCK(l) __builtin_expect(((unsigned)(l)->__data.__shared | (l)->__data.__pad3) != 0, 0)

EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attributes)
{
    int shared = PTHREAD_PROCESS_PRIVATE, kind = PTHREAD_RWLOCK_PREFER_READER_NP;
    if (attributes) {
        pthread_rwlockattr_getpshared(attributes, &shared);
        pthread_rwlockattr_getkind_np(attributes, &kind);
    }
    __builtin_memset(l, 0, sizeof *l);
    if (shared == PTHREAD_PROCESS_PRIVATE && kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP)
        return 0;
    int failed = REAL(pthread_rwlock_init, l, attributes);
    l->__data.__pad3 = 1;
    return failed;
}

EXPORT int pthread_rwlock_destroy(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_destroy, l) : 0;
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_rdlock, l) : read_lock(WORD(l), NULL);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_wrlock, l) : write_lock(WORD(l), NULL);
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_tryrdlock, l) : read_try(WORD(l));
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_trywrlock, l) : write_try(WORD(l));
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, until_t at)
{
    struct moment until = {clock, at};
    if (FOREIGN_LOCK(l))
        return REAL(pthread_rwlock_clockrdlock, l, clock, at);
    return moment_check(&until) ? EINVAL : read_lock(WORD(l), &until);
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, until_t at)
{
    struct moment until = {clock, at};
    if (FOREIGN_LOCK(l))
        return REAL(pthread_rwlock_clockwrlock, l, clock, at);
    return moment_check(&until) ? EINVAL : write_lock(WORD(l), &until);
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, until_t at)
{
    return pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, at);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, until_t at)
{
    return pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, at);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *l)
{
    return FOREIGN_LOCK(l) ? REAL(pthread_rwlock_unlock, l) : rwlock_unlock(WORD(l));
}

/* ---- mutexes ---- */

#define KIND(m) ((m)->__data.__kind)
/* Every bit above the four kinds is one of robust, inheriting, protecting, shared; -1: destroyed. */
#define FOREIGN(m) __builtin_expect((KIND(m) & ~3) != 0, 0)
#define MUTEX_WORD(m) ((uint32_t *)&(m)->__data.__lock)
#define DEPTH(m) ((m)->__data.__count)
#define OWNER(m) ((uint64_t *)(void *)&(m)->__data.__list)

_Static_assert(sizeof(((pthread_mutex_t *)0)->__data.__list) >= 8, "room for the owner");

static inline int owned_kind(const pthread_mutex_t *m)
{
    return KIND(m) == PTHREAD_MUTEX_RECURSIVE_NP || KIND(m) == PTHREAD_MUTEX_ERRORCHECK_NP;
}

/* The owner locks again: its errors, or one level more. */
static COLD int lock_again(pthread_mutex_t *m, int when_checked)
{
    if (KIND(m) == PTHREAD_MUTEX_ERRORCHECK_NP)
        return when_checked;
    if (DEPTH(m) == UINT_MAX)
        return EAGAIN;
    DEPTH(m)++;
    return 0;
}

HOT int light_mutex_lock(pthread_mutex_t *m, const struct moment *until)
{
    if (FOREIGN(m)) {
        if (!until)
            return REAL(pthread_mutex_lock, m);
        return REAL(pthread_mutex_clocklock, m, until->clock, until->at);
    }
    if (!owned_kind(m))
        return word_lock(MUTEX_WORD(m), until);
    if (GLANCE(OWNER(m)) == SELF())
        return lock_again(m, EDEADLK);
    int failed = word_lock(MUTEX_WORD(m), until);
    if (!failed)
        STORE(OWNER(m), SELF());
    return failed;
}

HOT int light_mutex_unlock(pthread_mutex_t *m)
{
    if (FOREIGN(m))
        return REAL(pthread_mutex_unlock, m);
    if (owned_kind(m)) {
        if (GLANCE(OWNER(m)) != SELF())
            return EPERM;
        if (DEPTH(m) > 0) {
            DEPTH(m)--;
            return 0;
        }
        STORE(OWNER(m), 0);
    }
    word_unlock(MUTEX_WORD(m));
    return 0;
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes)
{
    int shared = PTHREAD_PROCESS_PRIVATE, robust = PTHREAD_MUTEX_STALLED;
    int protocol = PTHREAD_PRIO_NONE, kind = PTHREAD_MUTEX_DEFAULT;
    if (attributes) {
        pthread_mutexattr_getpshared(attributes, &shared);
        pthread_mutexattr_getrobust(attributes, &robust);
        pthread_mutexattr_getprotocol(attributes, &protocol);
        pthread_mutexattr_gettype(attributes, &kind);
    }
    if (shared != PTHREAD_PROCESS_PRIVATE || robust != PTHREAD_MUTEX_STALLED ||
        protocol != PTHREAD_PRIO_NONE)
        return REAL(pthread_mutex_init, m, attributes);
    __builtin_memset(m, 0, sizeof *m);
    KIND(m) = kind & 3;
    return 0;
}

EXPORT int pthread_mutex_destroy(pthread_mutex_t *m)
{
    if (FOREIGN(m))
        return REAL(pthread_mutex_destroy, m);
    if (LOAD(MUTEX_WORD(m)) != 0)
        return EBUSY;
    KIND(m) = -1;
    return 0;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
    return light_mutex_lock(m, NULL);
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
    if (FOREIGN(m))
        return REAL(pthread_mutex_trylock, m);
    if (!owned_kind(m))
        return word_try(MUTEX_WORD(m));
    if (GLANCE(OWNER(m)) == SELF())
        return lock_again(m, EBUSY);
    int failed = word_try(MUTEX_WORD(m));
    if (!failed)
        STORE(OWNER(m), SELF());
    return failed;
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, until_t at)
{
    struct moment until = {clock, at};
    return moment_check(&until) ? EINVAL : light_mutex_lock(m, &until);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, until_t at)
{
    return pthread_mutex_clocklock(m, CLOCK_REALTIME, at);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *m)
{
    return light_mutex_unlock(m);
}

/* ---- condition variables ---- */

/* The C library keeps both in __wrefs from initialisation on; we keep them there too. */
#define SHARED_COND(c) __builtin_expect((c)->__data.__wrefs & 1, 0)
#define COND_CLOCK(c) ((c)->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME)
#define COND(c) ((struct cond *)(void *)(c))

EXPORT int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attributes)
{
    int shared = PTHREAD_PROCESS_PRIVATE;
    clockid_t clock = CLOCK_REALTIME;
    if (attributes) {
        pthread_condattr_getpshared(attributes, &shared);
        pthread_condattr_getclock(attributes, &clock);
    }
    if (shared != PTHREAD_PROCESS_PRIVATE)
        return REAL(pthread_cond_init, c, attributes);
    __builtin_memset(c, 0, sizeof *c);
    c->__data.__wrefs = clock == CLOCK_MONOTONIC ? 2 : 0;
    return 0;
}

EXPORT int pthread_cond_destroy(pthread_cond_t *c)
{
    if (SHARED_COND(c))
        return REAL(pthread_cond_destroy, c);
    /* Those that were woken may have a step to go. */
    while (LOAD(&COND(c)->waiters) != 0)
        sched_yield();
    return 0;
}

struct waiter {
    struct cond *cond;
    pthread_mutex_t *mutex;
};

/* Cancelled in its sleep: a signal that it may have used up goes to another. */
static void cancelled(void *argument)
{
    struct waiter *waiter = argument;
    cond_wake(waiter->cond, 1);
    SUB(&waiter->cond->waiters, 1);
    light_mutex_lock(waiter->mutex, NULL);
}

int light_cond_sleep(struct cond *cond, pthread_mutex_t *m, uint32_t turn,
                     const struct moment *until)
{
    struct waiter waiter = {cond, m};
    int type, result;
    pthread_cleanup_push(cancelled, &waiter);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    result = light_sleep(&cond->signals, turn, ANYONE, until);
    pthread_setcanceltype(type, &type);
    pthread_cleanup_pop(0);
    return result;
}

/* A process-shared condition variable and a mutex of ours: it wakes for no reason. */
static COLD int wait_a_little(pthread_mutex_t *m, const struct moment *until)
{
    struct timespec now, little = {0, 1000000};
    int failed = light_mutex_unlock(m);
    if (failed)
        return failed;
    nanosleep(&little, NULL);
    light_mutex_lock(m, NULL);
    if (!until || clock_gettime(until->clock, &now) != 0)
        return 0;
    int past = now.tv_sec > until->at->tv_sec ||
               (now.tv_sec == until->at->tv_sec && now.tv_nsec >= until->at->tv_nsec);
    return past ? ETIMEDOUT : 0;
}

EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    if (SHARED_COND(c))
        return FOREIGN(m) ? REAL(pthread_cond_wait, c, m) : wait_a_little(m, NULL);
    pthread_testcancel();
    return cond_wait(COND(c), m, NULL);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, until_t at)
{
    struct moment until = {clock, at};
    if (SHARED_COND(c) && FOREIGN(m))
        return REAL(pthread_cond_clockwait, c, m, clock, at);
    if (moment_check(&until))
        return EINVAL;
    if (SHARED_COND(c))
        return wait_a_little(m, &until);
    pthread_testcancel();
    return cond_wait(COND(c), m, &until);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, until_t at)
{
    if (SHARED_COND(c) && FOREIGN(m))
        return REAL(pthread_cond_timedwait, c, m, at);
    return pthread_cond_clockwait(c, m, COND_CLOCK(c), at);
}

EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
    if (SHARED_COND(c))
        return REAL(pthread_cond_signal, c);
    cond_wake(COND(c), 1);
    return 0;
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
    if (SHARED_COND(c))
        return REAL(pthread_cond_broadcast, c);
    cond_wake(COND(c), INT_MAX);
    return 0;
}

/* ---- the names by which the C library exports some of these a second time ---- */

#ifdef __has_attribute
#if __has_attribute(copy)
#define SAME_AS(of) __attribute__((copy(of)))
#endif
#endif
#ifndef SAME_AS
#define SAME_AS(of)
#endif
#define ALIAS(name, of) EXPORT __typeof__(of) name SAME_AS(of) __attribute__((alias(#of)))
ALIAS(__pthread_mutex_init, pthread_mutex_init);
ALIAS(__pthread_mutex_destroy, pthread_mutex_destroy);
ALIAS(__pthread_mutex_lock, pthread_mutex_lock);
ALIAS(__pthread_mutex_trylock, pthread_mutex_trylock);
ALIAS(__pthread_mutex_unlock, pthread_mutex_unlock);
ALIAS(__pthread_rwlock_init, pthread_rwlock_init);
ALIAS(__pthread_rwlock_destroy, pthread_rwlock_destroy);
ALIAS(__pthread_rwlock_rdlock, pthread_rwlock_rdlock);
ALIAS(__pthread_rwlock_tryrdlock, pthread_rwlock_tryrdlock);
ALIAS(__pthread_rwlock_wrlock, pthread_rwlock_wrlock);
ALIAS(__pthread_rwlock_trywrlock, pthread_rwlock_trywrlock);
ALIAS(__pthread_rwlock_unlock, pthread_rwlock_unlock);
