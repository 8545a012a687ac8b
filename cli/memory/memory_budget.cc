// Tested by tests/cli/memory/memory_commands_test.cc.
#include "cli/memory/memory_budget.h"

#include <string>
#include <utility>
#include <vector>

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

// Of one configuration: classes that add up to `needed`, and what that is held against.
struct ClassBudget {
  ParamMap params;
  memory::Basis basis;
  std::vector<std::pair<const char*, Bytes>> classes;
  memory::ConfigVerdict verdict;
};

ClassBudget MakeBudget(const memory::ConfigVerdict& verdict, Bytes adapters) {
  const memory::MemoryEstimate& estimate = verdict.planned.estimate;
  ClassBudget budget{.verdict = verdict};
  budget.classes = {{"weights", estimate.weights - adapters},
                    {"adapters", adapters},
                    {"head", estimate.head},
                    {"activations", estimate.activations},
                    {"gradients", estimate.gradients},
                    {"optimizer", estimate.optimizer}};
  Bytes tensors;
  for (const auto& [name, size] : budget.classes) tensors += size;
  budget.classes.push_back({"overhead", estimate.needed_limit - tensors});
  return budget;
}

absl::StatusOr<ClassBudget> BudgetOf(const ParamMap& params, const std::string& task,
                                     const memory::OfflineDevice& device) {
  HPO_ASSIGN_OR_RETURN(const std::string name, ModelNameOf(params));
  HPO_ASSIGN_OR_RETURN(const memory::OfflineModel model,
                       memory::OfflineModel::Create(name, task, device));
  HPO_ASSIGN_OR_RETURN(const memory::ConfigVerdict verdict,
                       model.Judge(params, device.cards.front()));
  HPO_ASSIGN_OR_RETURN(const Bytes adapters, model.AdapterBytes(params));
  ClassBudget budget = MakeBudget(verdict, adapters);
  budget.params = params;
  HPO_ASSIGN_OR_RETURN(budget.basis, model.BasisOf(params));
  return budget;
}

Json BudgetJson(const ClassBudget& budget) {
  Json classes;
  for (const auto& [name, size] : budget.classes) classes[name] = size.count;
  const memory::ConfigVerdict& verdict = budget.verdict;
  return {{"params", Json::parse(ParamsToJson(budget.params).dump())},
          {"basis", memory::BasisJson(budget.basis)},
          {"bytes_by_class", std::move(classes)},
          {"peak_phase", verdict.planned.estimate.peak_phase},
          {"needed_limit_bytes", verdict.planned.estimate.needed_limit.count},
          {"margin", verdict.planned.margin},
          {"required_bytes", verdict.required.count},
          {"usable_bytes", verdict.usable.count},
          {"fits", verdict.planned.fits}};
}

std::string Change(Bytes before, Bytes after) {
  if (before == after) return "-";
  return absl::StrCat(after < before ? "-" : "+",
                      FormatBytes(after < before ? before - after : after - before));
}

std::string BudgetText(const std::vector<ClassBudget>& budgets, int width) {
  const bool compares = budgets.size() > 1;
  std::vector<Column> columns = {{"CLASS"}, {compares ? "BEFORE" : "BYTES", Align::kRight}};
  if (compares)
    columns.insert(columns.end(), {{"AFTER", Align::kRight}, {"CHANGE", Align::kRight}});
  Table table(std::move(columns));
  const auto row = [&](const std::string& name, Bytes before, Bytes after) {
    std::vector<std::string> cells = {name, FormatBytes(before)};
    if (compares) cells.insert(cells.end(), {FormatBytes(after), Change(before, after)});
    table.AddRow(std::move(cells));
  };
  const ClassBudget& before = budgets.front();
  const ClassBudget& after = budgets.back();
  for (size_t i = 0; i < before.classes.size(); ++i) {
    const auto& [name, size] = before.classes[i];
    if (size == Bytes{} && after.classes[i].second == Bytes{}) continue;
    row(name, size, after.classes[i].second);
  }
  const auto needed = [](const ClassBudget& budget) {
    return budget.verdict.planned.estimate.needed_limit;
  };
  row("needed", needed(before), needed(after));
  row("with its margin", before.verdict.required, after.verdict.required);
  row("may be used", before.verdict.usable, after.verdict.usable);
  std::string text = absl::StrCat(
      table.Render(width), "\nof a whole run, at its peak; overhead: context and libraries, ",
      "cuBLAS's workspaces, what the allocator cannot use\n");
  for (const ClassBudget& budget : budgets) {
    absl::StrAppend(&text,
                    !compares            ? ""
                    : &budget == &before ? "before: "
                                         : "after: ",
                    budget.verdict.planned.fits ? "fits" : "does not fit", ", peak in ",
                    budget.verdict.planned.estimate.peak_phase, ", batch ",
                    DescribePlan(budget.verdict.planned.plan), "; ",
                    memory::BasisText(budget.basis), "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<bool> ShowMemoryBudget(Session& session, const MemoryBudgetOptions& options) {
  HPO_ASSIGN_OR_RETURN(const memory::OfflineDevice device, memory::ParseDevice(options.device));
  HPO_ASSIGN_OR_RETURN(ParamMap params, ParseMemoryParams(options.params));
  HPO_ASSIGN_OR_RETURN(const ParamMap changed, ParseMemoryParams(options.compare));
  std::vector<ClassBudget> budgets;
  HPO_ASSIGN_OR_RETURN(budgets.emplace_back(), BudgetOf(params, options.task, device));
  if (!changed.empty()) {
    for (const auto& [name, value] : changed) params[name] = value;
    HPO_ASSIGN_OR_RETURN(budgets.emplace_back(), BudgetOf(params, options.task, device));
  }
  if (session.json) {
    Json json = {{"card_bytes", device.cards.front().count},
                 {"before", BudgetJson(budgets.front())}};
    if (!changed.empty()) json["after"] = BudgetJson(budgets.back());
    PrintJson(json, session.out);
  } else {
    session.out << BudgetText(budgets, session.terminal.columns);
  }
  return budgets.back().verdict.planned.fits;
}

}  // namespace hpo::cli
