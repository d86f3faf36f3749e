// headlight show: what every head looks at in a sentence.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "apps/headlight/command.h"
#include "apps/headlight/output.h"
#include "headlight/base/error.h"
#include "headlight/io/file.h"
#include "headlight/report/attention_report.h"
#include "headlight/report/heatmap.h"
#include "headlight/report/page.h"
#include "headlight/report/terminal_heatmap.h"
#include "headlight/train/checkpoint.h"

namespace headlight::app {
namespace {

constexpr const char* kFormats[] = {"terminal", "png", "svg", "pdf", "html", "csv", "json", "npy"};

struct ShowArguments {
  std::string run;
  std::string text;
  HeadChoice heads;
  std::string format;  // empty: what --out says
  std::string out;
  bool each = false;
};

void CheckRange(const char* what, int64_t index, int64_t count) {
  if (index >= count || index < -1) {
    throw Error(ErrorKind::kUsage, "--{}: the run has {} 0 to {}, found {}", what, what, count - 1,
                index);
  }
}

void CheckHeads(const HeadChoice& heads, const TextClassifierConfig& config) {
  if (config.layers == 0) {
    throw Error(ErrorKind::kUsage,
                "show: the run has no layers (it was trained with --layers 0), so no attention");
  }
  CheckRange("layer", heads.layer, config.layers);
  CheckRange("head", heads.head, config.heads);
}

// Of the file that --out names; a folder of --each has none.
std::string FormatOf(const std::string& out, bool each) {
  if (out.empty() || each) return "terminal";
  std::string ending = std::filesystem::path(out).extension().string();
  if (!ending.empty()) ending.erase(0, 1);
  if (std::find(std::begin(kFormats), std::end(kFormats), ending) != std::end(kFormats)) {
    return ending;
  }
  throw Error(ErrorKind::kUsage,
              "--out: without --format the file's ending must be one of {}, found '{}'",
              fmt::join(kFormats, ", "), out);
}

bool IsPicture(const std::string& format) {
  return format == "png" || format == "svg" || format == "pdf";
}

bool IsText(const std::string& format) {
  return format == "terminal" || format == "csv" || format == "json";
}

// Calls visit(layer, head) for each head that is asked for.
template <typename Visit>
void ForEachHead(const AttentionPicture& picture, const HeadChoice& heads, const Visit& visit) {
  for (int64_t layer = 0; layer < picture.layers; ++layer) {
    for (int64_t head = 0; head < picture.heads; ++head) {
      if (heads.Takes(layer, head)) visit(layer, head);
    }
  }
}

std::string TerminalText(const AttentionPicture& picture, const ShowArguments& arguments) {
  TerminalHeatMapOptions options;
  if (arguments.out.empty()) {
    options.colour = AnsiOnStdout();
    options.columns = TerminalColumns();
  }
  std::string text;
  ForEachHead(picture, arguments.heads, [&](int64_t layer, int64_t head) {
    text += TerminalHeatMap(picture, layer, head, options) + "\n";
  });
  return text;
}

void WriteEachHead(const AttentionPicture& picture, const ShowArguments& arguments) {
  const std::string folder = arguments.out.empty() ? "attention" : arguments.out;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(ErrorKind::kResource, "{}: {}", folder, failure.message());
  const PictureFormat format = ParsePictureFormat(arguments.format);
  ForEachHead(picture, arguments.heads, [&](int64_t layer, int64_t head) {
    const std::string path =
        fmt::format("{}/layer-{}_head-{}.{}", folder, layer, head, arguments.format);
    WriteFileAtomically(path, DrawHead(picture, layer, head, format));
    Say("{}", path);
  });
}

std::string BytesOf(const AttentionPicture& picture, const ShowArguments& arguments) {
  const HeadChoice& heads = arguments.heads;
  if (arguments.format == "terminal") return TerminalText(picture, arguments);
  if (arguments.format == "html") return AttentionPage(picture);
  if (arguments.format == "csv") return AttentionAsCsv(picture, heads);
  if (arguments.format == "json") return AttentionAsJson(picture, heads) + "\n";
  if (arguments.format == "npy") return AttentionAsNpy(picture, heads);
  const PictureFormat format = ParsePictureFormat(arguments.format);
  return heads.layer >= 0 && heads.head >= 0
             ? DrawHead(picture, heads.layer, heads.head, format)
             : DrawHeadGrid(picture, heads.layer, heads.head, format);
}

void RunShow(ShowArguments& arguments) {
  if (arguments.format.empty()) arguments.format = FormatOf(arguments.out, arguments.each);
  if (arguments.each && !IsPicture(arguments.format)) {
    throw Error(ErrorKind::kUsage, "--each: needs --format png, svg or pdf, found {}",
                arguments.format);
  }
  const LoadedClassifier loaded = LoadClassifier(arguments.run);
  CheckHeads(arguments.heads, loaded.model.config());
  const AttentionPicture picture =
      MakeAttentionPicture(loaded.model, loaded.encoder, arguments.text, arguments.run);
  if (arguments.each) {
    WriteEachHead(picture, arguments);
  } else if (arguments.out.empty() && IsText(arguments.format)) {
    PrintBytes(BytesOf(picture, arguments));
  } else {
    const std::string path =
        arguments.out.empty() ? "attention." + arguments.format : arguments.out;
    WriteFileAtomically(path, BytesOf(picture, arguments));
    Say("{}", path);
  }
}

}  // namespace

void AddShowCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand("show", "Draw what every head looks at in a sentence");
  auto arguments = std::make_shared<ShowArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  command->add_option("text", arguments->text, "The sentence")->required();
  command->add_option("--layer", arguments->heads.layer, "One layer, counted from 0; -1: all")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--head", arguments->heads.head,
                   "One head, counted from 0; -1: all (a page always has all)")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--format", arguments->format,
                   "Of the picture, page or matrix: as --out ends, else terminal")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kFormats), std::end(kFormats))))
      ->default_str("");
  command
      ->add_option("--out", arguments->out,
                   "File, or with --each folder; attention.FORMAT unless given (terminal, csv and "
                   "json: stdout)")
      ->type_name("PATH");
  command->add_flag("--each", arguments->each, "A picture per head instead of a grid");
  command->callback([arguments] { RunShow(*arguments); });
}

}  // namespace headlight::app
