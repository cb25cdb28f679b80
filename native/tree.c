/* BLAKE2b in its tree mode: the leaves of a shard, several at once, and the root over them.

   "BLAKE2: simpler, smaller, fast as MD5", section 2.10; Python's hashlib does the same, leaf by leaf
   (rabaska.node.data.tree_digest). A leaf depends on no other, so each lane of a wide register takes
   one: four or eight leaves in the time of one. */

#include "native.h"

typedef uint64_t four __attribute__((vector_size(32)));

static const uint64_t BEGIN[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t ORDER[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

/* What each step mixes: the columns of a square, then its diagonals. */
#define TURN(x, by) ((x) >> (by) | (x) << (64 - (by)))
#define MIX(a, b, c, d, one, other)                                                               \
    (a += b + (one), d = TURN(d ^ a, 32), c += d, b = TURN(b ^ c, 24), a += b + (other),          \
     d = TURN(d ^ a, 16), c += d, b = TURN(b ^ c, 63))

/* Carries `h` on by the block `m`; the same for one number and for many at once. */
#define COMPRESS(type, h, m, count, last, last_node)                                              \
    do {                                                                                          \
        type v[16];                                                                               \
        for (int i = 0; i < 8; i++)                                                               \
            v[i] = h[i], v[i + 8] = (type){0} + BEGIN[i];                                         \
        v[12] ^= (count);                                                                         \
        v[14] ^= (last);                                                                          \
        v[15] ^= (last_node);                                                                     \
        _Pragma("GCC unroll 12") for (int round = 0; round < 12; round++)                         \
        {                                                                                         \
            const uint8_t *o = ORDER[round];                                                      \
            MIX(v[0], v[4], v[8], v[12], m[o[0]], m[o[1]]);                                       \
            MIX(v[1], v[5], v[9], v[13], m[o[2]], m[o[3]]);                                       \
            MIX(v[2], v[6], v[10], v[14], m[o[4]], m[o[5]]);                                      \
            MIX(v[3], v[7], v[11], v[15], m[o[6]], m[o[7]]);                                      \
            MIX(v[0], v[5], v[10], v[15], m[o[8]], m[o[9]]);                                      \
            MIX(v[1], v[6], v[11], v[12], m[o[10]], m[o[11]]);                                    \
            MIX(v[2], v[7], v[8], v[13], m[o[12]], m[o[13]]);                                     \
            MIX(v[3], v[4], v[9], v[14], m[o[14]], m[o[15]]);                                     \
        }                                                                                         \
        for (int i = 0; i < 8; i++)                                                               \
            h[i] ^= v[i] ^ v[i + 8];                                                              \
    } while (0)

static uint64_t word(const unsigned char *at)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t value;

    memcpy(&value, at, 8);
    return value;
#else
    return number(at, 8);
#endif
}

/* The state of a node: 32 bytes of digest, any number of children, two levels, 32 bytes from each. */
static void begin_node(uint64_t *h, uint64_t offset, int depth)
{
    memcpy(h, BEGIN, sizeof BEGIN);
    h[0] ^= TREE_DIGEST | 2 << 24 | (uint64_t)TREE_LEAF << 32;
    h[1] ^= offset;
    h[2] ^= (uint64_t)depth | TREE_DIGEST << 8;
}

static void one_block(uint64_t *h, const unsigned char *at, uint64_t count, uint64_t last,
                      uint64_t last_node)
{
    uint64_t m[16];

    for (int i = 0; i < 16; i++)
        m[i] = word(at + 8 * i);
    COMPRESS(uint64_t, h, m, count, last, last_node);
}

/* A node of `size` bytes, of which all whole blocks but the last were taken before `done`. */
static void finish_node(uint64_t *h, const unsigned char *at, size_t size, uint64_t before,
                        int last_node)
{
    unsigned char rest[TREE_BLOCK] = {0};

    for (; size > TREE_BLOCK; at += TREE_BLOCK, size -= TREE_BLOCK)
        one_block(h, at, before += TREE_BLOCK, 0, 0);
    memcpy(rest, at, size);
    one_block(h, rest, before + size, ~(uint64_t)0, last_node ? ~(uint64_t)0 : 0);
}

static void add_to_root(tree *into, const unsigned char *digest)
{
    if (into->root_waits == TREE_BLOCK) {
        one_block(into->root, into->root_block, into->root_size, 0, 0);
        into->root_waits = 0;
    }
    memcpy(into->root_block + into->root_waits, digest, TREE_DIGEST);
    into->root_waits += TREE_DIGEST;
    into->root_size += TREE_DIGEST;
}

static void put_words(unsigned char *at, const uint64_t *words, int count)
{
    for (int i = 0; i < count; i++)
        for (int byte = 0; byte < 8; byte++)
            *at++ = (unsigned char)(words[i] >> 8 * byte);
}

/* Eight leaves that follow one another, none of which is the last. */
static void by_fours(const unsigned char *data, uint64_t first, unsigned char *digests)
{
    for (int half = 0; half < 2; half++, data += 4 * TREE_LEAF, first += 4) {
        four h[8], m[16];

        for (int lane = 0; lane < 4; lane++) {
            uint64_t state[8];
            begin_node(state, first + (uint64_t)lane, 0);
            for (int i = 0; i < 8; i++)
                h[i][lane] = state[i];
        }
        for (uint64_t at = 0; at < TREE_LEAF; at += TREE_BLOCK) {
            const unsigned char *from = data + at;
            uint64_t last = at + TREE_BLOCK == TREE_LEAF ? ~(uint64_t)0 : 0;
            for (int i = 0; i < 16; i++, from += 8)
                m[i] = (four){word(from), word(from + TREE_LEAF), word(from + 2 * TREE_LEAF),
                              word(from + 3 * TREE_LEAF)};
            COMPRESS(four, h, m, at + TREE_BLOCK, last, 0);
        }
        for (int lane = 0; lane < 4; lane++, digests += TREE_DIGEST) {
            uint64_t state[4];
            for (int i = 0; i < 4; i++)
                state[i] = h[i][lane];
            put_words(digests, state, 4);
        }
    }
}

#ifdef INTRINSICS
__attribute__((target("avx2"))) static void by_fours_wide(const unsigned char *data, uint64_t first,
                                                          unsigned char *digests);
#define TRANSPOSE_FOUR 1
__attribute__((target("avx2"))) static void by_fours_wide(const unsigned char *data, uint64_t first,
                                                          unsigned char *digests)
{
    for (int half = 0; half < 2; half++, data += 4 * TREE_LEAF, first += 4) {
        four h[8], m[16];

        for (int lane = 0; lane < 4; lane++) {
            uint64_t state[8];
            begin_node(state, first + (uint64_t)lane, 0);
            for (int i = 0; i < 8; i++)
                h[i][lane] = state[i];
        }
        for (uint64_t at = 0; at < TREE_LEAF; at += TREE_BLOCK) {
            uint64_t last = at + TREE_BLOCK == TREE_LEAF ? ~(uint64_t)0 : 0;
            for (int i = 0; i < 16; i += 4) {
                __m256i row[4], pair[4];
                for (int lane = 0; lane < 4; lane++)
                    row[lane] = _mm256_loadu_si256(
                        (const __m256i *)(data + at + 8 * i + lane * TREE_LEAF));
                pair[0] = _mm256_unpacklo_epi64(row[0], row[1]);
                pair[1] = _mm256_unpackhi_epi64(row[0], row[1]);
                pair[2] = _mm256_unpacklo_epi64(row[2], row[3]);
                pair[3] = _mm256_unpackhi_epi64(row[2], row[3]);
                m[i] = (four)_mm256_permute2x128_si256(pair[0], pair[2], 0x20);
                m[i + 1] = (four)_mm256_permute2x128_si256(pair[1], pair[3], 0x20);
                m[i + 2] = (four)_mm256_permute2x128_si256(pair[0], pair[2], 0x31);
                m[i + 3] = (four)_mm256_permute2x128_si256(pair[1], pair[3], 0x31);
            }
            COMPRESS(four, h, m, at + TREE_BLOCK, last, 0);
        }
        for (int lane = 0; lane < 4; lane++, digests += TREE_DIGEST) {
            uint64_t state[4];
            for (int i = 0; i < 4; i++)
                state[i] = h[i][lane];
            put_words(digests, state, 4);
        }
    }
}

typedef uint64_t eight __attribute__((vector_size(64)));

__attribute__((target("avx512f"))) static void by_eights(const unsigned char *data, uint64_t first,
                                                         unsigned char *digests)
{
    const __m512i evens = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odds = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    eight h[8], m[16];

    for (int lane = 0; lane < 8; lane++) {
        uint64_t state[8];
        begin_node(state, first + (uint64_t)lane, 0);
        for (int i = 0; i < 8; i++)
            h[i][lane] = state[i];
    }
    for (uint64_t at = 0; at < TREE_LEAF; at += TREE_BLOCK) {
        uint64_t last = at + TREE_BLOCK == TREE_LEAF ? ~(uint64_t)0 : 0;
        for (int i = 0; i < 16; i += 8) {
            __m512i row[8], pair[8], quad[8];
            for (int lane = 0; lane < 8; lane++)
                row[lane] = _mm512_loadu_si512(data + at + 8 * i + lane * TREE_LEAF);
            for (int lane = 0; lane < 8; lane += 2) {
                pair[lane] = _mm512_unpacklo_epi64(row[lane], row[lane + 1]);
                pair[lane + 1] = _mm512_unpackhi_epi64(row[lane], row[lane + 1]);
            }
            /* Words 0 4 | 1 5 | 2 6 | 3 7 of lanes 0-3, then of lanes 4-7. */
            for (int half = 0; half < 8; half += 4) {
                quad[half] = _mm512_permutex2var_epi64(pair[half], evens, pair[half + 2]);
                quad[half + 1] = _mm512_permutex2var_epi64(pair[half + 1], evens, pair[half + 3]);
                quad[half + 2] = _mm512_permutex2var_epi64(pair[half], odds, pair[half + 2]);
                quad[half + 3] = _mm512_permutex2var_epi64(pair[half + 1], odds, pair[half + 3]);
            }
            for (int place = 0; place < 4; place++) {
                m[i + place] = (eight)_mm512_shuffle_i64x2(quad[place], quad[place + 4], 0x44);
                m[i + place + 4] = (eight)_mm512_shuffle_i64x2(quad[place], quad[place + 4], 0xEE);
            }
        }
        COMPRESS(eight, h, m, at + TREE_BLOCK, last, 0);
    }
    for (int lane = 0; lane < 8; lane++, digests += TREE_DIGEST) {
        uint64_t state[4];
        for (int i = 0; i < 4; i++)
            state[i] = h[i][lane];
        put_words(digests, state, 4);
    }
}
#endif

static void (*eight_leaves)(const unsigned char *, uint64_t, unsigned char *) = by_fours;

__attribute__((constructor)) static void choose_lanes(void)
{
#ifdef INTRINSICS
    if (can_widen_more())
        eight_leaves = by_eights;
    else if (can_widen())
        eight_leaves = by_fours_wide;
#endif
}

void tree_begin(tree *into)
{
    memset(into, 0, sizeof *into);
    begin_node(into->root, 0, 1);
}

void tree_groups(tree *into, const unsigned char *data, uint64_t groups)
{
    unsigned char digests[TREE_LANES * TREE_DIGEST];

    for (; groups; groups--, data += TREE_GROUP, into->leaves += TREE_LANES) {
        eight_leaves(data, into->leaves, digests);
        for (int lane = 0; lane < TREE_LANES; lane++)
            add_to_root(into, digests + lane * TREE_DIGEST);
    }
}

void tree_end(tree *into, const unsigned char *data, uint64_t size, unsigned char *digest)
{
    do {
        uint64_t part = size < TREE_LEAF ? size : TREE_LEAF, h[8];
        unsigned char leaf[TREE_DIGEST];

        begin_node(h, into->leaves++, 0);
        finish_node(h, data, (size_t)part, 0, part == size);
        put_words(leaf, h, 4);
        add_to_root(into, leaf);
        data += part;
        size -= part;
    } while (size);
    finish_node(into->root, into->root_block, into->root_waits, into->root_size - into->root_waits, 1);
    put_words(digest, into->root, 4);
}

/* Carry a digest on by whole groups of leaves, none of which is the last. */
EXPORTED void rabaska_tree_add(tree *into, const unsigned char *data, uint64_t groups)
{
    tree_groups(into, data, groups);
}

EXPORTED void rabaska_tree_begin(tree *into)
{
    tree_begin(into);
}

/* The digest, after what is left: a group at most, and something unless all was nothing. */
EXPORTED void rabaska_tree_end(tree *into, const unsigned char *data, uint64_t size,
                               unsigned char *digest)
{
    tree_end(into, data, size, digest);
}
