// Pages of one file that open from disk, offline: everything is inline, whatever the tokens hold.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headlight/report/attention_picture.h"
#include "headlight/report/table.h"

namespace headlight {

// The attention page: hover or pick tokens, layers and heads. Chinese and English.
std::string AttentionPage(const AttentionPicture& picture);

struct ReportFigure {
  std::string title;
  std::string caption;  // in words
  std::string svg;      // from DrawLineChart(..., PictureFormat::kSvg) and its like
};

struct ComparisonReport {
  std::string title;
  std::string summary;  // one or two sentences on what was compared on what
  Table table;
  std::vector<std::string> sentences;  // what the table says, in words
  std::vector<ReportFigure> figures;
  std::string config;                                            // the resolved config.toml
  std::vector<std::pair<std::string, std::string>> environment;  // CPU, ISA, threads, versions
  std::vector<std::pair<std::string, AttentionPicture>>
      attention;  // heading, picture: shown inline
};

// report.html of a comparison.
std::string ComparisonPage(const ComparisonReport& report);

}  // namespace headlight
