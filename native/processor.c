/* What this processor can do beyond what all of its kind can. */

#include "native.h"

#ifdef INTRINSICS
static int bit(unsigned word, int place)
{
    return word >> place & 1;
}

/* Whether the system keeps the wide registers of a process when it runs another one. */
static int keeps_wide_registers(unsigned wanted)
{
    unsigned a, b, c, d, kept, rest;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !bit(c, 27)) /* OSXSAVE */
        return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(rest) : "c"(0));
    return (kept & wanted) == wanted;
}

int can_fold(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && bit(c, 1) && bit(c, 19); /* PCLMULQDQ, SSE4.1 */
}

int can_fold_wide(void)
{
    unsigned a, b, c, d;

    return can_fold() && keeps_wide_registers(6) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           bit(b, 5) && bit(c, 10); /* AVX2, VPCLMULQDQ */
}

int can_widen(void)
{
    unsigned a, b, c, d;

    return keeps_wide_registers(6) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && bit(b, 5); /* AVX2 */
}

int can_widen_more(void)
{
    unsigned a, b, c, d;

    return keeps_wide_registers(0xE6) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           bit(b, 16); /* AVX512F */
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

int can_sum(void)
{
    return getauxval(AT_HWCAP) >> 7 & 1; /* CRC32 */
}
#endif
