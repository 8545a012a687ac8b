// Idle for want of memory: what the worker and the study's status say, with the real samplers.
#include "server/placement/misfit_advice.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "sampler/factory/make_sampler.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

StudySpec LengthStudy(MemoryPolicy policy = MemoryPolicy::kPlan) {
  StudySpec spec = BertStudy();
  spec.memory.policy = policy;
  spec.memory.headroom = Bytes{0};
  spec.space.parameters[0].domain = CategoricalDomain{{int64_t{8}, int64_t{16}, int64_t{32}}};
  spec.space.parameters.push_back(
      Parameter{.name = "tok.max_length",
                .domain = IntDomain{.low = 128, .high = 512, .step = 32},
                .when = {},
                .default_value = {}});
  return spec;
}

WorkerFacts Worker(const std::string& name, Bytes capacity) {
  WorkerFacts facts = MakeBertWorker(name, capacity);
  ModelShape& shape = facts.models.front().shape;
  shape.hidden_size = 256;
  shape.num_layers = 4;
  shape.intermediate_size = 1024;
  return facts;
}

// With a margin, in whole MiB and more, of a configuration in parts of `micro_batch`.
Bytes NeedOf(int64_t batch_size, int64_t length, int64_t micro_batch) {
  const memory::FitDecider decider(LengthStudy(), Worker("any", GiB(8)));
  const auto planned =
      decider.Estimate({{"model.name", std::string("tiny")},
                        {"train.batch_size", batch_size},
                        {"tok.max_length", length}},
                       {.effective_batch = batch_size, .micro_batch = micro_batch});
  EXPECT_TRUE(planned.ok() && planned->has_value());
  return Bytes{(memory::RequiredBytes(**planned).count / MiB(1).count + 1) * MiB(1).count};
}

std::string Advice(MemoryPolicy policy, Bytes capacity) {
  return AdviseOnMisfit(LengthStudy(policy), Worker("w", capacity), {});
}

// The number after `before` in `text`; -1 where there is none.
int64_t NumberAfter(const std::string& before, const std::string& text) {
  int64_t number = -1;
  const size_t at = text.find(before);
  if (at == std::string::npos) return number;
  const std::string rest = text.substr(at + before.size());
  EXPECT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find_first_not_of("0123456789")), &number))
      << text;
  return number;
}

TEST(AdviseOnMisfit, SaysHowMuchDoesNotFitAndWhatToKeepTo) {
  // Of 13 lengths those above 256.
  EXPECT_EQ(Advice(MemoryPolicy::kPlan, NeedOf(8, 256, 1)),
            "61.5 % of the space does not fit; keep to tok.max_length <= 256");
  EXPECT_EQ(Advice(MemoryPolicy::kPlan, NeedOf(32, 512, 32)), "");
  EXPECT_THAT(Advice(MemoryPolicy::kStrict, NeedOf(8, 512, 8)),
              HasSubstr("keep to train.batch_size <= 8"));
}

TEST(AdviseOnMisfit, WhereNothingFitsNamesAChangeThatHelps) {
  const Bytes capacity = NeedOf(8, 128, 1) - MiB(6);
  const std::string plan = Advice(MemoryPolicy::kPlan, capacity);
  EXPECT_THAT(plan, StartsWith("100 % of the space does not fit; set memory.checkpoint_every to "));
  EXPECT_THAT(plan, HasSubstr(absl::StrCat("or a worker with ", FormatBytes(NeedOf(8, 128, 1)),
                                           " could run it")));
  // Texts are cut where that is not enough.
  int64_t length = -1;
  for (Bytes less = capacity; length < 0 && less > MiB(2); less -= MiB(1)) {
    length = NumberAfter("reduce tok.max_length to ", Advice(MemoryPolicy::kPlan, less));
  }
  EXPECT_GE(length, 16);
  EXPECT_LT(length, 128);
  const std::string strict = Advice(MemoryPolicy::kStrict, NeedOf(8, 128, 8) - MiB(30));
  const int64_t rows = NumberAfter("reduce train.batch_size to ", strict);
  EXPECT_LE(NeedOf(rows, 128, rows), NeedOf(8, 128, 8) - MiB(30) + MiB(1));
  EXPECT_GT(NeedOf(rows + 1, 128, rows + 1), NeedOf(8, 128, 8) - MiB(30));
  EXPECT_EQ(Advice(MemoryPolicy::kPlan, MiB(1)),
            absl::StrCat("100 % of the space does not fit; a worker with ",
                         FormatBytes(NeedOf(8, 128, 1)), " could run it"));
}

TEST(AdviseOnMisfit, SaysNothingOfWhatItDoesNotKnow) {
  EXPECT_EQ(Advice(MemoryPolicy::kOff, MiB(1)), "");
  WorkerFacts other = Worker("w", MiB(1));
  other.plans = false;
  EXPECT_EQ(AdviseOnMisfit(LengthStudy(), other, {}), "");
}

TEST(MisfitAdvisor, FollowsStudyAndCapacity) {
  MisfitAdvisor advisor;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const MemoryPolicy policy : {MemoryPolicy::kPlan, MemoryPolicy::kStrict}) {
      for (const Bytes capacity : {NeedOf(8, 128, 1) - MiB(6), NeedOf(8, 256, 1)}) {
        EXPECT_EQ(advisor.Advise(LengthStudy(policy), Worker("w", capacity), {}),
                  Advice(policy, capacity));
      }
    }
  }
}

class MisfitStatusTest : public SchedulerFixture {
 protected:
  std::unique_ptr<sampler::Sampler> MakeStudySampler(const StudySpec& spec) override {
    return sampler::MakeSampler(spec);
  }
};

TEST_F(MisfitStatusTest, AnIdleSmallWorkerIsExplainedWhileALargeOneWorks) {
  AddStudy(LengthStudy());
  const Bytes tight = NeedOf(8, 128, 1) - MiB(6);
  const std::string small = Register(Worker("small", tight));
  const std::string large = Register(Worker("large", GiB(8)));
  const LeaseRef running = MustAcquire(large, GiB(8)).lease;
  EXPECT_EQ(Status("bert").waiting_for, "") << "nobody has asked in vain";
  const AcquireResult none = Acquire(small, tight);
  EXPECT_FALSE(none.assignment);
  const auto explained = AllOf(HasSubstr("no configuration found that fits a capacity of"),
                               HasSubstr("; 100 % of the space does not fit; set "
                                         "memory.checkpoint_every to "));
  EXPECT_THAT(none.waiting_for, AllOf(StartsWith("study bert: "), explained));
  StudyStatus status = Status("bert");
  EXPECT_EQ(status.counts.running, 1);
  EXPECT_THAT(status.waiting_for,
              AllOf(StartsWith("small: "), explained, Not(HasSubstr("large: "))));
  Complete(running, 0.5);
  EXPECT_THAT(Status("bert").waiting_for, AllOf(StartsWith("small: "), explained));
  MustAcquire(small, NeedOf(8, 256, 1));
  EXPECT_EQ(Status("bert").waiting_for, "");
}

TEST_F(MisfitStatusTest, EveryIdleWorkerIsNamed) {
  AddStudy(LengthStudy());
  const std::string a = Register(Worker("a", NeedOf(8, 128, 1) - MiB(6)));
  Acquire(a, NeedOf(8, 128, 1) - MiB(6));
  EXPECT_THAT(Status("bert").waiting_for, StartsWith("no configuration found")) << "the only one";
  const std::string b = Register(Worker("b", MiB(8)));
  Acquire(b, MiB(8));
  EXPECT_THAT(Status("bert").waiting_for,
              AllOf(StartsWith("a: no configuration"), HasSubstr("; b: no configuration"),
                    HasSubstr("a worker with")));
}

TEST_F(MisfitStatusTest, AProposalIsStoredWithItsReason) {
  AddStudy(LengthStudy());
  MustAcquire(Register(Worker("large", GiB(8))), GiB(8));
  std::string sampler;
  const auto read = [&](const StudyRows& rows) -> absl::Status {
    HPO_ASSIGN_OR_RETURN(sampler, rows.suggestions.LoadSampler(TrialNumber{0}));
    return absl::OkStatus();
  };
  ASSERT_TRUE(
      ReadRows(*scheduler_->state().store, **scheduler_->state().studies.Find("bert"), read).ok());
  EXPECT_EQ(sampler, "auto: random; one of the first 10 trials, from which a model is made");
}

}  // namespace
}  // namespace hpo::server
