/* The samples of a batch, each from its place in a shard, all in one call. */

#include "native.h"

#include <sys/uio.h>
#include <unistd.h>

/* A call of the system costs as much as a few KB: neighbours come in one, with what lies between. */
enum { MOST_NEIGHBOURS = 32, GAP = 4096 };

typedef struct {
    int shard; /* a descriptor */
    char *room;
    size_t size;
    off_t offset;
    uint32_t crc;
    int32_t label;
    int proven;              /* it, or its whole shard, was compared with its sums */
    unsigned char *compared; /* where to note that it was, or NULL */
} Sample;

/* Where samples come from: an index of so many files, the descriptors of its shards, -1 for one that
   is not open; a 1 for each shard that is proven, and for each file that was compared, which may be
   fewer. */
typedef struct {
    const unsigned char *index;
    int64_t index_size, files;
    const int32_t *shards;
    int64_t shard_count;
    const unsigned char *proven;
    int64_t proven_count;
    unsigned char *compared;
    int64_t compared_count;
} Pack;

/* Where a sample lies; 0 to leave it to Python. */
static int find(const Pack *pack, int64_t position, size_t most, Sample *sample)
{
    if (position < 0 || position >= pack->files)
        return 0;
    const unsigned char *record = pack->index + HEADER + position * RECORD;
    uint64_t offset = number(record, 8), size = number(record + 8, 8);
    uint64_t shard = number(record + 40, 4);

    /* No file reaches further than 63 bits, so that sums of what is left cannot overflow. */
    if (size > most || size > INT64_MAX || offset > INT64_MAX - size ||
        shard >= (uint64_t)pack->shard_count || pack->shards[shard] < 0)
        return 0;
    sample->shard = pack->shards[shard];
    sample->size = (size_t)size;
    sample->offset = (off_t)offset;
    sample->crc = (uint32_t)number(record + 44, 4);
    sample->label = (int32_t)(uint32_t)number(record + 56, 4);
    sample->compared = position < pack->compared_count ? pack->compared + position : NULL;
    sample->proven = (shard < (uint64_t)pack->proven_count && pack->proven[shard] == 1) ||
                     (sample->compared != NULL && *sample->compared == 1);
    return 1;
}

/* How many samples from here on lie side by side in one shard, and are read at once. */
static int neighbours(const Sample *first, int64_t left)
{
    int count = 1;

#ifdef __linux__
    for (; count < MOST_NEIGHBOURS && count < left; count++) {
        const Sample *one = first + count - 1, *next = first + count;
        off_t between = next->offset - one->offset - (off_t)one->size;
        if (next->shard != one->shard || between < 0 || between > GAP)
            break;
    }
#endif
    return count;
}

/* Whether all bytes of so many neighbours came. */
static int read_some(const Sample *first, int count)
{
    if (count == 1)
        return pread(first->shard, first->room, first->size, first->offset) ==
               (ssize_t)first->size;
#ifdef __linux__
    struct iovec parts[2 * MOST_NEIGHBOURS];
    char between[GAP]; /* what lies between two samples: the end of one block, a header of tar */
    off_t at = first->offset;

    for (int place = 0; place < count; place++) {
        const Sample *one = first + place;
        parts[2 * place] = (struct iovec){between, (size_t)(one->offset - at)};
        parts[2 * place + 1] = (struct iovec){one->room, one->size};
        at = one->offset + (off_t)one->size;
    }
    return preadv(first->shard, parts, 2 * count, first->offset) == at - first->offset;
#else
    return 0;
#endif
}

/* Whether a sample is what was packed; that it is, is noted. */
static int is_as_packed(const Sample *one)
{
    if (one->proven)
        return 1;
    if (crc_of(0, (const unsigned char *)one->room, one->size) != one->crc)
        return 0;
    if (one->compared != NULL)
        *one->compared = 1;
    return 1;
}

static int read_all(const Sample *found, int64_t count)
{
    int whole = 1, some;

    for (int64_t place = 0; place < count && whole; place += some) {
        some = neighbours(found + place, count - place);
        whole = read_some(found + place, some);
        /* Compared at once, while they are still in the processor's cache. */
        for (int next = 0; next < some && whole; next++)
            whole = is_as_packed(found + place + next);
    }
    return whole;
}

static int holds_its_files(const Pack *pack)
{
    return pack->files >= 0 && pack->index_size >= HEADER &&
           pack->files <= (pack->index_size - HEADER) / RECORD;
}

/* Where each of so many files ends if they lie one after the other, and their classes. How many bytes
   all have together; -1, for Python to look closer, where a position is not there, a shard is not open,
   or they are more than `most`. */
EXPORTED int64_t rabaska_places(const Pack *pack, const int64_t *positions, int64_t count,
                                int64_t most, int64_t *ends, int32_t *labels)
{
    int64_t used = 0;
    Sample sample;

    if (!holds_its_files(pack))
        return -1;
    for (int64_t place = 0; place < count; place++) {
        if (!find(pack, positions[place], (size_t)(most - used), &sample))
            return -1;
        used += (int64_t)sample.size;
        ends[place] = used;
        labels[place] = sample.label;
    }
    return used;
}

/* What they hold, one after the other in `room`, which has so many bytes. 0, for Python to look closer,
   where a read brings less than it should, or something else than was packed. */
EXPORTED int rabaska_samples(const Pack *pack, const int64_t *positions, int64_t count, char *room,
                             int64_t size)
{
    Sample *found = malloc((size_t)(count > 0 ? count : 1) * sizeof *found);
    int whole = found != NULL && holds_its_files(pack);

    for (int64_t place = 0; place < count && whole; place++) {
        whole = find(pack, positions[place], (size_t)size, found + place);
        if (whole) {
            found[place].room = room;
            room += found[place].size;
            size -= (int64_t)found[place].size;
        }
    }
    whole = whole && read_all(found, count);
    free(found);
    return whole;
}
