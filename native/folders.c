/* The names of the files in a folder that holds nothing else. */

#include "native.h"

#include <dirent.h>
#include <errno.h>

typedef struct {
    const char *text; /* known once all are read */
    size_t at, length;
    uint64_t start; /* its first bytes, as a number that sorts like them: most names differ there */
} name;

enum { START = sizeof(uint64_t) };

typedef struct {
    char *text;
    name *names;
    size_t used, room, count, most;
} folder;

static uint64_t start_of(const char *text, size_t length)
{
    uint64_t start = 0;

    for (size_t place = 0; place < START; place++)
        start = start << 8 | (place < length ? (unsigned char)text[place] : 0);
    return start;
}

static int add_name(folder *into, const char *text)
{
    size_t length = strlen(text);

    if (into->used + length > into->room) {
        char *larger = realloc(into->text, into->room = 2 * into->room + length + 4096);
        if (larger == NULL)
            return 0;
        into->text = larger;
    }
    if (into->count == into->most) {
        name *larger = realloc(into->names, (into->most = 2 * into->most + 64) * sizeof(name));
        if (larger == NULL)
            return 0;
        into->names = larger;
    }
    memcpy(into->text + into->used, text, length);
    into->names[into->count++] = (name){NULL, into->used, length, start_of(text, length)};
    into->used += length;
    return 1;
}

static int by_bytes(const void *one, const void *other)
{
    const name *first = one, *second = other;
    if (first->start != second->start)
        return first->start < second->start ? -1 : 1;
    size_t both = first->length < second->length ? first->length : second->length;
    int found = memcmp(first->text, second->text, both);
    return found ? found : (first->length > second->length) - (first->length < second->length);
}

/* Reads a folder in order; 0 if that fails, or if it holds anything but plain files. */
static int read_leaf(const char *path, folder *into)
{
    DIR *stream = opendir(path);
    struct dirent *entry;
    int plain = stream != NULL;

    while (plain && (errno = 0, entry = readdir(stream)) != NULL)
        if (entry->d_type == DT_REG)
            plain = add_name(into, entry->d_name);
        else
            plain = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    plain = plain && errno == 0;
    if (stream != NULL)
        closedir(stream);
    for (size_t place = 0; place < into->count; place++)
        into->names[place].text = into->text + into->names[place].at;
    if (plain && into->count)
        qsort(into->names, into->count, sizeof(name), by_bytes);
    return plain;
}

/* The names of the files in a folder, in the order of their bytes, for `rabaska_names`; how many they
   are, and how long all together. NULL if it holds anything else or cannot be read. */
EXPORTED folder *rabaska_folder(const char *path, uint64_t *count, uint64_t *length)
{
    folder *found = calloc(1, sizeof *found);

    if (found == NULL)
        return NULL;
    if (!read_leaf(path, found)) {
        free(found->text);
        free(found->names);
        free(found);
        return NULL;
    }
    *count = found->count;
    *length = found->used;
    return found;
}

/* One text of all names, each after `prefix`, and the length and crc32 of each. The folder is freed. */
EXPORTED void rabaska_names(folder *found, const char *prefix, uint64_t before, char *text,
                            uint32_t *lengths, uint32_t *crcs)
{
    for (size_t place = 0; place < found->count; place++) {
        const name *one = found->names + place;
        size_t length = (size_t)before + one->length;

        memcpy(text, prefix, (size_t)before);
        memcpy(text + before, one->text, one->length);
        lengths[place] = (uint32_t)length;
        crcs[place] = crc_of(0, (unsigned char *)text, length);
        text += length;
    }
    free(found->text);
    free(found->names);
    free(found);
}
