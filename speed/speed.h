/* What the parts of the compiled module know of one another. */

#ifndef SPEED_H
#define SPEED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define INTRINSICS 1
#include <cpuid.h>
#include <immintrin.h>
#endif

/* Of packs: the format that is made and read here; what it says of each file's time and mode. */
enum { FORMAT = 2, TIME = 315532800, PLAIN = 0644, PROGRAM = 0755 };

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

void prepare_crc(void);
uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size);

/* Whether this processor has instructions for sha256. */
int can_digest(void);

extern PyMethodDef of_sums[], of_digests[], of_folders[], of_files[], of_unpacking[],
    of_reading[];

#endif
