/* What rabaska.packing.taking does in Python, for many small files at once and without the GIL:
   the same bytes, sooner. Nothing here decides anything; what is not small and ordinary is left
   to Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define FOLDING 1
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

#ifdef FOLDING
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
#ifdef FOLDING
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

static PyMethodDef functions[] = {
    {"take", take, METH_VARARGS, take_doc},
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
#ifdef FOLDING
    can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
    return PyModule_Create(&definition);
}
