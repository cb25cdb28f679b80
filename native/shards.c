/* A shard as it grows: files are read into it, summed, digested and written, all while they are still in
   the processor's cache. */

#include "native.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STAGE = 4 * TREE_GROUP,     /* bytes that wait to be written, at most */
    SUMMED = 16 * 1024 * 1024,  /* bytes of a shard that have a crc32 of their own */
    ENOUGH = 8 * 1024 * 1024,   /* bytes that are read before the caller may say how it goes */
    LONGEST = PATH_MAX + 4 * BLOCK, /* a header with all that goes before it */
    UNREAD = 64 * 1024,         /* less is not read at a time, if there is more */
};

typedef struct {
    tree digest;
    uint64_t written; /* whole groups until it ends: the last byte waits, and with it its group */
    uint64_t waiting;
    int64_t file;
    uint32_t *sums; /* there is room for all that may come */
    unsigned char staged[STAGE];
} shard;

/* What one call found: why it ended, and all its files together. */
typedef struct {
    int64_t error; /* of writing, as the system counts them */
    int64_t broken; /* of reading the next file, parts of which are in the shard; -1: it changed */
    int64_t bytes, newest;
} outcome;

static int write_all(int file, const unsigned char *data, uint64_t size)
{
    while (size) {
        ssize_t done = write(file, data, (size_t)size);
        if (done < 0 && errno != EINTR)
            return 0;
        if (done > 0) {
            data += done;
            size -= (uint64_t)done;
        }
    }
    return 1;
}

static void sum(shard *into, uint64_t size)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t at = into->written + done, room = SUMMED - at % SUMMED;
        uint64_t part = size - done < room ? size - done : room;
        uint32_t *crc = into->sums + at / SUMMED;

        *crc = crc_of(at % SUMMED ? *crc : 0, into->staged + done, (size_t)part);
        done += part;
    }
}

/* Write out the whole groups that wait, but for the last byte. */
static int flush(shard *into)
{
    uint64_t groups = into->waiting ? (into->waiting - 1) / TREE_GROUP : 0;
    uint64_t size = groups * TREE_GROUP;

    tree_groups(&into->digest, into->staged, groups);
    sum(into, size);
    if (!write_all((int)into->file, into->staged, size))
        return 0;
    into->written += size;
    into->waiting -= size;
    memmove(into->staged, into->staged + size, (size_t)into->waiting);
    return 1;
}

EXPORTED uint64_t rabaska_shard_size(void)
{
    return sizeof(shard);
}

EXPORTED void rabaska_shard_begin(shard *into, int file)
{
    tree_begin(&into->digest);
    into->written = into->waiting = 0;
    into->file = file;
}

/* Add bytes; 0, or the number of the error of writing. */
EXPORTED int rabaska_shard_add(shard *into, uint32_t *sums, const unsigned char *data, uint64_t size)
{
    into->sums = sums;
    while (size) {
        uint64_t room = STAGE - into->waiting, part = size < room ? size : room;

        memcpy(into->staged + into->waiting, data, (size_t)part);
        into->waiting += part;
        data += part;
        size -= part;
        if (into->waiting == STAGE && !flush(into))
            return errno;
    }
    return 0;
}

/* Write what waits; its digest. 0, or the number of the error of writing. */
EXPORTED int rabaska_shard_end(shard *into, uint32_t *sums, unsigned char *digest)
{
    into->sums = sums;
    if (!flush(into))
        return errno;
    sum(into, into->waiting);
    tree_end(&into->digest, into->staged, into->waiting, digest);
    return write_all((int)into->file, into->staged, into->waiting) ? 0 : errno;
}

/* Read the rest of a file of `size` bytes; whether it is as long as that. `again` tells whether it was
   read in parts, so that what it is has to be asked again. */
static int read_into(shard *into, int file, uint64_t size, uint32_t *crc, int *again, outcome *found)
{
    for (*crc = 0, *again = 0;; *again = 1) {
        uint64_t room = STAGE - into->waiting;
        ssize_t got;

        if (room <= size && room < UNREAD + 1) {
            if (!flush(into)) {
                found->error = errno;
                return 0;
            }
            room = STAGE - into->waiting;
        }
        /* One byte more than it has, so that a file that grew shows itself. */
        got = read(file, into->staged + into->waiting, (size_t)(size < room ? size + 1 : room));
        if (got < 0 || (uint64_t)got > size) {
            found->broken = got < 0 ? errno : -1;
            return 0;
        }
        *crc = crc_of(*crc, into->staged + into->waiting, (size_t)got);
        into->waiting += (uint64_t)got;
        if ((uint64_t)got == size && size < room)
            return 1;
        if (got == 0) {
            found->broken = -1;
            return 0;
        }
        size -= (uint64_t)got;
    }
}

static int64_t when(struct stat *status, int changed)
{
#ifdef __APPLE__
    struct timespec time = changed ? status->st_ctimespec : status->st_mtimespec;
#else
    struct timespec time = changed ? status->st_ctim : status->st_mtim;
#endif
    return nanoseconds(time);
}

static void tell(int64_t *facts, struct stat *status)
{
    facts[0] = status->st_size;
    facts[1] = when(status, 0);
    facts[2] = status->st_mode;
    facts[3] = (int64_t)status->st_ino;
    facts[4] = when(status, 1);
}

static int same(int file, struct stat *before)
{
    struct stat now;

    return fstat(file, &now) == 0 && now.st_size == before->st_size &&
           when(&now, 0) == when(before, 0) && when(&now, 1) == when(before, 1);
}

/* What one call is asked: files by their names, and what a shard still takes. */
typedef struct {
    const char *names;
    const uint64_t *ends; /* of each name */
    uint64_t start;       /* of the first */
    int64_t count, begun, room, large;
    int64_t flags;
} request;

/* What so many files are, and how many bytes of tar each takes; 0 where Python has to say. How many were
   asked: up to the first that cannot be. */
EXPORTED int64_t rabaska_stats(const char *names, const uint64_t *ends, uint64_t start, int64_t count,
                               int follow, int64_t *facts, int64_t *lengths)
{
    for (int64_t place = 0; place < count; place++, facts += FACTS) {
        char path[PATH_MAX];
        struct stat status;
        size_t length = (size_t)(ends[place] - start);

        if (length >= PATH_MAX)
            return place;
        memcpy(path, names + start, length);
        path[length] = 0;
        if (fstatat(AT_FDCWD, path, &status, follow ? 0 : AT_SYMLINK_NOFOLLOW))
            return place;
        tell(facts, &status);
        lengths[place] = (int64_t)header_length(path, length, status.st_size);
        if (lengths[place])
            lengths[place] += (status.st_size + BLOCK - 1) / BLOCK * BLOCK;
        start = ends[place];
    }
    return count;
}

/* One file into the shard: how many bytes, or 0 to leave it to Python. */
static int64_t take_file(shard *into, const request *asked, const char *name, size_t length,
                         int64_t left, int64_t *facts, char **record, uint64_t names_at,
                         int32_t label, outcome *found)
{
    char path[PATH_MAX];
    struct stat status;
    uint64_t begin = into->waiting, written = into->written;
    size_t header;
    int64_t size, total = 0;
    uint32_t crc;
    int file, again;

    if (length >= PATH_MAX)
        return 0;
    memcpy(path, name, length);
    path[length] = 0;
    if ((file = open(path, (int)asked->flags)) < 0)
        return 0;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && when(&status, 1) < asked->begun &&
        status.st_size < asked->large) {
        if (STAGE - into->waiting < LONGEST && !flush(into)) {
            found->error = errno;
            close(file);
            return 0;
        }
        begin = into->waiting;
        written = into->written;
        size = status.st_size;
        header = write_any_header((char *)into->staged + begin, path, length, size,
                                  kept_mode(status.st_mode));
        total = (int64_t)header + (size + BLOCK - 1) / BLOCK * BLOCK;
        if (header == 0 || total >= asked->large || total > left)
            total = 0;
        else {
            into->waiting += header;
            if (!read_into(into, file, (uint64_t)size, &crc, &again, found))
                total = 0;
            else if (again && !same(file, &status)) {
                found->broken = -1;
                total = 0;
            } else {
                size_t pad = (size_t)(-size & (BLOCK - 1));
                uint64_t offset = written + begin + header;
                if (STAGE - into->waiting < pad && !flush(into)) {
                    found->error = errno;
                    total = 0;
                } else {
                    memset(into->staged + into->waiting, 0, pad);
                    into->waiting += pad;
                    tell(facts, &status);
                    *record = write_record(*record, offset, (uint64_t)size, names_at,
                                           (uint32_t)length, crc, kept_mode(status.st_mode), label);
                }
            }
        }
    }
    close(file);
    if (total == 0 && found->broken && into->written == written) {
        into->waiting = begin; /* nothing of it was written yet: it is as if we had not tried */
        found->broken = 0;
    }
    return found->error ? 0 : total;
}

/* The first of these files into the shard, up to one that is not ordinary, was changed since packing began,
   or does not fit; how many. Five numbers and a record are told of each. */
EXPORTED int64_t rabaska_shard_take(shard *into, uint32_t *sums, const request *asked,
                                    const int32_t *labels, int64_t *facts, char *records,
                                    outcome *found)
{
    uint64_t start = asked->start;
    int64_t taken = 0, filled = 0;

    into->sums = sums;
    memset(found, 0, sizeof *found);
    for (; taken < asked->count && filled < ENOUGH; taken++, facts += FACTS) {
        size_t length = (size_t)(asked->ends[taken] - start);
        int64_t step = take_file(into, asked, asked->names + start, length, asked->room - filled,
                                 facts, &records, start, labels[taken], found);
        if (step == 0)
            break;
        filled += step;
        found->bytes += facts[0];
        found->newest = facts[4] > found->newest ? facts[4] : found->newest;
        start = asked->ends[taken];
    }
    return taken;
}
