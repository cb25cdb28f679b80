/* crc32: eight bytes at a time by tables, or 64 and 128 by the multiplication of polynomials, or by
   the instructions that ARM has for it. */

#include "native.h"

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
#define FOLDING target("pclmul,sse4.1")
#define FOLDING_WIDE target("pclmul,sse4.1,avx2,vpclmulqdq")

/* Lanes that follow one another, and then `size` bytes at `at`, as one crc. */
__attribute__((FOLDING)) static uint32_t reduced(const __m128i *lanes, int count, const __m128i *at,
                                                 size_t size)
{
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i reducing = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i mask = _mm_setr_epi32(-1, 0, -1, 0);
    __m128i sum = lanes[0];

    for (int lane = 1; lane < count + (int)(size / 16); lane++) {
        __m128i low = _mm_clmulepi64_si128(sum, by_128, 0x00);
        __m128i high = _mm_clmulepi64_si128(sum, by_128, 0x11);
        __m128i next = lane < count ? lanes[lane] : _mm_loadu_si128(at++);
        sum = _mm_xor_si128(_mm_xor_si128(low, high), next);
    }
    /* 128 bits to 64, then to 32. */
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_128, 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4),
                        _mm_clmulepi64_si128(_mm_and_si128(sum, mask), by_64, 0x00));
    __m128i part = _mm_clmulepi64_si128(_mm_and_si128(sum, mask), reducing, 0x10);
    part = _mm_clmulepi64_si128(_mm_and_si128(part, mask), reducing, 0x00);
    uint32_t crc = (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, part), 1);
    return by_tables(crc, (const unsigned char *)at, size % 16);
}

__attribute__((FOLDING)) static uint32_t by_folding(uint32_t crc, const unsigned char *data,
                                                    size_t size)
{
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i *at = (const __m128i *)data;
    __m128i lanes[4];

    for (int lane = 0; lane < 4; lane++)
        lanes[lane] = _mm_loadu_si128(at++);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128((int)crc));
    for (size -= 64; size >= 64; size -= 64)
        for (int lane = 0; lane < 4; lane++) {
            __m128i low = _mm_clmulepi64_si128(lanes[lane], by_512, 0x00);
            __m128i high = _mm_clmulepi64_si128(lanes[lane], by_512, 0x11);
            lanes[lane] = _mm_xor_si128(_mm_xor_si128(low, high), _mm_loadu_si128(at++));
        }
    return reduced(lanes, 4, at, size);
}

/* The same with lanes of twice the width, which newer processors multiply in the same time. */
__attribute__((FOLDING_WIDE)) static uint32_t by_folding_wide(uint32_t crc,
                                                              const unsigned char *data,
                                                              size_t size)
{
    const __m256i by_1024 =
        _mm256_broadcastsi128_si256(_mm_set_epi64x(0x014a7fe880, 0x01e88ef372));
    const __m256i *at = (const __m256i *)data;
    __m256i lanes[4];
    __m128i narrow[8];

    for (int lane = 0; lane < 4; lane++)
        lanes[lane] = _mm256_loadu_si256(at++);
    lanes[0] = _mm256_xor_si256(lanes[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc)));
    for (size -= 128; size >= 128; size -= 128)
        for (int lane = 0; lane < 4; lane++) {
            __m256i low = _mm256_clmulepi64_epi128(lanes[lane], by_1024, 0x00);
            __m256i high = _mm256_clmulepi64_epi128(lanes[lane], by_1024, 0x11);
            lanes[lane] = _mm256_xor_si256(_mm256_xor_si256(low, high), _mm256_loadu_si256(at++));
        }
    memcpy(narrow, lanes, sizeof narrow);
    return reduced(narrow, 8, (const __m128i *)at, size);
}

enum { WIDE_FROM = 1024 }; /* bytes; for fewer, bringing eight lanes together costs what it saves */

static int folds, folds_wide;
#elif defined(__aarch64__) && defined(__linux__)
#define SUMMING 1

__attribute__((target("+crc"))) static uint32_t by_summing(uint32_t crc, const unsigned char *data,
                                                           size_t size)
{
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        crc = __builtin_arm_crc32d(crc, word);
    }
    while (size--)
        crc = __builtin_arm_crc32b(crc, *data++);
    return crc;
}

static int sums;
#endif

uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t size)
{
    crc = ~crc;
#ifdef INTRINSICS
    if (folds_wide && size >= WIDE_FROM)
        return ~by_folding_wide(crc, data, size);
    if (folds && size >= 64)
        return ~by_folding(crc, data, size);
#elif defined(SUMMING)
    if (sums)
        return ~by_summing(crc, data, size);
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

/* The crc32 of two parts one after the other, of which the second has `length` bytes. */
EXPORTED uint32_t rabaska_joined_crc32(uint32_t first, uint32_t second, uint64_t length)
{
    /* `first` times x to the power of the bits that follow it. */
    for (uint32_t square = 0x00800000; length; length >>= 1, square = product(square, square))
        if (length & 1)
            first = product(square, first);
    return first ^ second;
}

/* As zlib gives it. */
EXPORTED uint32_t rabaska_crc32(uint32_t crc, const unsigned char *data, uint64_t size)
{
    return crc_of(crc, data, (size_t)size);
}

/* When the library is loaded, before anybody can call it. */
__attribute__((constructor)) static void prepare_crc(void)
{
    make_tables();
#ifdef INTRINSICS
    folds = can_fold();
    folds_wide = can_fold_wide();
#elif defined(SUMMING)
    sums = can_sum();
#endif
}
