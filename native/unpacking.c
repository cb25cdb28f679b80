/* Small files out of a shard into the folders they came from, many at once. */

#include "native.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>

enum { LONGEST_BASE = 255 };
enum { TOGETHER = 128 }; /* files that are open at once: systems allow 256 or more */

/* Never through a link, never over something that is there. */
static const int CREATE = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
static const int FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/* Where files come from: an index, and a part of the shard in which they shall lie. */
typedef struct {
    const unsigned char *records; /* of files, from the first */
    const char *names;
    uint64_t names_size;
    const unsigned char *window;
    uint64_t offset, size; /* of the window in its shard */
    uint32_t shard;
} Source;

typedef struct {
    uint64_t offset, size, name_at, name_end;
    int64_t time;
    const char *name;
    size_t length, base; /* of the name, and where its last part begins */
    uint32_t shard, crc;
    mode_t mode;
} Entry;

/* Files of one folder that are written together. */
typedef struct {
    Entry entries[TOGETHER];
    const unsigned char *contents[TOGETHER];
    int count;
} Portion;

static int is_step(const char *part, size_t length)
{
    return length == 0 || (length == 1 && part[0] == '.') ||
           (length == 2 && part[0] == '.' && part[1] == '.');
}

/* Where the last part of a name begins; its length if the name may not be written. */
static size_t base_of(const char *name, size_t length)
{
    size_t base = 0;

    for (size_t place = 0; place <= length; place++)
        if (place == length || name[place] == '/') {
            if (is_step(name + base, place - base))
                return length;
            if (place < length)
                base = place + 1;
        } else if (name[place] == 0)
            return length;
    return base;
}

/* The entry at `position`; 0 if it is not an ordinary file with an ordinary name. */
static int read_entry(const Source *source, int64_t position, Entry *entry)
{
    const unsigned char *record = source->records + position * RECORD;
    uint64_t length = number(record + 32, 4), target = number(record + 36, 4);
    uint64_t mode = number(record + 48, 4), kind = number(record + 52, 4);

    entry->offset = number(record, 8);
    entry->size = number(record + 8, 8);
    entry->time = (int64_t)number(record + 16, 8);
    entry->name_at = number(record + 24, 8);
    entry->shard = (uint32_t)number(record + 40, 4);
    entry->crc = (uint32_t)number(record + 44, 4);
    entry->mode = (mode_t)mode;
    if (kind != 0 || target != 0 || mode > PERMISSIONS || length > PATH_MAX ||
        entry->name_at > source->names_size || length > source->names_size - entry->name_at)
        return 0;
    entry->name = source->names + entry->name_at;
    entry->name_end = entry->name_at + length;
    entry->length = (size_t)length;
    entry->base = base_of(entry->name, entry->length);
    return entry->base < entry->length && entry->length - entry->base <= LONGEST_BASE;
}

/* Whether an entry comes right after another, in the order of names and in its shard. */
static int follows(const Entry *before, const Entry *entry)
{
    size_t common = before->length < entry->length ? before->length : entry->length;
    int order = memcmp(before->name, entry->name, common);

    return before->name_end == entry->name_at &&
           (order < 0 || (order == 0 && before->length < entry->length)) &&
           (before->shard != entry->shard ||
            before->offset + before->size + BLOCK <= entry->offset);
}

/* The content of an entry, if the window holds it and it is what was packed. */
static const unsigned char *content_of(const Source *source, const Entry *entry)
{
    uint64_t start = entry->offset - source->offset;

    if (entry->offset < BLOCK || entry->offset % BLOCK || entry->offset < source->offset ||
        start > source->size || entry->size > source->size - start ||
        crc_of(0, source->window + start, (size_t)entry->size) != entry->crc)
        return NULL;
    return source->window + start;
}

static int in_one_folder(const Entry *one, const Entry *other)
{
    return one->base == other->base && memcmp(one->name, other->name, one->base) == 0;
}

static char *copied(char *room, const char *begin, const char *end)
{
    memcpy(room, begin, (size_t)(end - begin));
    room[end - begin] = 0;
    return room;
}

/* The folder of an entry. Only folders of the pack are there yet, and no links. */
static int open_folder(int top, const Entry *entry)
{
    char path[PATH_MAX + 1];

    if (entry->base == 0)
        return openat(top, ".", FOLDER);
    return openat(top, copied(path, entry->name, entry->name + entry->base - 1), FOLDER);
}

static int create(int folder, const Entry *entry)
{
    char base[LONGEST_BASE + 1];

    return openat(folder, copied(base, entry->name + entry->base, entry->name + entry->length),
                  CREATE, entry->mode);
}

static void remove_again(int folder, const Entry *entry)
{
    char base[LONGEST_BASE + 1];

    unlinkat(folder, copied(base, entry->name + entry->base, entry->name + entry->length), 0);
}

static int set_time(int file, int64_t time)
{
    int64_t seconds = time / SECOND, rest = time % SECOND;

    if (rest < 0) { /* before 1970 */
        seconds -= 1;
        rest += SECOND;
    }
    struct timespec when = {(time_t)seconds, (long)rest}, times[] = {when, when};

    return futimens(file, times) == 0;
}

/* Close files, in one call if their numbers follow one another: they do, unless a thread that reads
   ahead opened or closed something meanwhile. */
static void close_all(const int *files, int count)
{
#ifdef SYS_close_range
    int first = INT_MAX, last = 0;

    for (int place = 0; place < count; place++) {
        first = files[place] < first ? files[place] : first;
        last = files[place] > last ? files[place] : last;
    }
    if (count > 0 && last - first < count && syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    for (int place = 0; place < count; place++)
        close(files[place]);
}

/* Write files that lie in one folder, every step for all of them, which the system does sooner than
   every file after the other. How many of the first were written; nothing is left of the others. */
static int write_here(int folder, const Portion *portion)
{
    const Entry *entries = portion->entries;
    int files[TOGETHER], made = 0, filled = 0, dated = 0;

    while (made < portion->count && (files[made] = create(folder, entries + made)) >= 0)
        made++;
    while (filled < made && write(files[filled], portion->contents[filled], entries[filled].size) ==
                                (ssize_t)entries[filled].size)
        filled++;
    while (dated < filled && set_time(files[dated], entries[dated].time))
        dated++;
    close_all(files, made);
    for (int place = dated; place < made; place++)
        remove_again(folder, entries + place);
    return dated;
}

/* The next files from `position` on that lie in one folder and are ordinary. */
static void gather(const Source *source, int64_t position, int64_t end, Portion *portion)
{
    Entry before = {.name = ""}, *entry = portion->entries;

    portion->count = 0;
    if (position > 0 && !read_entry(source, position - 1, &before))
        return;
    for (; position < end && portion->count < TOGETHER; position++, entry++) {
        if (!read_entry(source, position, entry) || entry->shard != source->shard ||
            !follows(&before, entry) || (portion->count && !in_one_folder(&before, entry)) ||
            (portion->contents[portion->count] = content_of(source, entry)) == NULL)
            return;
        portion->count++;
        before = *entry;
    }
}

static int64_t write_all(const Source *source, int64_t begin, int64_t end, int top)
{
    int64_t position = begin;
    Portion *portion = malloc(sizeof *portion);
    int folder, written;

    if (portion == NULL)
        return 0;
    do {
        gather(source, position, end, portion);
        written = 0;
        if (portion->count && (folder = open_folder(top, portion->entries)) >= 0) {
            written = write_here(folder, portion);
            close(folder);
        }
        position += written;
    } while (written && written == portion->count);
    free(portion);
    return position - begin;
}

/* Write the files from `begin` to `end` of an index, which has so many, below the open folder `top`.
   They lie in `window`, which is what the shard holds from `offset` on. How many were written: up to
   the first that is not ordinary, not what was packed, or could not be written. */
EXPORTED int64_t rabaska_unpack(const unsigned char *index, int64_t index_size, int64_t files,
                                int64_t names_at, int64_t begin, int64_t end, uint32_t shard,
                                const unsigned char *window, uint64_t size, uint64_t offset,
                                int top)
{
    if (begin < 0 || begin > end || end > files || names_at > index_size || names_at < HEADER ||
        files > (names_at - HEADER) / RECORD)
        return 0; /* the index is shorter than that */
    Source source = {
        .records = index + HEADER, .names = (const char *)index + names_at,
        .names_size = (uint64_t)(index_size - names_at), .window = window,
        .offset = offset, .size = size, .shard = shard,
    };
    return write_all(&source, begin, end, top);
}
