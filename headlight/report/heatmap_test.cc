#include "headlight/report/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headlight/base/error.h"
#include "headlight/report/picture_test_support.h"

namespace headlight {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr PictureFormat kFormats[] = {PictureFormat::kPng, PictureFormat::kSvg,
                                      PictureFormat::kPdf};

TEST(HeatMap, SameBytesWhateverWasDrawnBefore) {
  const AttentionPicture picture = MakePicture({"这", "只", "cat", "</svg>"}, 2, 3);
  for (const PictureFormat format : kFormats) {
    const std::string head = DrawHead(picture, 1, 2, format);
    const std::string grid = DrawHeadGrid(picture, -1, -1, format);
    EXPECT_EQ(DrawHead(picture, 1, 2, format), head);
    EXPECT_EQ(DrawHeadGrid(picture, -1, -1, format), grid);
    EXPECT_NE(head, grid);
  }
}

TEST(HeatMap, LargeMatricesAreImagesWithTheSameBytesToo) {
  const AttentionPicture picture = MakePicture(std::vector<std::string>(170, "word"), 1, 1);
  const std::string svg = DrawHead(picture, 0, 0, PictureFormat::kSvg);
  EXPECT_THAT(svg, HasSubstr("<image style=\"image-rendering:pixelated\" id=\"image0\""));
  EXPECT_EQ(DrawHead(picture, 0, 0, PictureFormat::kSvg), svg);
}

TEST(HeatMap, PngHoldsEveryPanel) {
  const AttentionPicture picture = MakePicture({"a", "b", "c", "d", "e", "f"}, 2, 4);
  const std::string one = DrawHead(picture, 0, 0, PictureFormat::kPng);
  const std::string grid = DrawHeadGrid(picture, -1, -1, PictureFormat::kPng);
  const std::string row = DrawHeadGrid(picture, 0, -1, PictureFormat::kPng);
  for (const std::string* png : {&one, &grid, &row}) ASSERT_TRUE(IsPng(*png));
  EXPECT_GT(PngWidth(one), 200u);
  EXPECT_EQ(PngWidth(row), PngWidth(grid));
  EXPECT_GT(PngHeight(grid), PngHeight(row) * 3 / 2);
}

TEST(HeatMap, SvgSaysItsTokensAndFigures) {
  const std::string svg =
      DrawHead(MakePicture({"猫", "喝", "</desc><script>"}, 1, 2), 0, 1, PictureFormat::kSvg);
  EXPECT_THAT(svg, HasSubstr("Tokens: 猫 喝 &lt;/desc&gt;&lt;script&gt;."));
  EXPECT_THAT(svg, HasSubstr("<title>layer 0 · head 1 · neighbour</title>"));
  EXPECT_THAT(svg, HasSubstr("entropy 1.25 nats · mean distance 2.5"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(HeatMap, PdfHasNoClock) {
  const std::string pdf = DrawHead(MakePicture({"a"}, 1, 1), 0, 0, PictureFormat::kPdf);
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  EXPECT_THAT(pdf, HasSubstr("CreationDate (20000101000000Z)"));
}

TEST(HeatMap, LongAndBrokenTokensAreShortened) {
  const AttentionPicture picture =
      MakePicture({std::string(100000, 'x'), "\xff\xfe", "\n", ""}, 1, 1);
  const std::string png = DrawHead(picture, 0, 0, PictureFormat::kPng);
  EXPECT_LT(PngWidth(png), 2000u);
}

TEST(HeatMap, WeightsThatAreNotNumbersAreDrawn) {
  AttentionPicture picture = MakePicture({"a", "b"}, 1, 1);
  picture.weights[0][0] = {NAN, INFINITY, 0, 1};
  EXPECT_TRUE(IsPng(DrawHead(picture, 0, 0, PictureFormat::kPng)));
}

TEST(HeatMap, Refuses) {
  const AttentionPicture picture = MakePicture({"a", "b"}, 2, 4);
  EXPECT_THROW(DrawHead(picture, 2, 0, PictureFormat::kPng), Error);
  EXPECT_THROW(DrawHead(picture, 0, 4, PictureFormat::kPng), Error);
  EXPECT_THROW(DrawHead(picture, -1, 0, PictureFormat::kPng), Error);
  EXPECT_THROW(DrawHead(MakePicture({}, 1, 1), 0, 0, PictureFormat::kPng), Error);
  AttentionPicture broken = picture;
  broken.weights[1].pop_back();
  EXPECT_THROW(DrawHeadGrid(broken, -1, -1, PictureFormat::kPng), Error);
  EXPECT_THROW(ParsePictureFormat("gif"), Error);
  EXPECT_EQ(ParsePictureFormat("pdf"), PictureFormat::kPdf);
}

}  // namespace
}  // namespace headlight
