#include "cli/commands/doctor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace hpo::cli {
namespace {

using testing::HasSubstr;

DoctorFacts Healthy() {
  DoctorFacts facts{.version = "1.0", .address = "localhost:50051"};
  facts.server = ServerStatus{.version = "1.0"};
  facts.cards = std::vector<GpuState>{
      {.name = "H200", .driver = "570.1", .total = GiB(8), .free = GiB(6), .used = GiB(2)}};
  facts.trainer = absl::StatusOr<std::string>("hpo-trainer 1.0 (torch 2.11.0)");
  facts.state_folder = "/state";
  facts.room = GiB(50);
  return facts;
}

// "about result text" of those that are not as they should be.
std::vector<std::string> Complaints(const DoctorFacts& facts) {
  std::vector<std::string> lines;
  for (const Finding& finding : Diagnose(facts)) {
    if (finding.health == Health::kGood) continue;
    const char* health = finding.health == Health::kNote ? " note: " : " wrong: ";
    lines.push_back(finding.about + health + finding.text);
  }
  return lines;
}

TEST(Doctor, AHealthyMachineHasNothingToSay) {
  EXPECT_THAT(Complaints(Healthy()), testing::IsEmpty());
  EXPECT_EQ(Diagnose(Healthy())[2].text, "H200, driver 570.1, 6.00 GiB of 8.00 GiB free");
}

TEST(Doctor, EachFaultIsNamed) {
  DoctorFacts facts = Healthy();
  facts.server = ServerStatus{.version = "0.9", .trouble = "disk full", .damage = {"page 3"}};
  (*facts.cards)[0].processes = {{.pid = 12, .used = GiB(2), .name = "python3"}, {.pid = 13}};
  facts.trainer = absl::StatusOr<std::string>(absl::UnavailableError("libtorch.so is missing"));
  facts.room = MiB(100);
  EXPECT_THAT(
      Complaints(facts),
      testing::ElementsAre(
          "server wrong: localhost:50051 is 0.9, this program is 1.0; install one version "
          "everywhere",
          "server wrong: disk full", "database wrong: page 3",
          "card 0 note: python3 (pid 12) holds 2.00 GiB",
          "card 0 note: a program (pid 13) holds memory", "trainer wrong: libtorch.so is missing",
          "disk wrong: 100.00 MiB free for /state, where trained models are kept"));
}

TEST(Doctor, WhatIsNotThereYetIsANote) {
  DoctorFacts facts = Healthy();
  facts.server = absl::UnavailableError("cannot reach hpo-server");
  facts.cards = absl::UnavailableError("no driver");
  facts.trainer.reset();
  EXPECT_THAT(Complaints(facts),
              testing::ElementsAre("server note: cannot reach hpo-server",
                                   HasSubstr("cards note: no driver; without one: hpo-worker"),
                                   HasSubstr("trainer note: no hpo-trainer beside")));
}

TEST(Doctor, NeedsNoServer) {
  const auto json = RunOfflineJson({"doctor"});
  ASSERT_TRUE(json.is_array());
  EXPECT_EQ(json[0]["check"], "hpo");
  EXPECT_EQ(json[1]["result"], "note");
  EXPECT_THAT(json[1]["text"].get<std::string>(), HasSubstr("cannot reach hpo-server"));
}

}  // namespace
}  // namespace hpo::cli
