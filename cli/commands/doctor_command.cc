#include "cli/commands/doctor_command.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/command_line/exit_status.h"
#include "common/command_line/shell_word.h"
#include "common/device/nvml.h"
#include "common/files/user_folder.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr Bytes kLittleRoom = GiB(5);

const char* Name(Health health) {
  switch (health) {
    case Health::kGood:
      return "ok";
    case Health::kNote:
      return "note";
    case Health::kWrong:
      return "wrong";
  }
  return "";
}

Color ColorOfHealth(absl::string_view name) {
  if (name == Name(Health::kGood)) return Color::kGreen;
  return name == Name(Health::kWrong) ? Color::kRed : Color::kYellow;
}

void DiagnoseServer(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.server.ok()) {
    findings.push_back({"server", Health::kNote, std::string(facts.server.status().message())});
    return;
  }
  const ServerStatus& server = *facts.server;
  if (server.version != facts.version) {
    const std::string version = server.version.empty() ? "of an earlier version" : server.version;
    findings.push_back({"server", Health::kWrong,
                        absl::StrCat(facts.address, " is ", version, ", this program is ",
                                     facts.version, "; install one version everywhere")});
  } else {
    findings.push_back({"server", Health::kGood,
                        absl::StrCat(facts.address, " answers, version ", server.version)});
  }
  if (!server.trouble.empty()) findings.push_back({"server", Health::kWrong, server.trouble});
  for (const std::string& damage : server.damage) {
    findings.push_back({"database", Health::kWrong, damage});
  }
}

void DiagnoseCards(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.cards.ok() || facts.cards->empty()) {
    const std::string why = facts.cards.ok() ? "none" : std::string(facts.cards.status().message());
    findings.push_back({"cards", Health::kNote,
                        absl::StrCat(why,
                                     "; without one: hpo-worker --device cpu "
                                     "--memory-limit 2GiB")});
    return;
  }
  for (const GpuState& card : *facts.cards) {
    const std::string name = absl::StrCat("card ", card.index);
    findings.push_back(
        {name, Health::kGood,
         absl::StrCat(card.name, ", driver ", card.driver, ", ", FormatBytes(card.free), " of ",
                      FormatBytes(card.total), " free")});
    for (const GpuProcess& process : card.processes) {
      findings.push_back(
          {name, Health::kNote,
           absl::StrCat(process.name.empty() ? "a program" : process.name, " (pid ", process.pid,
                        ") holds ", process.used ? FormatBytes(*process.used) : "memory")});
    }
  }
}

Finding DiagnoseTrainer(const DoctorFacts& facts) {
  if (!facts.trainer) {
    return {"trainer", Health::kNote,
            "no hpo-trainer beside this program; for one of your own: hpo-worker --trainer "
            "COMMAND"};
  }
  if (facts.trainer->ok()) return {"trainer", Health::kGood, **facts.trainer};
  return {"trainer", Health::kWrong, std::string(facts.trainer->status().message())};
}

Finding DiagnoseDisk(const DoctorFacts& facts) {
  if (!facts.room.ok()) {
    return {"disk", Health::kWrong, std::string(facts.room.status().message())};
  }
  const std::string text =
      absl::StrCat(FormatBytes(*facts.room), " free for ", facts.state_folder,
                   *facts.room < kLittleRoom ? ", where trained models are kept" : "");
  return {"disk", *facts.room < kLittleRoom ? Health::kWrong : Health::kGood, text};
}

// ---- What is there ----

absl::StatusOr<std::vector<GpuState>> ReadCards() {
  const auto probe = NvmlProbe::Create();
  HPO_RETURN_IF_ERROR(probe.status());
  return (*probe)->List();
}

std::optional<absl::StatusOr<std::string>> ReadTrainer() {
  std::error_code error;
  const fs::path trainer = fs::path(ProgramFolder()) / "hpo-trainer";
  if (!fs::exists(trainer, error)) return std::nullopt;
  const std::string command = absl::StrCat(ShellWord(trainer.string()), " --version 2>&1");
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return absl::UnavailableError("hpo-trainer cannot be started");
  std::string said;
  char piece[4096];
  while (const size_t count = std::fread(piece, 1, sizeof piece, pipe)) said.append(piece, count);
  const int status = pclose(pipe);
  said = std::string(absl::StripAsciiWhitespace(said));
  if (status == 0) return absl::StrCat("hpo-trainer ", said);
  return absl::UnavailableError(absl::StrCat(
      trainer.string(), " --version: expected status 0, got ", WEXITSTATUS(status), ": ", said));
}

// Of the nearest folder that exists.
absl::StatusOr<Bytes> ReadRoom(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(folder.string(), ": ", error.message()));
  }
  return Bytes{static_cast<int64_t>(space.available)};
}

}  // namespace

std::vector<Finding> Diagnose(const DoctorFacts& facts) {
  std::vector<Finding> findings = {{"hpo", Health::kGood, absl::StrCat("version ", facts.version)}};
  DiagnoseServer(facts, findings);
  DiagnoseCards(facts, findings);
  findings.push_back(DiagnoseTrainer(facts));
  findings.push_back(DiagnoseDisk(facts));
  return findings;
}

absl::StatusOr<int> RunDoctor(Session& session) {
  DoctorFacts facts{.version = std::string(Version()), .address = session.client.address()};
  facts.server = session.client.GetServer();
  facts.cards = ReadCards();
  facts.trainer = ReadTrainer();
  facts.state_folder = UserFolder("XDG_STATE_HOME", ".local/state") + "/hpo";
  facts.room = ReadRoom(facts.state_folder);
  const std::vector<Finding> findings = Diagnose(facts);
  Json json = Json::array();
  Table table({{.title = "CHECK"},
               {.title = "", .color_of = ColorOfHealth},
               {.title = "WHAT WAS FOUND", .wraps = true}});
  for (const Finding& finding : findings) {
    json.push_back(
        {{"check", finding.about}, {"result", Name(finding.health)}, {"text", finding.text}});
    table.AddRow({finding.about, Name(finding.health), finding.text});
  }
  if (session.json) {
    PrintJson(json, session.out);
  } else {
    session.out << table.Render(session.terminal.columns, session.terminal.colors);
  }
  const bool wrong = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.health == Health::kWrong;
  });
  return wrong ? kExitFailure : kExitOk;
}

}  // namespace hpo::cli
