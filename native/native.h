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
#include <time.h>

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

/* What this processor can do: multiply polynomials, twice as many at once, reckon with registers of
   256 and 512 bits; on ARM, sum by crc32. */
int can_fold(void);
int can_fold_wide(void);
int can_widen(void);
int can_widen_more(void);
int can_sum(void);

/* The digest of a shard: a tree of two levels over leaves of 16 KiB, eight of which are taken at once. */
enum {
    TREE_BLOCK = 128,
    TREE_DIGEST = 32,
    TREE_LEAF = 16384,
    TREE_LANES = 8,
    TREE_GROUP = TREE_LANES * TREE_LEAF,
};

typedef struct {
    uint64_t root[8], root_size, root_waits, leaves;
    unsigned char root_block[TREE_BLOCK];
} tree;

void tree_begin(tree *into);
void tree_groups(tree *into, const unsigned char *data, uint64_t groups);
void tree_end(tree *into, const unsigned char *data, uint64_t size, unsigned char *digest);

/* Of small files: numbers that are told of each, and the largest size that tar can say. */
enum { FACTS = 5 };
static const int64_t LARGEST = 077777777777;

int kept_mode(int64_t mode);
int64_t nanoseconds(struct timespec time);
size_t header_length(const char *name, size_t length, int64_t size);
size_t write_any_header(char *at, const char *name, size_t length, int64_t size, int mode);
char *write_record(char *at, uint64_t offset, uint64_t size, uint64_t names_at, uint32_t length,
                   uint32_t crc, int mode, int32_t label);

uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size);

#endif
