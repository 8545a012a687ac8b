#include "server/rpc/convert/convert_memory_analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/params_proto.h"

namespace hpo::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConvertMemoryAnalysis, AFrontierIsAskedFor) {
  v1::GetMemoryFrontierRequest proto;
  proto.set_study("s");
  proto.set_x("train.batch_size");
  proto.set_y("tok.max_length");
  proto.set_worker("w");
  proto.set_points(12);
  proto.add_capacities(int64_t{8} << 30);
  (*proto.mutable_params())["train.grad_accum"] = hpo::ToProto(ParamValue(int64_t{4}));
  const auto query = FromProto(proto);
  ASSERT_TRUE(query.ok()) << query.status();
  EXPECT_EQ(query->x, "train.batch_size");
  EXPECT_EQ(query->y, "tok.max_length");
  EXPECT_EQ(query->worker, "w");
  EXPECT_EQ(query->points, 12);
  EXPECT_THAT(query->capacities, ElementsAre(GiB(8)));
  EXPECT_EQ(query->params, (ParamMap{{"train.grad_accum", int64_t{4}}}));
  (*proto.mutable_params())["train.lr"] = v1::Value();
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(proto).status()));
  EXPECT_THAT(std::string(FromProto(proto).status().message()), HasSubstr("train.lr"));
}

TEST(ConvertMemoryAnalysis, AFrontierGoesOut) {
  using Verdict = memory::CellVerdict;
  MemoryFrontier frontier;
  frontier.basis = "By replays.";
  frontier.grid = {.x = "b",
                   .y = "m",
                   .x_values = {int64_t{8}, int64_t{16}},
                   .y_values = {std::string("bert")},
                   .needed = {MiB(1), Bytes{}},
                   .gpus = {{.capacity = GiB(4),
                             .usable = GiB(3),
                             .micro_batches = {8, 0, 0, 4},
                             .verdicts = {Verdict::kFits, Verdict::kNotKnown, Verdict::kDoesNotFit,
                                          Verdict::kPlanned}}},
                   .params = {{"a", 0.5}}};
  const v1::GetMemoryFrontierResponse proto = ToProto(frontier);
  EXPECT_EQ(proto.x(), "b");
  EXPECT_EQ(proto.y(), "m");
  ASSERT_EQ(proto.x_values_size(), 2);
  EXPECT_EQ(proto.x_values(1).int_value(), 16);
  EXPECT_EQ(proto.y_values(0).string_value(), "bert");
  EXPECT_THAT(proto.needed_bytes(), ElementsAre(1 << 20, 0));
  ASSERT_EQ(proto.gpus_size(), 1);
  EXPECT_EQ(proto.gpus(0).capacity_bytes(), int64_t{4} << 30);
  EXPECT_EQ(proto.gpus(0).usable_bytes(), int64_t{3} << 30);
  EXPECT_THAT(proto.gpus(0).micro_batches(), ElementsAre(8, 0, 0, 4));
  EXPECT_EQ(proto.gpus(0).verdicts(), "FUNP");
  EXPECT_EQ(proto.params().at("a").double_value(), 0.5);
  EXPECT_EQ(proto.basis(), "By replays.");
}

TEST(ConvertMemoryAnalysis, AFitGoesOut) {
  v1::GetMemoryFitRequest asked;
  asked.add_capacities(1 << 20);
  EXPECT_THAT(CapacitiesOf(asked), ElementsAre(MiB(1)));
  memory::SpaceSurvey survey{
      .configurations = 9, .sampled = true, .unknown = 2, .parameters = {"b"}};
  survey.models = {{.name = "bert",
                    .configurations = 7,
                    .smallest_literal = MiB(3),
                    .smallest_plan = MiB(2),
                    .largest_literal = MiB(9),
                    .strict_fits = {4},
                    .plan_fits = {6}},
                   {.name = "own", .configurations = 2, .known = false}};
  survey.cards = {{.capacity = GiB(4), .usable = GiB(3)}};
  survey.cards[0].strict = {.fits = 4, .does_not_fit = 3, .unknown = 2};
  survey.cards[0].strict.cut = memory::SpaceCut{.parameter = "b",
                                                .description = "b <= 8",
                                                .misfits_removed = 3,
                                                .misfits_left = 1,
                                                .fits_lost = 2};
  survey.cards[0].plan = {.fits = 7};
  const v1::GetMemoryFitResponse proto = ToProto(survey);
  EXPECT_EQ(proto.configurations(), 9);
  EXPECT_TRUE(proto.sampled());
  EXPECT_EQ(proto.unknown(), 2);
  EXPECT_THAT(proto.parameters(), ElementsAre("b"));
  ASSERT_EQ(proto.models_size(), 2);
  EXPECT_EQ(proto.models(0).name(), "bert");
  EXPECT_TRUE(proto.models(0).known());
  EXPECT_EQ(proto.models(0).smallest_bytes(), 3 << 20);
  EXPECT_EQ(proto.models(0).smallest_planned_bytes(), 2 << 20);
  EXPECT_EQ(proto.models(0).largest_bytes(), 9 << 20);
  EXPECT_THAT(proto.models(0).literal_fits(), ElementsAre(4));
  EXPECT_THAT(proto.models(0).planned_fits(), ElementsAre(6));
  EXPECT_FALSE(proto.models(1).known());
  ASSERT_EQ(proto.gpus_size(), 1);
  EXPECT_EQ(proto.gpus(0).usable_bytes(), int64_t{3} << 30);
  EXPECT_EQ(proto.gpus(0).literal().fits(), 4);
  EXPECT_EQ(proto.gpus(0).literal().does_not_fit(), 3);
  EXPECT_EQ(proto.gpus(0).literal().unknown(), 2);
  EXPECT_EQ(proto.gpus(0).literal().cut().parameter(), "b");
  EXPECT_EQ(proto.gpus(0).literal().cut().description(), "b <= 8");
  EXPECT_EQ(proto.gpus(0).literal().cut().misfits_removed(), 3);
  EXPECT_EQ(proto.gpus(0).literal().cut().misfits_left(), 1);
  EXPECT_EQ(proto.gpus(0).literal().cut().fits_lost(), 2);
  EXPECT_EQ(proto.gpus(0).planned().fits(), 7);
  EXPECT_FALSE(proto.gpus(0).planned().has_cut());
}

}  // namespace
}  // namespace hpo::server
