/* Small files into tar form, many at once, and their records in the index. */

#include "native.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_ROOM = 100 };

/* What a pack keeps of a mode: whether its owner may run the file. */
int kept_mode(int64_t mode)
{
    return mode & S_IXUSR ? PROGRAM : PLAIN;
}

/* As Python counts it; what is more than 64 bits hold, wraps. */
int64_t nanoseconds(struct timespec time)
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

static void write_block(char *block, const char *name, size_t length, int64_t size, int mode,
                        char kind, uint64_t time)
{
    unsigned sum = 0;

    memset(block, 0, BLOCK);
    memcpy(block, name, length);
    octal(block + 100, 7, (uint64_t)mode);
    memcpy(block + 108, "0000000\0000000000", 15);
    octal(block + 124, 11, (uint64_t)size);
    octal(block + 136, 11, time);
    memset(block + 148, ' ', 8);
    block[156] = kind;
    memcpy(block + 257, "ustar\00000", 8);
    memcpy(block + 329, "0000000\0000000000", 15);
    for (int place = 0; place < BLOCK; place++)
        sum += (unsigned char)block[place];
    octal(block + 148, 6, sum);
    block[154] = 0;
}

static void write_header(char *block, const char *name, size_t length, int64_t size, int mode)
{
    write_block(block, name, length, size, mode, '0', TIME);
}

/* Whether these bytes are UTF-8, as RFC 3629 has it. */
static int is_utf8(const unsigned char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        unsigned first = text[at++], more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;

        if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || length - at < more)
            return 0;
        for (; more; more--, at++, low = 0x80, high = 0xBF)
            if (text[at] < low || text[at] > high)
                return 0;
    }
    return 1;
}

static size_t digits(size_t value)
{
    size_t count = 1;

    while (value /= 10)
        count++;
    return count;
}

/* A header that says a name which plain tar cannot say, after one that says so; its length. */
static size_t write_pax(char *at, const char *name, size_t length, int64_t size, int mode)
{
    char shown[NAME_ROOM], *place = at + BLOCK;
    size_t room = length < NAME_ROOM ? length : NAME_ROOM, rest = length + 7, whole;

    /* `<length> path=<name>` and a newline, where the length counts its own digits. */
    whole = rest + digits(rest);
    whole = rest + digits(whole);
    size_t padded = (whole + BLOCK - 1) / BLOCK * BLOCK;
    write_block(at, "././@PaxHeader", 14, (int64_t)whole, PLAIN, 'x', 0);
    memset(place, 0, padded);
    for (size_t left = digits(whole), value = whole; left; value /= 10)
        place[--left] = (char)('0' + value % 10);
    place += digits(whole);
    memcpy(place, " path=", 6);
    memcpy(place + 6, name, length);
    place[6 + length] = '\n';
    for (size_t i = 0; i < room; i++)
        shown[i] = name[i] & 0x80 ? '?' : name[i];
    write_header(at + BLOCK + padded, shown, room, size, mode);
    return 2 * BLOCK + padded;
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

/* How long the header of a file is, or 0 if Python has to say it. */
size_t header_length(const char *name, size_t length, int64_t size)
{
    size_t whole = length + 7 + digits(length + 7);

    if (size > LARGEST)
        return 0;
    if (is_plain(name, length))
        return BLOCK;
    whole = length + 7 + digits(whole);
    return is_utf8((const unsigned char *)name, length)
               ? 2 * BLOCK + (whole + BLOCK - 1) / BLOCK * BLOCK
               : 0;
}

/* The header of a file at `at`, where there is room for any; its length, or 0 if Python has to say it. */
size_t write_any_header(char *at, const char *name, size_t length, int64_t size, int mode)
{
    if (size > LARGEST)
        return 0;
    if (is_plain(name, length)) {
        write_header(at, name, length, size, mode);
        return BLOCK;
    }
    return is_utf8((const unsigned char *)name, length) ? write_pax(at, name, length, size, mode) : 0;
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
                               facts + taken * FACTS, crcs + taken);
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

char *write_record(char *at, uint64_t offset, uint64_t size, uint64_t names_at, uint32_t length,
                   uint32_t crc, int mode, int32_t label)
{
    at = put(at, offset, 8);
    at = put(at, size, 8);
    at = put(at, (uint64_t)TIME * (uint64_t)SECOND, 8);
    at = put(at, names_at, 8);
    at = put(at, length, 4);
    at = put(at, 0, 8); /* no target, no shard yet */
    at = put(at, crc, 4);
    at = put(at, (uint64_t)mode, 4);
    at = put(at, 0, 4); /* a file */
    at = put(at, (uint64_t)label, 4);
    return put(at, 0, 4);
}

/* The index records of files that follow one another from `offset` in their shard, each after a header
   of so many bytes. Facts and crcs are those of `rabaska_take`. */
EXPORTED void rabaska_records(int64_t count, const uint32_t *lengths, const int64_t *facts,
                              const uint32_t *crcs, const int32_t *labels, uint64_t header,
                              uint64_t offset, uint64_t names_at, char *records)
{
    for (int64_t place = 0; place < count; place++, facts += FACTS) {
        uint64_t size = (uint64_t)facts[0];

        records = write_record(records, offset + header, size, names_at, lengths[place],
                               crcs[place], kept_mode(facts[2]), labels[place]);
        offset += header + (size + BLOCK - 1) / BLOCK * BLOCK;
        names_at += lengths[place];
    }
}
