#include "common/command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/spelling.h"
#include "common/command_line/bounds.h"
#include "common/command_line/misplaced_secret.h"

namespace hpo {
namespace {

// The innermost command that was given: where an unknown word was meant to be.
const CLI::App& InnermostCommand(const CLI::App& app) {
  const std::vector<CLI::App*> given = const_cast<CLI::App&>(app).get_subcommands();
  return given.empty() ? app : InnermostCommand(*given.back());
}

std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : absl::StrCat(FullName(*parent), " ", app.get_name());
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    for (const CLI::Option* option : level->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::string DescribeUnknown(const CLI::App& root, const std::string& word) {
  const CLI::App& command = InnermostCommand(root);
  if (absl::StartsWith(word, "-")) {
    const std::string name = word.substr(0, word.find('='));
    return absl::StrCat("no option ", name, DidYouMean(name, OptionNames(command)));
  }
  const std::vector<std::string> commands = CommandNames(command);
  if (commands.empty()) return absl::StrCat("unexpected argument '", word, "'");
  return absl::StrCat("no command '", word, "'", DidYouMean(word, commands));
}

// CLI11's "Could not convert: --workers = 1.5", where a number has to be a whole one. Empty: it is
// about something else.
std::string DescribeFraction(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "Could not convert: ")) return "";
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(" = ", 1));
  double number = 0.0;
  if (!absl::SimpleAtod(parts.second, &number)) return "";
  return absl::StrCat(parts.first, ": expected a whole number, got '", parts.second, "'");
}

std::string Describe(const CLI::App& root, const CLI::ParseError& error) {
  if (const std::vector<std::string> rest = root.remaining(true); !rest.empty()) {
    return DescribeUnknown(root, rest.front());
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::vector<std::string> commands = CommandNames(InnermostCommand(root));
    if (!commands.empty())
      return absl::StrCat("expected a command: ", absl::StrJoin(commands, ", "));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    if (const std::string fraction = DescribeFraction(error.what()); !fraction.empty()) {
      return fraction;
    }
  }
  return absl::StrReplaceAll(error.what(), {{"\n", " "}});
}

void RefuseWrongIntegers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "INT") {
      option->check(CLI::Validator(bounds_internal::WrongInteger<int64_t>, /*validator_desc=*/""));
    } else if (type == "UINT") {
      option->check(Unsigned64());
    }
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    RefuseWrongIntegers(*command);
  }
}

}  // namespace

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv,
                                    std::ostream& out, std::ostream& err, int columns) {
  if (const std::optional<std::string> misplaced = FindMisplacedSecret(argc, argv)) {
    err << app.get_name() << ": " << *misplaced << "\n";
    return kUsageExit;
  }
  try {
    RefuseWrongIntegers(app);
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& wanted) {  // --help, --version
    std::ostringstream text;
    app.exit(wanted, text, text);
    out << WrappedLines(text.str(), columns);
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string name = FullName(InnermostCommand(app));
    err << name << ": " << Describe(app, error) << " (see " << name << " --help)\n";
    return kUsageExit;
  }
}

bool NamesOption(absl::string_view option, int argc, const char* const* argv) {
  return std::any_of(argv + std::min(argc, 1), argv + argc, [option](absl::string_view word) {
    return absl::ConsumePrefix(&word, option) && (word.empty() || word[0] == '=');
  });
}

}  // namespace hpo
