#include "worker/agent/attempt/result_courier.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/study/outcome_text.h"
#include "spdlog/spdlog.h"
#include "worker/agent/session/message_size.h"
#include "worker/agent/session/rpc_reaction.h"

namespace hpo::agent {
namespace {

constexpr int kMaxReleaseTries = 3;

std::string Describe(const LeaseRef& lease) {
  return absl::StrCat("trial #", lease.trial.number.value, " of ", lease.trial.study);
}

std::string CountResults(size_t count) {
  return count == 1 ? "1 result" : absl::StrCat(count, " results");
}

// What people should know of the results; empty: nothing.
std::string Notice(const Outbox& outbox, const std::string& unsaved_why, size_t num_refused,
                   const std::string& refused_why) {
  std::vector<std::string> parts;
  if (outbox.num_unsaved() > 0) {
    parts.push_back(
        absl::StrCat(CountResults(outbox.num_unsaved()), " in memory only: ", unsaved_why));
  }
  if (num_refused > 0) {
    parts.push_back(
        absl::StrCat(CountResults(num_refused), " refused for now (", refused_why, ")"));
  }
  if (!outbox.set_aside().empty()) {
    parts.push_back(absl::StrCat(CountResults(outbox.set_aside().size()), " set aside in ",
                                 outbox.set_aside_folder()));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace

ResultCourier::ResultCourier(CoordinatorClient& client, WorkerSession& session, LeaseKeeper& keeper,
                             Outbox& outbox, CourierOptions options, Told told)
    : client_(client),
      session_(session),
      keeper_(keeper),
      outbox_(outbox),
      options_(options),
      told_(std::move(told)) {
  if (!outbox_.set_aside().empty()) {
    spdlog::warn("{} set aside in {} (docs/status_codes.md says what to do): {}",
                 CountResults(outbox_.set_aside().size()), outbox_.set_aside_folder(),
                 absl::StrJoin(outbox_.set_aside(), ", "));
  }
  Notify();
}

void ResultCourier::Accept(const FinishRequest& result) {
  Saved(outbox_.Append({.request_id = RandomId(), .request = result}));
  Notify();
}

void ResultCourier::Saved(const absl::Status& status) {
  const std::string why(status.message());
  if (why == unsaved_why_) return;
  if (status.ok()) {
    spdlog::info("the outbox can be written again");
  } else {
    spdlog::error("{}: {} in memory only until the server has it", why,
                  CountResults(std::max<size_t>(1, outbox_.num_unsaved())));
  }
  unsaved_why_ = why;
}

absl::Status ResultCourier::DeliverAll() {
  if (outbox_.num_unsaved() > 0) Saved(outbox_.Save());
  absl::Status away;
  for (size_t i = 0; i < outbox_.pending().size() && away.ok();) {
    const OutboxEntry entry = outbox_.pending()[i];
    const auto deferred = deferred_.find(entry.request_id);
    const bool due = deferred == deferred_.end() || clock_.Monotonic() >= deferred->second.due;
    if (due) away = TakeAnswer(entry, Tell(entry));
    const bool pending =
        i < outbox_.pending().size() && outbox_.pending()[i].request_id == entry.request_id;
    if (pending) ++i;
  }
  Notify();
  return away;
}

// Once more after registering, when the server has forgotten the session.
absl::StatusOr<FinishResult> ResultCourier::Tell(const OutboxEntry& entry) {
  const std::string session = session_.current().session;
  absl::StatusOr<FinishResult> result = TellInParts(session, entry);
  if (result.ok() || ReactionTo(Rpc::kFinishTrial, result.status(), entry.request.lease.database) !=
                         Reaction::kRegisterAgain) {
    return result;
  }
  if (const absl::Status renewed = session_.Renew(session, client_); !renewed.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot register again: ", renewed.message()));
  }
  return TellInParts(session_.current().session, entry);
}

absl::StatusOr<FinishResult> ResultCourier::TellInParts(const std::string& session,
                                                        const OutboxEntry& entry) {
  FinishRequest last = entry.request;
  size_t& num_told = num_told_[entry.request_id];
  std::span<const Measurement> left = std::span(entry.request.measurements).subspan(num_told);
  for (size_t count = CountForOnePart(left); count < left.size(); count = CountForOnePart(left)) {
    const std::span<const Measurement> first = left.first(count);
    const AttemptReport part{.lease = last.lease,
                             .measurements = {first.begin(), first.end()},
                             .new_plan = std::nullopt,
                             .memory_records = {},
                             .of_result = true};
    const absl::Status told = client_.ReportMeasurements(session, part).status();
    if (!told.ok()) {
      const Reaction reaction = ReactionTo(Rpc::kReportMeasurements, told, last.lease.database);
      if (reaction != Reaction::kSetAside) return told;
      spdlog::warn("{}: the server refuses {} of its measurements; they are dropped: {}",
                   Describe(last.lease), count, told.ToString());
    }
    num_told += count;
    left = left.subspan(count);
  }
  last.measurements.assign(left.begin(), left.end());
  return client_.FinishTrial(session, entry.request_id, last);
}

absl::Status ResultCourier::TakeAnswer(const OutboxEntry& entry,
                                       const absl::StatusOr<FinishResult>& answer) {
  if (answer.ok()) {
    Settle(entry, answer);
    return absl::OkStatus();
  }
  switch (ReactionTo(Rpc::kFinishTrial, answer.status(), entry.request.lease.database)) {
    case Reaction::kWait:
      return answer.status();
    case Reaction::kGiveUp:
      Settle(entry, answer);
      break;
    case Reaction::kSetAside:
      SetAside(entry, answer.status());
      break;
    default:
      Defer(entry, answer.status());
  }
  return absl::OkStatus();
}

void ResultCourier::Settle(const OutboxEntry& entry, const absl::StatusOr<FinishResult>& answer) {
  const LeaseRef& lease = entry.request.lease;
  if (answer.ok()) {
    spdlog::info("{}: {}, {}{}", Describe(lease), std::string(Name(answer->state)),
                 DescribeOutcome(entry.request.outcome),
                 answer->stored ? "" : " (the server had a result already)");
    // It takes results again: those that it refused need not wait longer.
    for (auto& [id, deferred] : deferred_) deferred.due = clock_.Monotonic();
  } else {
    spdlog::warn("{}: another attempt counts, so this result is dropped: {}", Describe(lease),
                 std::string(answer.status().message()));
  }
  Forget(entry, answer);
  if (const absl::Status done = outbox_.Acknowledge(entry.request_id); !done.ok()) {
    spdlog::warn("{}: the result is delivered once more at the next start, which does no harm",
                 std::string(done.message()));
  }
}

// Made with its first refusal; due after the next pause.
ResultCourier::Deferred& ResultCourier::DeferralOf(const OutboxEntry& entry) {
  const absl::Duration now = clock_.Monotonic();
  const auto seed = static_cast<uint64_t>(entry.request.lease.trial.number.value);
  const Deferred first{.since = now,
                       .pauses = Backoff(options_.first_retry, options_.longest_retry, seed)};
  Deferred& deferred = deferred_.try_emplace(entry.request_id, first).first->second;
  deferred.due = now + deferred.pauses.Next();
  return deferred;
}

void ResultCourier::Defer(const OutboxEntry& entry, const absl::Status& status) {
  Deferred& deferred = DeferralOf(entry);
  if (clock_.Monotonic() - deferred.since >= options_.patience) {
    SetAside(entry, status);
    return;
  }
  const std::string why = absl::StatusCodeToString(status.code());
  if (std::exchange(deferred.why, why) == why) return;
  spdlog::warn("{}: the server refuses its result for now; it is sent again: {}",
               Describe(entry.request.lease), status.ToString());
}

void ResultCourier::SetAside(const OutboxEntry& entry, const absl::Status& status) {
  const absl::StatusOr<std::string> file = outbox_.SetAside(entry.request_id);
  if (!file.ok()) {
    spdlog::error("{}: its result cannot be set aside and stays in the outbox: {}",
                  Describe(entry.request.lease), std::string(file.status().message()));
    DeferralOf(entry).why = absl::StatusCodeToString(status.code());
    return;
  }
  spdlog::error("{}: its result is set aside as {}/{}: {}", Describe(entry.request.lease),
                outbox_.set_aside_folder(), *file, status.ToString());
  Forget(entry, status);
}

void ResultCourier::Forget(const OutboxEntry& entry, const absl::StatusOr<FinishResult>& answer) {
  keeper_.Drop(entry.request.lease);
  deferred_.erase(entry.request_id);
  num_told_.erase(entry.request_id);
  told_(entry.request.lease, answer);
}

void ResultCourier::Notify() {
  const std::string refused_why = deferred_.empty() ? "" : deferred_.begin()->second.why;
  keeper_.SetNotice("results", Notice(outbox_, unsaved_why_, deferred_.size(), refused_why));
}

absl::Status ResultCourier::GiveBack(const TrialRelease& release) {
  const std::string request_id = RandomId();
  absl::Status released;
  for (int attempt = 0; attempt < kMaxReleaseTries; ++attempt) {
    const std::string session = session_.current().session;
    released = client_.ReleaseTrial(session, request_id, release).status();
    if (released.ok()) break;
    const Reaction reaction = ReactionTo(Rpc::kReleaseTrial, released, release.lease.database);
    const bool renewed =
        reaction == Reaction::kRegisterAgain && session_.Renew(session, client_).ok();
    if (!renewed && reaction != Reaction::kWait) break;
  }
  keeper_.Drop(release.lease);
  if (IsServerAway(released)) return released;
  if (released.ok()) {
    spdlog::info("trial #{}: given back ({}){}{}", release.lease.trial.number.value,
                 std::string(Name(release.reason)), release.note.empty() ? "" : ": ", release.note);
  } else {
    spdlog::warn("trial #{}: cannot be given back ({}), so its lease expires: {}",
                 release.lease.trial.number.value, std::string(Name(release.reason)),
                 released.ToString());
  }
  return absl::OkStatus();
}

}  // namespace hpo::agent
