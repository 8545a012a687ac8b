#include "cli/dryrun/frontier_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using memory::Frontier;
using memory::FrontierVerdict;

// An rnn has no kernel size.
SearchSpace Space() {
  SearchSpace space;
  space.parameters = {{.name = "kind",
                       .domain = CategoricalDomain{{std::string("cnn"), std::string("rnn")}},
                       .when = {},
                       .default_value = {}},
                      {.name = "kernel",
                       .domain = IntDomain{.low = 3, .high = 5, .step = 2},
                       .when = {{.name = "kind", .values = {std::string("cnn")}}},
                       .default_value = {}},
                      {.name = "batch",
                       .domain = CategoricalDomain{{int64_t{8}, int64_t{16}}},
                       .when = {},
                       .default_value = {}}};
  return space;
}

// All six are measured: batches of 16 do not fit, but for the rnn, which is tight; the last fails.
Frontier Measured(const std::vector<GpuDocument>& gpus, std::map<size_t, std::string>& errors) {
  const SearchSpace space = Space();
  Frontier frontier(
      space, *memory::FrontierSpaceOf(space, {.relevant = memory::UsualRelevant(space)}), {});
  while (const std::optional<size_t> next = frontier.Next()) {
    const ParamMap& params = frontier.considered().configurations[*next];
    const bool is_rnn = FindString(params, "kind") == "rnn";
    const bool is_large = FindInt(params, "batch") == 16;
    if (is_large && FindInt(params, "kernel") == 5) {
      errors[*next] = "no torch";
      frontier.Fail(*next);
      continue;
    }
    const FrontierVerdict verdict = !is_large ? FrontierVerdict::kFits
                                    : is_rnn  ? FrontierVerdict::kTight
                                              : FrontierVerdict::kDoesNotFit;
    frontier.Add(*next, {gpus[0].gpu},
                 {{.verdict = verdict,
                   .required = verdict == FrontierVerdict::kFits ? GiB(1)
                               : is_rnn                          ? GiB(8)
                                                                 : GiB(9)}});
  }
  return frontier;
}

TEST(FrontierReport, MarksEachCell) {
  const std::vector<GpuDocument> gpus = {
      {.name = "t4", .gpu = {.total = GiB(8), .margin = MiB(500)}, .measured = {}}};
  std::map<size_t, std::string> errors;
  const Frontier frontier = Measured(gpus, errors);
  EXPECT_EQ(FrontierText({.study = "kinds",
                          .command = {"a.sh"},
                          .frontier = frontier,
                          .gpus = gpus,
                          .errors = errors,
                          .axes = {2, 1}},
                         /*width=*/0),
            R"(study kinds: 6 configurations of kind, kernel, batch; 5 dry runs

GPU    MEMORY  FIT  TIGHT  DO NOT FIT  NOT KNOWN   SHARE  CUT
t4   8.00 GiB    3      1           1          1  80.0 %  batch <= 8: 1 misfits less, 1 that fit lost

t4
kernel \ batch  8  16
3               F   X
5               F   !
(none)          F   T

F fits   T tight   X does not fit   ? not known   ! cannot be dry-run
Small letters are concluded from the runs. 5/8: 5 of the cell's 8 configurations fit.

1 cannot be dry-run:
  batch=16 kernel=5 kind=cnn: no torch
)");
}

TEST(FrontierReport, CountsWhatFitsInACellOfSeveral) {
  const std::vector<GpuDocument> gpus = {
      {.name = "t4", .gpu = {.total = GiB(8), .margin = MiB(500)}, .measured = {}}};
  std::map<size_t, std::string> errors;
  const Frontier frontier = Measured(gpus, errors);
  const FrontierReport report{.study = "kinds",
                              .command = {"a.sh"},
                              .frontier = frontier,
                              .gpus = gpus,
                              .errors = errors,
                              .axes = {2},
                              .was_interrupted = true};
  const std::string text = FrontierText(report, 80);
  EXPECT_NE(text.find("interrupted: "), std::string::npos);
  EXPECT_NE(text.find("\nbatch  8   16\n       F  1/3\n"), std::string::npos) << text;
  const nlohmann::ordered_json json = FrontierJson(report);
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_EQ(json["chart"], nlohmann::json{"batch"});
  EXPECT_EQ(json["dry_runs"], 5);
  EXPECT_EQ(json["gpus"][0]["does_not_fit"], 1);
  for (const auto& one : json["configurations"]) EXPECT_EQ(one["source"], "run");
}

}  // namespace
}  // namespace hpo::cli
