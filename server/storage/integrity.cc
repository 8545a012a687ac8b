#include "server/storage/integrity.h"

namespace hpo {

std::vector<std::string> FindDamage(Database& database) {
  std::vector<std::string> damage;
  Statement rows = database.Prepare("PRAGMA quick_check(10)");
  for (;;) {
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) damage.emplace_back(row.status().message());
    if (!row.ok() || !*row) return damage;
    if (rows.Text(0) != "ok") damage.push_back(rows.Text(0));
  }
}

}  // namespace hpo
