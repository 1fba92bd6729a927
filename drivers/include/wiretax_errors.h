/*
 * Why a driver's last call on a thread failed: one text and one way to set it, for shims in C and C++.
 * A file that includes this defines `wt_driver.error` as `wt_error`, calls `wt_forget` first in each call
 * that may fail, and returns `wt_fail(...)` where one does.
 */
#ifndef WIRETAX_ERRORS_H
#define WIRETAX_ERRORS_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wiretax_driver.h"

#ifdef __cplusplus
#define WT_PER_THREAD thread_local
#else
#define WT_PER_THREAD _Thread_local
#endif

#if defined(__GNUC__)
#define WT_CHECKED __attribute__((warn_unused_result))
#define WT_FORMAT(text, values) __attribute__((format(printf, text, values)))
#else
#define WT_CHECKED
#define WT_FORMAT(text, values)
#endif

/* Why the last call on this thread failed, ended by a zero byte; a longer reason is cut. */
static WT_PER_THREAD char wt_reason[256];

/* The name of a status; "?" for a number that is none. */
static inline const char *wt_status_name(int status) {
    switch (status) {
#define WT_STATUS_NAME(name, number, meaning)                                                      \
    case name: return #name;
        WT_STATUS_TABLE(WT_STATUS_NAME)
#undef WT_STATUS_NAME
    default: return "?";
    }
}

static inline void wt_forget(void) {
    wt_reason[0] = 0;
}

/* Copies a text into room for `len` bytes: 0, or -1 if it had to be cut. */
static inline WT_CHECKED int wt_copy(char *into, size_t len, const char *text) {
    size_t all = strlen(text);
    size_t copied = all < len ? all : len - (len > 0);
    if (len == 0) {
        return -1;
    }
    memcpy(into, text, copied);
    into[copied] = 0;
    return copied == all ? 0 : -1;
}

/* Sets the reason, and is `status`. */
static inline WT_CHECKED WT_FORMAT(2, 3) int wt_fail(int status, const char *format, ...) {
    va_list values;
    int len;
    va_start(values, format);
    len = vsnprintf(wt_reason, sizeof wt_reason, format, values);
    va_end(values);
    if (len < 0) {
        /* It could not be written: the status alone is shown. */
        wt_forget();
        if (wt_copy(wt_reason, sizeof wt_reason, wt_status_name(status)) != 0) {
            wt_forget();
        }
    }
    return status;
}

/* `wt_driver.error`: the reason, or "no error", into room for `len` bytes. */
static inline void wt_error(char *text, size_t len) {
    const char *reason = wt_reason[0] == 0 ? "no error" : wt_reason;
    if (len > 0 && wt_copy(text, len, reason) != 0) {
        /* Cut at the end of the caller's room, and ended by a zero byte. */
        text[len - 1] = 0;
    }
}

#endif
