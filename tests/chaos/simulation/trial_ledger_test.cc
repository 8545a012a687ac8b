#include "tests/chaos/simulation/trial_ledger.h"

#include "gtest/gtest.h"
#include "tests/chaos/simulation/study_image.h"

namespace hpo {
namespace {

constexpr server::LeasePolicy kPolicy{.ttl = absl::Seconds(60)};
const LeaseRef kFirst{.trial = {"s", TrialNumber{0}}, .attempt = AttemptNumber{1}, .token = "a"};
const LeaseRef kSecond{.trial = {"s", TrialNumber{0}}, .attempt = AttemptNumber{2}, .token = "b"};

WorkerFacts Named(const std::string& name) {
  WorkerFacts facts;
  facts.worker = name;
  facts.instance_key = name + "-1";
  return facts;
}

FinishRequest Completes(const LeaseRef& lease) {
  return {.lease = lease, .outcome = Completed{.metrics = {{"score", 1.0}}, .model_path = ""}};
}

server::TrialRecord RunningRow() {
  server::TrialRecord row;
  row.trial.id = kFirst.trial;
  row.trial.state = TrialState::kRunning;
  row.trial.attempts = {Attempt{.number = AttemptNumber{1}, .state = AttemptState::kLeased}};
  row.current_attempt = AttemptNumber{1};
  return row;
}

class TrialLedgerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ledger_.Assigned(kFirst, Named("x"), absl::ZeroDuration()).ok());
  }
  TrialLedger ledger_{LedgerOptions{.lease = kPolicy}};
};

TEST_F(TrialLedgerTest, ATrialHasOneHolder) {
  EXPECT_TRUE(ledger_.Assigned(kFirst, Named("x"), absl::Seconds(1)).ok()) << "the same lease";
  EXPECT_FALSE(ledger_.Assigned(kSecond, Named("y"), absl::Seconds(120)).ok());
  EXPECT_TRUE(ledger_.Assigned(kSecond, Named("y"), absl::Seconds(121)).ok());
  EXPECT_FALSE(ledger_.Beat(kFirst, Directive::kContinue, absl::Seconds(122)).ok());
  EXPECT_TRUE(ledger_.Beat(kFirst, Directive::kLeaseLost, absl::Seconds(122)).ok());
}

TEST_F(TrialLedgerTest, ALeaseThatIsKeptAliveIsNotLost) {
  ASSERT_TRUE(ledger_.Beat(kFirst, Directive::kContinue, absl::Seconds(100)).ok());
  EXPECT_FALSE(ledger_.Beat(kFirst, Directive::kLeaseLost, absl::Seconds(220)).ok());
  server::TrialRecord queued = RunningRow();
  queued.trial.state = TrialState::kQueued;
  queued.trial.attempts[0].state = AttemptState::kLost;
  EXPECT_FALSE(ledger_.Audit("s", {queued}, absl::Seconds(220)).ok());
  EXPECT_TRUE(ledger_.Audit("s", {queued}, absl::Seconds(221)).ok());
}

TEST_F(TrialLedgerTest, ATrialEndsOnce) {
  const FinishResult stored{.state = TrialState::kCompleted, .stored = true};
  EXPECT_TRUE(ledger_.Finished(Completes(kFirst), stored).ok());
  EXPECT_FALSE(ledger_.Finished(Completes(kFirst), stored).ok());
  EXPECT_FALSE(ledger_.Assigned(kSecond, Named("y"), absl::Seconds(500)).ok());
  EXPECT_TRUE(
      ledger_.Finished(Completes(kFirst), {.state = TrialState::kCompleted, .stored = false}).ok());
  EXPECT_FALSE(
      ledger_.Finished(Completes(kFirst), {.state = TrialState::kFailed, .stored = false}).ok());
}

TEST_F(TrialLedgerTest, RowsAreHeldAgainstTheRecord) {
  EXPECT_TRUE(ledger_.Audit("s", {RunningRow()}, absl::Seconds(1)).ok());
  EXPECT_FALSE(ledger_.Audit("s", {}, absl::Seconds(1)).ok()) << "lost";
  server::TrialRecord unheard = RunningRow();
  unheard.trial.attempts.push_back(
      Attempt{.number = AttemptNumber{2}, .state = AttemptState::kLeased});
  unheard.trial.attempts[0].state = AttemptState::kLost;
  unheard.current_attempt = AttemptNumber{2};
  EXPECT_FALSE(ledger_.Audit("s", {unheard}, absl::Seconds(1)).ok());
  unheard.trial.attempts[0].state = AttemptState::kLeased;
  EXPECT_FALSE(ledger_.Audit("s", {unheard}, absl::Seconds(500)).ok()) << "two leases";
}

TEST_F(TrialLedgerTest, AToldResultIsTheStoredOne) {
  ASSERT_TRUE(
      ledger_.Finished(Completes(kFirst), {.state = TrialState::kCompleted, .stored = true}).ok());
  server::TrialRecord row = RunningRow();
  row.trial.state = TrialState::kCompleted;
  row.trial.attempts[0].state = AttemptState::kFinished;
  row.trial.outcome = Completes(kFirst).outcome;
  EXPECT_TRUE(ledger_.Audit("s", {row}, absl::Seconds(1)).ok());
  row.trial.outcome = Completed{.metrics = {{"score", 2.0}}, .model_path = ""};
  EXPECT_FALSE(ledger_.Audit("s", {row}, absl::Seconds(1)).ok());
}

TEST(CompareImages, NamesTheFieldThatDiffers) {
  const StudyImage memory = {{"s/next number", "3"}, {"s/lease #2", "held"}};
  EXPECT_TRUE(CompareImages(memory, memory).ok());
  const absl::Status differs = CompareImages(memory, {{"s/next number", "3"}});
  EXPECT_NE(differs.message().find("s/lease #2"), std::string::npos) << differs;
}

}  // namespace
}  // namespace hpo
