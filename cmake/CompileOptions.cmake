# Flags for our own targets only: they are attached to the interface target headlight_options, never set globally.

add_library(headlight_options INTERFACE)
target_compile_options(headlight_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  # Contraction of a*b+c into an FMA differs between compilers: same bits need it off outside explicit FMAs.
  -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports overlapping copies inside std::string that do not exist (GCC bug 105651).
  target_compile_options(headlight_options INTERFACE -Wno-restrict)
endif()
# Vector code is built for AVX2 and AVX-512, or NEON, besides the architecture's baseline. Not for the 128-bit x86 steps
# between, and not for SVE: the kernels keep arrays of vectors, whose size the compiler must know.
target_compile_definitions(headlight_options INTERFACE
  HWY_DISABLED_TARGETS=\(HWY_SSSE3|HWY_SSE4|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128\))

if(HEADLIGHT_WERROR)
  target_compile_options(headlight_options INTERFACE -Werror)
endif()
if(HEADLIGHT_SANITIZE)
  target_compile_options(headlight_options INTERFACE
    -fsanitize=${HEADLIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(headlight_options INTERFACE -fsanitize=${HEADLIGHT_SANITIZE})
endif()
if(HEADLIGHT_FUZZ)
  target_compile_options(headlight_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(HEADLIGHT_ASSERTIONS)
  # Release types define NDEBUG; undo it for our targets alone.
  target_compile_options(headlight_options INTERFACE -UNDEBUG)
endif()
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
