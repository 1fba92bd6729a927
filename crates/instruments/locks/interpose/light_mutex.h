/*
 * The mutex: 0 free, 1 held, 2 held and others may sleep; and for the recursive and the
 * error-checking kind its owner. The word is touched for the last time in the step that lets go.
 */
#ifndef WIRETAX_LIGHT_MUTEX_H
#define WIRETAX_LIGHT_MUTEX_H

#include "light.h"

static COLD int word_wait(uint32_t *word, const struct moment *until)
{
    for (int i = 0; i < SPINS; i++) {
        PAUSE();
        uint32_t now = LOAD(word);
        if (now == 0 && CAS(word, &now, 1))
            return 0;
        if (now == 2)
            break; /* others sleep already: it is not a short wait */
    }
    while (XCHG(word, 2) != 0)
        if (light_sleep(word, 2, ANYONE, until) == ETIMEDOUT)
            return ETIMEDOUT; /* not woken, so nobody's wake is lost with us */
    return 0;
}

static HOT inline int word_lock(uint32_t *word, const struct moment *until)
{
    uint32_t now = 0;
    if (__builtin_expect(CAS(word, &now, 1), 1))
        return 0;
    return word_wait(word, until);
}

static inline int word_try(uint32_t *word)
{
    uint32_t now = 0;
    return CAS(word, &now, 1) ? 0 : EBUSY;
}

static HOT inline void word_unlock(uint32_t *word)
{
    if (__builtin_expect(XCHG(word, 0) == 2, 0))
        light_wake(word, 1, ANYONE);
}

#endif
