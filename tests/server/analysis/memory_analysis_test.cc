#include "server/analysis/memory_analysis.h"

#include <gmock/gmock.h>

#include "server/api/study_api.h"
#include "tests/server/scheduler/scheduler_fixture.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MemoryAnalysisTest : public SchedulerFixture {
 protected:
  void SetUp() override {
    SchedulerFixture::SetUp();
    api_ = std::make_unique<StudyApi>(*scheduler_);
    analysis_ = std::make_unique<MemoryAnalysis>(*scheduler_);
  }

  // One published model, for no worker.
  static StudySpec PublishedStudy() {
    StudySpec spec = BertStudy("published");
    spec.space.parameters.back().domain = CategoricalDomain{{std::string("all-minilm-l6-v2")}};
    spec.space.parameters.push_back(
        Parameter{.name = "tok.max_length",
                  .domain = CategoricalDomain{{int64_t{64}, int64_t{128}}},
                  .when = {},
                  .default_value = {}});
    return spec;
  }

  // What a program of the study's own uses: a GiB for each row of the batch.
  void RunOwnProgram(const std::string& session, int num_trials) {
    for (int i = 0; i < num_trials; ++i) {
      const Assignment assignment = MustAcquire(session);
      FinishRequest request{.lease = assignment.lease,
                            .outcome = Completed{.metrics = {{"score", 0.5}}, .model_path = ""}};
      request.memory = {.live_peak = GiB(*FindInt(assignment.task.params, "train.batch_size")),
                        .limit = assignment.task.limit};
      ASSERT_TRUE(scheduler_->results().FinishTrial("", request).ok());
    }
  }

  std::unique_ptr<StudyApi> api_;
  std::unique_ptr<MemoryAnalysis> analysis_;
};

TEST_F(MemoryAnalysisTest, AFrontierAgreesWithEstimates) {
  AddStudy(BertStudy());
  Register(MakeBertWorker("w", GiB(8)));
  const FrontierQuery query{
      .x = "train.batch_size", .y = "model.name", .capacities = {MiB(20), GiB(80)}, .points = 4};
  const auto frontier = analysis_->Frontier("bert", query);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  const memory::NeedGrid& grid = frontier->grid;
  ASSERT_EQ(grid.x_values.size(), 4u);
  ASSERT_EQ(grid.y_values.size(), 2u);
  EXPECT_THAT(frontier->basis, HasSubstr("worker w: test"));
  for (size_t gpu = 0; gpu < 2; ++gpu) {
    for (size_t x = 0; x < 4; ++x) {
      MemoryQuery asked{.params = grid.params, .limit = query.capacities[gpu]};
      asked.params["model.name"] = std::string("tiny");
      asked.params["train.batch_size"] = grid.x_values[x];
      const auto answer = api_->queries().EstimateMemory("bert", asked);
      ASSERT_TRUE(answer.ok()) << answer.status();
      EXPECT_EQ(grid.gpus[gpu].usable, answer->usable);
      EXPECT_EQ(grid.gpus[gpu].micro_batches[x], answer->fits ? answer->plan.micro_batch : 0);
    }
  }
  EXPECT_GT(grid.needed[0], Bytes{});
  EXPECT_EQ(grid.needed[4], Bytes{}) << "no worker has the model 'absent'";
  EXPECT_GT(grid.gpus[1].micro_batches[3], grid.gpus[0].micro_batches[3]);
}

TEST_F(MemoryAnalysisTest, OtherParametersAreThoseOfTheBestTrial) {
  StudySpec spec = BertStudy();
  spec.space.parameters.push_back(Parameter{.name = "tok.max_length",
                                            .domain = IntDomain{.low = 16, .high = 512},
                                            .when = {},
                                            .default_value = int64_t{128}});
  spec.space.parameters.push_back(Parameter{.name = "train.grad_accum",
                                            .domain = IntDomain{.low = 1, .high = 8},
                                            .when = {},
                                            .default_value = int64_t{2}});
  AddStudy(spec);
  const std::string session = Register(MakeBertWorker("w"));
  const FrontierQuery query{.x = "train.batch_size", .y = "train.grad_accum", .points = 2};
  EXPECT_EQ(analysis_->Frontier("bert", query)->grid.params.at("tok.max_length"),
            ParamValue(int64_t{128}));
  const ParamMap params = {{"model.name", std::string("tiny")},
                           {"train.batch_size", int64_t{4}},
                           {"tok.max_length", int64_t{48}},
                           {"train.grad_accum", int64_t{1}}};
  ASSERT_TRUE(scheduler_->enqueuer().EnqueueTrial("bert", {.params = params}, "").ok());
  Complete(MustAcquire(session).lease, 0.5);
  EXPECT_EQ(analysis_->Frontier("bert", query)->grid.params.at("tok.max_length"),
            ParamValue(int64_t{48}));
  FrontierQuery given = query;
  given.params = {{"tok.max_length", int64_t{256}}};
  EXPECT_EQ(analysis_->Frontier("bert", given)->grid.params.at("tok.max_length"),
            ParamValue(int64_t{256}));
}

TEST_F(MemoryAnalysisTest, WithoutAWorkerAGpuThatNobodyHasMeasured) {
  AddStudy(PublishedStudy());
  const FrontierQuery query{.capacities = {GiB(4), GiB(80)}, .points = 2};
  const auto frontier = analysis_->Frontier("published", query);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->grid.x, "train.batch_size");
  EXPECT_EQ(frontier->grid.y, "tok.max_length");
  EXPECT_THAT(frontier->basis, HasSubstr("no worker has measured"));
  EXPECT_GT(frontier->grid.needed.back(), frontier->grid.needed.front());
  const auto fit = analysis_->Fit("published", {GiB(80)});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->configurations, 128);
  EXPECT_EQ(fit->cards[0].strict.fits, 128);
  for (const absl::Status& status :
       {analysis_->Frontier("published", {}).status(), analysis_->Fit("published", {}).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no worker has registered"));
  }
}

TEST_F(MemoryAnalysisTest, OfAnotherProgramWhatItsTrialsUsed) {
  StudySpec spec = EndlessStudy("plain", 100);
  spec.space.parameters.push_back(Parameter{
      .name = "layers", .domain = IntDomain{.low = 1, .high = 4}, .when = {}, .default_value = {}});
  AddStudy(spec);
  const std::string session = Register(MakeWorker("a", GiB(8)));
  const FrontierQuery query{.x = "train.batch_size", .y = "layers", .capacities = {GiB(4)}};
  for (const absl::Status& status :
       {analysis_->Frontier("plain", query).status(), analysis_->Fit("plain", {}).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("nothing is known of the memory"));
  }
  RunOwnProgram(session, 6);  // batches 1 to 6
  const auto frontier = analysis_->Frontier("plain", query);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_THAT(frontier->basis, HasSubstr("By what trials"));
  ASSERT_EQ(frontier->grid.x_values.size(), 16u);
  EXPECT_GE(frontier->grid.needed.front(), GiB(1));
  EXPECT_GE(frontier->grid.needed.back(), GiB(64));
  EXPECT_NE(frontier->grid.gpus[0].micro_batches.front(), 0);
  EXPECT_EQ(frontier->grid.gpus[0].micro_batches.back(), 0);
  const auto fit = analysis_->Fit("plain", {GiB(4), GiB(80)});
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->unknown, 0);
  EXPECT_LT(fit->cards[0].strict.fits, fit->cards[1].strict.fits);
  EXPECT_EQ(fit->cards[0].strict.cut->parameter, "train.batch_size");
}

TEST_F(MemoryAnalysisTest, AFitIsAnsweredAnewWhereTrialsTeachMore) {
  AddStudy(EndlessStudy("plain", 100));
  const std::string session = Register(MakeWorker("a", GiB(8)));
  RunOwnProgram(session, 6);  // batches 1 to 6
  const auto first = analysis_->Fit("plain", {GiB(8)});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(analysis_->Fit("plain", {GiB(8)})->cards[0].strict.fits, first->cards[0].strict.fits);
  EXPECT_GT(analysis_->Fit("plain", {GiB(40)})->cards[0].strict.fits, first->cards[0].strict.fits)
      << "another question";
  EXPECT_EQ(first->cards[0].strict.fits, 7);
  Finish(MustAcquire(session).lease, OutOfMemory{.limit = GiB(8)});
  const auto after = analysis_->Fit("plain", {GiB(8)});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->cards[0].strict.fits, 6) << "a batch of 7 met an out-of-memory error";
}

TEST_F(MemoryAnalysisTest, NamesWhatIsWrong) {
  AddStudy(BertStudy());
  Register(MakeBertWorker("w"));
  EXPECT_TRUE(absl::IsNotFound(analysis_->Frontier("other", {}).status()));
  EXPECT_TRUE(absl::IsNotFound(analysis_->Fit("other", {}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(analysis_->Frontier("bert", {.worker = "x"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(analysis_->Fit("bert", {Bytes{}}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(analysis_->Frontier("bert", {.x = "lr"}).status()));
}

}  // namespace
}  // namespace hpo::server
