/*
 * Counts the locks that a thread takes, while it says that it wants them counted, and forwards each
 * to the C library. Preloaded; without it the program's own calls find nothing and do nothing.
 *
 * Counted: acquisitions that succeed of pthread_rwlock_*, pthread_mutex_* and pthread_spin_*.
 * Not counted, as no preloaded object sees them: the C library's own locks (of malloc, stdio, the
 * loader), the mutex that pthread_cond_wait takes again, pthread_once, C11's mtx_*, futexes of other
 * runtimes (Rust's std, Go's) and atomic instructions.
 *
 * A count is a plain add by the thread that owns it: no lock and no shared line is added.
 */
#include "common.h"

#include <sys/mman.h>
#include <unwind.h>

enum { SIDES = 3 }; /* none, server, client */
enum kind { READ, WRITE, MUTEX, SPIN, KINDS };

enum {
    DEPTH = 7,      /* frames of a call site, our own among them */
    SITES = 16384, /* of one thread, a power of two */
    PROBES = 64,   /* places looked at before a site counts as lost */
};

/* As in src/counter.rs. */
struct tally {
    uint64_t taken[KINDS];
    uint64_t contended;
    uint64_t wait_ns;
    uint64_t lost_sites;
};

struct site {
    uint64_t count;
    uint32_t kind;
    uint32_t depth;
    uint64_t frames[DEPTH];
};

struct place {
    uint64_t hash; /* 0: free. Written last, by the owner alone. */
    uint32_t side;
    struct site site;
};

/* One thread's counts. Never freed: a thread that ends leaves its block, counts and all, to the next
 * that begins, so there are as many as there ever were threads at once. */
struct block {
    struct block *next;
    int used;
    struct tally sides[SIDES];
    struct place places[SITES];
};

static struct block *blocks;
static pthread_key_t at_exit;

static __thread struct block *mine;
static __thread int side;
static __thread int busy; /* inside our own work: what it locks is not the program's */

#define LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define PLUS(p, n) __atomic_store_n(p, __atomic_load_n(p, __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED)

/* ---- the C library's own ---- */

typedef const struct timespec *until_t;

static struct {
    int (*rdlock)(pthread_rwlock_t *);
    int (*wrlock)(pthread_rwlock_t *);
    int (*tryrdlock)(pthread_rwlock_t *);
    int (*trywrlock)(pthread_rwlock_t *);
    int (*timedrdlock)(pthread_rwlock_t *, until_t);
    int (*timedwrlock)(pthread_rwlock_t *, until_t);
    int (*clockrdlock)(pthread_rwlock_t *, clockid_t, until_t);
    int (*clockwrlock)(pthread_rwlock_t *, clockid_t, until_t);
    int (*lock)(pthread_mutex_t *);
    int (*trylock)(pthread_mutex_t *);
    int (*timedlock)(pthread_mutex_t *, until_t);
    int (*clocklock)(pthread_mutex_t *, clockid_t, until_t);
    int (*spin_lock)(pthread_spinlock_t *);
    int (*spin_trylock)(pthread_spinlock_t *);
} real;

static int resolved;

/* Also called by a lock taken before our constructor ran: then there is one thread only. */
static COLD void resolve(void)
{
    static const struct {
        const char *name;
        size_t at;
    } functions[] = {
#define FUNCTION(member, name) {name, offsetof(__typeof__(real), member)}
        FUNCTION(rdlock, "pthread_rwlock_rdlock"),
        FUNCTION(wrlock, "pthread_rwlock_wrlock"),
        FUNCTION(tryrdlock, "pthread_rwlock_tryrdlock"),
        FUNCTION(trywrlock, "pthread_rwlock_trywrlock"),
        FUNCTION(timedrdlock, "pthread_rwlock_timedrdlock"),
        FUNCTION(timedwrlock, "pthread_rwlock_timedwrlock"),
        FUNCTION(clockrdlock, "pthread_rwlock_clockrdlock"),
        FUNCTION(clockwrlock, "pthread_rwlock_clockwrlock"),
        FUNCTION(lock, "pthread_mutex_lock"),
        FUNCTION(trylock, "pthread_mutex_trylock"),
        FUNCTION(timedlock, "pthread_mutex_timedlock"),
        FUNCTION(clocklock, "pthread_mutex_clocklock"),
        FUNCTION(spin_lock, "pthread_spin_lock"),
        FUNCTION(spin_trylock, "pthread_spin_trylock"),
#undef FUNCTION
    };
    if (busy)
        return; /* dlsym itself locks through us: see TAKE */
    busy = 1;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        *(void **)((char *)&real + functions[i].at) = dlsym(RTLD_NEXT, functions[i].name);
    __atomic_store_n(&resolved, 1, __ATOMIC_RELEASE);
    busy = 0;
}

/* ---- a thread's block ---- */

static void leave(void *block)
{
    mine = NULL;
    __atomic_store_n(&((struct block *)block)->used, 0, __ATOMIC_RELEASE);
}

static COLD struct block *claim(void)
{
    struct block *block;
    for (block = __atomic_load_n(&blocks, __ATOMIC_ACQUIRE); block; block = block->next) {
        int unused = 0;
        if (__atomic_compare_exchange_n(&block->used, &unused, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            break;
    }
    if (!block) {
        block = mmap(NULL, sizeof *block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED)
            return NULL;
        block->used = 1;
        block->next = __atomic_load_n(&blocks, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&blocks, &block->next, block, 1, __ATOMIC_RELEASE,
                                            __ATOMIC_RELAXED))
            ;
    }
    mine = block;
    pthread_setspecific(at_exit, block);
    return block;
}

/* ---- call sites ---- */

struct walk {
    struct site *site;
    unsigned skip;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    if (walk->skip) {
        walk->skip--;
        return _URC_NO_REASON;
    }
    uint64_t address = (uint64_t)_Unwind_GetIP(context);
    if (!address)
        return _URC_END_OF_STACK;
    walk->site->frames[walk->site->depth++] = address;
    return walk->site->depth == DEPTH ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static uint64_t hash_of(const struct site *site)
{
    uint64_t hash = 0x9e3779b97f4a7c15u * (site->kind + 1) + (uint64_t)side;
    for (uint32_t i = 0; i < site->depth; i++) {
        hash = (hash ^ site->frames[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

static int same(const struct place *place, uint64_t hash, const struct site *site)
{
    if (place->hash != hash || (int)place->side != side || place->site.kind != site->kind ||
        place->site.depth != site->depth)
        return 0;
    for (uint32_t i = 0; i < site->depth; i++)
        if (place->site.frames[i] != site->frames[i])
            return 0;
    return 1;
}

static void note_site(struct block *block, enum kind kind)
{
    struct site found = {.count = 1, .kind = kind};
    struct walk walk = {.site = &found, .skip = 1 /* note_site or what it is inlined into */};
    _Unwind_Backtrace(step, &walk);
    uint64_t hash = hash_of(&found);
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct place *place = &block->places[(hash + probe) & (SITES - 1)];
        if (place->hash == 0) {
            place->side = (uint32_t)side;
            place->site = found;
            __atomic_store_n(&place->hash, hash, __ATOMIC_RELEASE);
            return;
        }
        if (same(place, hash, &found)) {
            PLUS(&place->site.count, 1);
            return;
        }
    }
    PLUS(&block->sides[side].lost_sites, 1);
}

static COLD void note(enum kind kind, int contended, uint64_t waited)
{
    int saved = errno;
    busy = 1;
    struct block *block = mine ? mine : claim();
    if (block) {
        struct tally *tally = &block->sides[side];
        PLUS(&tally->taken[kind], 1);
        if (contended) {
            PLUS(&tally->contended, 1);
            PLUS(&tally->wait_ns, waited);
        }
        note_site(block, kind);
    }
    busy = 0;
    errno = saved;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the functions that we stand in for ---- */

#define TAKEN(result) ((result) == 0 || (result) == EOWNERDEAD)

/* First tries; if the lock is held (or its reader count full), waits for it and keeps the time. A
 * call from within dlsym, while there is one thread, finds its lock free. */
#define TAKE(kind, try, wait)                                                                      \
    do {                                                                                           \
        if (__builtin_expect(!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE), 0)) {                  \
            resolve();                                                                             \
            if (!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE))                                     \
                return 0;                                                                          \
        }                                                                                          \
        if (side == 0 || busy)                                                                     \
            return wait;                                                                           \
        int result = try;                                                                          \
        uint64_t from = 0, to = 0;                                                                 \
        int contended = result == EBUSY;                                                           \
        if (contended || result == EAGAIN) {                                                       \
            from = now();                                                                          \
            result = wait;                                                                         \
            to = now();                                                                            \
        }                                                                                          \
        if (TAKEN(result))                                                                         \
            note(kind, contended, to - from);                                                      \
        return result;                                                                             \
    } while (0)

/* A try that finds the lock held is neither an acquisition nor a wait. */
#define TRY(kind, try)                                                                             \
    do {                                                                                           \
        if (__builtin_expect(!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE), 0)) {                  \
            resolve();                                                                             \
            if (!__atomic_load_n(&resolved, __ATOMIC_ACQUIRE))                                     \
                return 0;                                                                          \
        }                                                                                          \
        int result = try;                                                                          \
        if (side != 0 && !busy && TAKEN(result))                                                   \
            note(kind, 0, 0);                                                                      \
        return result;                                                                             \
    } while (0)

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
    TAKE(READ, real.tryrdlock(l), real.rdlock(l));
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
    TAKE(WRITE, real.trywrlock(l), real.wrlock(l));
}

EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *l)
{
    TRY(READ, real.tryrdlock(l));
}

EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *l)
{
    TRY(WRITE, real.trywrlock(l));
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, until_t until)
{
    TAKE(READ, real.tryrdlock(l), real.timedrdlock(l, until));
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, until_t until)
{
    TAKE(WRITE, real.trywrlock(l), real.timedwrlock(l, until));
}

EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, until_t until)
{
    TAKE(READ, real.tryrdlock(l), real.clockrdlock(l, clock, until));
}

EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, until_t until)
{
    TAKE(WRITE, real.trywrlock(l), real.clockwrlock(l, clock, until));
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
    TAKE(MUTEX, real.trylock(m), real.lock(m));
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
    TRY(MUTEX, real.trylock(m));
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, until_t until)
{
    TAKE(MUTEX, real.trylock(m), real.timedlock(m, until));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, until_t until)
{
    TAKE(MUTEX, real.trylock(m), real.clocklock(m, clock, until));
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *s)
{
    TAKE(SPIN, real.spin_trylock(s), real.spin_lock(s));
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *s)
{
    TRY(SPIN, real.spin_trylock(s));
}

/* ---- what the program asks of us; src/counter.rs declares the same ---- */

EXPORT int wiretax_locks_object(void)
{
    return OBJECT_COUNT;
}

/* For the calling thread: 0 counts nothing, 1 for the server, 2 for the client. */
EXPORT void wiretax_locks_side(int wanted)
{
    side = wanted >= 0 && wanted < SIDES ? wanted : 0;
}

/* Sums all threads, those that ended too. Exact when no thread is counting. */
EXPORT int wiretax_locks_read(int of, struct tally *out)
{
    if (of <= 0 || of >= SIDES || !out)
        return -1;
    struct tally sum = {.contended = 0};
    for (struct block *b = __atomic_load_n(&blocks, __ATOMIC_ACQUIRE); b; b = b->next) {
        const struct tally *tally = &b->sides[of];
        for (int kind = 0; kind < KINDS; kind++)
            sum.taken[kind] += LOAD(&tally->taken[kind]);
        sum.contended += LOAD(&tally->contended);
        sum.wait_ns += LOAD(&tally->wait_ns);
        sum.lost_sites += LOAD(&tally->lost_sites);
    }
    *out = sum;
    return 0;
}

/* Copies up to `room` sites of all threads; returns how many there are. The same site comes once for
 * each thread that was there. */
EXPORT size_t wiretax_locks_sites(int of, struct site *out, size_t room)
{
    size_t found = 0;
    for (struct block *b = __atomic_load_n(&blocks, __ATOMIC_ACQUIRE); b; b = b->next)
        for (unsigned i = 0; i < SITES; i++) {
            const struct place *place = &b->places[i];
            if (!__atomic_load_n(&place->hash, __ATOMIC_ACQUIRE) || (int)place->side != of)
                continue;
            if (found < room) {
                out[found] = place->site;
                out[found].count = LOAD(&place->site.count);
            }
            found++;
        }
    return found;
}

__attribute__((constructor)) static void begin(void)
{
    resolve();
    pthread_key_create(&at_exit, leave);
}
