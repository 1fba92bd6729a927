/*
 * A server's store of sessions outside its library (WT_SESSIONS_EXTERNAL), for shims in C: one table under
 * one mutex for all threads of a context, as nginx's workers share theirs. It holds the bytes that the
 * library makes of a session, so that they are written and read again as in a store that processes
 * share. WT_SESSIONS_HELD sessions have room; then the oldest gives way.
 */
#ifndef WIRETAX_STORE_H
#define WIRETAX_STORE_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "wiretax_driver.h"

/* Bytes of the longest session ID (RFC 5246 §7.4.1.2). */
#define WT_STORE_ID 32
/* Bytes of the longest session that is kept; without a client's certificate one takes some hundreds. */
#define WT_STORE_BYTES 4096
/* Chains of places; a power of two. */
#define WT_STORE_CHAINS 32768

/* A place for one session, by its ID. */
struct wt_stored {
    unsigned char id[WT_STORE_ID];
    size_t id_len; /* 0: the place is free */
    unsigned char *bytes;
    size_t len;
    int next; /* the next place of the same chain, or -1 */
};

struct wt_store {
    pthread_mutex_t lock;
    int chains[WT_STORE_CHAINS]; /* the first place of each, or -1 */
    int turn;                    /* the place that is filled next: the oldest */
    struct wt_stored places[WT_SESSIONS_HELD];
};

/* An empty store, to be freed by wt_store_free; NULL without memory. */
static inline struct wt_store *wt_store_new(void) {
    struct wt_store *store = calloc(1, sizeof *store);
    if (store != NULL && pthread_mutex_init(&store->lock, NULL) != 0) {
        free(store);
        return NULL;
    }
    if (store != NULL) {
        memset(store->chains, -1, sizeof store->chains);
    }
    return store;
}

static inline void wt_store_free(struct wt_store *store) {
    if (store == NULL) {
        return;
    }
    for (size_t at = 0; at < WT_SESSIONS_HELD; at++) {
        free(store->places[at].bytes);
    }
    pthread_mutex_destroy(&store->lock);
    free(store);
}

/* The chain of an ID. Servers draw IDs at random: four bytes tell them apart well enough. */
static inline int *wt_store_chain(struct wt_store *store, const unsigned char *id, size_t len) {
    uint32_t hash = 0;
    for (size_t at = 0; at < len && at < 4; at++) {
        hash = hash << 8 | id[at];
    }
    return &store->chains[hash & (WT_STORE_CHAINS - 1)];
}

/* What points at the place of an ID; at the chain's end, -1, where there is none. Under the lock. */
static inline int *wt_store_find(struct wt_store *store, const unsigned char *id, size_t len) {
    int *link = wt_store_chain(store, id, len);
    while (*link >= 0 && (store->places[*link].id_len != len ||
                          memcmp(store->places[*link].id, id, len) != 0)) {
        link = &store->places[*link].next;
    }
    return link;
}

/* Takes a place out of its chain; its bytes, which are the caller's to free. Under the lock. */
static inline unsigned char *wt_store_clear(struct wt_store *store, int *link) {
    struct wt_stored *place = &store->places[*link];
    unsigned char *bytes = place->bytes;
    *link = place->next;
    place->bytes = NULL;
    place->id_len = 0;
    return bytes;
}

/* Keeps a copy of a session, in place of one with the same ID: 1, or 0 where it has no room for it. */
static inline int wt_store_put(struct wt_store *store, const unsigned char *id, size_t id_len,
                               const unsigned char *bytes, size_t len) {
    unsigned char *copy, *same = NULL, *oldest = NULL;
    struct wt_stored *place;
    int *link;
    if (id_len == 0 || id_len > WT_STORE_ID || len == 0 || len > WT_STORE_BYTES ||
        (copy = malloc(len)) == NULL) {
        return 0;
    }
    memcpy(copy, bytes, len);
    pthread_mutex_lock(&store->lock);
    link = wt_store_find(store, id, id_len);
    if (*link >= 0) {
        same = wt_store_clear(store, link);
    }
    place = &store->places[store->turn];
    if (place->id_len > 0) {
        oldest = wt_store_clear(store, wt_store_find(store, place->id, place->id_len));
    }
    memcpy(place->id, id, id_len);
    place->id_len = id_len;
    place->bytes = copy;
    place->len = len;
    link = wt_store_chain(store, id, id_len);
    place->next = *link;
    *link = store->turn;
    store->turn = (store->turn + 1) % WT_SESSIONS_HELD;
    pthread_mutex_unlock(&store->lock);
    free(same);
    free(oldest);
    return 1;
}

/* Copies the session of an ID into room for WT_STORE_BYTES: its bytes, or 0 where there is none. */
static inline size_t wt_store_get(struct wt_store *store, const unsigned char *id, size_t id_len,
                                  unsigned char *into) {
    size_t len = 0;
    int at;
    if (id_len == 0 || id_len > WT_STORE_ID) {
        return 0;
    }
    pthread_mutex_lock(&store->lock);
    at = *wt_store_find(store, id, id_len);
    if (at >= 0) {
        len = store->places[at].len;
        memcpy(into, store->places[at].bytes, len);
    }
    pthread_mutex_unlock(&store->lock);
    return len;
}

/* Forgets the session of an ID, where there is one. */
static inline void wt_store_remove(struct wt_store *store, const unsigned char *id, size_t id_len) {
    unsigned char *bytes = NULL;
    int *link;
    if (id_len == 0 || id_len > WT_STORE_ID) {
        return;
    }
    pthread_mutex_lock(&store->lock);
    link = wt_store_find(store, id, id_len);
    if (*link >= 0) {
        bytes = wt_store_clear(store, link);
    }
    pthread_mutex_unlock(&store->lock);
    free(bytes);
}

#endif
