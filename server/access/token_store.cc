// Tested by tests/server/access/token_registry_test.cc.
#include "server/access/token_store.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace hpo::server {
namespace {

// NULL stands for a time that never comes; a statement stores InfinitePast as NULL.
absl::Time ToColumn(absl::Time time) {
  return time == absl::InfiniteFuture() ? absl::InfinitePast() : time;
}

absl::Time FromColumn(const Statement& row, int column) {
  return row.IsNull(column) ? absl::InfiniteFuture() : row.Time(column);
}

}  // namespace

absl::StatusOr<int64_t> TokenStore::Insert(const TokenRecord& token) {
  Statement insert = database_.Prepare(
      "INSERT INTO access_token (name, role, key_sha256, created, expires, revoked) "
      "VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
  HPO_RETURN_IF_ERROR(insert
                          .Bind(token.name, RoleName(token.role), token.key_sha256, token.created,
                                ToColumn(token.expires), ToColumn(token.revoked))
                          .Run());
  return database_.LastInsertId();
}

absl::Status TokenStore::UpdateTimes(const TokenRecord& token) {
  Statement update =
      database_.Prepare("UPDATE access_token SET expires = ?2, revoked = ?3 WHERE id = ?1");
  return update.Bind(token.id, ToColumn(token.expires), ToColumn(token.revoked)).Run();
}

absl::StatusOr<std::vector<TokenRecord>> TokenStore::LoadAll() const {
  std::vector<TokenRecord> tokens;
  Statement rows = database_.Prepare(
      "SELECT id, name, role, key_sha256, created, expires, revoked FROM access_token ORDER BY id");
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return tokens;
    const std::optional<Role> role = RoleNamed(rows.Text(2));
    if (!role) {
      return absl::DataLossError(
          absl::StrCat("access_token.role: expected a role, got '", rows.Text(2), "'"));
    }
    tokens.push_back({.id = rows.Int(0),
                      .name = rows.Text(1),
                      .role = *role,
                      .key_sha256 = rows.Text(3),
                      .created = rows.Time(4),
                      .expires = FromColumn(rows, 5),
                      .revoked = FromColumn(rows, 6)});
  }
}

}  // namespace hpo::server
