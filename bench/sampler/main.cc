// Runs a sampler on a problem with several seeds and writes what it found as one JSON object: for
// every seed the best loss after every number of evaluations asked for, and when a target was
// reached; or after every number of checkpoints of learning curves, with a pruner. Or answers the
// asks of another process that runs the trials.
#include <algorithm>
#include <functional>
#include <iostream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/sampler/asked_study.h"
#include "bench/sampler/processor_time.h"
#include "bench/sampler/run.h"
#include "common/base/json_reader.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/space/search_space_json.h"
#include "common/study/study_fields.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

struct Options {
  std::string problem;
  std::string table;
  std::string asked_space;
  std::string constraint;
  bool known = false;
  int64_t seeds = 20;
  int64_t first_seed = 0;
  int64_t in_flight = 1;
  std::vector<std::string> card_words;
  std::string pruner = "none";
  RunOptions run;  // its cards and pruner as the words say
};

// "24GiB" or "24GiB:4", the second with a speed.
absl::StatusOr<Card> ParseCard(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, ':');
  Card card;
  HPO_ASSIGN_OR_RETURN(card.capacity, ParseBytes(parts.front()));
  const bool valid =
      parts.size() == 1 || (parts.size() == 2 && absl::SimpleAtod(parts[1], &card.speed));
  if (valid && card.capacity > Bytes{} && card.speed > 0.0) return card;
  return absl::InvalidArgumentError(
      absl::StrCat("--cards: expected CAPACITY or CAPACITY:SPEED, both above 0, got ", word));
}

std::string KeysOf(const PrunerSpec& spec) {
  std::vector<std::string> keys;
  VisitFields(spec, [&](const Field& field, const auto&) {
    if (absl::string_view(field.key) != "type") keys.push_back(field.key);
  });
  return absl::StrJoin(keys, ", ");
}

// "asha" or "asha:min_resource=4:reduction_factor=2", with the names and keys of study files.
absl::StatusOr<PrunerSpec> ParsePruner(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  nlohmann::json json = {{"type", parts.front()}};
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<std::string, std::string> member =
        absl::StrSplit(parts[i], absl::MaxSplits('=', 1));
    nlohmann::json value =
        nlohmann::json::parse(member.second, nullptr, /*allow_exceptions=*/false);
    json[member.first] = value.is_discarded() ? nlohmann::json(member.second) : std::move(value);
  }
  HPO_ASSIGN_OR_RETURN(PrunerSpec spec, PrunerFromJson(json));
  HPO_RETURN_IF_ERROR(ValidatePruner(spec));
  for (const auto& [key, value] : json.items()) {
    if (key == "type" || PrunerTakes(spec, key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("pruner: expected of ", spec.type, " one of ", KeysOf(spec), ", got ", key));
  }
  return spec;
}

absl::Status CheckAscending(absl::string_view option, const std::vector<int64_t>& counts) {
  if (std::adjacent_find(counts.begin(), counts.end(), std::greater_equal<>()) == counts.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(option, ": expected ascending numbers, got ", absl::StrJoin(counts, ",")));
}

absl::StatusOr<SamplerProblem> Open(const Options& options) {
  const bool by_checkpoints = !options.run.checkpoints.empty();
  if (!options.table.empty()) {
    return ReadTableProblem({.folder = options.table,
                             .constraint = options.constraint,
                             .known = options.known,
                             .reports = by_checkpoints});
  }
  if (by_checkpoints) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--checkpoints: expected --table with learning curves, got ", options.problem));
  }
  return FindSamplerProblem(options.problem);
}

// Fills options.run.cards: those named, or as many of the problem's capacity as are in flight.
absl::Status ChooseCards(const SamplerProblem& problem, Options& options) {
  for (const std::string& word : options.card_words) {
    HPO_ASSIGN_OR_RETURN(const Card card, ParseCard(word));
    options.run.cards.push_back(card);
  }
  if (!options.run.cards.empty() && problem.memory == SamplerProblem::Memory::kLearned) {
    return absl::InvalidArgumentError("--cards: where memory is learned, all have its capacity");
  }
  if (options.run.cards.empty()) {
    options.run.cards.assign(static_cast<size_t>(options.in_flight), Card{problem.capacity});
  }
  return absl::OkStatus();
}

nlohmann::json RunAll(const SamplerProblem& problem, const Options& options) {
  const auto run = options.run.checkpoints.empty() ? RunEvaluations : RunCheckpoints;
  nlohmann::json runs = nlohmann::json::array();
  for (int64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    runs.push_back(run(problem, options.run, static_cast<uint64_t>(seed)));
  }
  return runs;
}

absl::StatusOr<SamplerProblem> ReadAskedProblem(const std::string& file) {
  HPO_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  auto space = ParseJson(text);
  if (!space.ok()) return Annotate(space.status(), file);
  SamplerProblem problem;
  auto read = SpaceFromJson(*space);
  if (!read.ok()) return Annotate(read.status(), file);
  problem.name = "asked";
  problem.space = *std::move(read);
  return problem;
}

absl::Status AnswerAsksFor(const Options& options) {
  HPO_ASSIGN_OR_RETURN(const SamplerProblem problem, ReadAskedProblem(options.asked_space));
  const StudySpec study = StudyOf(problem, options.run, static_cast<uint64_t>(options.first_seed));
  HPO_RETURN_IF_ERROR(Annotate(ValidateStudy(study), options.asked_space));
  return AnswerAsks(study, std::cin, std::cout);
}

absl::Status Main(Options options) {
  if (!options.asked_space.empty()) return AnswerAsksFor(options);
  HPO_RETURN_IF_ERROR(CheckAscending("--evaluations", options.run.evaluations));
  HPO_RETURN_IF_ERROR(CheckAscending("--checkpoints", options.run.checkpoints));
  HPO_ASSIGN_OR_RETURN(options.run.pruner, ParsePruner(options.pruner));
  HPO_ASSIGN_OR_RETURN(const SamplerProblem problem, Open(options));
  HPO_RETURN_IF_ERROR(ValidateStudy(StudyOf(problem, options.run, 0)));
  HPO_RETURN_IF_ERROR(ChooseCards(problem, options));
  const double begin = ProcessorSeconds();
  nlohmann::json found = {{"problem", problem.name},
                          {"sampler", options.run.sampler},
                          {"runs", RunAll(problem, options)}};
  found["processor_s"] = ProcessorSeconds() - begin;
  if (options.run.checkpoints.empty()) {
    found["evaluations"] = options.run.evaluations;
  } else {
    found["checkpoints"] = options.run.checkpoints;
    found["pruner"] = PrunerToJson(options.run.pruner);
  }
  std::cout << found.dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace hpo

int main(int argc, char** argv) {
  hpo::Options options;
  CLI::App app("Runs a sampler on a problem; writes one JSON object");
  auto* problem = app.add_option("--problem", options.problem, "a function by name");
  auto* table = app.add_option("--table", options.table, "a folder with space.json and table.csv");
  problem->excludes(table);
  app.add_option("--ask", options.asked_space,
                 "a file with a space: answers the asks of the process at its other end")
      ->excludes(problem)
      ->excludes(table);
  app.add_option("--constraint", options.constraint, "a column of the table that has a limit")
      ->needs(table);
  app.add_flag("--known", options.known, "the constraint is known before a run");
  app.add_option("--sampler", options.run.sampler, "as sampler.type of a study");
  app.add_option("--startup", options.run.startup, "as sampler.startup of a study");
  app.add_option("--seeds", options.seeds, "how many")->check(CLI::PositiveNumber);
  app.add_option("--first-seed", options.first_seed, "")->check(CLI::NonNegativeNumber);
  auto* evaluations =
      app.add_option("--evaluations", options.run.evaluations, "at which to report, ascending");
  evaluations->delimiter(',');
  auto* checkpoints = app.add_option("--checkpoints", options.run.checkpoints,
                                     "of the table's learning curves, instead of evaluations");
  checkpoints->delimiter(',')->check(CLI::PositiveNumber)->excludes(evaluations);
  app.add_option("--pruner", options.pruner, "NAME[:KEY=VALUE]... as pruner of a study")
      ->needs(checkpoints);
  auto* in_flight =
      app.add_option("--in-flight", options.in_flight, "trials at a time, on equal cards");
  in_flight->check(CLI::PositiveNumber);
  app.add_option("--cards", options.card_words, "CAPACITY or CAPACITY:SPEED of each card")
      ->delimiter(',')
      ->excludes(in_flight);
  app.add_option("--warm-start", options.run.warm_start, "trials of an earlier, related study")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--prior-shift", options.run.prior_shift,
                 "of its optimum, as a part of the ranges");
  app.add_option("--prior-scale", options.run.prior_scale, "of its losses; below 0: misleading");
  app.add_option("--budget", options.run.budget, "trials that samplers are told the study may have")
      ->check(CLI::PositiveNumber);
  app.add_option("--target", options.run.target, "the regret at which a run ends")
      ->excludes(checkpoints);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = hpo::Main(options);
  if (status.ok()) return 0;
  std::cerr << "sampler_runs: " << status.message() << "\n";
  return 2;
}
