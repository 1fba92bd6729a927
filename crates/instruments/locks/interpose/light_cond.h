/*
 * The condition variable: a number that every signal raises, on which waiters sleep, and how many
 * there are. A waiter that comes after the number was raised sleeps on the new one; one that has
 * looked at the old one does not sleep, or is woken.
 *
 * Limits: exactly 2^32 signals between a waiter's look and its sleep would be taken for none. Of
 * threads with real-time priorities the kernel wakes the highest, which may be one that began to wait
 * only after the signal.
 */
#ifndef WIRETAX_LIGHT_COND_H
#define WIRETAX_LIGHT_COND_H

#include "light.h"

/* What of a pthread_cond_t we use. */
struct cond {
    uint32_t signals;
    uint32_t waiters;
};

#ifndef WIRETAX_MODEL
/* light_sleep on cond->signals, during which the thread may be cancelled. */
int light_cond_sleep(struct cond *cond, pthread_mutex_t *m, uint32_t turn,
                     const struct moment *until);
#else
#define light_cond_sleep(cond, m, turn, until) light_sleep(&(cond)->signals, turn, ANYONE, until)
#endif

static inline int cond_wait(struct cond *cond, pthread_mutex_t *m, const struct moment *until)
{
    /* Both before the mutex is let go: a signal from then on finds us. */
    ADD(&cond->waiters, 1);
    uint32_t turn = LOAD(&cond->signals);
    int failed = light_mutex_unlock(m);
    if (failed) {
        SUB(&cond->waiters, 1);
        return failed;
    }
    int slept = light_cond_sleep(cond, m, turn, until);
    /* The last touch: pthread_cond_destroy waits for it. */
    SUB(&cond->waiters, 1);
    int locked = light_mutex_lock(m, NULL);
    return locked ? locked : slept == ETIMEDOUT ? ETIMEDOUT : 0;
}

static inline void cond_wake(struct cond *cond, int count)
{
    if (LOAD(&cond->waiters) == 0)
        return;
    ADD(&cond->signals, 1);
    light_wake(&cond->signals, count, ANYONE);
}

#endif
