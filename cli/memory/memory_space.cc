// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_space.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/json.h"
#include "cli/render/space_text.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "common/study_file/study_file.h"
#include "memory/offline/offline_card.h"
#include "memory/plan/space_survey.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

int64_t Known(const memory::SpaceSurvey& survey) { return survey.configurations - survey.unknown; }

Json CountJson(const memory::PolicyCount& count) {
  const int64_t all = count.fits + count.does_not_fit;
  const Json share =
      all == 0 ? Json(nullptr) : Json(static_cast<double>(count.fits) / static_cast<double>(all));
  return {{"fits", count.fits},
          {"does_not_fit", count.does_not_fit},
          {"share", share},
          {"cut", CutJson(count.cut)}};
}

Json SurveyJson(const StudySpec& study, const memory::OfflineDevice& device,
                const memory::SpaceSurvey& survey) {
  Json models = Json::array();
  for (const memory::ModelSurvey& model : survey.models) {
    Json entry = {
        {"name", model.name}, {"configurations", model.configurations}, {"known", model.known}};
    if (model.known) {
      entry["smallest_strict_bytes"] = model.smallest_literal.count;
      entry["smallest_plan_bytes"] = model.smallest_plan.count;
      entry["largest_strict_bytes"] = model.largest_literal.count;
      entry["fits_strict"] = model.strict_fits;
      entry["fits_plan"] = model.plan_fits;
    }
    models.push_back(std::move(entry));
  }
  Json cards = Json::array();
  for (const memory::CardSurvey& card : survey.cards) {
    cards.push_back({{"card_bytes", card.capacity.count},
                     {"usable_bytes", card.usable.count},
                     {"strict", CountJson(card.strict)},
                     {"plan", CountJson(card.plan)}});
  }
  return {{"study", study.name},
          {"policy", std::string(Name(study.memory.policy))},
          {"configurations", survey.configurations},
          {"sampled", survey.sampled},
          {"unknown", survey.unknown},
          {"parameters", survey.parameters},
          {"basis", memory::BasisJson(memory::TrainerBasis(device))},
          {"cards", std::move(cards)},
          {"models", std::move(models)}};
}

std::string CardTable(const memory::SpaceSurvey& survey, int width) {
  Table table({{"CARD", Align::kRight},
               {"STRICT", Align::kRight},
               {"PLAN", Align::kRight},
               {"DO NOT FIT", Align::kRight},
               {"CUT"}});
  for (const memory::CardSurvey& card : survey.cards) {
    table.AddRow(
        {FormatBytes(card.capacity), Percent(card.strict.fits, Known(survey)),
         Percent(card.plan.fits, Known(survey)),
         absl::StrCat(card.strict.does_not_fit, " strict, ", card.plan.does_not_fit, " plan"),
         CutText(card.strict.cut)});
  }
  return table.Render(width);
}

std::string ModelTable(const memory::SpaceSurvey& survey, int width) {
  Table table({{"MODEL"},
               {"CONFIGURATIONS", Align::kRight},
               {"SMALLEST", Align::kRight},
               {"BY PLAN", Align::kRight},
               {"LARGEST", Align::kRight},
               {"FIT STRICT, BY CARD"}});
  for (const memory::ModelSurvey& model : survey.models) {
    const std::string name = model.name.empty() ? "(the study's)" : model.name;
    table.AddRow({name, absl::StrCat(model.configurations), OrDash(model.smallest_literal),
                  OrDash(model.smallest_plan), OrDash(model.largest_literal),
                  model.known ? absl::StrJoin(model.strict_fits, ", ") : "not known"});
  }
  return table.Render(width);
}

std::string SurveyText(const StudySpec& study, const memory::OfflineDevice& device,
                       const memory::SpaceSurvey& survey, int width) {
  std::string text =
      absl::StrCat("study ", study.name, ": ", survey.configurations, " configurations",
                   survey.sampled ? ", drawn at random, of " : " of ",
                   absl::StrJoin(survey.parameters, ", "), "\n");
  if (survey.unknown > 0) {
    absl::StrAppend(&text, survey.unknown,
                    " of models whose steps cannot be traced are left out of the shares\n");
  }
  return absl::StrCat(text, "\n", CardTable(survey, width), "\n", ModelTable(survey, width), "\n",
                      memory::BasisText(memory::TrainerBasis(device)), "\n");
}

absl::StatusOr<StudySpec> FindSpec(Session& session, const std::string& file) {
  if (!file.empty()) {
    HPO_ASSIGN_OR_RETURN(const StudyOverrides overrides, OverridesFromEnvironment());
    return LoadStudy(file, overrides);
  }
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, session.client.studies().GetStudy(session.study));
  return study.spec;
}

bool AllFit(const StudySpec& study, const memory::SpaceSurvey& survey) {
  const bool strict = study.memory.policy == MemoryPolicy::kStrict;
  return std::all_of(survey.cards.begin(), survey.cards.end(),
                     [strict](const memory::CardSurvey& card) {
                       return (strict ? card.strict : card.plan).does_not_fit == 0;
                     });
}

}  // namespace

absl::StatusOr<bool> ShowMemorySpace(Session& session, const MemorySpaceOptions& options) {
  HPO_ASSIGN_OR_RETURN(const memory::OfflineDevice device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(const StudySpec study, FindSpec(session, options.file));
  const memory::FitDecider decider =
      memory::OfflineDecider(study, MemoryPolicy::kStrict, memory::FindModels(study), device);
  HPO_ASSIGN_OR_RETURN(const memory::SpaceSurvey survey,
                       memory::SurveySpace(study, decider, {.cards = device.cards}));
  if (session.json) {
    PrintJson(SurveyJson(study, device, survey), session.out);
  } else {
    session.out << SurveyText(study, device, survey, session.terminal.columns);
  }
  return AllFit(study, survey);
}

}  // namespace hpo::cli
