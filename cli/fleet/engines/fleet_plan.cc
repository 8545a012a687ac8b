#include "cli/fleet/engines/fleet_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/base/utf8.h"
#include "common/command_line/shell_word.h"

namespace hpo::cli {
namespace {

constexpr char kPrefix[] = "hpo-";
// Kubernetes puts an index and a random part behind it, and takes 63 characters in all.
constexpr size_t kLongestName = 40;
constexpr absl::Duration kShortestTime = absl::Minutes(1);

bool IsOfName(char c) {
  return absl::ascii_islower(static_cast<unsigned char>(c)) ||
         absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// "--gpu" and "--gpu=0" are both --gpu.
bool Gives(const std::vector<std::string>& words, absl::string_view option) {
  return std::any_of(words.begin(), words.end(), [option](const std::string& word) {
    return word == option || absl::StartsWith(word, absl::StrCat(option, "="));
  });
}

bool NamesDevice(const std::vector<std::string>& words) {
  return Gives(words, "--gpu") || Gives(words, "--device");
}

void Add(std::vector<std::string>& words, const std::string& option, const std::string& value) {
  words.push_back(option);
  words.push_back(value);
}

// Whether every shell, Slurm, YAML and Python take the text as part of one line, and a terminal
// shows what it is: UTF-8 without control characters (C0, DEL, C1) and line separators (U+2028,
// U+2029).
bool IsOfOneLine(absl::string_view text) {
  while (!text.empty()) {
    const auto [code, size] = FirstUtf8Character(text);  // 0 of what is not UTF-8
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (is_control || code == 0x2028 || code == 0x2029) return false;
    text.remove_prefix(size);
  }
  return true;
}

// All of its words get into a script or manifest, whose reader must find them as they were given.
absl::Status CheckWords(const FleetPlan& plan) {
  std::vector<std::pair<absl::string_view, const std::string*>> words = {
      {"--study", &plan.study},
      {"--gpu-type", &plan.gpu_type},
      {"--checkpoints", &plan.checkpoints},
      {"--image", &plan.image},
      {"--queue", &plan.queue},
      {"--claim", &plan.claim},
      {"--server", &plan.server.address},
      {"the join string's file", &plan.server.join_file},
      {"the fleet's folder", &plan.folder}};
  for (const std::string& line : plan.setup) words.emplace_back("--setup", &line);
  for (const std::string& word : plan.worker_options) words.emplace_back("worker's option", &word);
  for (const std::string& word : plan.engine_options) words.emplace_back("--option", &word);
  for (const auto& [name, word] : words) {
    if (IsOfOneLine(*word)) continue;
    return Unexpected(name, "text of one line without control characters",
                      absl::StrCat("'", absl::CHexEscape(*word), "'"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string FleetNameOf(absl::string_view study) {
  std::string name;
  for (const char c : absl::AsciiStrToLower(study)) {
    if (IsOfName(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  name.resize(std::min(name.size(), kLongestName));
  return std::string(absl::StripSuffix(name, "-"));
}

std::string FleetLabel(absl::string_view name) { return absl::StrCat(kPrefix, name); }

std::optional<std::string> NameOfLabel(absl::string_view label) {
  if (!absl::ConsumePrefix(&label, kPrefix) || !CheckFleetName(label).ok()) return std::nullopt;
  return std::string(label);
}

absl::Status CheckFleetName(absl::string_view name) {
  const bool is_name =
      !name.empty() && name.size() <= kLongestName && IsOfName(name.front()) &&
      IsOfName(name.back()) &&
      std::all_of(name.begin(), name.end(), [](char c) { return IsOfName(c) || c == '-'; });
  if (is_name) return absl::OkStatus();
  return Unexpected(
      "name of a fleet",
      absl::StrCat("small letters, digits and '-' between them, at most ", kLongestName),
      absl::StrCat("'", name, "'"));
}

bool IsWord(absl::string_view text, absl::string_view signs) {
  const auto is_alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !text.empty() && is_alnum(text.front()) && is_alnum(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alnum(c) || signs.find(c) != absl::string_view::npos;
         });
}

absl::Status CheckPlan(const FleetPlan& plan) {
  HPO_RETURN_IF_ERROR(CheckFleetName(plan.name));
  HPO_RETURN_IF_ERROR(CheckWords(plan));
  if (plan.time && *plan.time < kShortestTime) {
    return Unexpected("--time", "at least 1m", absl::FormatDuration(*plan.time));
  }
  if (Gives(plan.worker_options, "--join")) {
    return absl::InvalidArgumentError(
        "--join: expected no secret among the worker's options, as everybody who reads the script "
        "would see it; set HPO_JOIN_FILE for hpo fleet, which takes it from there");
  }
  if (plan.gpus_per_worker == 0 && !plan.gpu_type.empty()) {
    return Unexpected("--gpu-type", "--gpus-per-worker of at least 1", "0");
  }
  const bool names_memory =
      plan.memory_per_worker > Bytes{0} || Gives(plan.worker_options, "--memory-limit");
  if (plan.gpus_per_worker == 0 && !names_memory && !NamesDevice(plan.worker_options)) {
    return absl::InvalidArgumentError(
        "--gpus-per-worker 0: expected --memory SIZE too, such as --memory 8GiB, which the workers "
        "share with their trials");
  }
  return absl::OkStatus();
}

std::vector<std::string> DeviceWords(const FleetPlan& plan) {
  const std::vector<std::string>& given = plan.worker_options;
  if (NamesDevice(given)) return {};
  if (plan.gpus_per_worker > 0) return {"--gpu", "visible"};
  std::vector<std::string> words = {"--device", "cpu"};
  if (!Gives(given, "--memory-limit")) {
    const int64_t mebibytes = (plan.memory_per_worker.count >> 20) * 7 / 8;
    Add(words, "--memory-limit", absl::StrCat(mebibytes, "MiB"));
  }
  return words;
}

std::vector<std::string> WorkerWords(const FleetPlan& plan, const std::string& program) {
  std::vector<std::string> words = DeviceWords(plan);
  words.insert(words.begin(), program);
  if (!plan.study.empty()) Add(words, "--study", plan.study);
  if (!plan.checkpoints.empty()) Add(words, "--checkpoints", plan.checkpoints);
  words.insert(words.end(), plan.worker_options.begin(), plan.worker_options.end());
  return words;
}

std::string WordLines(const std::vector<std::string>& words) {
  std::string lines;
  for (const std::string& word : words) {
    const bool begins = lines.empty() || absl::StartsWith(word, "-");
    absl::StrAppend(&lines, begins ? (lines.empty() ? "  " : "\n  ") : " ", ShellWord(word));
  }
  return lines;
}

std::string PlanCommand(absl::string_view engine, const FleetPlan& plan) {
  std::vector<std::string> words = {"hpo", "fleet", std::string(engine), "--workers",
                                    absl::StrCat(plan.workers)};
  if (plan.name != FleetNameOf(plan.study)) Add(words, "--name", plan.name);
  if (!plan.study.empty()) Add(words, "--study", plan.study);
  if (plan.gpus_per_worker != 1)
    Add(words, "--gpus-per-worker", absl::StrCat(plan.gpus_per_worker));
  if (!plan.gpu_type.empty()) Add(words, "--gpu-type", plan.gpu_type);
  if (plan.cpus_per_worker > 0) Add(words, "--cpus", absl::StrCat(plan.cpus_per_worker));
  if (plan.memory_per_worker > Bytes{0}) {
    Add(words, "--memory", absl::StrCat(plan.memory_per_worker.count >> 20, "MiB"));
  }
  if (plan.time) Add(words, "--time", absl::FormatDuration(*plan.time));
  if (plan.max_running > 0) Add(words, "--max-running", absl::StrCat(plan.max_running));
  if (!plan.image.empty()) Add(words, "--image", plan.image);
  if (!plan.queue.empty()) Add(words, "--queue", plan.queue);
  if (!plan.claim.empty()) Add(words, "--claim", plan.claim);
  if (plan.is_spot) words.push_back("--spot");
  for (const std::string& line : plan.setup) Add(words, "--setup", line);
  if (!plan.checkpoints.empty()) Add(words, "--checkpoints", plan.checkpoints);
  for (const std::string& option : plan.engine_options) words.push_back("--option=" + option);
  if (!plan.worker_options.empty()) {
    words.push_back("--");
    words.insert(words.end(), plan.worker_options.begin(), plan.worker_options.end());
  }
  return absl::StrJoin(words, " ", [](std::string* text, const std::string& word) {
    absl::StrAppend(text, ShellWord(word));
  });
}

std::string ClockText(absl::Duration time) {
  const int64_t seconds = absl::ToInt64Seconds(time);
  return absl::StrFormat("%02d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

bool IsLoopback(absl::string_view address) {
  return absl::StartsWith(address, "127.") || absl::StartsWith(address, "localhost") ||
         absl::StartsWith(address, "[::1]") || absl::StartsWith(address, "unix:");
}

}  // namespace hpo::cli
