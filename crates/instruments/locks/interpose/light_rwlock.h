/*
 * The reader-writer lock: one word.
 *
 *   bit 31  WRITER   a writer holds it
 *   bit 30  RSLEEP   readers sleep
 *   bit 29  WSLEEP   writers sleep, or may
 *   0 - 28  readers, those that hold it and those that wait for a writer to leave
 *
 * A reader adds itself and, unless there is a writer, has the lock: one atomic addition, which never
 * has to be done again. Under a writer it stays counted and waits; since it is counted no other
 * writer gets in before it. A writer takes the lock when there is neither writer nor reader. So
 * readers go first, as they do by default in the C library.
 *
 * Whoever lets go touches the word for the last time in the step that lets go: the next holder may
 * free the memory at once. Therefore everyone sleeps on the word itself.
 */
#ifndef WIRETAX_LIGHT_RWLOCK_H
#define WIRETAX_LIGHT_RWLOCK_H

#include "light.h"

#define WRITER (1u << 31)
#define RSLEEP (1u << 30)
#define WSLEEP (1u << 29)
#define COUNT (WSLEEP - 1)
#define HELD (WRITER | COUNT)

static COLD int read_wait(uint32_t *word, const struct moment *until)
{
    for (int i = 0; i < SPINS; i++) {
        PAUSE();
        if (!(LOAD(word) & WRITER))
            return 0;
    }
    for (;;) {
        uint32_t now = LOAD(word);
        if (!(now & WRITER))
            return 0;
        if (!(now & RSLEEP)) {
            if (!CAS(word, &now, now | RSLEEP))
                continue;
            now |= RSLEEP;
        }
        if (light_sleep(word, now, READERS, until) == ETIMEDOUT) {
            /* No longer counted, if the writer is still there; else we have the lock. */
            now = LOAD(word);
            while (now & WRITER)
                if (CAS(word, &now, now - 1))
                    return ETIMEDOUT;
            return 0;
        }
    }
}

static HOT inline int read_lock(uint32_t *word, const struct moment *until)
{
    if (__builtin_expect(!(ADD(word, 1) & WRITER), 1))
        return 0;
    return read_wait(word, until);
}

static inline int read_try(uint32_t *word)
{
    uint32_t now = GLANCE(word);
    do {
        if (now & WRITER)
            return EBUSY;
    } while (!CAS(word, &now, now + 1));
    return 0;
}

static COLD int write_wait(uint32_t *word, const struct moment *until)
{
    /* One that has slept may have been woken in the place of all that sleep: it takes the lock with
     * the bit set, so that its unlock wakes the next. */
    uint32_t slept = 0;
    int spins = SPINS;
    for (;;) {
        uint32_t now = LOAD(word);
        if (!(now & HELD)) {
            if (CAS(word, &now, now | WRITER | slept))
                return 0;
            continue;
        }
        if (spins > 0) {
            spins--;
            PAUSE();
            continue;
        }
        if (!(now & WSLEEP)) {
            if (!CAS(word, &now, now | WSLEEP))
                continue;
            now |= WSLEEP;
        }
        if (light_sleep(word, now, WRITERS, until) == ETIMEDOUT)
            return ETIMEDOUT; /* not woken, so nobody's wake is lost with us */
        slept = WSLEEP;
    }
}

static HOT inline int write_lock(uint32_t *word, const struct moment *until)
{
    uint32_t now = 0;
    if (__builtin_expect(CAS(word, &now, WRITER), 1))
        return 0;
    return write_wait(word, until);
}

static inline int write_try(uint32_t *word)
{
    uint32_t now = GLANCE(word);
    do {
        if (now & HELD)
            return EBUSY;
    } while (!CAS(word, &now, now | WRITER));
    return 0;
}

static COLD void write_unlock_wake(uint32_t *word, uint32_t was)
{
    if (was & RSLEEP)
        light_wake(word, INT_MAX, READERS);
    if ((was & WSLEEP) && !(was & COUNT))
        light_wake(word, 1, WRITERS);
}

static HOT inline int rwlock_unlock(uint32_t *word)
{
    uint32_t was = GLANCE(word);
    if (was & WRITER) {
        /* Readers that waited have the lock from here, and the last of them wakes a writer. */
        while (!CAS(word, &was, was & COUNT ? was & (COUNT | WSLEEP) : 0))
            ;
        if (__builtin_expect(was & (RSLEEP | WSLEEP), 0))
            write_unlock_wake(word, was);
        return 0;
    }
    if (!(was & COUNT))
        return EPERM;
    was = SUB(word, 1);
    if (__builtin_expect((was & WSLEEP) && (was & COUNT) == 1, 0))
        light_wake(word, 1, WRITERS);
    return 0;
}

#endif
