// headlight show: what every head looks at in a sentence.
#include <fmt/format.h>

#include <filesystem>
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

struct ShowArguments {
  std::string run;
  std::string text;
  int64_t layer = -1;  // all
  int64_t head = -1;
  std::string format = "terminal";
  std::string out;
  bool each = false;
};

void CheckRange(const char* what, int64_t index, int64_t count) {
  if (index >= count || index < -1) {
    throw Error(ErrorKind::kUsage, "--{}: the run has {} 0 to {}, found {}", what, what, count - 1,
                index);
  }
}

bool IsPicture(const std::string& format) {
  return format == "png" || format == "svg" || format == "pdf";
}

// Calls visit(layer, head) for each head that is asked for.
template <typename Visit>
void ForEachHead(const AttentionPicture& picture, const ShowArguments& arguments,
                 const Visit& visit) {
  for (int64_t layer = 0; layer < picture.layers; ++layer) {
    if (arguments.layer >= 0 && layer != arguments.layer) continue;
    for (int64_t head = 0; head < picture.heads; ++head) {
      if (arguments.head < 0 || head == arguments.head) visit(layer, head);
    }
  }
}

void ShowOnTerminal(const AttentionPicture& picture, const ShowArguments& arguments) {
  TerminalHeatMapOptions options;
  options.colour = AnsiOnStdout();
  options.columns = TerminalColumns();
  ForEachHead(picture, arguments, [&](int64_t layer, int64_t head) {
    PrintBytes(TerminalHeatMap(picture, layer, head, options) + "\n");
  });
}

void WriteEachHead(const AttentionPicture& picture, const ShowArguments& arguments) {
  const std::string folder = arguments.out.empty() ? "attention" : arguments.out;
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error(ErrorKind::kResource, "{}: {}", folder, failure.message());
  const PictureFormat format = ParsePictureFormat(arguments.format);
  ForEachHead(picture, arguments, [&](int64_t layer, int64_t head) {
    const std::string path =
        fmt::format("{}/layer-{}_head-{}.{}", folder, layer, head, arguments.format);
    WriteFileAtomically(path, DrawHead(picture, layer, head, format));
    Say("{}", path);
  });
}

std::string PictureBytes(const AttentionPicture& picture, const ShowArguments& arguments) {
  if (arguments.format == "html") return AttentionPage(picture);
  if (arguments.format == "csv") return AttentionAsCsv(picture);
  if (arguments.format == "json") return AttentionAsJson(picture) + "\n";
  if (arguments.format == "npy") return AttentionAsNpy(picture);
  const PictureFormat format = ParsePictureFormat(arguments.format);
  return arguments.layer >= 0 && arguments.head >= 0
             ? DrawHead(picture, arguments.layer, arguments.head, format)
             : DrawHeadGrid(picture, arguments.layer, arguments.head, format);
}

void RunShow(const ShowArguments& arguments) {
  if (arguments.each && !IsPicture(arguments.format)) {
    throw Error(ErrorKind::kUsage, "--each: needs --format png, svg or pdf, found {}",
                arguments.format);
  }
  const LoadedClassifier loaded = LoadClassifier(arguments.run);
  CheckRange("layer", arguments.layer, loaded.model.config().layers);
  CheckRange("head", arguments.head, loaded.model.config().heads);
  const AttentionPicture picture =
      MakeAttentionPicture(loaded.model, loaded.encoder, arguments.text, arguments.run);
  if (arguments.format == "terminal") {
    ShowOnTerminal(picture, arguments);
  } else if (arguments.each) {
    WriteEachHead(picture, arguments);
  } else if (arguments.out.empty() && (arguments.format == "csv" || arguments.format == "json")) {
    PrintBytes(PictureBytes(picture, arguments));
  } else {
    const std::string path =
        arguments.out.empty() ? "attention." + arguments.format : arguments.out;
    WriteFileAtomically(path, PictureBytes(picture, arguments));
    Say("{}", path);
  }
}

}  // namespace

void AddShowCommand(CLI::App& program) {
  CLI::App* command = program.add_subcommand("show", "Draw what every head looks at in a sentence");
  auto arguments = std::make_shared<ShowArguments>();
  command->add_option("run", arguments->run, "Run directory")->required()->type_name("RUN");
  command->add_option("text", arguments->text, "The sentence")->required();
  command->add_option("--layer", arguments->layer, "One layer, counted from 0; -1: all")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--head", arguments->head, "One head, counted from 0; -1: all")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--format", arguments->format, "Of the picture, page or matrix")
      ->check(CLI::IsMember({"terminal", "png", "svg", "pdf", "html", "csv", "json", "npy"}))
      ->capture_default_str();
  command
      ->add_option(
          "--out", arguments->out,
          "File, or with --each folder; attention.FORMAT unless given (csv and json: stdout)")
      ->type_name("PATH");
  command->add_flag("--each", arguments->each, "A picture per head instead of a grid");
  command->callback([arguments] { RunShow(*arguments); });
}

}  // namespace headlight::app
