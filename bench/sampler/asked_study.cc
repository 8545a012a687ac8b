#include "bench/sampler/asked_study.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/sampler/processor_time.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "sampler/factory/make_sampler.h"
#include "tests/sampler/simulated_study.h"

namespace hpo {
namespace {

constexpr Bytes kCapacity = GiB(16);

absl::StatusOr<sampler::SimulatedResult> ResultFrom(const nlohmann::json& line) {
  JsonReader reader(line, "");
  sampler::SimulatedResult result(std::nullopt);
  reader.Optional("failed", result.failed);
  double loss = 0.0;
  if (!result.failed) reader.Required("loss", loss);
  HPO_RETURN_IF_ERROR(reader.status());
  if (result.failed) return result;
  if (!std::isfinite(loss)) {
    return absl::InvalidArgumentError(
        absl::StrCat("loss: expected a finite number, got ", DescribeJson(line["loss"])));
  }
  result.loss = loss;
  return result;
}

absl::Status Answer(absl::string_view text, AskedStudy& study, std::ostream& out) {
  HPO_ASSIGN_OR_RETURN(const nlohmann::json line, ParseJson(text));
  if (line.is_object() && line.contains("number")) return study.Tell(line);
  if (line != nlohmann::json({{"ask", true}})) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected {\"ask\": true}, {\"number\": N, \"loss\": X} or {\"number\": N, "
                     "\"failed\": true}, got ",
                     text.substr(0, 80)));
  }
  HPO_ASSIGN_OR_RETURN(const nlohmann::json answer, study.Ask());
  out << answer.dump() << std::endl;
  return absl::OkStatus();
}

}  // namespace

AskedStudy::AskedStudy(StudySpec study)
    : study_(std::move(study)), sampler_(sampler::MakeSampler(study_)) {}

void AskedStudy::Observe(const sampler::HistoryTrial& trial) {
  const double begin = ProcessorSeconds();
  sampler_->Observe({.sequence = ++sequence_, .trial = trial});
  told_s_ += ProcessorSeconds() - begin;
}

absl::StatusOr<nlohmann::json> AskedStudy::Ask() {
  const double begin = ProcessorSeconds();
  HPO_ASSIGN_OR_RETURN(const sampler::Suggestion suggestion,
                       sampler_->Suggest({.number = TrialNumber{next_number_},
                                          .space = study_.space,
                                          .capacity = kCapacity,
                                          .feasibility = {},
                                          .budget_trials = study_.budget.trials,
                                          .repetition = sampler::Repetition::kWhereAllTried}));
  const double asked_s = ProcessorSeconds() - begin + std::exchange(told_s_, 0.0);
  const sampler::HistoryTrial trial{.number = TrialNumber{next_number_},
                                    .params = suggestion.params};
  Observe(trial);
  running_.emplace(next_number_, trial);
  return nlohmann::json{{"number", next_number_++},
                        {"params", ParamsToJson(suggestion.params)},
                        {"processor_ms", 1e3 * asked_s}};
}

absl::Status AskedStudy::Tell(const nlohmann::json& line) {
  JsonReader reader(line, "");
  int64_t number = 0;
  reader.Required("number", number);
  HPO_RETURN_IF_ERROR(reader.status());
  HPO_ASSIGN_OR_RETURN(const sampler::SimulatedResult result, ResultFrom(line));
  const auto found = running_.find(number);
  if (found == running_.end()) {
    return absl::NotFoundError(absl::StrCat("number: expected a trial under way, got ", number));
  }
  sampler::EndTrial(result, kCapacity, found->second);
  Observe(found->second);
  running_.erase(found);
  return absl::OkStatus();
}

absl::Status AnswerAsks(const StudySpec& study, std::istream& in, std::ostream& out) {
  AskedStudy asked(study);
  std::string text;
  for (int64_t number = 1; std::getline(in, text); ++number) {
    HPO_RETURN_IF_ERROR(Annotate(Answer(text, asked, out), absl::StrCat("line ", number)));
  }
  return absl::OkStatus();
}

}  // namespace hpo
