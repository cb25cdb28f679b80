/* Small files into tar form, many at once, and their records in the index. */

#include "native.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 100, NUMBERS = 5 };

/* What a pack keeps of a mode: whether its owner may run the file. */
static int kept_mode(int64_t mode)
{
    return mode & S_IXUSR ? PROGRAM : PLAIN;
}

/* As Python counts it; what is more than 64 bits hold, wraps. */
static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)((uint64_t)time.tv_sec * (uint64_t)SECOND + (uint64_t)time.tv_nsec);
}

static void octal(char *field, int digits, uint64_t value)
{
    while (digits--) {
        field[digits] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

static void write_header(char *block, const char *name, size_t length, int64_t size, int mode)
{
    unsigned sum = 0;

    memset(block, 0, BLOCK);
    memcpy(block, name, length);
    octal(block + 100, 7, (uint64_t)mode);
    memcpy(block + 108, "0000000\0000000000", 15);
    octal(block + 124, 11, (uint64_t)size);
    octal(block + 136, 11, TIME);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memcpy(block + 329, "0000000\0000000000", 15);
    for (int place = 0; place < BLOCK; place++)
        sum += (unsigned char)block[place];
    octal(block + 148, 6, sum);
    block[154] = 0;
}

static int is_plain(const char *name, size_t length)
{
    if (length > NAME_ROOM)
        return 0;
    for (size_t place = 0; place < length; place++)
        if ((signed char)name[place] < 0)
            return 0;
    return 1;
}

/* One file at `tar`, where `room` bytes are free; how many it takes, or 0 to leave it to Python. */
static size_t take_one(const char *path, size_t length, int flags, int64_t small, char *tar,
                       size_t room, int64_t *facts, uint32_t *crc)
{
    size_t taken = 0, whole;
    struct stat found;
    int file;

    if (!is_plain(path, length) || (file = open(path, flags)) < 0)
        return 0;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size < small) {
#ifdef __APPLE__
        struct timespec modified = found.st_mtimespec, changed = found.st_ctimespec;
#else
        struct timespec modified = found.st_mtim, changed = found.st_ctim;
#endif
        whole = BLOCK + ((size_t)found.st_size + BLOCK - 1) / BLOCK * BLOCK;
        /* One byte more than it has, so that a file that grew shows itself. */
        if (whole + 1 <= room &&
            read(file, tar + BLOCK, (size_t)found.st_size + 1) == found.st_size) {
            size_t end = BLOCK + (size_t)found.st_size;
            write_header(tar, path, length, found.st_size, kept_mode(found.st_mode));
            memset(tar + end, 0, whole - end);
            *crc = crc_of(0, (unsigned char *)tar + BLOCK, (size_t)found.st_size);
            facts[0] = found.st_size;
            facts[1] = nanoseconds(modified);
            facts[2] = found.st_mode;
            facts[3] = (int64_t)found.st_ino;
            facts[4] = nanoseconds(changed);
            taken = whole;
        }
    }
    close(file);
    return taken;
}

/* The first of so many files in tar form, up to `room` bytes or to one that is not an ordinary file of
   less than `small` bytes. Each name ends with a zero. Five numbers and a crc32 are told of each.
   How many were taken; `used` tells how many bytes of `tar` that are, the others mean nothing. */
EXPORTED int64_t rabaska_take(const char *names, int64_t count, int flags, int64_t small, char *tar,
                              int64_t room, int64_t *facts, uint32_t *crcs, int64_t *used)
{
    int64_t taken = 0;

    for (*used = 0; taken < count; taken++) {
        size_t length = strlen(names);
        size_t step = take_one(names, length, flags, small, tar + *used, (size_t)(room - *used),
                               facts + taken * NUMBERS, crcs + taken);
        if (step == 0)
            break;
        names += length + 1;
        *used += (int64_t)step;
    }
    return taken;
}

/* ---- the index ---- */

static char *put(char *at, uint64_t value, int bytes)
{
    for (int byte = 0; byte < bytes; byte++)
        *at++ = (char)(value >> (8 * byte));
    return at;
}

/* The index records of files that follow one another from `offset` in their shard, each after a header
   of so many bytes. Facts and crcs are those of `rabaska_take`. */
EXPORTED void rabaska_records(int64_t count, const uint32_t *lengths, const int64_t *facts,
                              const uint32_t *crcs, const int32_t *labels, uint64_t header,
                              uint64_t offset, uint64_t names_at, char *records)
{
    for (int64_t place = 0; place < count; place++, facts += NUMBERS) {
        uint64_t size = (uint64_t)facts[0];

        records = put(records, offset + header, 8);
        records = put(records, size, 8);
        records = put(records, (uint64_t)TIME * (uint64_t)SECOND, 8);
        records = put(records, names_at, 8);
        records = put(records, lengths[place], 4);
        records = put(records, 0, 8); /* no target, no shard yet */
        records = put(records, crcs[place], 4);
        records = put(records, (uint64_t)kept_mode(facts[2]), 4);
        records = put(records, 0, 4); /* a file */
        records = put(records, (uint64_t)labels[place], 4);
        records = put(records, 0, 4);
        offset += header + (size + BLOCK - 1) / BLOCK * BLOCK;
        names_at += lengths[place];
    }
}
