#include "server/access/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "server/access/method_roles.h"
#include "tests/fakes/simulated_clock.h"
#include "tests/fakes/temporary_folder.h"

namespace hpo::server {
namespace {

using testing::HasSubstr;

constexpr char kList[] = "/hpo.v1.StudyService/ListStudies";
constexpr char kAcquire[] = "/hpo.v1.WorkerService/AcquireTrial";

class AccessControlTest : public testing::Test {
 protected:
  std::string Peer(int64_t token, Role role, uint64_t connection = 1) {
    Caller caller{.token = token, .name = "t", .role = role, .from = "10.0.0.1:5"};
    caller.expires = clock_.Now() + absl::Hours(1);
    return "unix-abstract:" + access_.Enter(std::move(caller), connection).value_or("refused");
  }
  absl::StatusCode CodeOf(const std::string& method, const std::string& peer) {
    return access_.Allow(method, peer).status().code();
  }
  std::string Audit() const {
    std::ifstream file(folder_.path() + "/audit");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static constexpr CallLimits kLimits = {
      .calls_per_second = 10, .calls_in_flight = 13, .calls_of_admins = 4};

  // As many calls of `token`, each of a connection of its own, as it is allowed at once.
  std::vector<AccessControl::Permit> AllOf(int64_t token, Role role) {
    std::vector<AccessControl::Permit> permits;
    for (;;) {
      auto permit = access_.Allow(role == Role::kWork ? kAcquire : kList,
                                  Peer(token, role, next_connection_++));
      if (!permit.ok()) return permits;
      permits.push_back(*std::move(permit));
    }
  }

  uint64_t next_connection_ = 100;
  const TemporaryFolder folder_;
  SimulatedClock clock_;
  AuditLog audit_{folder_.path() + "/audit", clock_};
  AccessControl access_{audit_, clock_, kLimits};
};

TEST_F(AccessControlTest, ThisMachineMayDoEverything) {
  for (const MethodRule& rule : AllMethodRules()) {
    EXPECT_TRUE(access_.Allow(rule.method, "ipv4:127.0.0.1:5").ok()) << rule.method;
  }
}

TEST_F(AccessControlTest, ARoleMayDoWhatItIncludes) {
  for (const auto& [role, name] : kRoleNames) {
    uint64_t connection = 10;
    for (const MethodRule& rule : AllMethodRules()) {
      const std::string peer = Peer(1, role, connection++);
      EXPECT_EQ(access_.Allow(rule.method, peer).ok(), Includes(role, rule.role))
          << name << " " << rule.method;
    }
  }
}

TEST_F(AccessControlTest, ARefusalNamesBothRolesAndIsAudited) {
  const absl::Status status = access_.Allow(kList, Peer(1, Role::kWork)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("has the role work, and ListStudies needs read"));
  EXPECT_THAT(Audit(), HasSubstr("\"PERMISSION_DENIED\""));
  EXPECT_THAT(Audit(), HasSubstr("\"from\":\"10.0.0.1:5\""));
}

TEST_F(AccessControlTest, AConnectionThatHasGoneMayDoNothing) {
  const std::string peer = Peer(1, Role::kAdmin);
  EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kOk);
  access_.Leave(1);
  EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CodeOf(kList, "unix-abstract:hpo-peer-guessed-1"), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, ATokenThatExpiresOnAnOpenConnectionEnds) {
  const std::string peer = Peer(1, Role::kRead);
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, NobodyMayCallWhatHasNoRule) {
  EXPECT_EQ(CodeOf("/hpo.v1.StudyService/Later", Peer(1, Role::kAdmin)),
            absl::StatusCode::kUnimplemented);
}

TEST_F(AccessControlTest, CallsASecondAreLimitedForEachConnection) {
  const std::string peer = Peer(1, Role::kRead, 1);
  const std::string other = Peer(1, Role::kRead, 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CodeOf(kList, other), absl::StatusCode::kOk);
  clock_.Advance(absl::Milliseconds(500));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOf(kList, peer), absl::StatusCode::kResourceExhausted);
}

TEST_F(AccessControlTest, CallsAtOnceAreLimitedForEachToken) {
  std::vector<AccessControl::Permit> permits = AllOf(1, Role::kWork);
  EXPECT_EQ(permits.size(), 6U);  // 9 in all: 3 are left
  EXPECT_EQ(CodeOf(kAcquire, Peer(2, Role::kWork)), absl::StatusCode::kOk);
  permits.pop_back();
  EXPECT_EQ(CodeOf(kAcquire, Peer(1, Role::kWork)), absl::StatusCode::kOk);
}

TEST_F(AccessControlTest, TokensWithManyCallsKeepNobodyOut) {
  const std::vector<AccessControl::Permit> first = AllOf(1, Role::kWork);
  const std::vector<AccessControl::Permit> second = AllOf(2, Role::kRead);
  EXPECT_EQ(second.size(), 2U);
  EXPECT_EQ(CodeOf(kList, Peer(3, Role::kRead)), absl::StatusCode::kOk);
}

TEST_F(AccessControlTest, AdministratorsAreLetInWhereNobodyElseIs) {
  std::vector<std::vector<AccessControl::Permit>> held;
  for (int64_t token = 1; token <= 9; ++token) held.push_back(AllOf(token, Role::kRead));
  EXPECT_EQ(CodeOf(kList, Peer(10, Role::kRead)), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(AllOf(11, Role::kAdmin).size(), 3U);  // of 4
}

TEST_F(AccessControlTest, CallsOfThisMachineCountAndAreNeverRefused) {
  std::vector<AccessControl::Permit> local;
  for (int i = 0; i < 20; ++i) {
    auto permit = access_.Allow(kList, "ipv4:127.0.0.1:5");
    ASSERT_TRUE(permit.ok()) << permit.status();
    local.push_back(*std::move(permit));
  }
  EXPECT_EQ(CodeOf(kList, Peer(1, Role::kAdmin)), absl::StatusCode::kResourceExhausted);
  local.clear();
  EXPECT_EQ(CodeOf(kList, Peer(1, Role::kAdmin)), absl::StatusCode::kOk);
}

TEST_F(AccessControlTest, NobodyForeseesTheNameOfAConnection) {
  std::set<std::string> names;
  for (uint64_t connection = 1; connection <= 20; ++connection) {
    const std::string name = Peer(1, Role::kAdmin, connection);
    // All that a name has in common with the one before it is its beginning.
    EXPECT_EQ(name.size(), std::string("unix-abstract:hpo-peer-").size() + 32);
    EXPECT_TRUE(names.insert(name.substr(0, name.size() - 16)).second) << name;
  }
}

TEST_F(AccessControlTest, AConnectionThatEntersAgainHasAnotherName) {
  const std::string first = Peer(1, Role::kRead);
  const std::string second = Peer(1, Role::kRead);
  EXPECT_EQ(CodeOf(kList, first), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(CodeOf(kList, second), absl::StatusCode::kOk);
}

TEST_F(AccessControlTest, NoTokenHoldsEveryConnection) {
  access_.LimitConnections(32);
  const auto all_of = [this](int64_t token, Role role) {
    int count = 0;
    while (Peer(token, role, next_connection_) != "unix-abstract:refused") {
      ++count;
      ++next_connection_;
    }
    return count;
  };
  EXPECT_EQ(all_of(1, Role::kRead), 20);  // 30 in all: 10 are left
  EXPECT_EQ(all_of(2, Role::kWork), 7);
  EXPECT_NE(Peer(3, Role::kRead, next_connection_++), "unix-abstract:refused");
  for (int64_t token = 4; token < 10; ++token) all_of(token, Role::kRead);
  EXPECT_EQ(all_of(11, Role::kRead), 0);
  EXPECT_EQ(all_of(10, Role::kAdmin), 2);
  for (uint64_t first = 100; first < 103; ++first) access_.Leave(first);
  EXPECT_EQ(all_of(11, Role::kRead), 1);
}

TEST_F(AccessControlTest, ChoosesConnectionsByTheirToken) {
  Peer(1, Role::kRead, 11);
  Peer(2, Role::kRead, 12);
  Peer(3, Role::kRead, 13);
  const auto chosen = access_.ConnectionsOf(
      [](const Caller& caller) { return caller.token != 2 && caller.connection != 13; });
  EXPECT_FALSE(chosen(11));
  EXPECT_TRUE(chosen(12));
  EXPECT_TRUE(chosen(13));
}

}  // namespace
}  // namespace hpo::server
