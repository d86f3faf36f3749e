// What follows is compiled for AVX-512 with AVX512_BF16 and AMX, in a namespace of its own: the
// linker must not mix its inline functions with those of the plain AVX-512 code.
//
// For a file that goes through hwy/foreach_target.h: include this after hwy/highway.h and before
// all else that is compiled per target, in the pass where HWY_TARGET is HWY_AVX3, and compile
// nothing in the others. Its code may run when SelectedBf16Unit() is not kNone.
#undef HWY_NAMESPACE
#define HWY_NAMESPACE N_AVX3_BF16
#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512bf16,amx-tile,amx-bf16"

namespace hwy {
namespace N_AVX3_BF16 = N_AVX3;
}
