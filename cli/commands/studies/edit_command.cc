// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/studies/edit_command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/selection/written_choice.h"
#include "common/study_file/yaml_reader.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBetween[] = "..";

absl::Status BadRange(const Parameter& parameter, absl::string_view expected,
                      absl::string_view got) {
  return absl::InvalidArgumentError(
      absl::StrCat("--set ", parameter.name, ": expected ", expected, ", got '", got, "'"));
}

// "1e-5..1e-3": what else the domain says (log, step) stays.
template <typename Number, typename Bounded>
absl::StatusOr<Domain> WithBounds(const Parameter& parameter, Bounded domain,
                                  const std::string& text,
                                  bool (*parse)(absl::string_view, Number*)) {
  const std::vector<std::string> bounds = absl::StrSplit(text, absl::MaxSplits(kBetween, 1));
  if (bounds.size() == 2 && parse(bounds[0], &domain.low) && parse(bounds[1], &domain.high)) {
    return domain;
  }
  return BadRange(parameter, absl::StrCat("LOW..HIGH, as it is ", FormatDomain(parameter.domain)),
                  text);
}

bool ParseReal(absl::string_view text, double* number) { return absl::SimpleAtod(text, number); }
bool ParseWhole(absl::string_view text, int64_t* number) { return absl::SimpleAtoi(text, number); }

template <typename T>
bool AreAllOrNull(const CategoricalDomain& domain) {
  return std::all_of(domain.choices.begin(), domain.choices.end(), [](const ParamValue& choice) {
    return std::holds_alternative<T>(choice) || std::holds_alternative<Null>(choice);
  });
}

// The choice that it writes, else a new one as a study file has it: null, 3, 0.5, true, a text. It
// is a text where all others are, and where others are not it is in quotes.
absl::StatusOr<ParamValue> ParseChoice(const Parameter& parameter, const CategoricalDomain& domain,
                                       const std::string& text) {
  if (const std::optional<ParamValue> choice = ChoiceWritten(domain, text)) return *choice;
  if (text.empty()) return BadRange(parameter, "a choice", text);
  absl::StatusOr<YamlDocument> document = YamlDocument::Parse(text, "--set");
  absl::StatusOr<ParamValue> value =
      document.ok() ? ReadParam(document->root()) : document.status();
  if (!value.ok()) value = ParamValue(text);
  const bool is_text = std::holds_alternative<std::string>(*value);
  const bool is_null = std::holds_alternative<Null>(*value);
  if (AreAllOrNull<std::string>(domain)) return is_text || is_null ? *value : ParamValue(text);
  const bool is_mixed = !AreAllOrNull<bool>(domain) && !AreAllOrNull<int64_t>(domain) &&
                        !AreAllOrNull<double>(domain);
  if (is_text && !is_mixed && text.front() != '"') {
    return BadRange(parameter,
                    absl::StrCat("a choice like those of ", FormatDomain(parameter.domain),
                                 ", or a text in double quotes"),
                    text);
  }
  return AreAllOrNull<double>(domain) ? Coerce(FloatDomain(), *value) : *value;
}

absl::StatusOr<Domain> WithChoices(const Parameter& parameter, const CategoricalDomain& domain,
                                   const std::string& text) {
  CategoricalDomain edited;
  const std::vector<std::string> words = absl::StrSplit(text, ',');
  for (const std::string& word : words) {
    HPO_ASSIGN_OR_RETURN(ParamValue value, ParseChoice(parameter, domain, word));
    edited.choices.push_back(std::move(value));
  }
  return edited;
}

absl::StatusOr<Domain> ReadDomain(const Parameter& parameter, const std::string& text) {
  if (const auto* real = std::get_if<FloatDomain>(&parameter.domain)) {
    return WithBounds<double>(parameter, *real, text, ParseReal);
  }
  if (const auto* whole = std::get_if<IntDomain>(&parameter.domain)) {
    return WithBounds<int64_t>(parameter, *whole, text, ParseWhole);
  }
  return WithChoices(parameter, std::get<CategoricalDomain>(parameter.domain), text);
}

absl::StatusOr<std::map<std::string, Domain>> ReadRanges(const std::vector<std::string>& words,
                                                         const SearchSpace& space) {
  std::map<std::string, Domain> ranges;
  for (const std::string& word : words) {
    const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("--set: expected NAME=LOW..HIGH or NAME=CHOICE,CHOICE, got '", word, "'"));
    }
    const Parameter* const parameter = space.Find(parts[0]);
    if (parameter == nullptr) {
      std::vector<std::string> names;
      for (const Parameter& known : space.parameters) names.push_back(known.name);
      return absl::InvalidArgumentError(absl::StrCat("--set: the study has no parameter '",
                                                     parts[0], "'", DidYouMean(parts[0], names)));
    }
    HPO_ASSIGN_OR_RETURN(ranges[parts[0]], ReadDomain(*parameter, parts[1]));
  }
  return ranges;
}

std::string EditedText(const EditResult& edited, bool only_checked, int width) {
  if (edited.before.empty() && edited.cancelled.empty())
    return "nothing changes: the study has these ranges\n";
  Table table({{"PARAMETER"}, {"BEFORE"}, {only_checked ? "WOULD BE" : "NOW"}});
  for (const auto& [name, domain] : edited.before) {
    table.AddRow({name, FormatDomain(domain), FormatDomain(edited.after.at(name))});
  }
  std::string text = table.Render(width);
  const int64_t num_staying = edited.num_outside - static_cast<int64_t>(edited.cancelled.size());
  if (num_staying > 0) {
    absl::StrAppend(&text, num_staying,
                    num_staying == 1 ? " trial lies outside; it stays in the study"
                                     : " trials lie outside; they stay in the study",
                    ", and the sampler no longer uses ", num_staying == 1 ? "it\n" : "them\n");
  }
  for (const TrialNumber number : edited.cancelled) {
    absl::StrAppend(&text, "trial ", Hash(number), ", queued and outside of the ranges, ",
                    only_checked ? "would be cancelled\n" : "is cancelled\n");
  }
  return text;
}

Json RangesJson(const std::map<std::string, Domain>& ranges) {
  Json json = Json::object();
  for (const auto& [name, domain] : ranges) json[name] = DomainJson(domain);
  return json;
}

}  // namespace

absl::Status EditStudy(Session& session, const EditOptions& options) {
  if (options.file.empty() == options.set.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("expected a changed file or --set, got ",
                                                   options.file.empty() ? "neither" : "both"));
  }
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  StudyEdit edit{.yaml = {}, .origin = options.file, .validate_only = options.dry_run};
  HPO_ASSIGN_OR_RETURN(edit.ranges, ReadRanges(options.set, study.spec.space));
  if (!options.file.empty()) {
    HPO_ASSIGN_OR_RETURN(edit.yaml, ReadFile(options.file));
  }
  HPO_ASSIGN_OR_RETURN(const EditResult edited,
                       session.client.studies().EditStudy(study.spec.name, edit));
  if (session.json) {
    Json cancelled = Json::array();
    for (const TrialNumber number : edited.cancelled) cancelled.push_back(number.value);
    PrintJson({{"study", study.spec.name},
               {"stored", !options.dry_run},
               {"before", RangesJson(edited.before)},
               {"after", RangesJson(edited.after)},
               {"outside", edited.num_outside},
               {"cancelled", std::move(cancelled)}},
              session.out);
    return absl::OkStatus();
  }
  session.out << EditedText(edited, options.dry_run, session.terminal.columns);
  return absl::OkStatus();
}

}  // namespace hpo::cli
