#include "headlight/base/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace headlight {
namespace {

bool Chosen(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

TEST(Cpu, SelectsThePathOfItsArchitecture) {
  if (Chosen("HEADLIGHT_ISA")) GTEST_SKIP() << "HEADLIGHT_ISA names one";
#if defined(__aarch64__)
  EXPECT_STREQ(IsaName(SelectedIsa()), "neon");
#else
  EXPECT_STRNE(IsaName(SelectedIsa()), "neon");
#endif
}

TEST(Cpu, HasAUnitForBf16OnlyBesideAvx512) {
  if (SelectedIsa() == Isa::kAvx512) GTEST_SKIP() << "this CPU may have one";
  EXPECT_STREQ(Bf16UnitName(SelectedBf16Unit()), "none");
}

}  // namespace
}  // namespace headlight
