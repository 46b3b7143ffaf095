/* What makes kernels fast where the compiler can, and nothing elsewhere. */
/* On Linux the loader picks the version for this processor. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define FASTEST __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define FASTEST
#endif

#if defined(__GNUC__)
#define FETCH(address) __builtin_prefetch(address)
#define FETCH_TO_WRITE(address) __builtin_prefetch(address, 1)
#else
#define FETCH(address) ((void)(address))
#define FETCH_TO_WRITE(address) ((void)(address))
#endif
