// What the commands of the program share.
//
// One file per command: it adds its flags to the CLI::App (the one flag table: help and completions
// come from it) and sets a callback. Data goes to stdout, messages to stderr. Exit codes: see
// exit_codes.h.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <string>

namespace headlight::app {

// Set by SIGINT and SIGTERM once it has been asked for; until then, and at a second signal, they
// end the program at once. For work that has something to save: it looks at this between steps,
// saves, and throws Error{kInterrupted}.
std::atomic<bool>& StopRequested();

// The command's exit code when it ran to its end but has something to say (4: a check did not
// hold).
void SetExitCode(int code);

// A check of a flag's value, for CLI::Option::check.
inline std::string NotEmpty(const std::string& value) {
  return value.empty() ? "must not be empty" : "";
}

void AddTrainCommand(CLI::App& program);
void AddEvalCommand(CLI::App& program);
void AddPredictCommand(CLI::App& program);
void AddRunsCommand(CLI::App& program);
void AddCompareCommand(CLI::App& program);
void AddShowCommand(CLI::App& program);
void AddHeadsCommand(CLI::App& program);
void AddProfileCommand(CLI::App& program);
void AddBenchCommand(CLI::App& program);
void AddDataCommand(CLI::App& program);
void AddGradcheckCommand(CLI::App& program);
void AddCompletionsCommand(CLI::App& program);

}  // namespace headlight::app
