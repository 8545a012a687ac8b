// What memory and sampler know of a trial that reports, which comes report by report, is what its
// rows say.
#include <memory>
#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/base/random.h"
#include "gtest/gtest.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

// Shows what it was told before each suggestion.
class ShowingSampler final : public sampler::Sampler {
 public:
  explicit ShowingSampler(sampler::History& shown) : shown_(shown) {}
  void Observe(const sampler::HistoryEvent& event) override { told_.Apply(event); }
  absl::StatusOr<sampler::Suggestion> Suggest(const sampler::AskContext& context) const override {
    shown_ = told_;
    return ScriptedSampler().Suggest(context);
  }

 private:
  sampler::History told_;
  sampler::History& shown_;
};

class ReportsTest : public SchedulerFixture {
 protected:
  std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec&) override {
    return std::make_unique<ShowingSampler>(to_sampler_);
  }

  sampler::History InMemory() { return (*scheduler_->state().studies.Find("plain"))->history(); }
  void ExpectAsStored() {
    const sampler::History before = InMemory();
    Restart();
    EXPECT_EQ(InMemory(), before);
  }

  absl::Status Report(const LeaseRef& lease, std::vector<Measurement> measurements,
                      bool of_result = false) {
    return scheduler_->results()
        .ReportMeasurements(
            {.lease = lease, .measurements = std::move(measurements), .of_result = of_result})
        .status();
  }
  static Measurement At(int64_t step, double score) {
    return {.step = step,
            .epoch = static_cast<double>(step) / 8,
            .metrics = {{"score", score}, {"other", 2.0}}};
  }

  sampler::History to_sampler_;
};

TEST_F(ReportsTest, InAnyOrderTheyAreWhatIsStored) {
  AddStudy(PlainStudy("plain", 1000));
  Rng rng(3, 0);
  std::string session = Register(MakeWorker("a"));
  std::vector<LeaseRef> held;
  for (int i = 0; i < 400; ++i) {
    const uint64_t what = rng.Below(20);
    if (held.size() < 2 || what == 0) {
      held.push_back(MustAcquire(session).lease);
      EXPECT_EQ(to_sampler_.trials().size(), InMemory().trials().size() - 1);
    } else if (what == 1) {
      Complete(held.front(), rng.Uniform());
      held.erase(held.begin());
    } else if (what == 2) {
      ASSERT_TRUE(
          scheduler_->results()
              .ReleaseTrial("", {.lease = held.front(), .reason = ReleaseReason::kPreempted})
              .ok());
      // A late part of what it had measured.
      EXPECT_TRUE(Report(held.front(), {At(77, rng.Uniform())}, /*of_result=*/true).ok());
      held.erase(held.begin());
    } else {
      std::vector<Measurement> measured = {At(static_cast<int64_t>(rng.Below(200)), rng.Uniform()),
                                           At(static_cast<int64_t>(rng.Below(200)), rng.Uniform())};
      if (what == 3) measured.front().metrics.erase("score");
      EXPECT_TRUE(Report(held[rng.Below(held.size())], std::move(measured)).ok());
    }
  }
  ExpectAsStored();
}

TEST_F(ReportsTest, TheSamplerSeesEachTrialAsItIs) {
  AddStudy(PlainStudy());
  const std::string session = Register(MakeWorker("a"));
  const LeaseRef first = MustAcquire(session).lease;
  for (int64_t step = 0; step < 50; ++step) {
    ASSERT_TRUE(Report(first, {At(step, 0.25)}).ok());
    if (step % 20 != 3) continue;
    const sampler::History before = InMemory();
    MustAcquire(session);
    EXPECT_EQ(to_sampler_, before) << step;
  }
}

TEST_F(ReportsTest, TheLimitCountsWhatIsStoredAcrossARestart) {
  AddStudy(PlainStudy());
  const LeaseRef lease = MustAcquire(Register(MakeWorker("a"))).lease;
  constexpr int64_t kEach = 1000;
  for (int64_t first = 0; first < kMeasurementLimit.most; first += kEach) {
    std::vector<Measurement> many;
    for (int64_t step = first; step < first + kEach; ++step) many.push_back(At(step, 0.5));
    ASSERT_TRUE(Report(lease, {At(0, 0.5)}).ok()) << "one that is there, again";
    ASSERT_TRUE(Report(lease, many).ok());
  }
  const absl::Status beyond = Report(lease, {At(kMeasurementLimit.most, 0.5)});
  EXPECT_TRUE(absl::IsInvalidArgument(beyond)) << beyond;
  Restart();
  EXPECT_EQ(Report(lease, {At(kMeasurementLimit.most, 0.5)}), beyond);
}

}  // namespace
}  // namespace hpo::server
