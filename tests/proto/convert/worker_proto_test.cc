#include "proto/convert/worker_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/protocol/trial_task_fields.h"
#include "hpo/v1/worker.pb.h"
#include "proto/convert/message_fields.h"
#include "proto/convert/outcome_proto.h"
#include "tests/fakes/full_values.h"

namespace hpo {
namespace {

using testing::HasSubstr;

WorkerFacts FullFacts() {
  return WorkerFacts{.worker = "host:gpu0",
                     .instance_key = "k1",
                     .version = "0.1.0",
                     .torch_build = "2.11.0+cu130",
                     .trainer = "hpo-trainer",
                     .plans = true,
                     .device = {.kind = "cuda",
                                .name = "NVIDIA H200",
                                .uuid = "GPU-1",
                                .driver = "580.1",
                                .total = GiB(141),
                                .base = MiB(500),
                                .workspace = MiB(64),
                                .source = "measured",
                                .torch_build = "2.11.0+cu130",
                                .capability = "9.0",
                                .attention = "efficient",
                                .allocator = "expandable_segments:True",
                                .threads = 3},
                     .capacity = GiB(120),
                     .models = {{.name = "bert-base-uncased",
                                 .shape = {.family = "bert",
                                           .vocab_size = 30522,
                                           .hidden_size = 768,
                                           .num_layers = 12,
                                           .num_heads = 12,
                                           .intermediate_size = 3072,
                                           .max_positions = 512,
                                           .type_vocab_size = 2,
                                           .layer_norm_eps = 1e-5,
                                           .hidden_dropout = 0.2,
                                           .attention_dropout = 0.3,
                                           .initializer_range = 0.04,
                                           .pad_token_id = 1,
                                           .hidden_act = "relu",
                                           .num_key_value_heads = 4,
                                           .head_size = 16,
                                           .embedding_size = 128,
                                           .tied_head = true,
                                           .attention_bias = true,
                                           .mlp_bias = true,
                                           .embedding_dropout = 0.5,
                                           .relative = {.span = 256,
                                                        .bucketed = true,
                                                        .content_to_position = true,
                                                        .position_to_content = true,
                                                        .share_projections = true},
                                           .relative_norm = true,
                                           .no_positions = true,
                                           .conv_kernel_size = 3,
                                           .conv_act = "gelu",
                                           .stored_type = "float16"},
                                 .digest = "d1",
                                 .tokenizer_digest = "t1",
                                 .has_weights = true}},
                     .data_sets = {{.name = "train.jsonl",
                                    .digest = "d2",
                                    .rows = 2400,
                                    .labels = {"no", "yes"},
                                    .multi_label = true,
                                    .pairs = true,
                                    .lengths = {{"t1", {{12, 400}, {512, 2000}}}, {"t2", {}}}}}};
}

TEST(WorkerProto, FactsRoundTrip) {
  const absl::StatusOr<WorkerFacts> back = FromProto(ToProto(FullFacts()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, FullFacts());
}

TEST(WorkerProto, AnOlderWorkersConvolutionHasItsDefaultActivation) {
  v1::RegisterWorkerRequest proto = ToProto(FullFacts());
  proto.mutable_models(0)->mutable_shape()->clear_conv_act();
  EXPECT_EQ(FromProto(proto)->models[0].shape.conv_act, ModelShape().conv_act);
}

TEST(WorkerProto, WhatIsLeftOutIsTold) {
  WorkerFacts facts = FullFacts();
  facts.left_out = {{"broken", "config.json: not JSON"}, {"train.jsonl", "No such file"}};
  facts.reads_again = true;
  EXPECT_EQ(FromProto(ToProto(facts)).value(), facts);
}

TEST(WorkerProto, NoStudyIsNotEveryStudy) {
  WorkerFacts facts = FullFacts();
  EXPECT_FALSE(ToProto(facts).has_serves());
  for (const std::vector<std::string>& names : {std::vector<std::string>{}, {"a", "b"}}) {
    facts.serves = names;
    EXPECT_EQ(FromProto(ToProto(facts)).value(), facts);
  }
}

TEST(WorkerProto, ANamelessWorkerIsRefused) {
  for (const bool name : {true, false}) {
    v1::RegisterWorkerRequest proto = ToProto(FullFacts());
    name ? proto.clear_worker() : proto.clear_instance_key();
    const absl::Status status = FromProto(proto).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("a worker name and an instance key"));
  }
}

TEST(WorkerProto, GpusAreOneWhereAnOlderWorkerSaysNothing) {
  WorkerFacts facts = FullFacts();
  facts.gpus = 4;
  v1::RegisterWorkerRequest proto = ToProto(facts);
  EXPECT_EQ(FromProto(proto)->gpus, 4);
  proto.clear_gpus();
  EXPECT_EQ(FromProto(proto)->gpus, 1);
  proto.set_gpus(0);
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              HasSubstr("gpus: expected 1 to 256 GPUs that a trial takes, got 0"));
}

TEST(WorkerProto, ALengthOfNothingIsRefused) {
  v1::RegisterWorkerRequest proto = ToProto(FullFacts());
  (*(*proto.mutable_data_sets(0)->mutable_lengths())["t1"].mutable_rows_by_length())[0] = 4;
  EXPECT_THAT(std::string(FromProto(proto).status().message()),
              HasSubstr("got 4 rows of length 0"));
}

TEST(WorkerProto, ReleaseReasonsRoundTrip) {
  for (const ReleaseReason reason :
       {ReleaseReason::kPreempted, ReleaseReason::kRejected, ReleaseReason::kUnhealthy}) {
    EXPECT_EQ(FromProto(ToProto(reason)).value(), reason);
  }
  EXPECT_FALSE(FromProto(v1::RELEASE_REASON_UNSPECIFIED).ok());
}

// A field of a study that a trainer's job has and the message lacks ends this test.
TEST(WorkerProto, AnAssignmentHasEveryFieldOfATask) {
  const TrialTask task = FullTrainerJob().task;
  const absl::StatusOr<TrialTask> read = FromMessage<TrialTask>(ToMessage<v1::Assignment>(task));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, task);
}

}  // namespace
}  // namespace hpo
