// Entry point of the program `headlight`.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <sstream>
#include <string_view>

#include "apps/headlight/command.h"
#include "apps/headlight/exit_codes.h"
#include "apps/headlight/output.h"
#include "headlight/base/build_info.h"
#include "headlight/base/error.h"

namespace headlight::app {
namespace {

std::atomic<bool> stop_is_awaited{false};  // somebody looks at stop_requested
std::atomic<bool> stop_requested{false};
int exit_code = kExitOk;

extern "C" void RequestStop(int) {
  if (!stop_is_awaited || stop_requested.exchange(true)) _exit(kExitInterrupted);
}

void InstallSignalHandlers() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
}

// A descriptor that is closed would be given to the next file that is opened, which would then
// take what is printed. In its place stands one whose use fails as that of a closed one does.
void OccupyStandardDescriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free descriptor is the one that is missing.
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

int Complain(std::string_view message, int code) {
  Say("headlight: {}", PrintableMessage(message));
  return code;
}

constexpr const char* kFooter =
    "Exit codes: 0 ok, 1 failed while running, 2 usage, 3 bad input, 4 a check did not hold, 130 "
    "interrupted (training saves first).\n"
    "Environment: HEADLIGHT_ISA=baseline|avx2|avx512|neon forces a code path, HEADLIGHT_BF16=none|"
    "avx512_bf16|amx what multiplies bf16; NO_COLOR turns "
    "colour off.";

bool HasCommand(const CLI::App& program, std::string_view name) {
  const auto named = [name](const CLI::App* command) { return command->get_name() == name; };
  return !program.get_subcommands(named).empty();
}

void AddCommands(CLI::App& program) {
  AddTrainCommand(program);
  AddEvalCommand(program);
  AddPredictCommand(program);
  AddRunsCommand(program);
  AddCompareCommand(program);
  AddShowCommand(program);
  AddHeadsCommand(program);
  AddProfileCommand(program);
  AddBenchCommand(program);
  AddDataCommand(program);
  AddGradcheckCommand(program);
  AddCompletionsCommand(program);
}

// Errors are exceptions; what is printed may still be in the buffer.
int RunArguments(int argc, char** argv) {
  CLI::App program("Multi-head attention: train, compare, look at, measure.", "headlight");
  program.set_version_flag("--version", fmt::format("{} ({})", Version(), Commit()));
  program.require_subcommand(1);
  program.footer(kFooter);
  program.option_defaults()->always_capture_default();
  AddCommands(program);
  if (argc < 2) {
    PrintBytes(program.help());
    return kExitOk;
  }
  if (argv[1][0] != '-' && !HasCommand(program, argv[1])) {
    throw Error(ErrorKind::kUsage, "there is no command \"{}\"; `headlight --help` lists them",
                argv[1]);
  }
  try {
    program.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& error) {  // --help and --version too
    std::ostringstream out, complaint;
    const int code = program.exit(error, out, complaint);
    PrintBytes(out.str());
    if (code == 0) return kExitOk;
    const std::string message = complaint.str();
    return Complain(message.substr(0, message.find_last_not_of('\n') + 1), kExitUsage);
  }
}

int Run(int argc, char** argv) {
  try {
    const int code = RunArguments(argc, argv);
    FlushStdout();
    return code;
  } catch (const Error& error) {
    return Complain(error.what(), ExitCodeOf(error.kind()));
  } catch (const std::bad_alloc&) {
    return Complain("memory: an allocation failed; use a smaller batch, model or data set",
                    kExitFailed);
  } catch (const std::exception& error) {
    return Complain(error.what(), kExitFailed);
  }
}

}  // namespace

std::atomic<bool>& StopRequested() {
  stop_is_awaited = true;
  return stop_requested;
}
void SetExitCode(int code) { exit_code = code; }

}  // namespace headlight::app

int main(int argc, char** argv) {
  headlight::app::OccupyStandardDescriptors();
  headlight::app::InstallSignalHandlers();
  return headlight::app::Run(argc, argv);
}
