#include "cli/dryrun/study_dry_run_words.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/command_line/bounds.h"
#include "common/command_line/command_line.h"

namespace hpo::cli {
namespace {

constexpr char kAll[] = "all";
constexpr char kExamples[] = R"(
Examples:
  hpo memory dry-run study.yaml --gpu a100-40gb,t4 -- \
      python3 train.py --batch {batch} --layers {layers}
  hpo memory dry-run study.yaml --gpu rtx3090 --sample 20 --jobs 4 \
      --parameters batch,seq_len -- python3 train.py {args}

Exit status:
  0  A configuration fits, or is tight, on one of the GPUs.
  1  No configuration can be dry-run, or nothing is known of any.
  2  The command line or the study file is wrong.
  3  No configuration fits on any of the GPUs.
  130  It was interrupted; the report is of what was run before.
)";

// Options of the package that hold for each dry run, with the kind of their values.
struct PassedOn {
  const char* names;
  const char* value;
  const char* help;
};
constexpr PassedOn kPassedOn[] = {
    {"--gpu,--card", "GPUS",
     "GPUs to emulate, such as a100-40gb,t4; --gpu list, without a study, shows them"},
    {"--count", "N", "Number of GPUs of the machine [default: 1]"},
    {"--steps", "N", "Optimizer steps to see [default: until three are alike, at most 30]"},
    {"--timeout", "SECONDS", "Longest time of one dry run [default: 300]"},
    {"--allocator", "SETTINGS", "Settings of torch's allocator, as PYTORCH_ALLOC_CONF has them"},
    {"--stand-in", "NAME", "Package to import a stand-in of where it is not installed: flash-attn"},
    {"--context", "SIZE", "Memory of the CUDA context [default: by GPU and versions]"},
    {"--threads", "N", "Threads that torch computes with, at a low priority [default: all]"},
    {"--readbacks", "N",
     "Reads of values that are not known without an optimizer step, after which a program is "
     "ended"}};

bool IsFlag(absl::string_view word) {
  static const std::set<absl::string_view> flags = {"--ample", "--json", "--show-output", "--help",
                                                    "-h"};
  return flags.contains(word);
}

CLI::Validator CountOrAll() {
  const auto check = [](const std::string& text) -> std::string {
    int64_t count = 0;
    if (text == kAll || (absl::SimpleAtoi(text, &count) && count >= 1)) return "";
    return absl::StrCat("expected a number of at least 1, or all, got '", text, "'");
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

// Without a study the package prints it.
CLI::Validator NotTheList() {
  const auto check = [](const std::string& text) -> std::string {
    if (text != "list") return "";
    return "expected GPUs, got 'list'; hpo memory dry-run --gpu list, without a study, shows them";
  };
  return CLI::Validator(check, /*validator_desc=*/"");
}

void Declare(CLI::App& app, StudyDryRunOptions& options, std::string& sample) {
  app.add_option("study", options.study, "Study file")->type_name("STUDY.yaml")->required();
  for (const PassedOn& one : kPassedOn) {
    const std::string name = std::string(one.names).substr(0, std::string(one.names).find(','));
    CLI::Option* const option = app.add_option_function<std::string>(
        one.names,
        [&options, name](const std::string& value) {
          options.passed_on.insert(options.passed_on.end(), {name, value});
        },
        one.help);
    option->type_name(one.value);
    if (name == "--gpu") option->required()->check(NotTheList());
  }
  app.add_option("--sample", sample,
                 "Most configurations to dry-run; what holds for the others is concluded. all: "
                 "every one [default: 40]")
      ->type_name("N")
      ->check(CountOrAll());
  app.add_option("--parameters", options.parameters,
                 "Parameters of the chart, across and down [default: those that memory depends on "
                 "most]")
      ->type_name("NAME,NAME")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->expected(1, 2);
  app.add_option("--jobs", options.jobs, "Dry runs at once")
      ->type_name("N")
      ->check(Between(1, 64))
      ->capture_default_str();
  app.add_option("--seed", options.seed,
                 "Seed of the configurations that are drawn from a large space")
      ->type_name("N")
      ->check(Unsigned64())
      ->capture_default_str();
  app.add_flag("--json", options.json, "Write one JSON document");
  app.footer(kExamples);
}

}  // namespace

bool IsForStudy(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (absl::StartsWith(word, "-")) {
      if (!IsFlag(word) && !absl::StrContains(word, "=")) ++i;
      continue;
    }
    return absl::EndsWith(word, ".yaml") || absl::EndsWith(word, ".yml");
  }
  return false;
}

std::variant<StudyDryRunOptions, int> ReadStudyDryRunWords(const std::vector<std::string>& words,
                                                           std::ostream& out, std::ostream& err,
                                                           int columns) {
  CLI::App app(
      "Dry-runs configurations of a study on emulated GPUs, and shows which part of its space "
      "fits.",
      "hpo memory dry-run");
  StudyDryRunOptions options;
  std::string sample;
  Declare(app, options, sample);
  const auto end = std::find(words.begin(), words.end(), "--");
  std::vector<const char*> own = {"hpo memory dry-run"};
  for (auto word = words.begin(); word != end; ++word) own.push_back(word->c_str());
  const auto over =
      ParseCommandLine(app, static_cast<int>(own.size()), own.data(), out, err, columns);
  if (over) return *over;
  if (end != words.end()) options.command.assign(end + 1, words.end());
  options.runs_all = sample == kAll;
  if (!sample.empty() && !options.runs_all && !absl::SimpleAtoi(sample, &options.sample)) return 2;
  return options;
}

}  // namespace hpo::cli
