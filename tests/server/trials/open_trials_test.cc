#include "server/trials/open_trials.h"

#include "gtest/gtest.h"
#include "server/trials/lease_token.h"

namespace hpo::server {
namespace {

constexpr TrialNumber kTrial{3};
constexpr absl::Duration kStart = absl::Seconds(1000);

TrialChange Queued() {
  TrialChange change;
  change.record.trial.id = {"s", kTrial};
  change.record.trial.state = TrialState::kQueued;
  return change;
}

TrialChange Held(int64_t attempt = 1) {
  TrialChange change = Queued();
  change.record.trial.state = TrialState::kRunning;
  AttemptRecord holder{.trial = kTrial};
  holder.attempt.number = AttemptNumber{attempt};
  holder.attempt.worker = "a";
  holder.token_hash = HashOfToken("secret");
  change.lease = holder;
  return change;
}

LeaseRef Proof(const std::string& token) {
  return LeaseRef{.trial = {"s", kTrial}, .attempt = AttemptNumber{1}, .token = token};
}

TEST(OpenTrials, ATrialIsQueuedOrHeld) {
  OpenTrials open(absl::ZeroDuration());
  open.Publish(Queued(), kStart, kStart);
  EXPECT_EQ(open.load().num_queued, 1u);
  EXPECT_EQ(open.load().num_held, 0u);
  open.Publish(Held(), kStart, kStart);
  EXPECT_EQ(open.load().num_queued, 0u);
  EXPECT_EQ(open.FindLease(kTrial)->worker, "a");
  open.Forget(kTrial);
  EXPECT_TRUE(open.leases().empty());
}

TEST(OpenTrials, TheWallClockRunsWhileAWorkerHoldsATrial) {
  OpenTrials open(absl::Seconds(5));
  open.Publish(Queued(), kStart, kStart);
  open.Account(kStart + absl::Seconds(10));
  EXPECT_EQ(open.load().wall_clock, absl::Seconds(5));
  open.Publish(Held(), kStart + absl::Seconds(10), kStart);
  open.Account(kStart + absl::Seconds(17));
  EXPECT_EQ(open.load().wall_clock, absl::Seconds(12));
  EXPECT_EQ(open.wall_clock_to_store(), absl::Seconds(7));
  open.WallClockStored(absl::Seconds(7));
  EXPECT_EQ(open.wall_clock_to_store(), absl::ZeroDuration());
}

TEST(OpenTrials, TimesOfAllAttemptsAddUp) {
  OpenTrials open(absl::ZeroDuration());
  open.Publish(Held(1), kStart, kStart);
  open.Publish(Queued(), kStart + absl::Seconds(4), kStart);
  open.Publish(Held(2), kStart + absl::Seconds(9), kStart);
  EXPECT_EQ(open.times_held(kStart + absl::Seconds(11)).at(kTrial), absl::Seconds(6));
  open.StopOverdue(absl::Seconds(7), kStart + absl::Seconds(11));
  EXPECT_FALSE(open.FindLease(kTrial)->stop.has_value());
  open.StopOverdue(absl::Seconds(7), kStart + absl::Seconds(12));
  EXPECT_EQ(open.FindLease(kTrial)->stop->pruner, kTimeLimitPruner);
}

TEST(OpenTrials, OnlyItsTokenRenewsALease) {
  OpenTrials open(absl::ZeroDuration());
  open.Publish(Held(), kStart, kStart);
  open.MarkSuspect(kTrial, AttemptNumber{1});
  EXPECT_EQ(open.Renew(Proof("forged"), kStart), OpenTrials::Renewal::kLost);
  EXPECT_EQ(open.Renew(Proof("secret"), kStart), OpenTrials::Renewal::kReadopted);
  EXPECT_EQ(open.Renew(Proof("secret"), kStart), OpenTrials::Renewal::kRenewed);
}

LeaseBeat Said(int64_t attempt, int64_t step, const std::string& log_tail = "") {
  LeaseBeat beat{.lease = Proof("secret"), .step = step, .log_tail = log_tail};
  beat.lease.attempt = AttemptNumber{attempt};
  return beat;
}

TEST(OpenTrials, TheLastBeatOfTheHolderIsKnownAsLongAsItHoldsTheTrial) {
  OpenTrials open(absl::ZeroDuration());
  open.Note(Said(1, 1));
  EXPECT_FALSE(open.LastBeat(kTrial, AttemptNumber{1}).has_value()) << "nobody holds it";
  open.Publish(Held(), kStart, kStart);
  open.Note(Said(2, 5));
  EXPECT_FALSE(open.LastBeat(kTrial, AttemptNumber{2}).has_value()) << "another attempt holds it";
  open.Note(Said(1, 7, "epoch 1\n"));
  open.Note(Said(1, 9));
  EXPECT_EQ(open.LastBeat(kTrial, AttemptNumber{1})->step, 9);
  EXPECT_EQ(open.LastBeat(kTrial, AttemptNumber{1})->log_tail, "") << "it is asked for apart";
  EXPECT_EQ(open.LastLogTail(kTrial, AttemptNumber{1}), "epoch 1\n") << "as it was";
  open.Note(Said(1, 9, "epoch 2\n"));
  EXPECT_EQ(open.LastLogTail(kTrial, AttemptNumber{1}), "epoch 2\n");
  EXPECT_EQ(open.LastLogTail(kTrial, AttemptNumber{2}), "");
  open.Publish(Queued(), kStart, kStart);
  EXPECT_FALSE(open.LastBeat(kTrial, AttemptNumber{1}).has_value());
  EXPECT_EQ(open.LastLogTail(kTrial, AttemptNumber{1}), "");
}

TEST(OpenTrials, AStopIsDecidedOnce) {
  OpenTrials open(absl::ZeroDuration());
  int num_asked = 0;
  const auto decide = [&num_asked]() -> std::optional<sampler::PruneDecision> {
    if (++num_asked == 1) return std::nullopt;
    return sampler::PruneDecision{.pruner = "median"};
  };
  EXPECT_FALSE(open.DecideStop(kTrial, decide).has_value()) << "nobody runs it";
  EXPECT_EQ(num_asked, 0);
  open.Publish(Held(), kStart, kStart);
  EXPECT_FALSE(open.DecideStop(kTrial, decide).has_value());
  EXPECT_EQ(open.DecideStop(kTrial, decide)->pruner, "median");
  EXPECT_EQ(open.DecideStop(kTrial, decide)->pruner, "median");
  EXPECT_EQ(num_asked, 2);
}

}  // namespace
}  // namespace hpo::server
