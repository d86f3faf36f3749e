#include "headlight/text/readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "headlight/base/clock.h"
#include "headlight/base/error.h"

namespace headlight {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "label|text" of each row.
std::vector<std::string> Rows(const Dataset& dataset) {
  std::vector<std::string> rows;
  for (const Example& example : dataset.examples)
    rows.push_back(example.label + "|" + example.text);
  return rows;
}

Dataset Parse(std::string_view bytes, const ReadOptions& options = {},
              const std::string& name = "f") {
  return ParseDataset(bytes, name, options.format, options);
}

template <typename Function>
std::string MessageOf(const Function& function, ErrorKind kind = ErrorKind::kInput) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

std::string ParseMessage(std::string_view bytes, const ReadOptions& options = {},
                         const std::string& name = "f") {
  return MessageOf([&] { Parse(bytes, options, name); });
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    root_ = std::filesystem::path(testing::TempDir()) /
            ("headlight_readers_" + std::to_string(MonotonicNanoseconds()));
    std::filesystem::create_directories(root_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(root_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Write(const std::string& path, const std::string& bytes) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }
  std::string path() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

TEST(ReadersTest, CsvByUsualNames) {
  const Dataset dataset =
      Parse("id,label,review\n1,1,\"good, \"\"very\"\"\"\n2,0,\"two\nlines\"\n");
  EXPECT_EQ(dataset.format, "csv");
  EXPECT_THAT(Rows(dataset), ElementsAre("1|good, \"very\"", "0|two\nlines"));
  EXPECT_EQ(dataset.examples[0].origin, "f:2");
  EXPECT_EQ(dataset.examples[1].origin, "f:3");
  EXPECT_THAT(Rows(Parse("标签,评论\r\n好,不错\r\n差,很吵\r\n")),
              ElementsAre("好|不错", "差|很吵"));
}

TEST(ReadersTest, CsvWithoutHeader) {
  EXPECT_THAT(Rows(Parse("pos,a good film\nneg,a bad one\npos,another good one\n")),
              ElementsAre("pos|a good film", "neg|a bad one", "pos|another good one"));
  EXPECT_THAT(Rows(Parse("3,a good film,1\n4,a bad one,0\n5,another good one,1\n")),
              ElementsAre("1|a good film", "0|a bad one", "1|another good one"));
}

TEST(ReadersTest, ColumnsByNameAndNumber) {
  const std::string table = "a,b,c\nx,1,good film\ny,2,bad film\nx,1,fair film\n";
  ReadOptions options;
  options.text_column = "C";
  options.label_column = "a";
  EXPECT_THAT(Rows(Parse(table, options)), ElementsAre("x|good film", "y|bad film", "x|fair film"));
  options.text_column = "3";
  options.label_column = "2";
  options.header = HeaderMode::kNo;
  EXPECT_EQ(Rows(Parse(table, options)).front(), "b|c");
  options.header = HeaderMode::kYes;
  EXPECT_EQ(Rows(Parse(table, options)).front(), "1|good film");
  options.label_column = "d";
  EXPECT_THAT(ParseMessage(table, options),
              HasSubstr("no label column 'd'; the columns are 'a', 'b', 'c'"));
  options.header = HeaderMode::kNo;
  EXPECT_THAT(ParseMessage(table, options), HasSubstr("columns go by number, 1 to 3"));
  options.label_column = "4";
  EXPECT_THAT(ParseMessage(table, options), HasSubstr("no label column '4'"));
  options.label_column = "3";
  EXPECT_THAT(ParseMessage(table, options), HasSubstr("cannot tell the text and the label column"));
}

TEST(ReadersTest, NamesOfTwoColumns) {
  const std::string table = "text,label,text,label\na,x,b,y\nc,x,d,z\n";
  ReadOptions options;
  options.format = DataFormat::kCsv;
  EXPECT_THAT(ParseMessage(table, options, "f.csv"),
              HasSubstr("f.csv:1: the name of the text column must occur once, found 'text' in "
                        "columns 1 and 3; rename one of them, or give the column's number"));
  options.text_column = "3";
  EXPECT_THAT(ParseMessage("\n" + table, options, "f.csv"),
              HasSubstr("f.csv:2: the name of the label column must occur once, found 'label' in"));
  options.label_column = "label";
  EXPECT_THAT(ParseMessage(table, options), HasSubstr("columns 2 and 4"));
  options.label_column = "4";
  EXPECT_THAT(Rows(Parse(table, options)), ElementsAre("y|b", "z|d"));
  // In another case it is the same name, unless it is asked for as it is.
  EXPECT_THAT(ParseMessage("Text,text,label\na,b,x\n"), HasSubstr("columns 1 and 2"));
  options = {};
  options.text_column = "text";
  EXPECT_THAT(Rows(Parse("Text,text,label\na,b,x\n", options)), ElementsAre("x|b"));
  // Of columns that are not used, names may repeat.
  EXPECT_THAT(Rows(Parse("n,n,text,label\n1,2,b,x\n")), ElementsAre("x|b"));
}

TEST(ReadersTest, Tsv) {
  const Dataset dataset =
      Parse("index_id\tcategory\ttext\n4\tsports\tA \"fine\" game\n7\ttravel\t\"x\"\n");
  EXPECT_EQ(dataset.format, "tsv");
  EXPECT_THAT(Rows(dataset), ElementsAre("sports|A \"fine\" game", "travel|x"));
  // A quote that is never closed stands for itself in tab-separated files.
  EXPECT_THAT(Rows(Parse("label\ttext\n1\t\"well said\n0\tso what\n")),
              ElementsAre("1|\"well said", "0|so what"));
}

TEST(ReadersTest, Jsonl) {
  const Dataset dataset =
      Parse("{\"label\": 1, \"text\": \"good\"}\n{\"text\": \"bad\", \"label\": 0, \"n\": [1]}\n");
  EXPECT_EQ(dataset.format, "jsonl");
  EXPECT_THAT(Rows(dataset), ElementsAre("1|good", "0|bad"));
  ReadOptions options;
  options.text_field = "t";
  options.label_field = "l";
  EXPECT_THAT(Rows(Parse("{\"t\":\"good\",\"l\":\"x\",\"text\":\"no\"}\n", options)),
              ElementsAre("x|good"));
  EXPECT_THAT(ParseMessage("{\"t\":\"good\",\"l\":\"x\"}\n{\"t\":\"bad\"}\n", options),
              HasSubstr("f:2: field 'l' is missing"));
  EXPECT_THAT(ParseMessage("{\"p\":\"good\",\"label\":\"x\"}\n"),
              HasSubstr("f:1: cannot tell the text field"));
}

TEST(ReadersTest, LabelTextLines) {
  const Dataset dataset = Parse("0 one long string , of cliches .\r\n1 there 's a lot\n\n0 no\n");
  EXPECT_EQ(dataset.format, "label-text");
  EXPECT_THAT(Rows(dataset),
              ElementsAre("0|one long string , of cliches .", "1|there 's a lot", "0|no"));
  EXPECT_EQ(dataset.examples[2].origin, "f:4");
  ReadOptions options;
  options.format = DataFormat::kLabelText;
  EXPECT_THAT(Rows(Parse("\xEF\xBB\xBF"
                         "a\n b\tx y\n  \n",
                         options)),
              ElementsAre("a|", "b|x y"));
}

TEST(ReadersTest, TextLabelLines) {
  const Dataset dataset = Parse("词汇阅读\"是关键\"\t3\n中国人民公安大学\t3\n卡佩罗\t9\n");
  EXPECT_EQ(dataset.format, "text-label");
  EXPECT_THAT(Rows(dataset), ElementsAre("3|词汇阅读\"是关键\"", "3|中国人民公安大学", "9|卡佩罗"));
  ReadOptions options;
  options.format = DataFormat::kTextLabel;
  EXPECT_THAT(Rows(Parse("a\tb\tx\n\ty\nz\t\n", options)), ElementsAre("x|a\tb", "y|", "|z"));
  EXPECT_THAT(ParseMessage("a\tx\nno tab\n", options), HasSubstr("f:2: a line must be text<TAB>"));
}

TEST(ReadersTest, BadFiles) {
  EXPECT_THAT(ParseMessage(""), HasSubstr("f is empty"));
  EXPECT_THAT(ParseMessage(" \n\n"), HasSubstr("f is empty"));
  EXPECT_THAT(ParseMessage("text,label\n", {}, "f.csv"), HasSubstr("f.csv has no rows"));
  EXPECT_THAT(ParseMessage("\xFF\xFEt\0", {}, "f.csv"), HasSubstr("UTF-16"));
  EXPECT_THAT(ParseMessage("neg w 0\rpos w 1\rneg w 2\r", {}, "f.txt"), HasSubstr("CR alone"));
  EXPECT_THAT(ParseMessage(std::string("a,b\n\0c,d\n", 9)), HasSubstr("not text"));
  EXPECT_THAT(ParseMessage("Prose of one kind\nand another\nthe third has no end\nsingle\n"),
              HasSubstr("cannot tell the format of f; name it"));
  EXPECT_THAT(ParseMessage("text,label\na,b\nc,d,e\n", {}, "f.csv"),
              HasSubstr("f.csv:3: 3 fields, where the first row has 2"));
  EXPECT_THAT(ParseMessage("text,label\n\"a,b\n", {}, "f.csv"), HasSubstr("f.csv:2: the quote"));
  EXPECT_THAT(ParseMessage("{\"text\":1,\n", {}, "f.jsonl"), HasSubstr("f.jsonl:1:"));
  EXPECT_THAT(ParseMessage("text,label\na,\xFF\n", {}, "f.csv"),
              HasSubstr("f.csv:2: the label '\xEF\xBF\xBD' is not UTF-8"));
  EXPECT_THAT(ParseMessage("[\n{\"text\":\"a\",\"label\":1}]", {}, "f.json"),
              HasSubstr("f.json is one JSON list"));
  EXPECT_THAT(ParseMessage("text\nalone\n", {}, "f.csv"), HasSubstr("found one column"));
  EXPECT_THAT(MessageOf([] { ReadDataset({"/nonexistent.csv"}, {}); }),
              HasSubstr("/nonexistent.csv"));
  MessageOf([] { ReadDataset({}, {}); }, ErrorKind::kUsage);
}

TEST(ReadersTest, EmptyTextsAndLabelsAreKept) {
  EXPECT_THAT(Rows(Parse("text,label\n,a\nb,\n\"\",\"\"\n")), ElementsAre("a|", "|b", "|"));
}

TEST(ReadersTest, FolderOfClassFolders) {
  const TemporaryFolder folder;
  folder.Write("pos/2.txt", "fine");
  folder.Write("pos/1.txt", "\xEF\xBB\xBFgood\n");
  folder.Write("neg/1.txt", "");
  folder.Write("README", "read me");
  const Dataset dataset = ReadDataset({folder.path()}, {});
  EXPECT_EQ(dataset.format, "folders");
  EXPECT_THAT(Rows(dataset), ElementsAre("neg|", "pos|good\n", "pos|fine"));
  EXPECT_EQ(dataset.examples[1].origin, folder.path() + "/pos/1.txt");
  ReadOptions options;
  options.split = "valid";
  EXPECT_THAT(MessageOf([&] { ReadDataset({folder.path()}, options); }),
              HasSubstr("has no train, valid and test parts"));
}

TEST(ReadersTest, PartsOfAFolder) {
  const TemporaryFolder folder;
  folder.Write("train/pos/1.txt", "good");
  folder.Write("train/neg/1.txt", "bad");
  folder.Write("dev/pos/1.txt", "fine");
  ReadOptions options;
  EXPECT_THAT(Rows(ReadDataset({folder.path()}, options)), ElementsAre("neg|bad", "pos|good"));
  options.split = "valid";
  EXPECT_THAT(Rows(ReadDataset({folder.path()}, options)), ElementsAre("pos|fine"));
  options.split = "all";
  EXPECT_EQ(ReadDataset({folder.path()}, options).examples.size(), 3u);
  options.split = "test";
  EXPECT_THAT(MessageOf([&] { ReadDataset({folder.path()}, options); }),
              HasSubstr("no rows in its test part"));
  options.split = "half";
  MessageOf([&] { ReadDataset({folder.path()}, options); }, ErrorKind::kUsage);
}

TEST(ReadersTest, FolderOfDataFilesAndSeveralPaths) {
  const TemporaryFolder folder;
  const std::string train = folder.Write("train.csv", "text,label\na,x\n");
  const std::string dev = folder.Write("dev.jsonl", "{\"text\":\"b\",\"label\":\"y\"}\n");
  folder.Write("LICENSE", "do as you like");
  const DatasetParts parts = ReadDatasetParts({folder.path()}, {});
  EXPECT_TRUE(parts.has_parts);
  EXPECT_THAT(Rows(parts.train), ElementsAre("x|a"));
  EXPECT_THAT(Rows(parts.valid), ElementsAre("y|b"));
  EXPECT_THAT(Rows(ReadDataset({train, dev}, {})), ElementsAre("x|a", "y|b"));
  const TemporaryFolder empty;
  EXPECT_THAT(MessageOf([&] { ReadDataset({empty.path()}, {}); }),
              HasSubstr("holds neither class folders"));
}

TEST(ReadersTest, ArchivesAreNotReadInsideOfFolders) {
  const TemporaryFolder folder;
  folder.Write("train.csv", "\x1F\x8B\x08 compressed");
  EXPECT_THAT(MessageOf([&] { ReadDataset({folder.path()}, {}); }),
              HasSubstr("/train.csv is an archive or compressed, which is not read inside of"));
}

TEST(ReadersTest, PipesAreReadOnce) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << "text,label\na,x\n"; });
  EXPECT_THAT(Rows(ReadDataset({pipe}, {})), ElementsAre("x|a"));
  writer.join();
}

TEST(ReadersTest, Names) {
  for (const char* name :
       {"auto", "folders", "archive", "csv", "tsv", "jsonl", "label-text", "text-label"}) {
    EXPECT_STREQ(DataFormatName(ParseDataFormat(name)), name);
  }
  EXPECT_THROW(ParseDataFormat("xml"), Error);
  EXPECT_EQ(ParseHeaderMode("no"), HeaderMode::kNo);
  EXPECT_THROW(ParseHeaderMode("maybe"), Error);
}

TEST(ReadersTest, TwoHundredThousandRowsAreQuick) {
  std::string bytes = "text,label\n";
  for (int i = 0; i < 200000; ++i) {
    bytes += "\"row " + std::to_string(i) + ", with a text of usual length\"," +
             std::to_string(i % 77) + "\n";
  }
  const double start = MonotonicSeconds();
  const Dataset dataset = Parse(bytes);
  EXPECT_EQ(dataset.examples.size(), 200000u);
  EXPECT_EQ(dataset.Labels().size(), 77u);
  EXPECT_LT(MonotonicSeconds() - start, 20);  // about 0.3 s; sanitizers and busy machines take more
}

}  // namespace
}  // namespace headlight
