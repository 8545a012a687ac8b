// Who may do what with a server that other machines can reach. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hpo {

// What a token allows:
//   kRead   see everything, change nothing
//   kWork   take, report and finish trials as a worker, and nothing else
//   kWrite  as kRead and kWork, and create, change and stop studies and trials; a study may not
//   name
//           a command, which workers would run
//   kAdmin  everything, commands and tokens included
enum class Role { kRead, kWork, kWrite, kAdmin };

inline constexpr std::array<std::pair<Role, absl::string_view>, 4> kRoleNames = {
    {{Role::kRead, "read"},
     {Role::kWork, "work"},
     {Role::kWrite, "write"},
     {Role::kAdmin, "admin"}}};

inline absl::string_view RoleName(Role role) {
  for (const auto& [value, name] : kRoleNames) {
    if (value == role) return name;
  }
  return "";
}

inline std::optional<Role> RoleNamed(absl::string_view name) {
  for (const auto& [value, known] : kRoleNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

// A token as people see it: without its secret, which is shown once, when it is made.
struct TokenInfo {
  std::string name;
  Role role = Role::kRead;
  absl::Time created;
  absl::Time expires = absl::InfiniteFuture();
  absl::Time revoked = absl::InfiniteFuture();  // InfiniteFuture: it is not
  // After a rotation: until when the secret before this one is accepted as well.
  absl::Time previous_until = absl::InfinitePast();
};

// A new secret, as its join string.
struct NewToken {
  TokenInfo token;
  std::string join;
};

}  // namespace hpo
