// A thin RAII layer over SQLite: connection, statement, transaction.
//
// A Database is one connection and belongs to one thread at a time. Codes of every call:
//   Unavailable         the file is busy, the disk is full, an input/output error occurred, or no
//                       memory or descriptor is left; try again
//   DataLoss            the file is damaged or no database
//   AlreadyExists       a unique key is taken
//   FailedPrecondition  another constraint
//   Internal            our own mistake (a statement that SQLite does not understand)
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bytes.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hpo::server {

class Database;

// One execution of a prepared statement, taken from the connection's cache and given back, reset,
// by the destructor. Errors of preparing and binding surface at Next() or Run(). Must not outlive
// its Database.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds all parameters in order, ?1 first. nullopt and InfinitePast are stored as NULL, times as
  // microseconds since the epoch.
  template <typename... Values>
  Statement& Bind(const Values&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
    return *this;
  }

  // Steps to the next row; false after the last.
  absl::StatusOr<bool> Next();
  // Steps to the end.
  absl::Status Run();

  // The current row's columns, from 0. NULL reads as 0, "" and InfinitePast.
  int64_t Int(int column) const;
  double Real(int column) const;
  bool Bool(int column) const { return Int(column) != 0; }
  std::string Text(int column) const;
  Bytes Size(int column) const { return Bytes{Int(column)}; }
  absl::Time Time(int column) const;
  bool IsNull(int column) const;

  // For rows whose columns are not known beforehand.
  enum class Type { kNull, kInteger, kReal, kText };
  int num_columns() const;
  std::string ColumnName(int column) const;
  Type TypeOf(int column) const;
  template <typename Value>
  void BindAt(int index, const Value& value) {
    BindOne(index, value);
  }

 private:
  friend class Database;
  Statement(Database* database, sqlite3_stmt* statement, std::string sql, absl::Status status);

  void BindOne(int index, int64_t value);
  void BindOne(int index, int value) { BindOne(index, static_cast<int64_t>(value)); }
  void BindOne(int index, bool value) { BindOne(index, static_cast<int64_t>(value)); }
  void BindOne(int index, double value);
  void BindOne(int index, absl::string_view value);
  void BindOne(int index, const std::string& value) { BindOne(index, absl::string_view(value)); }
  void BindOne(int index, const char* value) { BindOne(index, absl::string_view(value)); }
  void BindOne(int index, Bytes value) { BindOne(index, value.count); }
  void BindOne(int index, absl::Time value);
  void BindOne(int index, absl::Duration value);
  void BindNull(int index);
  template <typename T>
  void BindOne(int index, const std::optional<T>& value) {
    value ? BindOne(index, *value) : BindNull(index);
  }
  void Check(int code);

  Database* database_;
  sqlite3_stmt* statement_;
  std::string sql_;
  absl::Status status_;
};

class Database {
 public:
  enum class Access { kReadWrite, kReadOnly };

  // Opens (kReadWrite: creates where absent) the database at `path`: WAL, synchronous=FULL, foreign
  // keys on, 5 s of patience with a busy file.
  //   FailedPrecondition  kReadWrite: the file cannot be opened or written, and waiting does not
  //                       help
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, Access access);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // `sql` is one statement; equal texts share one prepared statement. At most kStatementLimit of
  // them are kept.
  Statement Prepare(absl::string_view sql);

  // Runs a script of any number of statements without parameters.
  absl::Status Execute(const std::string& script);

  // Whether a transaction is open. SQLite ends one by itself after some errors (a full disk).
  bool InTransaction() const;

  // Rows changed by the last INSERT, UPDATE or DELETE.
  int64_t NumChanged() const;
  int64_t LastInsertId() const;

  const std::string& path() const { return path_; }

 private:
  friend class Statement;
  Database(std::string path, sqlite3* connection);

  absl::Status Configure(Access access);
  absl::Status Error(int code, absl::string_view doing) const;
  void GiveBack(const std::string& sql, sqlite3_stmt* statement);
  void FinalizeIdle();

  std::string path_;
  sqlite3* connection_;
  std::map<std::string, sqlite3_stmt*, std::less<>> idle_statements_;
};

// BEGIN IMMEDIATE now; rolled back by the destructor unless committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& database);

  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  // Durable when it returns OK.
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}

  Database* database_;
};

}  // namespace hpo::server
