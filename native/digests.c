/* sha256 of two at once: each of its steps waits for the one before, so there is time for two. */

#include "native.h"

#ifdef INTRINSICS
enum { DIGEST_BLOCK = 64 };

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
#endif

/* Whether this processor has instructions for sha256, so that the next one may be called. */
EXPORTED int rabaska_can_digest(void)
{
#ifdef INTRINSICS
    return can_digest();
#else
    return 0;
#endif
}

/* Carry sha256 on by so many blocks of 64 bytes: a state is eight words that change. Two take little
   longer than one; the second may be NULL. */
EXPORTED void rabaska_digest(char *state, const char *data, char *other_state,
                             const char *other_data, uint64_t blocks)
{
#ifdef INTRINSICS
    char *const states[2] = {state, other_state};
    const char *const bytes[2] = {data, other_data};

    (other_state ? digest_two : digest_one)(states, bytes, (size_t)blocks);
#else
    (void)state, (void)data, (void)other_state, (void)other_data, (void)blocks;
#endif
}
