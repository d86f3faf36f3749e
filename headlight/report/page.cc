#include "headlight/report/page.h"

#include <fmt/format.h>

#include "headlight/report/attention_json.h"
#include "headlight/report/escape.h"
#include "headlight/report/web_bundle.h"

namespace headlight {
namespace {

// Digits of a weight on the page: more than colours, widths and tooltips can show.
constexpr int kPageDigits = 5;

// Nothing is fetched from anywhere, and a browser is told so.
constexpr const char* kPolicy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

std::string Page(const std::string& title, const std::string& body) {
  std::string html = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  html += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", kPolicy);
  html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  html += "<meta name=\"generator\" content=\"Headlight\">\n";
  html += fmt::format("<title>{}</title>\n<style>", EscapeHtml(title));
  html += WebStyle();
  html += "</style>\n</head>\n" + body + "<script>";
  html += WebScript();
  html += "</script>\n</body>\n</html>\n";
  return html;
}

std::string AttentionData(const AttentionPicture& picture) {
  return "<noscript>This page needs JavaScript.</noscript>\n"
         "<script type=\"application/json\" class=\"attention-data\">" +
         JsonForScript(AttentionJson(picture, kPageDigits)) + "</script>\n";
}

constexpr const char* kLanguageButton = "<button id=\"language\" type=\"button\">中文</button>\n";

std::string Card(const std::string& heading, const std::string& content) {
  return fmt::format("<section class=\"card\">\n<h2>{}</h2>\n{}</section>\n", EscapeHtml(heading),
                     content);
}

std::string Sentences(const std::vector<std::string>& sentences) {
  std::string html = "<ul class=\"words\">\n";
  for (const std::string& sentence : sentences) html += "<li>" + EscapeHtml(sentence) + "</li>\n";
  return html + "</ul>\n";
}

// As an image of its own: the ids inside one SVG would clash with another's.
std::string Figure(const ReportFigure& figure) {
  return fmt::format(
      "<figure>\n<img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n"
      "<figcaption>{}</figcaption>\n</figure>\n",
      EscapeHtml(figure.title), Base64(figure.svg), EscapeHtml(figure.caption));
}

std::string Environment(const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string html = "<div class=\"scroll\"><table class=\"environment\">\n";
  for (const auto& [name, value] : environment) {
    html += fmt::format("<tr><th class=\"left\">{}</th><td>{}</td></tr>\n", EscapeHtml(name),
                        EscapeHtml(value));
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string AttentionPage(const AttentionPicture& picture) {
  CheckAttentionPicture(picture);
  const std::string body = fmt::format(
      "<body>\n<header>\n<h1 id=\"attention-title\">Attention</h1>\n<span class=\"run\">{}</span>\n"
      "{}</header>\n<main>\n{}</main>\n",
      EscapeHtml(picture.run), kLanguageButton, AttentionData(picture));
  return Page("Headlight: " + picture.text.substr(0, 200), body);
}

std::string ComparisonPage(const ComparisonReport& report) {
  std::string body = fmt::format(
      "<body>\n<header>\n<h1>{}</h1>\n<span class=\"run\"></span>\n{}</header>\n"
      "<main class=\"report\">\n",
      EscapeHtml(report.title), report.attention.empty() ? "" : kLanguageButton);
  if (!report.summary.empty()) body += "<p>" + EscapeHtml(report.summary) + "</p>\n";
  body += Card("Results", "<div class=\"scroll\">" + TableAsHtml(report.table) + "</div>\n");
  if (!report.sentences.empty()) body += Card("In words", Sentences(report.sentences));
  if (!report.figures.empty()) {
    body += "<div class=\"charts\">\n";
    for (const ReportFigure& figure : report.figures) body += Figure(figure);
    body += "</div>\n";
  }
  for (const auto& [heading, picture] : report.attention) {
    body += Card(heading, AttentionData(picture));
  }
  if (!report.config.empty()) {
    body += Card("Configuration", "<pre>" + EscapeHtml(report.config) + "</pre>\n");
  }
  if (!report.environment.empty()) body += Card("Environment", Environment(report.environment));
  return Page(report.title, body + "</main>\n");
}

}  // namespace headlight
