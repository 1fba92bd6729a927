/* What both objects share: how they are exported, and the C library's own functions. */
#ifndef WIRETAX_COMMON_H
#define WIRETAX_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifndef __GLIBC__
#error "the objects stand in for functions of the GNU C library"
#endif

#define EXPORT __attribute__((visibility("default")))
#define HOT __attribute__((hot))
#define COLD __attribute__((cold, noinline))

/* Which object is loaded: what wiretax_locks_object returns. */
enum { OBJECT_COUNT = 1, OBJECT_LIGHT = 2 };

#endif
