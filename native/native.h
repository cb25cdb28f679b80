/* What the parts of the library know of one another.

   What rabaska.packing, rabaska.node.data and rabaska.training do in Python is done here for many
   small files at once: the same bytes, sooner. Plain C, called by ctypes, which lets other threads run
   meanwhile. Nothing here decides anything: what is not small and ordinary is left to Python. */

#ifndef NATIVE_H
#define NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define INTRINSICS 1
#include <cpuid.h>
#include <immintrin.h>
#endif

/* What Python calls; all else stays inside. */
#define EXPORTED __attribute__((visibility("default")))

/* Of packs: what is said of each file's time and mode. */
enum { TIME = 315532800, PLAIN = 0644, PROGRAM = 0755 };

/* Of tar, of an index, of a mode, and of times. */
enum { BLOCK = 512, HEADER = 64, RECORD = 64, PERMISSIONS = 0777 };
static const int64_t SECOND = 1000000000;

/* A number as it stands in an index. */
static inline uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | at[bytes];
    return value;
}

/* What this processor can do: multiply polynomials, twice as many at once, digest by sha256; on ARM,
   sum by crc32. */
int can_fold(void);
int can_fold_wide(void);
int can_digest(void);
int can_sum(void);

uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size);

#endif
