#include "headlight/report/escape.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headlight {
namespace {

TEST(Escape, Json) {
  EXPECT_EQ(JsonString("a\"\\\n猫"), "\"a\\\"\\\\\\n猫\"");
  EXPECT_EQ(JsonString("\xff"), "\"\uFFFD\"");
  EXPECT_EQ(JsonNumber(0.1), "0.1");
  EXPECT_EQ(JsonNumber(NAN), "null");
  EXPECT_EQ(JsonForScript("\"</script><!-- & \""), "\"\\u003c/script\\u003e\\u003c!-- \\u0026 \"");
}

TEST(Escape, CsvQuotesOnlyWhatItMust) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(CsvField("a\r\nb"), "\"a\r\nb\"");
}

TEST(Escape, Html) {
  EXPECT_EQ(EscapeHtml("<a b='c'>&\"\xff"), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\uFFFD");
}

// RFC 4648, section 10.
TEST(Escape, Base64KnownAnswers) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xfe"), "//4=");
}

}  // namespace
}  // namespace headlight
