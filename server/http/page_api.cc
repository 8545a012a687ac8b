// Tested by tests/server/http/page_server_test.cc.
#include "server/http/page_api.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "nlohmann/json.hpp"
#include "server/http/gzip.h"
#include "server/http/http_error.h"
#include "server/http/origin_check.h"
#include "server/http/request_target.h"

namespace hpo::server {
namespace {

constexpr char kApi[] = "/api/";
constexpr char kSession[] = "/api/session";
constexpr char kEvents[] = "/api/events";
constexpr char kHealth[] = "/api/health";
constexpr char kWatchMethod[] = "/hpo.v1.StudyService/WatchStudy";
constexpr char kListMethod[] = "/hpo.v1.StudyService/ListStudies";
constexpr char kJson[] = "application/json";
constexpr char kLines[] = "application/x-ndjson";
constexpr absl::Duration kCallLimit = absl::Minutes(2);
constexpr size_t kWorthPacking = 1024;

// A browser sends the cookies of all ports of a host.
std::string CookieOf(const RequestHead& head) { return absl::StrCat("__Host-hpo-", head.port); }

std::string HostPart(const std::string& from) { return from.substr(0, from.rfind(':')); }

HttpAnswer JsonResponse(const nlohmann::ordered_json& json, int status = 200) {
  return {.status = status,
          .content_type = kJson,
          .headers = {{"Cache-Control", "no-store"}},
          .body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

std::string MediaTypeOf(const RequestHead& head) {
  const std::string type = head.Header("content-type");
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(type.substr(0, type.find(';'))));
}

// The methods that a path of the API has.
absl::string_view AllowedFor(const std::string& path) {
  if (path == kSession) return "GET, DELETE";
  return path == kEvents || path == kHealth ? "GET" : "POST";
}

HttpAnswer WrongMethod(const RequestHead& head, absl::string_view allowed) {
  HttpAnswer response = ErrorResponse(
      405, "UNIMPLEMENTED", absl::StrCat(head.path, ": expected ", allowed, ", got ", head.method));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

// A browser sends JSON of another site only after it has asked whether it may, which is not
// answered.
std::optional<HttpAnswer> CheckMediaType(const RequestHead& head) {
  const std::string type = MediaTypeOf(head);
  if (type == kJson || type == kLines) return std::nullopt;
  return ErrorResponse(415, "INVALID_ARGUMENT",
                       absl::StrCat("Content-Type: expected ", kJson, ", got '", type,
                                    "'; with curl: -H 'Content-Type: application/json'"));
}

// Sends what a call comes to.
class CallAnswer final : public JsonSink {
 public:
  CallAnswer(bool is_stream, bool packs, std::shared_ptr<Reply> reply)
      : is_stream_(is_stream), packs_(packs), reply_(std::move(reply)) {}

  void Take(std::string json, std::function<void(bool)> next) override {
    if (!is_stream_) {
      answer_ = std::move(json);
      return next(true);
    }
    Begin();
    reply_->Write(std::move(json) + "\n", std::move(next));
  }

  void End(const absl::Status& status) override {
    if (!is_stream_) return reply_->Send(status.ok() ? Whole() : ErrorResponse(status));
    if (!status.ok() && !has_begun_) return reply_->Send(ErrorResponse(status));
    Begin();
    if (!status.ok()) {
      reply_->Write(
          absl::StrCat("{\"error\":",
                       ErrorJson(absl::StatusCodeToString(status.code()), status.message()), "}\n"),
          [](bool) {});
    }
    reply_->End();
  }

 private:
  void Begin() {
    if (std::exchange(has_begun_, true)) return;
    reply_->Begin({.content_type = kLines, .headers = {{"Cache-Control", "no-store"}}});
  }

  HttpAnswer Whole() {
    HttpAnswer response{.content_type = kJson,
                        .headers = {{"Cache-Control", "no-store"}, {"Vary", "Accept-Encoding"}},
                        .body = std::move(answer_)};
    response.body.push_back('\n');
    if (packs_ && response.body.size() >= kWorthPacking) {
      response.body = Gzip(response.body, kFastest);
      response.headers.emplace_back("Content-Encoding", "gzip");
    }
    return response;
  }

  const bool is_stream_;
  const bool packs_;
  const std::shared_ptr<Reply> reply_;
  std::string answer_;
  bool has_begun_ = false;
};

// The sequence that a viewer has seen; nullopt: it has seen none.
absl::StatusOr<std::optional<int64_t>> AfterOf(const RequestHead& head) {
  const std::optional<std::string> asked = head.Query("after");
  // A browser that reconnects repeats the address of its first connection.
  const std::string last = head.Header("last-event-id");
  const std::string text = last.empty() ? asked.value_or("") : last;
  if (text.empty()) return std::nullopt;
  int64_t after = 0;
  if (absl::SimpleAtoi(text, &after) && after >= 0) return std::optional<int64_t>(after);
  return absl::InvalidArgumentError(
      absl::StrCat("after: expected the sequence of a change, got '", text, "'"));
}

// With one slash at its beginning: "//host/" would lead to another server.
std::string AddressWithoutToken(const RequestHead& head) {
  std::string address;
  for (const absl::string_view part : absl::StrSplit(head.path, '/', absl::SkipEmpty())) {
    absl::StrAppend(&address, "/", PercentEncoded(part));
  }
  if (address.empty()) address = "/";
  const char* separator = "?";
  for (const auto& [name, value] : head.query) {
    if (name == "token") continue;
    absl::StrAppend(&address, separator, PercentEncoded(name), "=", PercentEncoded(value));
    separator = "&";
  }
  return address;
}

}  // namespace

CallerNames::~CallerNames() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, name] : recent_) access_.LeavePage(name);
}

std::string CallerNames::Of(const Caller& caller) {
  const Key key(caller.token, HostPart(caller.from));
  absl::MutexLock lock(&mutex_);
  if (const auto known = known_.find(key); known != known_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
    return known->second->second;
  }
  recent_.emplace_front(key, access_.EnterPage(caller));
  known_[key] = recent_.begin();
  if (recent_.size() > kMost) {
    access_.LeavePage(recent_.back().second);
    known_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return recent_.front().second;
}

PageApi::PageApi(PageSite site, JsonGateway& gateway, EventHub& hub)
    : site_(std::move(site)),
      gateway_(gateway),
      hub_(hub),
      files_(EmbeddedPage()),
      names_(site_.access) {}

absl::StatusOr<Caller> PageApi::CallerOf(const RequestHead& head) const {
  Caller caller{.name = "local"};
  if (site_.sessions != nullptr) {
    const std::string authorization = head.Header("authorization");
    absl::string_view token = authorization;
    const std::optional<std::string> cookie = CookieNamed(head.Header("cookie"), CookieOf(head));
    if (absl::StartsWithIgnoreCase(token, "bearer ")) {
      token.remove_prefix(sizeof("bearer ") - 1);
      HPO_ASSIGN_OR_RETURN(caller, site_.sessions->OfToken(token));
    } else if (cookie) {
      HPO_ASSIGN_OR_RETURN(caller, site_.sessions->OfCookie(*cookie));
    } else {
      return absl::UnauthenticatedError(
          "expected a token: open the address that hpo open prints, or send the header "
          "Authorization: Bearer TOKEN");
    }
  }
  caller.from = head.from;
  return caller;
}

std::optional<HttpAnswer> PageApi::Screen(RequestHead& head) {
  if (const absl::Status own = CheckOrigin(head, site_.names); !own.ok()) {
    site_.access.audit().WriteSparingly({.event = "refused",
                                         .who = "",
                                         .role = "",
                                         .from = head.from,
                                         .method = head.path.substr(0, 100),
                                         .what = "",
                                         .result = absl::StatusCodeToString(own.code()),
                                         .why = std::string(own.message())});
    return ErrorResponse(own);
  }
  if (absl::StartsWith(head.path, kApi)) return ScreenApi(head);
  if (head.method != "GET" && head.method != "HEAD") return WrongMethod(head, "GET, HEAD");
  return std::nullopt;
}

std::optional<HttpAnswer> PageApi::ScreenApi(RequestHead& head) const {
  const absl::string_view allowed = AllowedFor(head.path);
  const std::vector<absl::string_view> methods = absl::StrSplit(allowed, ", ");
  if (std::find(methods.begin(), methods.end(), head.method) == methods.end()) {
    return WrongMethod(head, allowed);
  }
  const bool is_open = head.path == kHealth || head.method == "DELETE";
  if (is_open) return std::nullopt;
  absl::StatusOr<Caller> caller = CallerOf(head);
  if (!caller.ok()) {
    HttpAnswer response = ErrorResponse(caller.status());
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
  }
  head.caller = *std::move(caller);
  return head.method == "POST" ? CheckMediaType(head) : std::nullopt;
}

void PageApi::Serve(const RequestHead& head, std::string body, std::shared_ptr<Reply> reply) {
  if (!absl::StartsWith(head.path, kApi)) {
    const std::optional<std::string> token = head.Query("token");
    return reply->Send(token ? Enter(head, *token) : files_.Get(head));
  }
  if (head.path == kHealth) return reply->Send(Health());
  if (head.path == kSession) return reply->Send(head.method == "GET" ? Session(head) : Leave(head));
  if (head.path == kEvents) return Watch(head, std::move(reply));
  Call(head, body, std::move(reply));
}

HttpAnswer PageApi::Enter(const RequestHead& head, const std::string& token) const {
  HttpAnswer response{
      .status = 303,
      .headers = {{"Location", AddressWithoutToken(head)}, {"Cache-Control", "no-store"}}};
  if (site_.sessions == nullptr) return response;
  const absl::StatusOr<Caller> caller = site_.sessions->OfToken(token);
  if (!caller.ok()) {
    return {.status = 401,
            .content_type = "text/plain; charset=utf-8",
            .headers = {{"Cache-Control", "no-store"}},
            .body = absl::StrCat(caller.status().message(), "\n")};
  }
  response.headers.emplace_back(
      "Set-Cookie", absl::StrCat(CookieOf(head), "=", site_.sessions->CookieOf(*caller),
                                 "; Path=/; Max-Age=", absl::ToInt64Seconds(PageSessions::kLife),
                                 "; HttpOnly; Secure; SameSite=Strict"));
  return response;
}

HttpAnswer PageApi::Leave(const RequestHead& head) const {
  return {.status = 204,
          .headers = {{"Set-Cookie", absl::StrCat(CookieOf(head),
                                                  "=; Path=/; Max-Age=0; HttpOnly; "
                                                  "Secure; SameSite=Strict")},
                      {"Cache-Control", "no-store"}}};
}

HttpAnswer PageApi::Session(const RequestHead& head) const {
  nlohmann::ordered_json json;
  json["name"] = head.caller->name;
  json["role"] = std::string(RoleName(head.caller->role));
  json["tls"] = head.has_tls;
  json["version"] = site_.version;
  return JsonResponse(json);
}

HttpAnswer PageApi::Health() const {
  const std::string trouble = site_.trouble();
  if (trouble.empty()) return JsonResponse({{"status", "SERVING"}});
  return JsonResponse({{"status", "NOT_SERVING"}, {"why", trouble}}, 503);
}

void PageApi::Call(const RequestHead& head, const std::string& body, std::shared_ptr<Reply> reply) {
  const std::vector<std::string> parts = absl::StrSplit(head.path.substr(sizeof(kApi) - 1), '/');
  if (parts.size() != 2) {
    return reply->Send(ErrorResponse(
        501, "UNIMPLEMENTED",
        absl::StrCat("expected /api/<Service>/<Method>, got ", head.path.substr(0, 100))));
  }
  const absl::StatusOr<JsonMethod> method = JsonGateway::Find(parts[0], parts[1]);
  if (!method.ok()) return reply->Send(ErrorResponse(method.status()));
  gateway_.Call(
      *method, body, names_.Of(*head.caller), kCallLimit,
      std::make_unique<CallAnswer>(method->answers_stream,
                                   AcceptsGzip(head.Header("accept-encoding")), std::move(reply)));
}

void PageApi::Watch(const RequestHead& head, std::shared_ptr<Reply> reply) {
  const absl::Status added = AddViewer(head, reply);
  if (!added.ok()) reply->Send(ErrorResponse(added));
}

absl::Status PageApi::AddViewer(const RequestHead& head, const std::shared_ptr<Reply>& reply) {
  HPO_ASSIGN_OR_RETURN(const std::optional<int64_t> after, AfterOf(head));
  const std::string study = head.Query("study").value_or("");
  HPO_ASSIGN_OR_RETURN(
      AccessControl::Permit permit,
      site_.access.Allow(study.empty() ? kListMethod : kWatchMethod, names_.Of(*head.caller)));
  return hub_.Add({.host = HostPart(head.from),
                   .study = study,
                   .after = after,
                   .polls = head.Query("poll").has_value(),
                   .may_watch = [this, head] { return CallerOf(head).ok(); },
                   .holds = std::make_shared<AccessControl::Permit>(std::move(permit)),
                   .reply = reply});
}

}  // namespace hpo::server
