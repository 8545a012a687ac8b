// The role that each RPC needs. Pure. A test compares the table with the protocol's list.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/protocol/access.h"

namespace hpo::server {

struct MethodRule {
  absl::string_view method;  // "/hpo.v1.StudyService/CreateStudy"
  Role role;                 // the least that may call it
  bool is_change;            // is written to the audit log
  bool operator==(const MethodRule&) const = default;
};

// nullopt: no such method; nobody may call it.
std::optional<MethodRule> RuleOf(absl::string_view method);

std::vector<MethodRule> AllMethodRules();

// Whether a caller with `role` may do what needs `needed`. kRead and kWork are apart; kWrite
// includes both, and kAdmin everything.
bool Includes(Role role, Role needed);

}  // namespace hpo::server
