#include "common/space/search_space.h"

#include <limits>

#include "common/base/limits.h"
#include "common/space/search_space_json.h"
#include "common/space/search_space_validation.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo {
namespace {

ParamValue TextValue(const char* text) { return std::string(text); }
ParamValue Int(int64_t value) { return value; }

CategoricalDomain Ints(std::initializer_list<int64_t> values) {
  CategoricalDomain domain;
  for (const int64_t value : values) domain.choices.emplace_back(value);
  return domain;
}

// A model, its batch size (narrowed for heavy ones) and a momentum that only sgd has.
SearchSpace ExampleSpace() {
  SearchSpace space;
  space.parameters = {
      {.name = "model.name", .domain = CategoricalDomain{{TextValue("small"), TextValue("big")}}},
      {.name = "train.batch_size", .domain = Ints({8, 16, 32})},
      {.name = "tok.max_length", .domain = IntDomain{.low = 128, .high = 512, .step = 32}},
      {.name = "train.optimizer",
       .domain = CategoricalDomain{{TextValue("adamw"), TextValue("sgd")}}},
      {.name = "train.momentum",
       .domain = FloatDomain{.low = 0.0, .high = 0.9, .step = 0.1},
       .when = {{"train.optimizer", {TextValue("sgd")}}}},
      {.name = "train.lr",
       .domain = FloatDomain{.low = 1e-6, .high = 1e-4, .log = true},
       .default_value = 1e-5},
  };
  const std::vector<Condition> heavy = {{"model.class", {TextValue("heavy")}}};
  space.narrowings = {
      {.when = heavy, .name = "train.batch_size", .domain = Ints({8, 16})},
      {.when = heavy,
       .name = "tok.max_length",
       .domain = IntDomain{.low = 128, .high = 384, .step = 32}},
  };
  space.model_facts = {{"big", {{"model.class", TextValue("heavy")}}},
                       {"small", {{"model.class", TextValue("base")}}}};
  return space;
}

TEST(Domain, ContainsItsGridAndNothingElse) {
  const FloatDomain tenths = {.low = 0.0, .high = 0.3, .step = 0.1};
  const FloatDomain log = {.low = 1e-6, .high = 1e-4, .log = true};
  const IntDomain lengths = {.low = 128, .high = 520, .step = 32};
  const struct {
    Domain domain;
    ParamValue value;
    bool inside;
  } cases[] = {
      {tenths, 0.0, true},
      {tenths, 3 * 0.1, true},  // 0.30000000000000004
      {tenths, 0.25, false},
      {tenths, 0.4, false},
      {tenths, Int(0), false},
      {log, 1e-6, true},
      {log, 2e-4, false},
      {log, std::numeric_limits<double>::quiet_NaN(), false},
      {lengths, Int(512), true},
      {lengths, Int(520), false},
      {lengths, Int(96), false},
      {lengths, 128.0, false},
      {Ints({8, 16}), Int(16), true},
      {Ints({8, 16}), 16.0, false},
      {Ints({8, 16}), TextValue("16"), false},
  };
  for (const auto& [domain, value, inside] : cases) {
    SCOPED_TRACE(FormatDomain(domain) + " " + FormatParam(value));
    EXPECT_EQ(Contains(domain, value), inside);
  }
}

TEST(Domain, CountsItsValues) {
  EXPECT_EQ(NumValues(IntDomain{.low = 128, .high = 512, .step = 32}), 13);
  EXPECT_EQ(NumValues(FloatDomain{.low = 0.0, .high = 0.3, .step = 0.1}), 4);
  EXPECT_EQ(NumValues(FloatDomain{.low = 0.0, .high = 0.3}), std::nullopt);
  EXPECT_EQ(NumValues(Ints({8, 16, 32})), 3);
}

TEST(Domain, FormatsForPeople) {
  EXPECT_EQ(FormatDomain(Ints({8, 12, 16})), "{8, 12, 16}");
  EXPECT_EQ(FormatDomain(IntDomain{.low = 128, .high = 512, .step = 32}), "[128, 512] step 32");
  EXPECT_EQ(FormatDomain(FloatDomain{.low = 1e-6, .high = 1e-4, .log = true}),
            "[1e-06, 0.0001] log");
}

TEST(Domain, IntersectsOnTheFirstGrid) {
  const IntDomain lengths = {.low = 128, .high = 512, .step = 32};
  const FloatDomain tenths = {.low = 0.0, .high = 1.0, .step = 0.1};
  EXPECT_EQ(Intersect(lengths, IntDomain{.low = 130, .high = 384, .step = 32}),
            Domain(IntDomain{.low = 160, .high = 384, .step = 32}));
  EXPECT_EQ(Intersect(lengths, IntDomain{.low = 513, .high = 600}), std::nullopt);
  EXPECT_EQ(Intersect(Ints({8, 16, 32}), Ints({32, 8})), Domain(Ints({8, 32})));
  EXPECT_EQ(Intersect(Ints({8}), Ints({16})), std::nullopt);
  EXPECT_EQ(Intersect(lengths, tenths), std::nullopt);

  const std::optional<Domain> part = Intersect(tenths, FloatDomain{.low = 0.25, .high = 0.75});
  ASSERT_TRUE(part.has_value());
  EXPECT_DOUBLE_EQ(std::get<FloatDomain>(*part).low, 0.3);
  EXPECT_DOUBLE_EQ(std::get<FloatDomain>(*part).high, 0.7);
  EXPECT_EQ(Intersect(tenths, FloatDomain{.low = 0.31, .high = 0.39}), std::nullopt);
  EXPECT_EQ(Intersect(FloatDomain{.low = 0.0, .high = 0.2}, FloatDomain{.low = 0.3, .high = 1.0}),
            std::nullopt);
}

TEST(Domain, CoercesWhatPeopleWrite) {
  EXPECT_EQ(Coerce(FloatDomain{}, Int(1)), ParamValue(1.0));
  EXPECT_EQ(Coerce(CategoricalDomain{{0.5, 1.0}}, Int(1)), ParamValue(1.0));
  EXPECT_EQ(Coerce(Ints({1}), Int(1)), Int(1));
  EXPECT_EQ(Coerce(FloatDomain{}, TextValue("1")), TextValue("1"));
}

TEST(SearchSpace, NarrowsByModelClass) {
  const SearchSpace space = ExampleSpace();
  const Parameter& batch = *space.Find("train.batch_size");
  EXPECT_EQ(AllowedDomain(space, batch, {{"model.name", TextValue("small")}}), batch.domain);
  EXPECT_EQ(AllowedDomain(space, batch, {{"model.name", TextValue("big")}}), Domain(Ints({8, 16})));
  // A model of which nothing is known meets no condition.
  EXPECT_EQ(AllowedDomain(space, batch, {{"model.name", TextValue("new")}}), batch.domain);
  EXPECT_EQ(AllowedDomain(space, batch, {}), batch.domain);
}

TEST(SearchSpace, NarrowingsAddUpAndMayLeaveNothing) {
  SearchSpace space = ExampleSpace();
  const std::vector<Condition> big = {{"model.name", {TextValue("big")}}};
  space.narrowings.push_back({.when = big, .name = "train.batch_size", .domain = Ints({16, 32})});
  const Parameter& batch = *space.Find("train.batch_size");
  const ParamMap params = {{"model.name", TextValue("big")}};
  EXPECT_EQ(AllowedDomain(space, batch, params), Domain(Ints({16})));
  space.narrowings.push_back({.when = big, .name = "train.batch_size", .domain = Ints({8})});
  EXPECT_EQ(AllowedDomain(space, batch, params), std::nullopt);
}

TEST(SearchSpace, AllConditionsMustHold) {
  const SearchSpace space = ExampleSpace();
  const std::vector<Condition> both = {{"model.name", {TextValue("big"), TextValue("small")}},
                                       {"train.batch_size", {Int(8)}}};
  EXPECT_TRUE(
      Holds(space, both, {{"model.name", TextValue("small")}, {"train.batch_size", Int(8)}}));
  EXPECT_FALSE(
      Holds(space, both, {{"model.name", TextValue("small")}, {"train.batch_size", Int(16)}}));
  EXPECT_FALSE(Holds(space, both, {{"model.name", TextValue("small")}}));
  EXPECT_TRUE(Holds(space, {}, {}));
}

TEST(ValidateParams, TakesCompleteConfigurationsOnly) {
  const SearchSpace space = ExampleSpace();
  const ParamMap good = {{"model.name", TextValue("big")}, {"train.batch_size", Int(16)},
                         {"tok.max_length", Int(384)},     {"train.optimizer", TextValue("sgd")},
                         {"train.momentum", 0.9},          {"train.lr", 1e-5}};
  EXPECT_TRUE(ValidateParams(space, good).ok()) << ValidateParams(space, good);

  const std::tuple<const char*, std::optional<ParamValue>, const char*> changes[] = {
      {"train.lr", std::nullopt, "train.lr: expected [1e-06, 0.0001] log, got no value"},
      {"train.lr", Int(1), "train.lr: expected float [1e-06, 0.0001] log, got 1 (an integer)"},
      {"train.batch_size", Int(32),
       "train.batch_size: expected choices {8, 16}, got 32 (an integer)"},
      {"tok.max_length", Int(416),
       "tok.max_length: expected int [128, 384] step 32, got 416 (an integer)"},
      {"train.optimizer", TextValue("adamw"),
       "train.momentum: expected no value, as its conditions do not hold, got 0.9"},
      {"epochs", Int(3), "epochs: expected a parameter of the study, got an unknown one"},
  };
  for (const auto& [name, value, expected] : changes) {
    SCOPED_TRACE(name);
    ParamMap params = good;
    params.erase(name);
    if (value.has_value()) params[name] = *value;
    EXPECT_EQ(ValidateParams(space, params).message(), expected);
  }
}

constexpr int64_t kMostExact = int64_t{1} << 53;

TEST(ValidateDomain, RefusesEmptyAndImpossibleRanges) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::pair<Domain, const char*> cases[] = {
      {FloatDomain{.low = 0.1, .high = 0.1}, "expected low < high, got [0.1, 0.1]"},
      {FloatDomain{.low = 0.0, .high = infinity}, "expected finite bounds"},
      {FloatDomain{.low = 0.0, .high = 1.0, .log = true}, "expected low > 0 with log"},
      {FloatDomain{.low = 0.1, .high = 1.0, .step = 0.1, .log = true}, "expected step or log"},
      {FloatDomain{.low = 0.1, .high = 1.0, .step = 0.0}, "expected step > 0"},
      {FloatDomain{.low = 0.0, .high = 1e10, .step = 1e-10}, "expected at most 2^53 steps"},
      {IntDomain{.low = 2, .high = 1}, "expected low <= high, got [2, 1]"},
      {IntDomain{.low = 0, .high = INT64_MAX}, "expected bounds within -2^53 and 2^53"},
      {IntDomain{.low = 0, .high = kMostExact + 1}, "expected bounds within -2^53 and 2^53"},
      {IntDomain{.low = INT64_MIN, .high = 0},
       "expected bounds within -2^53 and 2^53, got [-9223372036854775808, 0]"},
      {IntDomain{.low = INT64_MIN, .high = INT64_MAX}, "expected bounds within -2^53 and 2^53"},
      {IntDomain{.low = INT64_MIN, .high = INT64_MIN}, "expected bounds within -2^53 and 2^53"},
      {IntDomain{.low = -kMostExact - 1, .high = 0}, "expected bounds within -2^53 and 2^53"},
      {IntDomain{.low = 0, .high = 8, .step = INT64_MIN}, "expected step >= 1"},
      {IntDomain{.low = 0, .high = 8, .step = INT64_MAX}, "expected step <= 2^53"},
      {IntDomain{.low = 0, .high = 8, .step = 0}, "expected step >= 1"},
      {IntDomain{.low = 0, .high = 8, .log = true}, "expected low >= 1 with log"},
      {IntDomain{.low = 1, .high = 8, .step = 2, .log = true}, "expected step or log"},
      {CategoricalDomain{}, "expected at least one choice"},
      {Ints({8, 16, 8}), "expected distinct choices, got 8 twice"},
      {CategoricalDomain{{Null(), Null()}}, "expected distinct choices, got null twice"},
      {CategoricalDomain{{Int(1), 1.0}},
       "expected distinct choices, got 1 twice (as numbers, 1 "
       "and 1.0 are equal)"},
      {CategoricalDomain{{infinity}}, "expected finite choices"},
  };
  for (const auto& [domain, expected] : cases) {
    SCOPED_TRACE(expected);
    const absl::Status status = ValidateDomain(domain);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(expected), absl::string_view::npos) << status;
  }
}

TEST(ValidateDomain, ChoicesAreOfAnyTypes) {
  const Domain mixed = CategoricalDomain{
      {Null(), TextValue("null"), true, Int(1), TextValue("1"), 0.5, TextValue("sqrt")}};
  EXPECT_TRUE(ValidateDomain(mixed).ok()) << ValidateDomain(mixed);
  EXPECT_EQ(FormatDomain(mixed), "{null, \"null\", true, 1, \"1\", 0.5, sqrt}");
  EXPECT_TRUE(Contains(mixed, Null()));
  EXPECT_FALSE(Contains(mixed, false));
  EXPECT_FALSE(Contains(FloatDomain(), Null()));
}

TEST(Coerce, ANumberThatEqualsAChoiceBecomesIt) {
  const Domain mixed = CategoricalDomain{{true, Int(2), 3.0, TextValue("4")}};
  EXPECT_EQ(Coerce(mixed, 2.0), ParamValue(Int(2)));
  EXPECT_EQ(Coerce(mixed, Int(3)), ParamValue(3.0));
  EXPECT_EQ(Coerce(mixed, Int(1)), ParamValue(Int(1)));  // true is no number
  EXPECT_EQ(Coerce(mixed, Int(4)), ParamValue(Int(4)));  // nor is a text
  EXPECT_EQ(Coerce(mixed, Null()), ParamValue(Null()));
}

TEST(ValidateSpace, ConditionsAndNarrowingsMayNameNull) {
  SearchSpace space;
  space.parameters = {
      {.name = "depth", .domain = CategoricalDomain{{Null(), Int(5)}}, .default_value = Null()},
      {.name = "leaves",
       .domain = IntDomain{.low = 1, .high = 8},
       .when = {{.name = "depth", .values = {Null()}}}}};
  space.narrowings = {{.when = {{.name = "depth", .values = {Null()}}},
                       .name = "leaves",
                       .domain = IntDomain{.low = 1, .high = 4}}};
  ASSERT_TRUE(ValidateSpace(space).ok()) << ValidateSpace(space);
  EXPECT_TRUE(ValidateParams(space, {{"depth", Null()}, {"leaves", Int(3)}}).ok());
  EXPECT_FALSE(ValidateParams(space, {{"depth", Null()}, {"leaves", Int(7)}}).ok());
  EXPECT_TRUE(ValidateParams(space, {{"depth", Int(5)}}).ok());
  const auto again = SpaceFromJson(SpaceToJson(space));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, space);
}

TEST(ValidateDomain, IntegersReachToWhatADoubleHoldsExactly) {
  for (const int64_t step : {int64_t{1}, int64_t{3}, kMostExact}) {
    const Domain domain = IntDomain{.low = -kMostExact, .high = kMostExact, .step = step};
    EXPECT_TRUE(ValidateDomain(domain).ok()) << step;
    EXPECT_TRUE(Contains(domain, -kMostExact));
    EXPECT_EQ(Contains(domain, kMostExact), 2 * kMostExact % step == 0);
    EXPECT_EQ(*NumValues(domain), 2 * kMostExact / step + 1);
    for (const int64_t outside : {INT64_MIN, -kMostExact - 1, kMostExact + 1, INT64_MAX}) {
      EXPECT_FALSE(Contains(domain, outside)) << outside;
    }
  }
}

TEST(ValidateSpace, NamesTheParameterAtFault) {
  using Change = void (*)(SearchSpace&);
  const std::pair<Change, const char*> cases[] = {
      {[](SearchSpace& space) { space.parameters[1].name = ""; }, "expected a name of letters"},
      {[](SearchSpace& space) { space.parameters[1].name = "batch size"; },
       "parameters.batch size: expected a name of letters"},
      {[](SearchSpace& space) { space.parameters[3].name = "model.class"; },
       "parameters.model.class: this name is kept"},
      {[](SearchSpace& space) { space.parameters[1].name = "model.name"; },
       "parameters.model.name: there are two of this name"},
      {[](SearchSpace& space) { std::swap(space.parameters[3], space.parameters[4]); },
       "parameters.train.momentum: when: expected a parameter that comes before, got "
       "'train.optimizer'"},
      {[](SearchSpace& space) { space.parameters[4].when[0].values = {TextValue("adam")}; },
       "parameters.train.momentum: when.train.optimizer: expected a value in {adamw, sgd}, got "
       "adam"},
      {[](SearchSpace& space) { space.parameters[5].default_value = 1.0; },
       "parameters.train.lr: default: expected a value in [1e-06, 0.0001] log, got 1"},
      {[](SearchSpace& space) {
         space.narrowings[0].domain = Ints({8, 64});
       },
       "constraints: train.batch_size: expected a part of {8, 16, 32}, got {8, 64}"},
      {[](SearchSpace& space) { space.narrowings[0].domain = IntDomain{.low = 8, .high = 16}; },
       "constraints: train.batch_size: expected a part of {8, 16, 32}, got [8, 16]"},
      {[](SearchSpace& space) {
         space.narrowings[1].domain = IntDomain{.low = 128, .high = 384, .step = 16};
       },
       "constraints: tok.max_length: expected a part of [128, 512] step 32, got [128, 384] step "
       "16"},
      {[](SearchSpace& space) { space.narrowings[0].when.clear(); },
       "constraints: train.batch_size: when: expected at least one condition"},
      {[](SearchSpace& space) { space.narrowings[0].name = "train.size"; },
       "constraints: train.size: expected a parameter of the study"},
      {[](SearchSpace& space) { space.parameters.erase(space.parameters.begin()); },
       "constraints: train.batch_size: when: expected a parameter that comes before, got "
       "'model.class'"},
  };
  ASSERT_TRUE(ValidateSpace(ExampleSpace()).ok()) << ValidateSpace(ExampleSpace());
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(expected);
    SearchSpace space = ExampleSpace();
    change(space);
    const absl::Status status = ValidateSpace(space);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(expected), absl::string_view::npos) << status;
  }
}

TEST(SearchSpaceJson, KeepsEveryField) {
  const SearchSpace space = ExampleSpace();
  const auto again = SpaceFromJson(nlohmann::json::parse(SpaceToJson(space).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, space);
}

TEST(SearchSpaceJson, ErrorsNameTheMember) {
  using Change = void (*)(nlohmann::json&);
  const std::pair<Change, const char*> cases[] = {
      {[](nlohmann::json& json) { json.erase("parameters"); }, "parameters: missing"},
      {[](nlohmann::json& json) { json["parameters"] = 1; }, "parameters: expected an array"},
      {[](nlohmann::json& json) { json["parameters"][1].erase("name"); },
       "parameters: [1]: name: missing"},
      {[](nlohmann::json& json) { json["parameters"][1]["kind"] = "set"; },
       "parameters: [1]: kind: expected one of float, int, choices, got the string \"set\""},
      {[](nlohmann::json& json) { json["parameters"][2]["low"] = 0.5; },
       "parameters: [2]: int: low: expected an integer"},
      {[](nlohmann::json& json) { json["constraints"][0]["when"][0].erase("values"); },
       "constraints: [0]: when: [0]: values: missing"},
      {[](nlohmann::json& json) { json["model_facts"]["big"] = 1; },
       "model_facts: big: expected an object"},
  };
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(expected);
    nlohmann::json json = SpaceToJson(ExampleSpace());
    change(json);
    const auto space = SpaceFromJson(json);
    ASSERT_FALSE(space.ok());
    EXPECT_NE(space.status().message().find(expected), absl::string_view::npos) << space.status();
  }
}

// 100,000 choices once held a core for a minute.
TEST(ValidateSpace, ManyChoicesAreCheckedFastAndTooManyRefused) {
  CategoricalDomain choices;
  for (int64_t i = 0; i < kChoiceLimit.most; ++i) choices.choices.emplace_back(i);
  EXPECT_TRUE(ValidateDomain(choices).ok());
  choices.choices.emplace_back(kChoiceLimit.most);
  EXPECT_EQ(ValidateDomain(choices).message(), "expected at most 10000 choices, got 10001");
  choices.choices.pop_back();
  choices.choices.back() = int64_t{7};
  EXPECT_EQ(ValidateDomain(choices).message(), "expected distinct choices, got 7 twice");
}

}  // namespace
}  // namespace hpo
