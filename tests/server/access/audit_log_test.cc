#include "server/access/audit_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::server {
namespace {

std::vector<nlohmann::json> LinesOf(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

AuditEvent Refusal(const std::string& from, const std::string& why) {
  AuditEvent event;
  event.event = "handshake";
  event.from = from;
  event.why = why;
  return event;
}

TEST(AuditLog, WritesALineForEachEventForItsOwnerAlone) {
  const TemporaryFolder folder;
  const SimulatedClock clock;
  const std::string path = folder.path() + "/audit.jsonl";
  AuditLog log(path, clock);
  AuditEvent event = Refusal("10.0.0.1:1", "a \"quote\", a\nline and \xff");
  log.Write(event);
  log.Write(event);
  const auto lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["from"], "10.0.0.1:1");
  EXPECT_EQ(lines[0]["time"], "2023-11-14T22:13:20.000Z");
  EXPECT_FALSE(lines[0].contains("who"));
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(AuditLog, StrangersCannotFillTheDisk) {
  const TemporaryFolder folder;
  SimulatedClock clock;
  const std::string path = folder.path() + "/audit.jsonl";
  AuditLog log(path, clock);
  for (int i = 0; i < 1000; ++i) {
    log.WriteSparingly(Refusal("10.0.0.1:" + std::to_string(i), "no token"));
  }
  log.WriteSparingly(Refusal("10.0.0.2:1", "no token"));
  EXPECT_EQ(LinesOf(path).size(), 2U);
  clock.Advance(absl::Seconds(1));
  log.WriteSparingly(Refusal("10.0.0.1:5", "no token"));
  const auto lines = LinesOf(path);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2]["left_out_before"], 999);
}

TEST(AuditLog, ALongFileIsPutAside) {
  const TemporaryFolder folder;
  const SimulatedClock clock;
  const std::string path = folder.path() + "/audit.jsonl";
  AuditLog log(path, clock, /*most_bytes=*/1000);
  for (int i = 0; i < 20; ++i) log.Write(Refusal("10.0.0.1:1", std::string(100, 'x')));
  EXPECT_LT(LinesOf(path).size(), 8U);
  EXPECT_GT(LinesOf(path + ".1").size(), 4U);
}

TEST(AuditLog, WithoutAFileNothingHappens) {
  const SimulatedClock clock;
  AuditLog("", clock).Write(Refusal("x:1", "y"));
  AuditLog("/nonexistent/audit", clock).Write(Refusal("x:1", "y"));
}

}  // namespace
}  // namespace hpo::server
