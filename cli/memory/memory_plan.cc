// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_plan.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/memory/memory_params.h"
#include "cli/render/json.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"
#include "common/base/status.h"
#include "memory/offline/offline_model.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

Json VerdictJson(const memory::ConfigVerdict& verdict, const memory::OfflineDevice& device) {
  const memory::MemoryAnswer shown{
      .estimate = verdict.planned.estimate,
      .plan = verdict.planned.plan,
      .fits = verdict.planned.fits,
      .usable = verdict.usable,
      .explanation =
          verdict.planned.fits ? "" : memory::ExplainMisfit(verdict.planned, verdict.usable)};
  Json json = MemoryJson(shown);
  json["margin"] = verdict.planned.margin;
  json["required_bytes"] = verdict.required.count;
  json["runs_from_bytes"] = memory::CardFor(device, verdict.required).count;
  return json;
}

Json AdviceJson(const ParamMap& params, const memory::OfflineDevice& device,
                const memory::Basis& basis, const memory::ConfigAdvice& advice) {
  Json changes = Json::array();
  for (const memory::ConfigChange& change : advice.changes) {
    changes.push_back({{"change", change.what},
                       {"cost", change.cost},
                       {"params", Json::parse(ParamsToJson(change.params).dump())},
                       {"verdict", VerdictJson(change.verdict, device)}});
  }
  return {{"params", Json::parse(ParamsToJson(params).dump())},
          {"card_bytes", device.cards.front().count},
          {"basis", memory::BasisJson(basis)},
          {"strict", VerdictJson(advice.literal, device)},
          {"changes", std::move(changes)},
          {"fits", advice.fits},
          {"smallest_card_unchanged_bytes", advice.smallest_capacity.count},
          {"smallest_card_bytes", advice.smallest_changed_capacity.count}};
}

std::string Verdict(const memory::ConfigAdvice& advice, Bytes card) {
  const std::string size = FormatBytes(card);
  if (advice.literal.planned.fits) return absl::StrCat("fits ", size, " as it is\n");
  const std::string smallest =
      absl::StrCat("; the smallest card, by micro-batches and changes that cut no texts: ",
                   FormatBytes(advice.smallest_changed_capacity), "\n");
  if (advice.fits) return absl::StrCat("fits ", size, " with these changes", smallest);
  return absl::StrCat("does not fit ", size, ": take a smaller model", smallest);
}

std::string AdviceText(const memory::OfflineDevice& device, const memory::Basis& basis,
                       const memory::ConfigAdvice& advice, int width) {
  Table table({{"CHANGE"},
               {"BATCH = PARTS"},
               {"NEEDED", Align::kRight},
               {"RUNS FROM", Align::kRight},
               {"FITS"},
               {"COST"}});
  const auto row = [&](const std::string& what, const memory::ConfigVerdict& verdict,
                       const std::string& cost) {
    table.AddRow({what, DescribePlan(verdict.planned.plan), FormatBytes(verdict.required),
                  FormatBytes(memory::CardFor(device, verdict.required)),
                  verdict.planned.fits ? "yes" : "no", cost});
  };
  row("as it is", advice.literal, "-");
  for (const memory::ConfigChange& change : advice.changes)
    row(change.what, change.verdict, change.cost);
  const Bytes card = device.cards.front();
  return absl::StrCat(table.Render(width),
                      "\nRUNS FROM: the smallest card that has as much to use; ", "of ",
                      FormatBytes(card), " that is ", FormatBytes(advice.literal.usable), "\n",
                      Verdict(advice, card), memory::BasisText(basis), "\n");
}

}  // namespace

absl::StatusOr<bool> ShowMemoryPlan(Session& session, const MemoryPlanOptions& options) {
  HPO_ASSIGN_OR_RETURN(const ParamMap params, ParseMemoryParams(options.params));
  HPO_ASSIGN_OR_RETURN(const std::string name, ModelNameOf(params));
  HPO_ASSIGN_OR_RETURN(const memory::OfflineDevice device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(const memory::OfflineModel model,
                       memory::OfflineModel::Create(name, options.task, device));
  HPO_ASSIGN_OR_RETURN(const memory::Basis basis, model.BasisOf(params));
  HPO_ASSIGN_OR_RETURN(const memory::ConfigAdvice advice,
                       model.Advise(params, device.cards.front()));
  if (session.json) {
    PrintJson(AdviceJson(params, device, basis, advice), session.out);
  } else {
    session.out << AdviceText(device, basis, advice, session.terminal.columns);
  }
  return advice.fits;
}

}  // namespace hpo::cli
