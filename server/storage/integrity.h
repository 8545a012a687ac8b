// Whether a database file is what SQLite wrote.
#pragma once

#include <string>
#include <vector>

#include "server/storage/database.h"

namespace hpo {

// What PRAGMA quick_check finds, at most ten lines; empty: nothing. Reads the whole file once.
std::vector<std::string> FindDamage(Database& database);

}  // namespace hpo
