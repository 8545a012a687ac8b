#include "server/storage/sqlite/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status.h"
#include "common/files/read_file.h"
#include "common/files/sha256.h"

namespace hpo::server {
namespace {

constexpr int kBusyMilliseconds = 5000;

// sha256(text), for scripts: in hexadecimal.
void Sha256Function(sqlite3_context* context, int, sqlite3_value** values) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(values[0]));
  const auto size = static_cast<size_t>(sqlite3_value_bytes(values[0]));
  const std::string digest = Sha256Hex(text == nullptr ? "" : absl::string_view(text, size));
  sqlite3_result_text(context, digest.data(), static_cast<int>(digest.size()), SQLITE_TRANSIENT);
}

absl::StatusCode CodeOf(int extended) {
  switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return absl::StatusCode::kAlreadyExists;
    default:
      break;
  }
  switch (extended & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_IOERR:
    case SQLITE_INTERRUPT:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
      return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_CONSTRAINT:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

// The database's file and its log.
template <typename Look>
void ForEachFile(sqlite3* connection, const Look& look) {
  for (const int which : {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER}) {
    sqlite3_file* file = nullptr;
    sqlite3_file_control(connection, "main", which, &file);
    if (file != nullptr && file->pMethods != nullptr) look(file);
  }
}

bool DiskFailed(sqlite3_file* file) {
  int error = 0;
  file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &error);
  return error == EIO || error == ENXIO;
}

// SQLite calls a database malformed, too, where the disk fails to give a page of it; errno of the
// file tells the two apart.
bool DiskFailed(sqlite3* connection) {
  bool failed = false;
  ForEachFile(connection, [&](sqlite3_file* file) { failed = failed || DiskFailed(file); });
  return failed;
}

// SQLite keeps a file's errno until a read meets the file's end.
void ForgetDiskFailure(sqlite3* connection) {
  ForEachFile(connection, [](sqlite3_file* file) {
    sqlite3_int64 size = 0;
    if (!DiskFailed(file) || file->pMethods->xFileSize(file, &size) != SQLITE_OK) return;
    char byte;
    file->pMethods->xRead(file, &byte, 1, size);
  });
}

// Whether opening or writing a file may work later although nobody changes its path or its rights.
bool OpeningMayPass(int extended, int system_error) {
  switch (extended & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return MayPass(system_error);
    default:
      return true;
  }
}

}  // namespace

Statement::Statement(Database* database, sqlite3_stmt* statement, std::string sql,
                     absl::Status status)
    : database_(database),
      statement_(statement),
      sql_(std::move(sql)),
      status_(std::move(status)) {}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      sql_(std::move(other.sql_)),
      status_(std::move(other.status_)) {}

Statement::~Statement() {
  if (statement_ != nullptr) database_->GiveBack(sql_, statement_);
}

void Statement::Check(int code) {
  if (code != SQLITE_OK && status_.ok()) status_ = database_->Error(code, sql_);
}

void Statement::BindOne(int index, int64_t value) {
  if (status_.ok()) Check(sqlite3_bind_int64(statement_, index, value));
}

void Statement::BindOne(int index, double value) {
  if (status_.ok()) Check(sqlite3_bind_double(statement_, index, value));
}

void Statement::BindOne(int index, absl::string_view value) {
  if (!status_.ok()) return;
  // An empty view may hold a null pointer, which SQLite would store as NULL.
  const char* text = value.empty() ? "" : value.data();
  Check(sqlite3_bind_text64(statement_, index, text, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::BindOne(int index, absl::Time value) {
  value == absl::InfinitePast() ? BindNull(index) : BindOne(index, absl::ToUnixMicros(value));
}

void Statement::BindOne(int index, absl::Duration value) {
  BindOne(index, absl::ToInt64Microseconds(value));
}

void Statement::BindNull(int index) {
  if (status_.ok()) Check(sqlite3_bind_null(statement_, index));
}

absl::StatusOr<bool> Statement::Next() {
  if (!status_.ok()) return status_;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  status_ = database_->Error(code, sql_);
  return status_;
}

absl::Status Statement::Run() {
  for (;;) {
    HPO_ASSIGN_OR_RETURN(const bool row, Next());
    if (!row) return absl::OkStatus();
  }
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::Real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::Text(int column) const {
  const unsigned char* text = sqlite3_column_text(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text), size);
}

absl::Time Statement::Time(int column) const {
  return IsNull(column) ? absl::InfinitePast() : absl::FromUnixMicros(Int(column));
}

bool Statement::IsNull(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

int Statement::num_columns() const { return sqlite3_column_count(statement_); }

std::string Statement::ColumnName(int column) const {
  return sqlite3_column_name(statement_, column);
}

Statement::Type Statement::TypeOf(int column) const {
  switch (sqlite3_column_type(statement_, column)) {
    case SQLITE_INTEGER:
      return Type::kInteger;
    case SQLITE_FLOAT:
      return Type::kReal;
    case SQLITE_NULL:
      return Type::kNull;
    default:
      return Type::kText;
  }
}

Database::Database(std::string path, sqlite3* connection)
    : path_(std::move(path)), connection_(connection) {}

Database::~Database() {
  FinalizeIdle();
  sqlite3_close_v2(connection_);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path, Access access) {
  const int flags = access == Access::kReadOnly ? SQLITE_OPEN_READONLY
                                                : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &connection, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  // Owned from here on: SQLite hands out a connection to close even where opening failed.
  std::unique_ptr<Database> database(new Database(path, connection));
  const absl::Status opened =
      code == SQLITE_OK ? database->Configure(access) : database->Error(code, "open");
  if (opened.ok()) return database;
  const bool may_pass =
      OpeningMayPass(sqlite3_extended_errcode(connection), sqlite3_system_errno(connection));
  if (access == Access::kReadOnly || may_pass) return opened;
  return absl::FailedPreconditionError(opened.message());
}

absl::Status Database::Configure(Access access) {
  sqlite3_extended_result_codes(connection_, 1);
  sqlite3_busy_timeout(connection_, kBusyMilliseconds);
  sqlite3_create_function(connection_, "sha256", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr,
                          Sha256Function, nullptr, nullptr);
  HPO_RETURN_IF_ERROR(Execute("PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY"));
  if (access == Access::kReadOnly) return absl::OkStatus();
  // The log is cut back to this once a checkpoint has been through it, whatever readers held it up.
  return Execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA journal_size_limit=4194304");
}

Statement Database::Prepare(absl::string_view sql) {
  // Within a transaction a failed read goes on to fail what comes after it.
  if (!InTransaction()) ForgetDiskFailure(connection_);
  if (auto found = idle_statements_.find(sql); found != idle_statements_.end()) {
    sqlite3_stmt* statement = found->second;
    std::string text = found->first;
    idle_statements_.erase(found);
    return Statement(this, statement, std::move(text), absl::OkStatus());
  }
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  absl::Status status = code == SQLITE_OK ? absl::OkStatus() : Error(code, sql);
  return Statement(this, statement, std::string(sql), std::move(status));
}

void Database::GiveBack(const std::string& sql, sqlite3_stmt* statement) {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  // Those in use again soon come back; those that a client's filters made do not.
  if (idle_statements_.size() >= static_cast<size_t>(kStatementLimit.most)) FinalizeIdle();
  if (!idle_statements_.emplace(sql, statement).second) sqlite3_finalize(statement);
}

void Database::FinalizeIdle() {
  for (const auto& [sql, statement] : idle_statements_) sqlite3_finalize(statement);
  idle_statements_.clear();
}

absl::Status Database::Execute(const std::string& script) {
  const int code = sqlite3_exec(connection_, script.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, script);
}

bool Database::InTransaction() const { return sqlite3_get_autocommit(connection_) == 0; }

int64_t Database::NumChanged() const { return sqlite3_changes64(connection_); }

int64_t Database::LastInsertId() const { return sqlite3_last_insert_rowid(connection_); }

absl::Status Database::Error(int code, absl::string_view doing) const {
  int extended = sqlite3_extended_errcode(connection_);
  std::string message = sqlite3_errmsg(connection_);
  if ((extended & 0xff) == SQLITE_CORRUPT && DiskFailed(connection_)) {
    extended = SQLITE_IOERR_READ;
    message = sqlite3_errstr(SQLITE_IOERR);
  }
  return absl::Status(CodeOf(extended), absl::StrCat("database ", path_, ": ", message, " (code ",
                                                     code, ", ", doing.substr(0, 80), ")"));
}

absl::StatusOr<Transaction> Transaction::Begin(Database& database) {
  HPO_RETURN_IF_ERROR(database.Prepare("BEGIN IMMEDIATE").Run());
  return Transaction(&database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ == nullptr || !database_->InTransaction()) return;
  database_->Prepare("ROLLBACK").Run().IgnoreError();
}

absl::Status Transaction::Commit() {
  HPO_RETURN_IF_ERROR(database_->Prepare("COMMIT").Run());
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace hpo::server
