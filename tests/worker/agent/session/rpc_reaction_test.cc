#include "worker/agent/session/rpc_reaction.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files/read_file.h"
#include "common/protocol/refusal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/test_paths.h"

namespace hpo::agent {
namespace {

constexpr char kOwn[] = "0123";
constexpr Rpc kColumns[] = {Rpc::kListStudies,  Rpc::kRegisterWorker,     Rpc::kAcquireTrial,
                            Rpc::kHeartbeat,    Rpc::kReportMeasurements, Rpc::kFinishTrial,
                            Rpc::kReleaseTrial, Rpc::kAcquirePreflight,   Rpc::kReportPreflight};
const std::map<std::string, RefusalReason> kReasons = {
    {"SUPERSEDED", RefusalReason::kSuperseded},
    {"UNKNOWN_TRIAL", RefusalReason::kUnknownTrial},
    {"ANOTHER_DATABASE", RefusalReason::kAnotherDatabase},
    {"CONFIGURATION", RefusalReason::kConfiguration},
    {"NAME_TAKEN", RefusalReason::kNameTaken}};

// Rows of the document's first table, by their first cell.
std::map<std::string, std::vector<std::string>> ReadTable() {
  std::map<std::string, std::vector<std::string>> rows;
  const std::string text = ReadFile(SourcePath("docs/status_codes.md")).value();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() != std::size(kColumns) + 3) continue;
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    rows[cells[1]] = {cells.begin() + 2, cells.end() - 1};
  }
  return rows;
}

std::string CodeName(int code) {
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
}

TEST(RpcReaction, EveryCodeOfEveryCallIsAsTheDocumentSays) {
  const auto table = ReadTable();
  ASSERT_TRUE(table.contains("any other"));
  int named = 0;
  for (int code = 1; code <= 16; ++code) {
    const absl::Status failure(static_cast<absl::StatusCode>(code), "x");
    const bool own_row = table.contains(CodeName(code));
    named += own_row ? 1 : 0;
    const std::vector<std::string>& row = table.at(own_row ? CodeName(code) : "any other");
    for (size_t column = 0; column < std::size(kColumns); ++column) {
      EXPECT_EQ(std::string(Name(ReactionTo(kColumns[column], failure, kOwn))), row[column])
          << CodeName(code) << ", column " << column;
    }
  }
  // Those, "any other", the heading, its rule and the five reasons: no row is left unread.
  EXPECT_EQ(table.size(), static_cast<size_t>(named) + 3 + kReasons.size());
}

TEST(RpcReaction, AReasonOfTheOwnDatabaseBeatsTheCode) {
  const auto table = ReadTable();
  for (const auto& [name, reason] : kReasons) {
    const std::vector<std::string>& row = table.at("with " + name);
    for (size_t column = 0; column < std::size(kColumns); ++column) {
      if (row[column] == "–") continue;
      for (int code = 1; code <= 16; ++code) {
        const absl::Status failure =
            WithRefusal(absl::Status(static_cast<absl::StatusCode>(code), "x"), {reason, kOwn});
        EXPECT_EQ(std::string(Name(ReactionTo(kColumns[column], failure, kOwn))), row[column])
            << name << " with " << CodeName(code);
        EXPECT_EQ(ReactionTo(kColumns[column], failure, "another"), Reaction::kTryAgain);
        EXPECT_EQ(std::string(Name(ReactionTo(kColumns[column], failure, ""))), row[column])
            << "whose trial it is, an older server does not say";
      }
    }
  }
}

}  // namespace
}  // namespace hpo::agent
