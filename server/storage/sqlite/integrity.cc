#include "server/storage/sqlite/integrity.h"

namespace hpo::server {
namespace {

std::vector<std::string> LookOver(Database& database) {
  std::vector<std::string> damage;
  Statement rows = database.Prepare("PRAGMA quick_check(10)");
  for (;;) {
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) damage.emplace_back(row.status().message());
    if (!row.ok() || !*row) return damage;
    if (rows.Text(0) != "ok") damage.push_back(rows.Text(0));
  }
}

}  // namespace

std::vector<std::string> FindDamage(Database& database) {
  std::vector<std::string> damage = LookOver(database);
  // The check names a page that the disk failed to give, too, and does not say which it is.
  if (!damage.empty()) damage = LookOver(database);
  return damage;
}

}  // namespace hpo::server
