// Requests and answers as lines of JSON.
#include "sampler/proposer/proposal_service.h"

#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace hpo::sampler {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kStudy[] =
    R"({"name": "s", "objective": {"metric": "v", "direction": "minimize"},
        "trainer": {"task": "function"}, "memory": {"policy": "off"}, "sampler": {"seed": 3},
        "parameters": {"x": {"float": [0.0, 1.0]}, "n": {"int": [1, 8]}, "k": {"choices": [0, 1]}}})";

json Ask(ProposalService& proposer, json request) {
  return json::parse(proposer.Answer(request.dump()));
}

json Opening(int number) { return {{"model", "1"}, {"study", kStudy}, {"number", number}}; }

json Completed(int number) {
  const double x = 0.05 * number;
  return {{"number", number},
          {"params", {{"x", x}, {"n", 1 + number % 8}, {"k", number % 2}}},
          {"state", "COMPLETED"},
          {"losses", {(x - 0.3) * (x - 0.3)}}};
}

json CompletedUpTo(int count) {
  json trials = json::array();
  for (int number = 0; number < count; ++number) trials.push_back(Completed(number));
  return trials;
}

TEST(ProposalService, ProposesAConfigurationOfTheSpace) {
  ProposalService proposer;
  const json answer = Ask(proposer, Opening(0));
  ASSERT_TRUE(answer.contains("params")) << answer;
  EXPECT_THAT(answer["params"].size(), 3);
  EXPECT_EQ(answer["sampler"], "auto: random");
}

TEST(ProposalService, KnowsWhatItWasToldWhetherAtOnceOrTrialByTrial) {
  ProposalService step_by_step;
  Ask(step_by_step, Opening(0));
  for (int number = 0; number < 20; ++number) {
    json running = Completed(number);
    running["state"] = "RUNNING";
    running.erase("losses");
    Ask(step_by_step, {{"model", "1"}, {"number", 100}, {"trials", {running}}});
    Ask(step_by_step, {{"model", "1"}, {"number", 100}, {"trials", {Completed(number)}}});
  }
  ProposalService at_once;
  json opening = Opening(20);
  opening["trials"] = CompletedUpTo(20);
  const json answer = Ask(at_once, opening);
  EXPECT_THAT(answer["sampler"].get<std::string>(), HasSubstr("(20 trials)"));
  EXPECT_EQ(answer, Ask(step_by_step, {{"model", "1"}, {"number", 20}}));
}

TEST(ProposalService, TakesFixedValues) {
  for (const int count : {0, 20}) {
    ProposalService proposer;
    json opening = Opening(count);
    opening["trials"] = CompletedUpTo(count);
    opening["fixed"] = {{"x", 0.75}, {"k", 1}};
    const json answer = Ask(proposer, opening);
    ASSERT_TRUE(answer.contains("params")) << answer;
    EXPECT_EQ(answer["params"]["x"], 0.75);
    EXPECT_EQ(answer["params"]["k"], 1);
  }
}

json TrialOf(int number, const json& params) {
  return {{"number", number}, {"params", params}, {"state", "RUNNING"}};
}

TEST(ProposalService, RepeatsNothingUntilAllHasBeenTriedAndThenSaysSo) {
  ProposalService proposer;
  const std::string study = absl::StrReplaceAll(kStudy, {{R"("x": {"float": [0.0, 1.0]}, )", ""}});
  json request = {{"model", "1"}, {"study", study}};
  std::set<json> proposed;
  for (int number = 0; number < 18; ++number) {
    request["number"] = number;
    const json answer = Ask(proposer, request);
    ASSERT_TRUE(answer.contains("params")) << answer;
    EXPECT_EQ(proposed.insert(answer["params"]).second, number < 16) << answer;
    EXPECT_EQ(answer.contains("all_tried"), number >= 16) << answer;
    request = {{"model", "1"}, {"trials", {TrialOf(number, answer["params"])}}};
  }
}

TEST(ProposalService, RepeatsWhereTheSpaceIsAPartOfWhatTrialsHave) {
  ProposalService proposer;
  json opening = Opening(1);
  opening["study"] = R"({"name": "s", "objective": {"metric": "v", "direction": "minimize"},
                         "trainer": {"task": "function"}, "memory": {"policy": "off"},
                         "parameters": {"k": {"choices": [0, 1]}}})";
  opening["trials"] = {TrialOf(0, {{"k", 0}})};
  std::set<json> proposed;
  for (int number = 1; number < 30; ++number) {
    opening["number"] = number;
    opening["part"] = true;
    const json answer = Ask(proposer, opening);
    EXPECT_FALSE(answer.contains("all_tried")) << answer;
    proposed.insert(answer["params"]);
  }
  EXPECT_EQ(proposed.size(), 2u);
}

TEST(ProposalService, TrialsOfEveryStateCount) {
  ProposalService proposer;
  json opening = Opening(30);
  opening["trials"] = CompletedUpTo(20);
  opening["trials"].push_back(
      {{"number", 20}, {"params", Completed(20)["params"]}, {"state", "RUNNING"}});
  opening["trials"].push_back(
      {{"number", 21}, {"params", Completed(3)["params"]}, {"state", "FAILED"}});
  opening["trials"].push_back({{"number", 22},
                               {"params", Completed(4)["params"]},
                               {"state", "PRUNED"},
                               {"reports", {{1, 0.5}, {2, nullptr}}}});
  opening["trials"].push_back({{"number", 23},
                               {"params", Completed(5)["params"]},
                               {"state", "COMPLETED"},
                               {"losses", {nullptr}}});
  EXPECT_TRUE(Ask(proposer, opening).contains("params"));
}

TEST(ProposalService, SaysWhatIsWrongAndWhere) {
  json other = Completed(1);
  other["params"]["x"] = 2.0;
  json lacking = Completed(1);
  lacking["losses"] = json::array();
  json unknown = Completed(1);
  unknown["state"] = "WAITING";
  const std::pair<json, std::string> cases[] = {
      {json::array(), "expected an object"},
      {{{"model", "2"}, {"number", 1}}, "study: expected that of the new model 2, got none"},
      {{{"model", "1"}}, "number"},
      {{{"model", "1"}, {"number", 1}, {"trials", {other}}}, "x"},
      {{{"model", "1"}, {"number", 1}, {"trials", {lacking}}}, "losses: expected 1"},
      {{{"model", "1"}, {"number", 1}, {"trials", {unknown}}}, "expected RUNNING, COMPLETED"},
      {{{"model", "1"}, {"number", 1}, {"fixed", {{"y", 1}}}}, "got y"},
      {{{"model", "1"}, {"number", 1}, {"fixed", {{"n", 9}}}}, "n: expected a value of [1, 8]"},
      {{{"model", "1"}, {"number", 1}, {"study", "name: s"}}, "study:"}};
  for (const auto& [request, expected] : cases) {
    ProposalService proposer;
    Ask(proposer, Opening(0));
    const json answer = Ask(proposer, request);
    ASSERT_TRUE(answer.contains("error")) << request << answer;
    EXPECT_THAT(answer["error"].get<std::string>(), HasSubstr(expected)) << request;
    EXPECT_EQ(answer["code"], "INVALID_ARGUMENT");
  }
}

TEST(ProposalService, AnswersEachLine) {
  std::istringstream in(Opening(0).dump() + "\nno JSON\n" + R"({"model": "1", "number": 1})" +
                        "\n");
  std::ostringstream out;
  AnswerLines(in, out);
  std::istringstream lines(out.str());
  std::string line;
  for (const char* const member : {"params", "error", "params"}) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(json::parse(line).contains(member)) << line;
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(ProposalService, AClosedModelIsGone) {
  ProposalService proposer;
  Ask(proposer, Opening(0));
  json other = Opening(0);
  other["model"] = "2";
  other["close"] = {"1"};
  EXPECT_TRUE(Ask(proposer, other).contains("params"));
  EXPECT_TRUE(Ask(proposer, {{"model", "1"}, {"number", 1}}).contains("error"));
}

}  // namespace
}  // namespace hpo::sampler
