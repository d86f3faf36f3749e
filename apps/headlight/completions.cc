// headlight completions bash|zsh|fish: a completion script made from the flag table.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "apps/headlight/command.h"
#include "headlight/base/error.h"

namespace headlight::app {
namespace {

std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

struct CommandWords {
  std::string path;  // "data split"
  std::string help;
  std::vector<std::string> words;  // flags and subcommands
};

void Collect(const CLI::App& command, const std::string& path, std::vector<CommandWords>& out) {
  CommandWords words{path, command.get_description(), FlagsOf(command)};
  const auto subcommands = command.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subcommands) words.words.push_back(sub->get_name());
  out.push_back(words);
  for (const CLI::App* sub : subcommands) {
    Collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), out);
  }
}

std::string BashScript(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const CommandWords& command : commands) {
    cases +=
        fmt::format("    \"{}\") words=\"{}\" ;;\n", command.path, fmt::join(command.words, " "));
  }
  return fmt::format(
      "_headlight() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" path=\"\" words=\"\" word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    [[ $word == -* ]] && break\n"
      "    path=\"${{path:+$path }}$word\"\n"
      "    [[ $path == \"data make\" || $path != data ]] && break\n"
      "  done\n"
      "  case \"$path\" in\n{}  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "  [[ ${{#COMPREPLY[@]}} -eq 0 ]] && COMPREPLY=($(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _headlight headlight\n",
      cases);
}

std::string FishScript(const std::vector<CommandWords>& commands) {
  std::string script = "complete -c headlight -f\n";
  for (const CommandWords& command : commands) {
    const std::string condition =
        command.path.empty()
            ? "__fish_use_subcommand"
            : "__fish_seen_subcommand_from " + command.path.substr(command.path.rfind(' ') + 1);
    for (const std::string& word : command.words) {
      const bool flag = word.starts_with("--");
      script += fmt::format("complete -c headlight -n '{}' {} {}\n", condition, flag ? "-l" : "-a",
                            flag ? word.substr(2) : word);
    }
  }
  return script;
}

}  // namespace

void AddCompletionsCommand(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("completions", "Print a completion script for a shell");
  auto* shell = command->add_option("shell", "bash, zsh or fish")
                    ->required()
                    ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&program, shell] {
    std::vector<CommandWords> commands;
    Collect(program, "", commands);
    const auto name = shell->as<std::string>();
    if (name == "fish") {
      fmt::print("{}", FishScript(commands));
    } else {
      // zsh runs bash completions after bashcompinit.
      fmt::print("{}{}", name == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "",
                 BashScript(commands));
    }
  });
}

}  // namespace headlight::app
