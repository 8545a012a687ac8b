#include "cli/commands/studies/study_presets_command.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "common/base/spelling.h"
#include "common/study_file/study_file.h"
#include "common/study_file/study_presets.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

// The comment that the file begins with, as one line.
std::string Summary(const StudyPreset& preset) {
  std::vector<absl::string_view> lines;
  for (absl::string_view line : absl::StrSplit(preset.yaml, '\n')) {
    if (!absl::ConsumePrefix(&line, "# ")) break;
    lines.push_back(line);
  }
  return absl::StrJoin(lines, " ");
}

Json PresetJson(const StudyPreset& preset) {
  return {{"name", preset.name}, {"summary", Summary(preset)}, {"yaml", preset.yaml}};
}

void ListPresets(Session& session) {
  Json json = Json::array();
  Table table({{.title = "PRESET"}, {.title = "WHAT IT IS FOR", .wraps = true}});
  for (const StudyPreset& preset : StudyPresets()) {
    json.push_back(PresetJson(preset));
    table.AddRow({preset.name, Summary(preset)});
  }
  if (session.json) {
    PrintJson(json, session.out);
  } else {
    session.out << table.Render(session.terminal.columns, session.terminal.colors)
                << "\nhpo study presets NAME prints one; hpo-server --study NAME runs it.\n";
  }
}

}  // namespace

absl::Status ShowPresets(Session& session, const std::string& name) {
  if (name.empty()) {
    ListPresets(session);
    return absl::OkStatus();
  }
  for (const StudyPreset& preset : StudyPresets()) {
    if (name != preset.name) continue;
    if (session.json) {
      PrintJson(PresetJson(preset), session.out);
    } else {
      session.out << preset.yaml;
    }
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("preset '", name, "': expected one of ",
                                          absl::StrJoin(PresetNames(), ", "),
                                          DidYouMean(name, PresetNames())));
}

}  // namespace hpo::cli
