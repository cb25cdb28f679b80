/* What rabaska.packing.taking does in Python, for many small files at once and without the GIL:
   the same bytes, sooner. Nothing here decides anything; what is not small and ordinary is left
   to Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define INTRINSICS 1
#include <cpuid.h>
#include <immintrin.h>
#endif

enum { BLOCK = 512, NAME_ROOM = 100, NUMBERS = 5, RECORD = 64, PERMISSIONS = 0777 };

static const int64_t LATEST_TIME = 077777777777; /* the most that plain tar can say */
static const int64_t SECOND = 1000000000;

/* ---- crc32: eight bytes at a time by tables, or 64 by the multiplication of polynomials ---- */

static uint32_t tables[8][256];

static void make_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
        tables[0][byte] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = tables[table - 1][byte];
            tables[table][byte] = before >> 8 ^ tables[0][before & 0xFF];
        }
}

static uint32_t by_tables(uint32_t crc, const unsigned char *data, size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 |
                              (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24);
        crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
              tables[4][low >> 24] ^ tables[3][data[4]] ^ tables[2][data[5]] ^
              tables[1][data[6]] ^ tables[0][data[7]];
    }
    while (size--)
        crc = crc >> 8 ^ tables[0][(crc ^ *data++) & 0xFF];
    return crc;
}

#ifdef INTRINSICS
/* "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t
by_folding(uint32_t crc, const unsigned char *data, size_t size)
{
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i reducing = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i mask = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i *at = (const __m128i *)data;
    __m128i lanes[4], sum;

    for (int lane = 0; lane < 4; lane++)
        lanes[lane] = _mm_loadu_si128(at++);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
    for (size -= 64; size >= 64; size -= 64)
        for (int lane = 0; lane < 4; lane++) {
            __m128i low = _mm_clmulepi64_si128(lanes[lane], by_512, 0x00);
            __m128i high = _mm_clmulepi64_si128(lanes[lane], by_512, 0x11);
            lanes[lane] = _mm_xor_si128(_mm_xor_si128(low, high), _mm_loadu_si128(at++));
        }
    sum = lanes[0];
    for (int lane = 1; lane < 4 + (int)(size / 16); lane++) {
        __m128i low = _mm_clmulepi64_si128(sum, by_128, 0x00);
        __m128i high = _mm_clmulepi64_si128(sum, by_128, 0x11);
        __m128i next = lane < 4 ? lanes[lane] : _mm_loadu_si128(at++);
        sum = _mm_xor_si128(_mm_xor_si128(low, high), next);
    }
    /* 128 bits to 64, then to 32. */
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_128, 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(sum, mask), by_64, 0x00));
    __m128i part = _mm_clmulepi64_si128(_mm_and_si128(sum, mask), reducing, 0x10);
    part = _mm_clmulepi64_si128(_mm_and_si128(part, mask), reducing, 0x00);
    crc = (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, part), 1);
    return by_tables(crc, (const unsigned char *)at, size % 16);
}

static int can_fold;
#endif

static uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size)
{
    crc = ~crc;
#ifdef INTRINSICS
    if (can_fold && size >= 64)
        return ~by_folding(crc, data, size);
#endif
    return ~by_tables(crc, data, size);
}

static uint32_t product(uint32_t one, uint32_t other)
{
    uint32_t found = 0;
    for (; one; one <<= 1) {
        if (one & 0x80000000)
            found ^= other;
        other = other >> 1 ^ (other & 1 ? 0xEDB88320 : 0);
    }
    return found;
}

PyDoc_STRVAR(joined_doc,
"joined(first, second, length) -> int\n\n"
"The crc32 of two parts one after the other, of which the second has `length` bytes.");

static PyObject *joined(PyObject *module, PyObject *arguments)
{
    unsigned int first, second;
    unsigned long long length;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "IIK:joined", &first, &second, &length))
        return NULL;
    /* `first` times x to the power of the bits that follow it. */
    for (uint32_t square = 0x00800000; length; length >>= 1, square = product(square, square))
        if (length & 1)
            first = product(square, first);
    return PyLong_FromUnsignedLong(first ^ second);
}

/* ---- tar ---- */

static void octal(char *field, int digits, uint64_t value)
{
    while (digits--) {
        field[digits] = (char)('0' + (value & 7));
        value >>= 3;
    }
}

static void write_header(char *block, const char *name, size_t length, int64_t size, int mode,
                         int64_t seconds)
{
    unsigned sum = 0;

    memset(block, 0, BLOCK);
    memcpy(block, name, length);
    octal(block + 100, 7, (uint64_t)mode);
    memcpy(block + 108, "0000000\0000000000", 15);
    octal(block + 124, 11, (uint64_t)size);
    octal(block + 136, 11, (uint64_t)seconds);
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
static size_t take_one(PyObject *name, int flags, int64_t small, char *tar, size_t room,
                       int64_t *facts, uint32_t *crc)
{
    const char *path = PyBytes_AS_STRING(name);
    size_t length = (size_t)PyBytes_GET_SIZE(name), taken = 0, whole;
    struct stat found;
    int64_t seconds;
    int file;

    if (!is_plain(path, length) || (file = open(path, flags)) < 0)
        return 0;
    if (fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size < small) {
#ifdef __APPLE__
        struct timespec modified = found.st_mtimespec, changed = found.st_ctimespec;
#else
        struct timespec modified = found.st_mtim, changed = found.st_ctim;
#endif
        seconds = modified.tv_sec;
        whole = BLOCK + ((size_t)found.st_size + BLOCK - 1) / BLOCK * BLOCK;
        /* One byte more than it has, so that a file that grew shows itself. */
        if (seconds >= 0 && seconds <= LATEST_TIME && whole + 1 <= room &&
            read(file, tar + BLOCK, (size_t)found.st_size + 1) == found.st_size) {
            size_t end = BLOCK + (size_t)found.st_size;
            write_header(tar, path, length, found.st_size, found.st_mode & PERMISSIONS, seconds);
            memset(tar + end, 0, whole - end);
            *crc = crc_of(0, (unsigned char *)tar + BLOCK, (size_t)found.st_size);
            facts[0] = found.st_size;
            facts[1] = seconds * SECOND + modified.tv_nsec;
            facts[2] = found.st_mode;
            facts[3] = found.st_ino > INT64_MAX ? INT64_MAX : (int64_t)found.st_ino;
            facts[4] = (int64_t)changed.tv_sec * SECOND + changed.tv_nsec;
            taken = whole;
        }
    }
    close(file);
    return taken;
}

PyDoc_STRVAR(take_doc,
"take(names, flags, small, room) -> (tar, used, facts, crcs)\n\n"
"The first of these files in tar form, up to `room` bytes or to one that is not an ordinary file\n"
"of less than `small` bytes; how many bytes of `tar` that are, the others mean nothing; five\n"
"numbers (int64) and a crc32 (uint32) for each.");

static PyObject *take(PyObject *module, PyObject *arguments)
{
    PyObject *given, *tar = NULL, *facts = NULL, *crcs = NULL, *answer = NULL;
    Py_ssize_t room, count, taken = 0, used = 0;
    long long small;
    int flags;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!iLn:take", &PyList_Type, &given, &flags, &small, &room))
        return NULL;
    PyObject *names = PyList_AsTuple(given); /* nobody can change that meanwhile */
    if (names == NULL)
        return NULL;
    count = PyTuple_GET_SIZE(names);
    for (Py_ssize_t place = 0; place < count; place++)
        if (!PyBytes_Check(PyTuple_GET_ITEM(names, place))) {
            PyErr_SetString(PyExc_TypeError, "names are bytes");
            goto done;
        }
    tar = PyBytes_FromStringAndSize(NULL, room);
    facts = PyBytes_FromStringAndSize(NULL, count * NUMBERS * (Py_ssize_t)sizeof(int64_t));
    crcs = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint32_t));
    if (tar == NULL || facts == NULL || crcs == NULL)
        goto done;

    char *at = PyBytes_AS_STRING(tar);
    int64_t *numbers = (int64_t *)PyBytes_AS_STRING(facts);
    uint32_t *sums = (uint32_t *)PyBytes_AS_STRING(crcs);
    Py_BEGIN_ALLOW_THREADS
    for (; taken < count; taken++) {
        size_t step = take_one(PyTuple_GET_ITEM(names, taken), flags, small, at + used,
                               (size_t)(room - used), numbers + taken * NUMBERS, sums + taken);
        if (step == 0)
            break;
        used += (Py_ssize_t)step;
    }
    Py_END_ALLOW_THREADS

    /* What is nearly full is handed over as it is: the allocator gives the same memory again, which
       is still in the cache, while it would ask the system for a new size each time. */
    if ((used >= room / 2 || _PyBytes_Resize(&tar, used) == 0) &&
        _PyBytes_Resize(&facts, taken * NUMBERS * (Py_ssize_t)sizeof(int64_t)) == 0 &&
        _PyBytes_Resize(&crcs, taken * (Py_ssize_t)sizeof(uint32_t)) == 0)
        answer = Py_BuildValue("OnOO", tar, used, facts, crcs);
done:
    Py_DECREF(names);
    Py_XDECREF(tar);
    Py_XDECREF(facts);
    Py_XDECREF(crcs);
    return answer;
}

/* ---- folders ---- */

typedef struct {
    const char *text; /* known once all are read */
    size_t at, length;
} name;

typedef struct {
    char *text;
    name *names;
    size_t used, room, count, most;
} folder;

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
    into->names[into->count++] = (name){NULL, into->used, length};
    into->used += length;
    return 1;
}

static int by_bytes(const void *one, const void *other)
{
    const name *first = one, *second = other;
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

PyDoc_STRVAR(leaf_doc,
"leaf(path, prefix) -> (text, lengths, crcs) or None\n\n"
"The names of the files in a folder in the order of their bytes, each after `prefix`: one text,\n"
"and the length and crc32 (uint32) of each. None if it holds anything else or cannot be read.");

static PyObject *leaf(PyObject *module, PyObject *arguments)
{
    PyObject *text = NULL, *lengths = NULL, *crcs = NULL, *answer = NULL;
    const char *path, *prefix;
    Py_ssize_t before;
    folder found = {0};
    int plain;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "yy#:leaf", &path, &prefix, &before))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    plain = read_leaf(path, &found);
    Py_END_ALLOW_THREADS
    if (plain) {
        Py_ssize_t count = (Py_ssize_t)found.count;
        text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)found.used + count * before);
        lengths = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint32_t));
        crcs = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(uint32_t));
    }
    if (text != NULL && lengths != NULL && crcs != NULL) {
        char *at = PyBytes_AS_STRING(text);
        for (size_t place = 0; place < found.count; place++) {
            const name *one = found.names + place;
            size_t length = (size_t)before + one->length;
            memcpy(at, prefix, (size_t)before);
            memcpy(at + before, one->text, one->length);
            ((uint32_t *)PyBytes_AS_STRING(lengths))[place] = (uint32_t)length;
            ((uint32_t *)PyBytes_AS_STRING(crcs))[place] = crc_of(0, (unsigned char *)at, length);
            at += length;
        }
        answer = PyTuple_Pack(3, text, lengths, crcs);
    }
    Py_XDECREF(text);
    Py_XDECREF(lengths);
    Py_XDECREF(crcs);
    free(found.text);
    free(found.names);
    return plain ? answer : Py_NewRef(Py_None);
}

/* ---- the index ---- */

static char *put(char *at, uint64_t value, int bytes)
{
    for (int byte = 0; byte < bytes; byte++)
        *at++ = (char)(value >> (8 * byte));
    return at;
}

PyDoc_STRVAR(records_doc,
"records(lengths, facts, crcs, labels, header, offset, names_at) -> bytes\n\n"
"The index records of files that follow one another from `offset` in their shard, each after a\n"
"header of so many bytes. Lengths of names (uint32), facts (int64) and crcs (uint32) are buffers\n"
"as `take` gives them; labels are int32.");

static PyObject *records(PyObject *module, PyObject *arguments)
{
    Py_buffer lengths, facts, crcs, labels;
    unsigned long long header, offset, names_at;
    PyObject *answer = NULL;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*KKK:records", &lengths, &facts, &crcs, &labels,
                          &header, &offset, &names_at))
        return NULL;
    Py_ssize_t count = crcs.len / 4;
    if (lengths.len != count * 4 || labels.len != count * 4 || facts.len != count * NUMBERS * 8)
        PyErr_SetString(PyExc_ValueError, "the columns are not equally long");
    else
        answer = PyBytes_FromStringAndSize(NULL, count * RECORD);
    if (answer != NULL) {
        char *at = PyBytes_AS_STRING(answer);
        const int64_t *fact = facts.buf;
        for (Py_ssize_t place = 0; place < count; place++, fact += NUMBERS) {
            uint64_t size = (uint64_t)fact[0];
            uint32_t length = ((const uint32_t *)lengths.buf)[place];
            at = put(at, offset + header, 8);
            at = put(at, size, 8);
            at = put(at, (uint64_t)fact[1], 8);
            at = put(at, names_at, 8);
            at = put(at, length, 4);
            at = put(at, 0, 8); /* no target, no shard yet */
            at = put(at, ((const uint32_t *)crcs.buf)[place], 4);
            at = put(at, (uint64_t)fact[2] & PERMISSIONS, 4);
            at = put(at, 0, 4); /* a file */
            at = put(at, (uint64_t)((const int32_t *)labels.buf)[place], 4);
            at = put(at, 0, 4);
            offset += header + (size + BLOCK - 1) / BLOCK * BLOCK;
            names_at += length;
        }
    }
    PyBuffer_Release(&lengths);
    PyBuffer_Release(&facts);
    PyBuffer_Release(&crcs);
    PyBuffer_Release(&labels);
    return answer;
}

PyDoc_STRVAR(crc32_doc, "crc32(data, value=0) -> int\n\nAs zlib.crc32 gives it.");

static PyObject *crc32(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    unsigned int crc = 0;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*|I:crc32", &data, &crc))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    crc = crc_of(crc, data.buf, (size_t)data.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(crc);
}

/* ---- sha256 of two at once: each step waits for the one before it, so there is time for two ---- */

#ifdef INTRINSICS
enum { DIGEST_BLOCK = 64, STATE = 32 };

static const uint32_t ROUNDS[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

typedef struct {
    __m128i abef, cdgh;
} state;

/* The instructions want the eight words a … h in another order than everybody else. */
__attribute__((target("sse4.1"))) static state loaded(const char *words)
{
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words), 0xB1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)words + 1), 0x1B);
    return (state){_mm_alignr_epi8(low, high, 8), _mm_blend_epi16(high, low, 0xF0)};
}

__attribute__((target("sse4.1"))) static void stored(state from, char *words)
{
    __m128i low = _mm_shuffle_epi32(from.abef, 0x1B), high = _mm_shuffle_epi32(from.cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)words, _mm_blend_epi16(low, high, 0xF0));
    _mm_storeu_si128((__m128i *)words + 1, _mm_alignr_epi8(high, low, 8));
}

/* Always inlined with a constant number of lanes, so that all of it stays in registers. */
__attribute__((target("sha,sse4.1"), always_inline)) static inline void
digest_lanes(char *const *states, const char *const *data, size_t blocks, const int lanes)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    state now[2], before[2];
    __m128i words[2][4];

    for (int lane = 0; lane < lanes; lane++)
        now[lane] = loaded(states[lane]);
    for (size_t block = 0; block < blocks; block++) {
        for (int lane = 0; lane < lanes; lane++) {
            const __m128i *at = (const __m128i *)(data[lane] + block * DIGEST_BLOCK);
            before[lane] = now[lane];
            for (int word = 0; word < 4; word++)
                words[lane][word] = _mm_shuffle_epi8(_mm_loadu_si128(at + word), swap);
        }
#pragma GCC unroll 16
        for (int step = 0; step < 16; step++)
#pragma GCC unroll 2
            for (int lane = 0; lane < lanes; lane++) {
                state *const one = now + lane;
                __m128i *const word = words[lane], last = word[(step + 3) & 3];
                __m128i sum = _mm_add_epi32(word[step & 3], ((const __m128i *)ROUNDS)[step]);
                one->cdgh = _mm_sha256rnds2_epu32(one->cdgh, one->abef, sum);
                sum = _mm_shuffle_epi32(sum, 0x0E);
                one->abef = _mm_sha256rnds2_epu32(one->abef, one->cdgh, sum);
                if (step < 12) {
                    sum = _mm_sha256msg1_epu32(word[step & 3], word[(step + 1) & 3]);
                    sum = _mm_add_epi32(sum, _mm_alignr_epi8(last, word[(step + 2) & 3], 4));
                    word[step & 3] = _mm_sha256msg2_epu32(sum, last);
                }
            }
        for (int lane = 0; lane < lanes; lane++) {
            now[lane].abef = _mm_add_epi32(now[lane].abef, before[lane].abef);
            now[lane].cdgh = _mm_add_epi32(now[lane].cdgh, before[lane].cdgh);
        }
    }
    for (int lane = 0; lane < lanes; lane++)
        stored(now[lane], states[lane]);
}

__attribute__((target("sha,sse4.1"))) static void digest_one(char *const *states,
                                                             const char *const *data, size_t blocks)
{
    digest_lanes(states, data, blocks, 1);
}

__attribute__((target("sha,sse4.1"))) static void digest_two(char *const *states,
                                                             const char *const *data, size_t blocks)
{
    digest_lanes(states, data, blocks, 2);
}

PyDoc_STRVAR(digest_doc,
"digest(state, data[, other_state, other_data])\n\n"
"Carry sha256 on by whole blocks of 64 bytes: a state is eight words that change. Two of equal\n"
"length take little longer than one.");

static PyObject *digest(PyObject *module, PyObject *arguments)
{
    Py_buffer states[2] = {{0}}, data[2] = {{0}};
    PyObject *answer = NULL;

    (void)module;
    if (!PyArg_ParseTuple(arguments, "w*y*|w*y*:digest", states, data, states + 1, data + 1))
        return NULL;
    int both = data[1].obj != NULL;
    if (states[0].len != STATE || data[0].len % DIGEST_BLOCK ||
        (both && (states[1].len != STATE || data[1].len != data[0].len)))
        PyErr_SetString(PyExc_ValueError, "no state, no whole blocks, or not equally many");
    else {
        char *const words[2] = {states[0].buf, states[1].buf};
        const char *const bytes[2] = {data[0].buf, data[1].buf};
        Py_BEGIN_ALLOW_THREADS
        (both ? digest_two : digest_one)(words, bytes, (size_t)data[0].len / DIGEST_BLOCK);
        Py_END_ALLOW_THREADS
        answer = Py_NewRef(Py_None);
    }
    for (int lane = 0; lane < 2; lane++) {
        PyBuffer_Release(states + lane);
        PyBuffer_Release(data + lane);
    }
    return answer;
}

static PyMethodDef digesting[] = {
    {"digest", digest, METH_VARARGS, digest_doc},
    {NULL, NULL, 0, NULL},
};

static int can_digest(void)
{
    unsigned a, b, c, d;
    return can_fold && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}
#endif

static PyMethodDef functions[] = {
    {"take", take, METH_VARARGS, take_doc},
    {"leaf", leaf, METH_VARARGS, leaf_doc},
    {"records", records, METH_VARARGS, records_doc},
    {"crc32", crc32, METH_VARARGS, crc32_doc},
    {"joined", joined, METH_VARARGS, joined_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rabaska_speed", .m_size = 0, .m_methods = functions,
    .m_doc = "Small files into tar form, many at a time.",
};

PyMODINIT_FUNC PyInit_rabaska_speed(void)
{
    make_tables();
#ifdef INTRINSICS
    can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
    PyObject *module = PyModule_Create(&definition);
#ifdef INTRINSICS
    if (module != NULL && can_digest() && PyModule_AddFunctions(module, digesting) < 0)
        Py_CLEAR(module);
#endif
    return module;
}
