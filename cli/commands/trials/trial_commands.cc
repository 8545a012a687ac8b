// Tested by tests/cli/program/program_test.cc.
#include "cli/commands/trials/trial_commands.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/exchange/export_model.h"
#include "cli/commands/trials/trial_selection.h"
#include "cli/render/json.h"
#include "cli/render/param_words.h"
#include "cli/render/params_yaml.h"
#include "cli/render/trial_table.h"
#include "cli/render/trial_text.h"
#include "cli/render/wording.h"
#include "common/base/spelling.h"
#include "common/base/status.h"
#include "common/selection/trial_states.h"
#include "nlohmann/json.hpp"

namespace hpo::cli {
namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<TrialState> ParseState(const std::string& word) {
  const std::string upper = absl::AsciiStrToUpper(word);
  std::vector<std::string> names;
  for (const TrialState state : kTrialStates) {
    if (upper == Name(state)) return state;
    names.push_back(absl::AsciiStrToLower(Name(state)));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--state: expected queued, running, completed, pruned, failed or cancelled, got '", word, "'",
      DidYouMean(absl::AsciiStrToLower(word), names)));
}

absl::Status NoSuchPage(int64_t most, int number, int64_t num_trials) {
  return absl::NotFoundError(absl::StrCat("--page: expected at most ", most, ", got ", number, " (",
                                          num_trials, " trials)"));
}

// The server's pages are read one by one: its tokens name a place, not a number.
absl::StatusOr<TrialPage> ReadPage(TrialClient& trials, const std::string& study, TrialQuery query,
                                   int number) {
  HPO_ASSIGN_OR_RETURN(TrialPage page, trials.ListTrials(study, query));
  for (int i = 1; i < number; ++i) {
    if (page.next_token.empty()) return NoSuchPage(i, number, page.total);
    query.page_token = page.next_token;
    HPO_ASSIGN_OR_RETURN(page, trials.ListTrials(study, query));
  }
  return page;
}

// A page of the trials that have the tags and that the conditions hold for. It reads all trials of
// the states that were asked for.
absl::StatusOr<TrialPage> SelectPage(TrialClient& trials, TrialQuery query, const StudySpec& study,
                                     const TrialListOptions& options) {
  const bool has_conditions = !options.where.empty() || !options.sort.empty();
  std::vector<int64_t> numbers;
  if (has_conditions) {
    auto found = trials.FindTrials(study.name, {.where = options.where, .sort = options.sort});
    if (!found.ok()) return OfOption(found.status());
    numbers = *std::move(found);
  }
  std::vector<Trial> selected;
  HPO_RETURN_IF_ERROR(ForEachTrial(trials, study.name, std::move(query), [&](Trial& trial) {
    if (HasTags(trial.attributes, options.tags)) selected.push_back(std::move(trial));
    return absl::OkStatus();
  }));
  if (has_conditions) selected = SelectTrials(std::move(selected), numbers, !options.sort.empty());
  const size_t begin = static_cast<size_t>(options.page - 1) * options.limit;
  if (options.page > 1 && begin >= selected.size()) {
    const auto size = static_cast<int64_t>(selected.size());
    return NoSuchPage(std::max<int64_t>(1, (size + options.limit - 1) / options.limit),
                      options.page, size);
  }
  const size_t end = std::min(selected.size(), begin + options.limit);
  TrialPage page{.trials = {},
                 .next_token = end < selected.size() ? "more" : "",
                 .total = static_cast<int64_t>(selected.size())};
  for (size_t i = begin; i < end; ++i) page.trials.push_back(std::move(selected[i]));
  return page;
}

// The only study's name, where none was given.
absl::StatusOr<StudyStatus> FindStudy(Session& session) {
  return session.client.studies().GetStudy(session.study);
}

using TrialOrder = absl::StatusOr<Trial> (TrialClient::*)(const std::string& study,
                                                          TrialNumber number);

// `outcome` follows "trial #N of STUDY".
absl::Status OrderTrial(Session& session, TrialNumber number, TrialOrder order,
                        absl::string_view outcome) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, FindStudy(session));
  HPO_ASSIGN_OR_RETURN(const Trial trial,
                       (session.client.trials().*order)(study.spec.name, number));
  if (session.json) {
    PrintJson(TrialJson(trial), session.out);
  } else {
    session.out << "trial " << Hash(number) << " of " << study.spec.name << outcome << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ListTrials(Session& session, const TrialListOptions& options) {
  TrialQuery query{.filter = {.newest_first = options.newest_first}, .page_size = options.limit};
  for (const std::string& state : options.states) {
    HPO_ASSIGN_OR_RETURN(query.filter.states.emplace_back(), ParseState(state));
  }
  HPO_ASSIGN_OR_RETURN(StudyStatus study, FindStudy(session));
  const bool selects = !options.where.empty() || !options.sort.empty() || !options.tags.empty();
  HPO_ASSIGN_OR_RETURN(
      const TrialPage page,
      selects ? SelectPage(session.client.trials(), query, study.spec, options)
              : ReadPage(session.client.trials(), study.spec.name, query, options.page));
  if (session.json) {
    Json trials = Json::array();
    for (const Trial& trial : page.trials) trials.push_back(TrialJson(trial));
    const Json json = {{"study", study.spec.name},
                       {"total", page.total},
                       {"page", options.page},
                       {"last_page", page.next_token.empty()},
                       {"trials", std::move(trials)}};
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  HPO_RETURN_IF_ERROR(AddFront(session.client.trials(), study));
  session.out << TrialTable(page.trials, study, session.terminal.columns, session.terminal.colors);
  if (!page.next_token.empty()) {
    session.out << page.trials.size() << " of " << page.total << " trials; more with --page "
                << options.page + 1 << "\n";
  }
  return absl::OkStatus();
}

absl::Status ShowTrial(Session& session, TrialNumber number) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, FindStudy(session));
  HPO_ASSIGN_OR_RETURN(const TrialView view,
                       session.client.trials().GetTrial(study.spec.name, number));
  if (session.json) {
    PrintJson(TrialJson(view), session.out);
  } else {
    session.out << TrialText(view, study.spec.constraints, session.terminal.columns,
                             session.terminal.colors);
  }
  return absl::OkStatus();
}

absl::Status RetryTrials(Session& session, const std::vector<int64_t>& numbers) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, FindStudy(session));
  RetryRequest retry{.numbers = {}, .all_failed = numbers.empty()};
  for (const int64_t number : numbers) retry.numbers.push_back(TrialNumber{number});
  HPO_ASSIGN_OR_RETURN(const RetryResult retried,
                       session.client.trials().RetryTrials(study.spec.name, retry));
  if (session.json) {
    Json json = {{"study", study.spec.name}, {"trials", Json::array()}, {"skipped", Json::array()}};
    for (const Trial& trial : retried.trials) json["trials"].push_back(TrialJson(trial));
    for (const auto& [number, why] : retried.skipped) {
      json["skipped"].push_back({{"number", number.value}, {"why", why}});
    }
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  for (const Trial& trial : retried.trials) {
    session.out << "trial " << Hash(trial.id.number) << " queued: trial #"
                << trial.attributes.at(kRetryOfKey) << " again, " << FormatParams(trial.params)
                << "\n";
  }
  for (const auto& [number, why] : retried.skipped) {
    session.out << "trial " << Hash(number) << " skipped: " << Printable(why) << "\n";
  }
  if (retried.trials.empty() && retried.skipped.empty()) {
    session.out << "no trial of " << study.spec.name << " has failed\n";
  }
  return absl::OkStatus();
}

absl::Status PreemptTrial(Session& session, TrialNumber number) {
  return OrderTrial(session, number, &TrialClient::PreemptTrial,
                    ": its worker saves and gives it back at its next heartbeat");
}

absl::Status StopTrial(Session& session, TrialNumber number) {
  return OrderTrial(session, number, &TrialClient::StopTrial,
                    ": its worker ends it at its next heartbeat");
}

absl::Status CancelTrial(Session& session, TrialNumber number) {
  return OrderTrial(session, number, &TrialClient::CancelTrial, " cancelled");
}

absl::Status ShowBest(Session& session, std::optional<int> count, const std::string& export_to) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, FindStudy(session));
  HPO_ASSIGN_OR_RETURN(const std::vector<Trial> best,
                       session.client.trials().BestTrials(study.spec.name, count.value_or(0)));
  if (best.empty()) {
    return absl::NotFoundError(absl::StrCat("no trial of study ", study.spec.name,
                                            " has completed yet (", DescribeProgress(study),
                                            " finished)"));
  }
  if (!export_to.empty()) {
    // With attempts: they say on which worker the model is.
    HPO_ASSIGN_OR_RETURN(const TrialView view,
                         session.client.trials().GetTrial(study.spec.name, best.front().id.number));
    HPO_RETURN_IF_ERROR(ExportModel(view.trial, export_to));
  }
  if (session.json) {
    Json trials = Json::array();
    for (const Trial& trial : best) trials.push_back(TrialJson(trial));
    Json json = {{"study", study.spec.name}, {"trials", std::move(trials)}};
    if (!export_to.empty()) json["exported_to"] = export_to;
    PrintJson(json, session.out);
    return absl::OkStatus();
  }
  if (session.yaml) {
    session.out << ParamsYaml(best, study.spec);
    return absl::OkStatus();
  }
  session.out << BestText(best, study, session.terminal.columns, session.terminal.colors);
  if (!export_to.empty()) session.out << "exported to " << export_to << "\n";
  return absl::OkStatus();
}

absl::Status Enqueue(Session& session, const EnqueueOptions& options) {
  HPO_ASSIGN_OR_RETURN(const StudyStatus study, FindStudy(session));
  EnqueueRequest enqueue{.demonstration = options.demonstration,
                         .skip_admission = options.skip_admission,
                         .forced_micro_batch = options.micro_batch};
  HPO_ASSIGN_OR_RETURN(enqueue.params, ParseParamWords(options.params, study.spec.space));
  HPO_ASSIGN_OR_RETURN(const Trial trial,
                       session.client.trials().EnqueueTrial(study.spec.name, enqueue));
  if (session.json) {
    PrintJson(TrialJson(trial), session.out);
  } else {
    session.out << "trial " << Hash(trial.id.number) << " of " << trial.id.study
                << " queued: " << FormatParams(trial.params) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace hpo::cli
