/*
 * Uses the C library's locks hard, and checks what they promise; run with and without the light
 * locks. usage: stress ROUNDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rounds;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "stress.c:%d: %s\n", __LINE__, #what);                                 \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void all(int count, void *(*body)(void *))
{
    pthread_t ids[32];
    for (long i = 0; i < count; i++)
        CHECK(pthread_create(&ids[i], NULL, body, (void *)i) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
}

static struct timespec in(clockid_t clock, long milliseconds)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += milliseconds % 1000 * 1000000;
    t.tv_sec += milliseconds / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* ---- reader-writer lock: two words that only writers may see apart ---- */

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long left, right;
static long written;

static void *read_and_write(void *argument)
{
    unsigned random = (unsigned)(long)argument * 7919 + 1;
    long mine = 0;
    for (int i = 0; i < rounds; i++) {
        struct timespec soon;
        int got;
        random = random * 1103515245 + 12345;
        switch (random >> 16 & 7) {
        case 0:
            CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
            got = 2;
            break;
        case 1:
            soon = in(CLOCK_REALTIME, 1);
            got = pthread_rwlock_timedwrlock(&rwlock, &soon) == 0 ? 2 : 0;
            break;
        case 2:
            soon = in(CLOCK_REALTIME, 1);
            got = pthread_rwlock_timedrdlock(&rwlock, &soon) == 0;
            break;
        case 3:
            got = pthread_rwlock_trywrlock(&rwlock) == 0 ? 2 : 0;
            break;
        case 4:
            got = pthread_rwlock_tryrdlock(&rwlock) == 0;
            break;
        default:
            CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
            got = 1;
        }
        if (got == 2) {
            CHECK(left == right);
            left++;
            if (i % 64 == 0)
                usleep(1); /* hold it for long, so that others sleep */
            right++;
            mine++;
        } else if (got == 1) {
            CHECK(left == right);
            if (random >> 20 & 1) { /* readers may nest */
                CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
                CHECK(pthread_rwlock_unlock(&rwlock) == 0);
            }
        }
        if (got)
            CHECK(pthread_rwlock_unlock(&rwlock) == 0);
    }
    __atomic_fetch_add(&written, mine, __ATOMIC_SEQ_CST);
    return NULL;
}

/* ---- mutexes of each kind ---- */

static pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t inheriting;
static long counted[5];

static void *count_up(void *unused)
{
    pthread_mutex_t *mutexes[] = {&normal, &recursive, &checked, &adaptive, &inheriting};
    (void)unused;
    for (int i = 0; i < rounds; i++)
        for (int m = 0; m < 5; m++) {
            if (i % 5 == 0) {
                while (pthread_mutex_trylock(mutexes[m]) == EBUSY)
                    sched_yield();
            } else if (i % 5 == 1) {
                struct timespec later = in(CLOCK_REALTIME, 60000);
                CHECK(pthread_mutex_timedlock(mutexes[m], &later) == 0);
            } else {
                CHECK(pthread_mutex_lock(mutexes[m]) == 0);
            }
            counted[m]++;
            if (m == 1) {
                CHECK(pthread_mutex_lock(&recursive) == 0);
                CHECK(pthread_mutex_trylock(&recursive) == 0);
                counted[m]++;
                CHECK(pthread_mutex_unlock(&recursive) == 0);
                CHECK(pthread_mutex_unlock(&recursive) == 0);
            } else if (m == 2) {
                CHECK(pthread_mutex_lock(&checked) == EDEADLK);
                CHECK(pthread_mutex_trylock(&checked) == EBUSY);
            }
            CHECK(pthread_mutex_unlock(mutexes[m]) == 0);
        }
    return NULL;
}

static void mutexes(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t made;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutex_init(&inheriting, &attributes) == 0);
    all(6, count_up);
    for (int m = 0; m < 5; m++)
        CHECK(counted[m] == 6L * rounds * (m == 1 ? 2 : 1));
    CHECK(pthread_mutex_unlock(&checked) == EPERM);
    CHECK(pthread_mutex_unlock(&recursive) == EPERM);

    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    CHECK(pthread_mutex_init(&made, &attributes) == 0);
    CHECK(pthread_mutex_lock(&made) == 0 && pthread_mutex_lock(&made) == 0);
    CHECK(pthread_mutex_unlock(&made) == 0 && pthread_mutex_destroy(&made) == EBUSY);
    CHECK(pthread_mutex_unlock(&made) == 0 && pthread_mutex_destroy(&made) == 0);

    CHECK(pthread_mutex_init(&made, NULL) == 0 && pthread_mutex_lock(&made) == 0);
    struct timespec soon = in(CLOCK_REALTIME, 5), past = {0, 0}, wrong = {0, 1000000000};
    CHECK(pthread_mutex_timedlock(&made, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_timedlock(&made, &past) == ETIMEDOUT);
    CHECK(pthread_mutex_timedlock(&made, &wrong) == EINVAL);
    soon = in(CLOCK_MONOTONIC, 5);
    CHECK(pthread_mutex_clocklock(&made, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&made) == 0);
}

/* ---- condition variables: a bounded queue, and a turn handed round ---- */

static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static pthread_cond_t turned;
static long queued, given, taken;

static void *give_or_take(void *argument)
{
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&normal) == 0);
        if ((long)argument % 2 == 0) {
            while (queued == 3)
                CHECK(pthread_cond_wait(&emptied, &normal) == 0);
            queued++, given++;
            if (i % 7 == 0)
                CHECK(pthread_cond_broadcast(&filled) == 0);
            else
                CHECK(pthread_cond_signal(&filled) == 0);
            CHECK(pthread_mutex_unlock(&normal) == 0);
        } else {
            while (queued == 0) {
                struct timespec soon = in(CLOCK_REALTIME, 1);
                if (i % 3)
                    CHECK(pthread_cond_wait(&filled, &normal) == 0);
                else
                    pthread_cond_timedwait(&filled, &normal, &soon);
            }
            queued--, taken++;
            CHECK(pthread_mutex_unlock(&normal) == 0);
            CHECK(pthread_cond_signal(&emptied) == 0); /* outside, as is allowed */
        }
    }
    return NULL;
}

static int turn;

static void *hand_on(void *argument)
{
    int me = (int)(long)argument;
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_mutex_lock(&checked) == 0);
        while (turn % 3 != me)
            CHECK(pthread_cond_wait(&turned, &checked) == 0);
        turn++;
        CHECK(pthread_cond_broadcast(&turned) == 0);
        CHECK(pthread_mutex_unlock(&checked) == 0);
    }
    return NULL;
}

static void unlock(void *mutex)
{
    CHECK(pthread_mutex_unlock(mutex) == 0);
}

static void *wait_for_ever(void *ready)
{
    CHECK(pthread_mutex_lock(&checked) == 0);
    pthread_cleanup_push(unlock, &checked); /* fails unless the mutex is ours again */
    *(int *)ready = 1;
    for (;;)
        pthread_cond_wait(&turned, &checked);
    pthread_cleanup_pop(1);
    return NULL;
}

static void conditions(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&turned, &attributes) == 0);
    all(6, give_or_take);
    CHECK(queued == 0 && given == taken && given == 3L * rounds);
    all(3, hand_on);
    CHECK(turn == 3 * rounds);

    struct timespec soon = in(CLOCK_MONOTONIC, 5), other = in(CLOCK_REALTIME, 5);
    CHECK(pthread_mutex_lock(&checked) == 0);
    CHECK(pthread_cond_timedwait(&turned, &checked, &soon) == ETIMEDOUT);
    CHECK(pthread_cond_clockwait(&turned, &checked, CLOCK_REALTIME, &other) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&checked) == 0);
    CHECK(pthread_cond_wait(&turned, &checked) == EPERM);

    pthread_t sleeper;
    int ready = 0;
    void *result;
    CHECK(pthread_create(&sleeper, NULL, wait_for_ever, &ready) == 0);
    for (int seen = 0; !seen; sched_yield()) {
        CHECK(pthread_mutex_lock(&checked) == 0);
        seen = ready;
        CHECK(pthread_mutex_unlock(&checked) == 0);
    }
    CHECK(pthread_cancel(sleeper) == 0);
    CHECK(pthread_join(sleeper, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(pthread_mutex_lock(&checked) == 0 && pthread_mutex_unlock(&checked) == 0);
    CHECK(pthread_cond_destroy(&turned) == 0);
}

/* ---- shared between processes: the C library's in both ---- */

struct shared {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_cond_t cond;
    long sum;
    int turn;
};

static void use_shared(struct shared *shared, int me)
{
    for (int i = 0; i < rounds; i++) {
        CHECK(pthread_rwlock_wrlock(&shared->rwlock) == 0);
        shared->sum++;
        CHECK(pthread_rwlock_unlock(&shared->rwlock) == 0);
        CHECK(pthread_mutex_lock(&shared->mutex) == 0);
        while (shared->turn % 2 != me)
            CHECK(pthread_cond_wait(&shared->cond, &shared->mutex) == 0);
        shared->turn++;
        CHECK(pthread_cond_broadcast(&shared->cond) == 0);
        CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
    }
}

static void processes(void)
{
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_rwlockattr_t rwlock_attributes;
    pthread_condattr_t cond;
    int status;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_init(&rwlock_attributes);
    pthread_rwlockattr_setpshared(&rwlock_attributes, PTHREAD_PROCESS_SHARED);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    CHECK(pthread_mutex_init(&shared->mutex, &mutex) == 0);
    CHECK(pthread_rwlock_init(&shared->rwlock, &rwlock_attributes) == 0);
    CHECK(pthread_cond_init(&shared->cond, &cond) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use_shared(shared, 1);
        _exit(0);
    }
    use_shared(shared, 0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(shared->sum == 2L * rounds && shared->turn == 2 * rounds);

    /* A shared condition variable with a mutex that is not: it wakes, if only by itself. */
    struct timespec soon = in(CLOCK_REALTIME, 5);
    int waited = 0;
    CHECK(pthread_mutex_lock(&normal) == 0);
    while ((waited = pthread_cond_timedwait(&shared->cond, &normal, &soon)) == 0)
        ;
    CHECK(waited == ETIMEDOUT && pthread_mutex_unlock(&normal) == 0);
}

int main(int count, char **values)
{
    rounds = count > 1 ? atoi(values[1]) : 2000;
    alarm(500); /* a lost wake-up ends here */
    all(8, read_and_write);
    CHECK(left == right && left == written);
    struct timespec soon = in(CLOCK_REALTIME, 5);
    CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
    CHECK(pthread_rwlock_timedrdlock(&rwlock, &soon) != 0);
    CHECK(pthread_rwlock_tryrdlock(&rwlock) == EBUSY && pthread_rwlock_trywrlock(&rwlock) == EBUSY);
    CHECK(pthread_rwlock_unlock(&rwlock) == 0 && pthread_rwlock_destroy(&rwlock) == 0);
    mutexes();
    conditions();
    processes();
    puts("all held");
    return 0;
}
