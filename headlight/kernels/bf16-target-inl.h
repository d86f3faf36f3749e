// What follows is compiled for AVX-512 with AVX512_BF16 and AMX, in a namespace of its own: the
// linker must not mix its inline functions with those of the plain AVX-512 code. For a file that is
// compiled for this target alone: include it first, instead of hwy/highway.h and
// hwy/foreach_target.h, and put the code under HWY_ARCH_X86. It may run when SelectedBf16Unit() is
// not kNone.
#pragma once

#include "hwy/detect_compiler_arch.h"

#if HWY_ARCH_X86
#define HWY_BASELINE_TARGETS HWY_AVX3
#define HWY_COMPILE_ONLY_STATIC
#include "hwy/highway.h"
// Before the new name: it adds to the namespace that this only is another name of.
#include "hwy/contrib/math/math-inl.h"

#undef HWY_NAMESPACE
#define HWY_NAMESPACE N_AVX3_BF16
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16,amx-tile,amx-bf16"

namespace hwy {
namespace N_AVX3_BF16 = N_AVX3;
}
#endif
