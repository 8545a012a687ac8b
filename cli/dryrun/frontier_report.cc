#include "cli/dryrun/frontier_report.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/render/space_text.h"
#include "cli/render/table.h"
#include "common/space/params.h"
#include "memory/plan/space_cut.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;
using memory::FrontierAnswer;
using memory::FrontierAxis;
using memory::FrontierVerdict;

constexpr size_t kMostErrors = 3;
constexpr char kLegend[] =
    "F fits   T tight   X does not fit   ? not known   ! cannot be dry-run\n"
    "Small letters are concluded from the runs. 5/8: 5 of the cell's 8 configurations fit.\n";

bool Runs(FrontierVerdict verdict) {
  return verdict == FrontierVerdict::kFits || verdict == FrontierVerdict::kTight;
}

char MarkOf(FrontierVerdict verdict) {
  switch (verdict) {
    case FrontierVerdict::kFits:
      return 'f';
    case FrontierVerdict::kTight:
      return 't';
    case FrontierVerdict::kDoesNotFit:
      return 'x';
    case FrontierVerdict::kNotKnown:
      break;
  }
  return '?';
}

size_t NumConfigurations(const FrontierReport& report) {
  return report.frontier.considered().configurations.size();
}

// What part of the space to leave out on a GPU.
std::optional<memory::SpaceCut> CutOf(const FrontierReport& report, size_t gpu) {
  memory::FitTallies tallies;
  for (size_t index = 0; index < NumConfigurations(report); ++index) {
    const FrontierVerdict verdict = report.frontier.Answer(index, gpu).verdict;
    if (verdict == FrontierVerdict::kNotKnown) continue;
    ParamMap varied;
    const ParamMap& params = report.frontier.considered().configurations[index];
    for (const FrontierAxis& axis : report.frontier.considered().axes) {
      if (const auto found = params.find(axis.name); found != params.end()) varied.insert(*found);
    }
    tallies.Count(varied, Runs(verdict));
  }
  return tallies.BestCut();
}

// The mark of the configurations of one cell.
std::string CellText(const FrontierReport& report, size_t gpu, const std::vector<size_t>& cell) {
  if (cell.empty()) return "";
  std::map<char, size_t> marks;
  size_t fits = 0;
  bool was_run = false;
  for (const size_t index : cell) {
    const FrontierAnswer answer = report.frontier.Answer(index, gpu);
    ++marks[report.frontier.HasFailed(index) ? '!' : MarkOf(answer.verdict)];
    fits += Runs(answer.verdict) ? 1 : 0;
    was_run = was_run || answer.was_measured;
  }
  if (marks.size() > 1) return absl::StrCat(fits, "/", cell.size());
  const char mark = marks.begin()->first;
  return std::string(1, was_run ? absl::ascii_toupper(static_cast<unsigned char>(mark)) : mark);
}

// The values of an axis, and the place of one that has none.
std::vector<std::optional<ParamValue>> ValuesOf(const FrontierReport& report, size_t axis) {
  const FrontierAxis& shown = report.frontier.considered().axes[axis];
  std::vector<std::optional<ParamValue>> values(shown.values.begin(), shown.values.end());
  const auto& configurations = report.frontier.considered().configurations;
  if (std::any_of(configurations.begin(), configurations.end(),
                  [&shown](const ParamMap& params) { return !params.contains(shown.name); })) {
    values.emplace_back();
  }
  return values;
}

bool Has(const ParamMap& params, const std::string& name, const std::optional<ParamValue>& value) {
  const auto found = params.find(name);
  return value ? found != params.end() && found->second == *value : found == params.end();
}

std::string ValueTitle(const std::optional<ParamValue>& value) {
  return value ? ShowParam(*value) : "(none)";
}

std::string ChartOf(const FrontierReport& report, size_t gpu, int width) {
  const auto& considered = report.frontier.considered();
  const FrontierAxis& across = considered.axes[report.axes[0]];
  const bool has_rows = report.axes.size() > 1;
  const std::string down = has_rows ? considered.axes[report.axes[1]].name : "";
  std::vector<Column> columns = {
      {has_rows ? absl::StrCat(down, " \\ ", across.name) : across.name}};
  const std::vector<std::optional<ParamValue>> values = ValuesOf(report, report.axes[0]);
  for (const auto& value : values) columns.push_back({ValueTitle(value), Align::kRight});
  Table table(std::move(columns));
  const auto rows =
      has_rows ? ValuesOf(report, report.axes[1]) : std::vector<std::optional<ParamValue>>(1);
  for (const auto& row : rows) {
    std::vector<std::string> cells = {has_rows ? ValueTitle(row) : ""};
    for (const auto& value : values) {
      std::vector<size_t> cell;
      for (size_t index = 0; index < considered.configurations.size(); ++index) {
        const ParamMap& params = considered.configurations[index];
        if (Has(params, across.name, value) && (!has_rows || Has(params, down, row))) {
          cell.push_back(index);
        }
      }
      cells.push_back(CellText(report, gpu, cell));
    }
    table.AddRow(std::move(cells));
  }
  return table.Render(width);
}

std::string GpuTable(const FrontierReport& report, int width) {
  Table table({{"GPU"},
               {"MEMORY", Align::kRight},
               {"FIT", Align::kRight},
               {"TIGHT", Align::kRight},
               {"DO NOT FIT", Align::kRight},
               {"NOT KNOWN", Align::kRight},
               {"SHARE", Align::kRight},
               {.title = "CUT", .wraps = true}});
  for (size_t gpu = 0; gpu < report.gpus.size(); ++gpu) {
    const auto count = [&](FrontierVerdict verdict) {
      return static_cast<int64_t>(CountOf(report.frontier, gpu, verdict));
    };
    const int64_t run = count(FrontierVerdict::kFits) + count(FrontierVerdict::kTight);
    const int64_t misfits = count(FrontierVerdict::kDoesNotFit);
    table.AddRow({report.gpus[gpu].name, FormatBytes(report.gpus[gpu].gpu.total),
                  absl::StrCat(count(FrontierVerdict::kFits)),
                  absl::StrCat(count(FrontierVerdict::kTight)), absl::StrCat(misfits),
                  absl::StrCat(count(FrontierVerdict::kNotKnown)), Percent(run, run + misfits),
                  CutText(CutOf(report, gpu))});
  }
  return table.Render(width);
}

std::string HeadLine(const FrontierReport& report) {
  const memory::FrontierSpace& considered = report.frontier.considered();
  const size_t all = considered.configurations.size();
  const size_t run = report.frontier.num_measured();
  const std::string names =
      absl::StrJoin(considered.axes, ", ",
                    [](std::string* out, const FrontierAxis& axis) { out->append(axis.name); });
  std::string line = absl::StrCat("study ", report.study, ": ", all, " configuration",
                                  all == 1 ? "" : "s", considered.is_sampled ? " drawn" : "");
  if (!names.empty()) absl::StrAppend(&line, " of ", names);
  if (considered.is_thinned) absl::StrAppend(&line, ", not every value of each");
  absl::StrAppend(&line, "; ", run, " dry run", run == 1 ? "" : "s");
  if (run > 0 && run + report.errors.size() < all) {
    absl::StrAppend(&line, ", the others are concluded");
  }
  return absl::StrCat(line, "\n");
}

std::string ErrorLines(const FrontierReport& report) {
  if (report.errors.empty()) return "";
  std::string text = absl::StrCat("\n", report.errors.size(), " cannot be dry-run:\n");
  size_t shown = 0;
  for (const auto& [index, error] : report.errors) {
    if (shown++ == kMostErrors) {
      absl::StrAppend(&text, "  and ", report.errors.size() - kMostErrors, " more\n");
      break;
    }
    absl::StrAppend(&text, "  ", FormatParams(report.frontier.considered().configurations[index]),
                    ": ", error, "\n");
  }
  return text;
}

Json AnswerJson(const FrontierReport& report, size_t index, size_t gpu) {
  const FrontierAnswer answer = report.frontier.Answer(index, gpu);
  return {
      {"gpu", report.gpus[gpu].name},
      {"verdict", VerdictText(answer.verdict)},
      {"required_bytes", answer.required.count > 0 ? Json(answer.required.count) : Json(nullptr)}};
}

Json ConfigurationJson(const FrontierReport& report, size_t index) {
  Json gpus = Json::array();
  bool was_run = false;
  for (size_t gpu = 0; gpu < report.gpus.size(); ++gpu) {
    was_run = was_run || report.frontier.Answer(index, gpu).was_measured;
    gpus.push_back(AnswerJson(report, index, gpu));
  }
  const auto error = report.errors.find(index);
  const bool failed = error != report.errors.end();
  return {{"params", ParamsToJson(report.frontier.considered().configurations[index])},
          {"source", failed || was_run ? "run" : "concluded"},
          {"error", failed ? Json(error->second) : Json(nullptr)},
          {"gpus", std::move(gpus)}};
}

}  // namespace

size_t CountOf(const memory::Frontier& frontier, size_t gpu, FrontierVerdict verdict) {
  size_t count = 0;
  for (size_t index = 0; index < frontier.considered().configurations.size(); ++index) {
    count += frontier.Answer(index, gpu).verdict == verdict ? 1 : 0;
  }
  return count;
}

std::string FrontierText(const FrontierReport& report, int width) {
  std::string text = HeadLine(report);
  if (report.was_interrupted) text += "interrupted: the report is of what was run before\n";
  if (!report.gpus.empty()) absl::StrAppend(&text, "\n", GpuTable(report, width));
  for (size_t gpu = 0; gpu < report.gpus.size() && !report.axes.empty(); ++gpu) {
    absl::StrAppend(&text, "\n", report.gpus[gpu].name, "\n", ChartOf(report, gpu, width));
  }
  if (!report.gpus.empty() && !report.axes.empty()) absl::StrAppend(&text, "\n", kLegend);
  return text + ErrorLines(report);
}

Json FrontierJson(const FrontierReport& report) {
  const memory::FrontierSpace& considered = report.frontier.considered();
  Json parameters = Json::array();
  for (const FrontierAxis& axis : considered.axes) {
    Json values = Json::array();
    for (const ParamValue& value : axis.values) values.push_back(Json(ParamToJson(value)));
    parameters.push_back({{"name", axis.name}, {"values", std::move(values)}});
  }
  Json chart = Json::array();
  for (const size_t axis : report.axes) chart.push_back(considered.axes[axis].name);
  Json gpus = Json::array();
  for (size_t gpu = 0; gpu < report.gpus.size(); ++gpu) {
    const auto count = [&](FrontierVerdict verdict) {
      return CountOf(report.frontier, gpu, verdict);
    };
    gpus.push_back({{"gpu", report.gpus[gpu].name},
                    {"total_bytes", report.gpus[gpu].gpu.total.count},
                    {"margin_bytes", report.gpus[gpu].gpu.margin.count},
                    {"fits", count(FrontierVerdict::kFits)},
                    {"tight", count(FrontierVerdict::kTight)},
                    {"does_not_fit", count(FrontierVerdict::kDoesNotFit)},
                    {"not_known", count(FrontierVerdict::kNotKnown)},
                    {"cut", CutJson(CutOf(report, gpu))}});
  }
  Json configurations = Json::array();
  for (size_t index = 0; index < considered.configurations.size(); ++index) {
    configurations.push_back(ConfigurationJson(report, index));
  }
  return {{"study", report.study},
          {"command", report.command},
          {"interrupted", report.was_interrupted},
          {"parameters", std::move(parameters)},
          {"thinned", considered.is_thinned},
          {"sampled", considered.is_sampled},
          {"chart", std::move(chart)},
          {"dry_runs", report.frontier.num_measured()},
          {"errors", report.errors.size()},
          {"gpus", std::move(gpus)},
          {"configurations", std::move(configurations)}};
}

}  // namespace hpo::cli
