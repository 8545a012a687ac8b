#include "cli/render/trial_table.h"

#include <algorithm>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/client/terminal.h"
#include "cli/render/color.h"
#include "cli/render/table.h"
#include "cli/render/wording.h"

namespace hpo::cli {
namespace {

constexpr char kStateTitle[] = "STATE";

// A column's cells, and whether they are numbers.
struct Cells {
  std::vector<std::string> text;
  Align align = Align::kRight;
};

Cells NumberCells(const std::vector<std::optional<double>>& values) {
  std::vector<double> known;
  for (const std::optional<double>& value : values) {
    if (value) known.push_back(*value);
  }
  const int digits = DigitsThatTell(known);
  Cells cells;
  for (const std::optional<double>& value : values) {
    cells.text.push_back(value ? NumberOf(*value, digits) : "-");
  }
  return cells;
}

Cells ValuesOf(const std::vector<Trial>& trials, const std::string& metric, bool first) {
  std::vector<std::optional<double>> values;
  for (const Trial& trial : trials) {
    values.push_back(first && trial.value ? trial.value : MetricOf(trial, metric));
  }
  return NumberCells(values);
}

Cells ParameterCells(const std::vector<Trial>& trials, const std::string& name) {
  std::vector<std::optional<double>> numbers;
  Cells words;
  for (const Trial& trial : trials) {
    const auto found = trial.params.find(name);
    const bool has = found != trial.params.end();
    if (has && !std::holds_alternative<double>(found->second)) {
      if (!std::holds_alternative<int64_t>(found->second)) words.align = Align::kLeft;
    } else if (has) {
      numbers.push_back(std::get<double>(found->second));
    }
    if (!has) numbers.push_back(std::nullopt);
    words.text.push_back(has ? ShowParam(found->second) : "-");
  }
  return numbers.size() == trials.size() ? NumberCells(numbers) : words;
}

std::vector<std::string> NamesIn(const std::vector<Trial>& trials) {
  std::set<std::string> names;
  for (const Trial& trial : trials) {
    for (const auto& [name, value] : trial.params) names.insert(name);
  }
  return {names.begin(), names.end()};
}

bool IsSameInAll(const std::vector<Trial>& trials, const std::string& name) {
  const ParamMap& first = trials.front().params;
  const auto value = first.find(name);
  return value != first.end() && std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
           const auto found = trial.params.find(name);
           return found != trial.params.end() && found->second == value->second;
         });
}

// Why it did not complete, in a line: of a traceback the last, which names the error.
std::string ReasonOf(const Trial& trial) {
  if (!trial.outcome || std::holds_alternative<Completed>(*trial.outcome)) return "";
  return DescribeEnd(trial);
}

class TrialColumns {
 public:
  explicit TrialColumns(const std::vector<Trial>& trials) : trials_(trials) {}

  void Add(const std::string& title, Cells cells) {
    columns_.push_back({.title = title,
                        .align = cells.align,
                        .color_of = title == kStateTitle ? ColorOfState : nullptr});
    cells_.push_back(std::move(cells.text));
  }

  template <typename CellOf>
  void Add(const std::string& title, Align align, CellOf cell_of) {
    Cells cells{.align = align};
    for (const Trial& trial : trials_) cells.text.push_back(cell_of(trial));
    Add(title, std::move(cells));
  }

  // As Add; no column where all cells are empty.
  template <typename CellOf>
  void AddUnlessEmpty(const std::string& title, CellOf cell_of) {
    const auto has_text = [&](const Trial& trial) { return !cell_of(trial).empty(); };
    if (std::any_of(trials_.begin(), trials_.end(), has_text)) Add(title, Align::kLeft, cell_of);
  }

  Table ToTable() const {
    Table table(columns_);
    for (size_t row = 0; row < trials_.size(); ++row) {
      std::vector<std::string> cells;
      for (const std::vector<std::string>& column : cells_) cells.push_back(column[row]);
      table.AddRow(std::move(cells));
    }
    return table;
  }

 private:
  const std::vector<Trial>& trials_;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> cells_;
};

TrialColumns OutcomeColumns(const std::vector<Trial>& trials, const StudyStatus& study) {
  TrialColumns columns(trials);
  columns.Add("TRIAL", Align::kRight,
              [](const Trial& trial) { return absl::StrCat(trial.id.number.value); });
  columns.Add(kStateTitle, Align::kLeft, [](const Trial& trial) {
    return absl::StrCat(DescribeState(trial), trial.demonstration ? " demonstration" : "");
  });
  columns.AddUnlessEmpty("FRONT", [&study](const Trial& trial) {
    const bool on_front =
        std::any_of(study.front.begin(), study.front.end(),
                    [&trial](const FrontTrial& other) { return other.number == trial.id.number; });
    return std::string(on_front ? "*" : "");
  });
  const std::vector<Objective>& objectives = study.spec.objectives;
  for (size_t i = 0; i < objectives.size(); ++i) {
    columns.Add(objectives[i].metric, ValuesOf(trials, objectives[i].metric, i == 0));
  }
  columns.Add("TIME", Align::kRight,
              [](const Trial& trial) { return TakenText(trial.started, trial.ended); });
  return columns;
}

Table TableOf(const std::vector<Trial>& trials, const StudyStatus& study,
              const std::vector<std::string>& varying, int width) {
  TrialColumns columns = OutcomeColumns(trials, study);
  for (const std::string& name : varying) columns.Add(name, ParameterCells(trials, name));
  columns.AddUnlessEmpty("WHY", ReasonOf);
  Table table = columns.ToTable();
  if (table.Fits(width)) return table;
  TrialColumns narrow = OutcomeColumns(trials, study);
  narrow.Add("PARAMETERS", Align::kLeft, [&varying](const Trial& trial) {
    ParamMap shown;
    for (const std::string& name : varying) {
      if (trial.params.contains(name)) shown[name] = trial.params.at(name);
    }
    return FormatParams(shown);
  });
  narrow.AddUnlessEmpty("WHY", ReasonOf);
  return narrow.ToTable();
}

}  // namespace

std::string TrialTable(const std::vector<Trial>& trials, const StudyStatus& study, int width,
                       bool colors) {
  std::vector<std::string> varying;
  ParamMap same;
  for (const std::string& name : NamesIn(trials)) {
    if (trials.size() > 1 && IsSameInAll(trials, name)) {
      same[name] = trials.front().params.at(name);
    } else {
      varying.push_back(name);
    }
  }
  const std::string table = TableOf(trials, study, varying, width).Render(width, colors);
  return same.empty() ? table
                      : absl::StrCat(table, "in all: ", Printable(FormatParams(same)), "\n");
}

}  // namespace hpo::cli
