#include "worker/agent/session/lease_keeper.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/base/steady_wait.h"
#include "spdlog/spdlog.h"

namespace hpo::agent {
namespace {

// Until the server has stated its cadence.
constexpr absl::Duration kDefaultInterval = absl::Seconds(10);
// After a registration: the server should learn of the leases held here.
constexpr absl::Duration kSoon = absl::Milliseconds(50);

}  // namespace

LeaseKeeper::LeaseKeeper(CoordinatorClient& client, WorkerSession& session,
                         DeviceCapacity& capacity, WakeUp& wake, uint64_t seed)
    : client_(client),
      session_(session),
      capacity_(capacity),
      wake_(wake),
      jitter_(seed, /*stream=*/1),
      backoff_(absl::Milliseconds(500), kDefaultInterval, seed),
      thread_([this] { Run(); }) {}

LeaseKeeper::~LeaseKeeper() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void LeaseKeeper::Hold(const LeaseRef& lease) {
  absl::MutexLock lock(&mutex_);
  held_.push_back({.beat = {.lease = lease}});
  beat_now_ = true;
}

void LeaseKeeper::Update(const LeaseBeat& beat) {
  absl::MutexLock lock(&mutex_);
  if (HeldLease* held = Find(beat.lease)) {
    held->beat = beat;
  }
}

void LeaseKeeper::Drop(const LeaseRef& lease) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(held_, [&](const HeldLease& held) { return held.beat.lease == lease; });
}

void LeaseKeeper::SetNotice(const std::string& topic, const std::string& notice) {
  absl::MutexLock lock(&mutex_);
  if (notice.empty()) {
    notices_.erase(topic);
  } else {
    notices_[topic] = notice;
  }
}

Directive LeaseKeeper::DirectiveFor(const LeaseRef& lease) const {
  absl::MutexLock lock(&mutex_);
  for (const HeldLease& held : held_) {
    if (held.beat.lease == lease) return held.directive;
  }
  return Directive::kContinue;
}

LeaseKeeper::HeldLease* LeaseKeeper::Find(const LeaseRef& lease) {
  for (HeldLease& held : held_) {
    if (held.beat.lease == lease) return &held;
  }
  return nullptr;
}

void LeaseKeeper::Run() {
  absl::Duration pause = absl::ZeroDuration();
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ending_ || beat_now_; };
      AwaitSteadily(mutex_, absl::Condition(&due), pause);
      if (ending_) break;
      beat_now_ = false;
    }
    pause = Beat() * (0.9 + 0.2 * jitter_.Uniform());
  }
  SayGoodbye();
}

void LeaseKeeper::SayGoodbye() {
  const std::string session = session_.current().session;
  if (session.empty()) return;
  absl::Status said = SayGoodbye(session);
  // The server has restarted since: it may hold a lease whose grant it could not tell.
  if (absl::IsNotFound(said)) said = session_.Renew(session, client_);
  const std::string renewed = session_.current().session;
  if (said.ok() && renewed != session) said = SayGoodbye(renewed);
  if (!said.ok()) spdlog::debug("goodbye: {}", said.ToString());
}

absl::Status LeaseKeeper::SayGoodbye(const std::string& session) {
  HPO_ASSIGN_OR_RETURN(const HeartbeatResult answer,
                       client_.Heartbeat(session, HeldBeats(), /*capacity=*/{}, /*notice=*/"",
                                         /*leaving=*/true));
  return answer.register_again ? absl::NotFoundError("unknown session") : absl::OkStatus();
}

std::vector<LeaseBeat> LeaseKeeper::HeldBeats() const {
  absl::MutexLock lock(&mutex_);
  std::vector<LeaseBeat> beats;
  for (const HeldLease& held : held_) {
    beats.push_back(held.beat);
    if (held.beat.log_tail == held.told_log) beats.back().log_tail.clear();
  }
  return beats;
}

void LeaseKeeper::LogsTold(const std::vector<LeaseBeat>& beats) {
  absl::MutexLock lock(&mutex_);
  for (const LeaseBeat& beat : beats) {
    HeldLease* const held = beat.log_tail.empty() ? nullptr : Find(beat.lease);
    if (held != nullptr) held->told_log = beat.log_tail;
  }
}

void LeaseKeeper::LogsForgotten() {
  absl::MutexLock lock(&mutex_);
  for (HeldLease& held : held_) held.told_log.clear();
}

absl::Duration LeaseKeeper::Beat() {
  const Registration registration = session_.current();
  if (registration.session.empty()) return backoff_.Next();
  const std::vector<LeaseBeat> beats = HeldBeats();
  std::string notice;
  {
    absl::MutexLock lock(&mutex_);
    const std::string all = absl::StrJoin(notices_, "; ", [](std::string* out, const auto& topic) {
      absl::StrAppend(out, topic.second);
    });
    notice = Shortened(all, kListedTextLimit);
  }
  const Bytes capacity = capacity_.Available().value_or(Bytes{});
  const absl::StatusOr<HeartbeatResult> result =
      client_.Heartbeat(registration.session, beats, capacity, notice, /*leaving=*/false);
  if (!result.ok()) {
    spdlog::debug("heartbeat: {}", result.status().ToString());
    return backoff_.Next();
  }
  backoff_.Reset();
  if (result->register_again) {
    LogsForgotten();
    const absl::Status renewed = session_.Renew(registration.session, client_);
    if (!renewed.ok()) {
      spdlog::warn("cannot register again: {}", renewed.ToString());
      return backoff_.Next();
    }
    spdlog::info("the server no longer knew this worker (was it restarted?): registered again");
    return kSoon;
  }
  LogsTold(beats);
  TakeDirectives(beats, result->directives);
  if (result->next > absl::ZeroDuration()) return result->next;
  return registration.heartbeat_interval > absl::ZeroDuration() ? registration.heartbeat_interval
                                                                : kDefaultInterval;
}

void LeaseKeeper::TakeDirectives(const std::vector<LeaseBeat>& beats,
                                 const std::vector<Directive>& given) {
  bool news = false;
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < std::min(beats.size(), given.size()); ++i) {
      HeldLease* held = Find(beats[i].lease);
      if (held == nullptr || given[i] == Directive::kContinue) continue;
      news |= held->directive != given[i];
      held->directive = given[i];
    }
  }
  if (news) {
    wake_.Notify();
  }
}

}  // namespace hpo::agent
