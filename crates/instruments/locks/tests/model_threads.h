/* What the threads of model.c do, included there once: each takes a lock and checks what it promises. */

static const struct timespec sometime;
static const struct moment deadline = {CLOCK_MONOTONIC, &sometime};

static void in_write(void)
{
    writers++;
    if (readers || writers != 1)
        fail("a writer is not alone");
    step(NULL);
    if (readers || writers != 1)
        fail("a writer is not alone");
    writers--;
}

static void in_read(void)
{
    readers++;
    if (writers)
        fail("a reader beside a writer");
    step(NULL);
    if (writers)
        fail("a reader beside a writer");
    readers--;
}

static void writer(int me)
{
    (void)me;
    write_lock(&word, NULL);
    in_write();
    rwlock_unlock(&word);
}

static void reader(int me)
{
    (void)me;
    read_lock(&word, NULL);
    in_read();
    rwlock_unlock(&word);
}

static void late_writer(int me)
{
    (void)me;
    if (write_lock(&word, &deadline) == 0) {
        in_write();
        rwlock_unlock(&word);
    }
}

static void late_reader(int me)
{
    (void)me;
    if (read_lock(&word, &deadline) == 0) {
        in_read();
        rwlock_unlock(&word);
    }
}

static void trier(int me)
{
    (void)me;
    if (write_try(&word) == 0) {
        in_write();
        rwlock_unlock(&word);
    }
    if (read_try(&word) == 0) {
        in_read();
        rwlock_unlock(&word);
    }
}

static void twice_writer(int me)
{
    writer(me);
    writer(me);
}

static void twice_reader(int me)
{
    reader(me);
    reader(me);
}

static void nested_reader(int me)
{
    read_lock(&word, NULL);
    reader(me);
    rwlock_unlock(&word);
}

static void locker(int me)
{
    (void)me;
    word_lock(&word, NULL);
    in_write();
    word_unlock(&word);
}

static void twice_locker(int me)
{
    locker(me);
    locker(me);
}

static void late_locker(int me)
{
    (void)me;
    if (word_lock(&word, &deadline) == 0) {
        in_write();
        word_unlock(&word);
    }
}

static void try_locker(int me)
{
    (void)me;
    if (word_try(&word) == 0) {
        in_write();
        word_unlock(&word);
    }
}

/* The last of two to let go frees the lock. */
static void mutex_and_free(int me)
{
    (void)me;
    word_lock(&word, NULL);
    int last = ++items == 2;
    word_unlock(&word);
    if (last)
        gone = 1;
}

static void rwlock_and_free(int me)
{
    (void)me;
    write_lock(&word, NULL);
    int last = ++items == 2;
    rwlock_unlock(&word);
    if (last)
        gone = 1;
}

static void read_and_free(int me)
{
    (void)me;
    read_lock(&word, NULL);
    step(NULL);
    int last = ++items == 2;
    rwlock_unlock(&word);
    if (last)
        gone = 1;
}

#define MUTEX ((pthread_mutex_t *)(void *)&word)

static void take(int timed)
{
    word_lock(&word, NULL);
    while (items == 0)
        if (cond_wait(&condition, MUTEX, timed ? &deadline : NULL) == ETIMEDOUT && items == 0)
            break;
    if (items > 0)
        items--;
    else if (!timed)
        fail("woken with nothing to take and no time out");
    word_unlock(&word);
}

static void taker(int me)
{
    (void)me;
    take(0);
}

static void late_taker(int me)
{
    (void)me;
    take(1);
}

static void give(int signal_inside)
{
    word_lock(&word, NULL);
    items++;
    if (signal_inside)
        cond_wake(&condition, 1);
    word_unlock(&word);
    if (!signal_inside)
        cond_wake(&condition, 1);
}

static void giver(int me)
{
    (void)me;
    give(1);
}

static void twice_giver(int me)
{
    (void)me;
    give(0);
    give(0);
}

static void broadcaster(int me)
{
    (void)me;
    word_lock(&word, NULL);
    items += 2;
    word_unlock(&word);
    cond_wake(&condition, INT_MAX);
}

/* Two hand a turn to and fro. */
static void ping_pong(int me)
{
    for (int round = 0; round < 2; round++) {
        word_lock(&word, NULL);
        while (items % 2 != me)
            cond_wait(&condition, MUTEX, NULL);
        items++;
        cond_wake(&condition, 1);
        word_unlock(&word);
    }
}
