#include "server/access/method_roles.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "hpo/v1/admin.pb.h"
#include "hpo/v1/analysis.pb.h"
#include "hpo/v1/fleet.pb.h"
#include "hpo/v1/study.pb.h"
#include "hpo/v1/worker.pb.h"
#include "optuna/storage.pb.h"

namespace hpo::server {
namespace {

std::set<std::string> MethodsOfTheProtocol() {
  // Those of gRPC itself (server/rpc/rpc_server.cc).
  std::set<std::string> methods = {
      "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch",
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
  const google::protobuf::FileDescriptor* const files[] = {
      v1::GetServerRequest::descriptor()->file(),     v1::ListWorkersRequest::descriptor()->file(),
      v1::GetImportanceRequest::descriptor()->file(), v1::GetStudyRequest::descriptor()->file(),
      v1::HeartbeatRequest::descriptor()->file(),     optuna::Trial::descriptor()->file()};
  for (const auto* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int k = 0; k < file->service(i)->method_count(); ++k) {
        methods.insert(absl::StrCat("/", file->service(i)->full_name(), "/",
                                    file->service(i)->method(k)->name()));
      }
    }
  }
  return methods;
}

TEST(MethodRoles, EachRpcHasARuleAndEachRuleAnRpc) {
  std::set<std::string> ruled;
  for (const MethodRule& rule : AllMethodRules()) {
    EXPECT_TRUE(ruled.insert(std::string(rule.method)).second) << rule.method;
  }
  EXPECT_EQ(ruled, MethodsOfTheProtocol());
}

TEST(MethodRoles, WhatIsNotKnownHasNone) {
  EXPECT_EQ(RuleOf("/hpo.v1.StudyService/Nothing"), std::nullopt);
}

TEST(MethodRoles, ReadersChangeNothing) {
  for (const MethodRule& rule : AllMethodRules()) {
    if (rule.role == Role::kRead) {
      EXPECT_FALSE(rule.is_change) << rule.method;
    }
  }
}

TEST(MethodRoles, WhatWritersAloneMayDoIsAudited) {
  for (const MethodRule& rule : AllMethodRules()) {
    if (rule.role == Role::kWrite) {
      EXPECT_TRUE(rule.is_change) << rule.method;
    }
  }
}

TEST(MethodRoles, WhoIncludesWhom) {
  const struct {
    Role role;
    bool reads;
    bool works;
    bool writes;
    bool administers;
  } cases[] = {{Role::kRead, true, false, false, false},
               {Role::kWork, false, true, false, false},
               {Role::kWrite, true, true, true, false},
               {Role::kAdmin, true, true, true, true}};
  for (const auto& test : cases) {
    SCOPED_TRACE(RoleName(test.role));
    EXPECT_EQ(Includes(test.role, Role::kRead), test.reads);
    EXPECT_EQ(Includes(test.role, Role::kWork), test.works);
    EXPECT_EQ(Includes(test.role, Role::kWrite), test.writes);
    EXPECT_EQ(Includes(test.role, Role::kAdmin), test.administers);
  }
}

}  // namespace
}  // namespace hpo::server
