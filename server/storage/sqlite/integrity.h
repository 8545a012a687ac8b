// Whether a database file is what SQLite wrote.
#pragma once

#include <string>
#include <vector>

#include "server/storage/sqlite/database.h"

namespace hpo::server {

// What PRAGMA quick_check finds, at most ten lines; empty: nothing. Reads the whole file, and once
// more where it finds something: what a disk failed to read for a moment is no damage.
std::vector<std::string> FindDamage(Database& database);

}  // namespace hpo::server
