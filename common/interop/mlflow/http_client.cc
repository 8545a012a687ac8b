#include "common/interop/mlflow/http_client.h"

#include <curl/curl.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace hpo {
namespace {

constexpr size_t kLargestAnswer = size_t{64} << 20;

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

// Fewer bytes taken than there are ends the transfer.
size_t TakeBytes(const char* data, size_t, size_t size, void* out) {
  auto& body = *static_cast<std::string*>(out);
  if (body.size() + size > kLargestAnswer) return 0;
  body.append(data, size);
  return size;
}

int IsCancelled(void* cancelled, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(cancelled)->load() ? 1 : 0;
}

class CurlClient final : public HttpClient {
 public:
  CurlClient(std::unique_ptr<CURL, FreeHandle> handle, const HttpOptions& options)
      : handle_(std::move(handle)), options_(options) {
    AddHeader("Content-Type: application/json");
    AddHeader("Expect:");
    if (!options_.token.empty()) AddHeader(absl::StrCat("Authorization: Bearer ", options_.token));
  }

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request) override {
    HttpResponse response;
    char reason[CURL_ERROR_SIZE] = "";
    Prepare(request, response.body, reason);
    const CURLcode code = curl_easy_perform(handle_.get());
    if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("the request was given up");
    if (code != CURLE_OK) {
      return absl::UnavailableError(*reason != '\0' ? reason : curl_easy_strerror(code));
    }
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    return response;
  }

  std::string Escape(const std::string& text) override {
    const std::unique_ptr<char, FreeText> escaped(
        curl_easy_escape(handle_.get(), text.data(), static_cast<int>(text.size())));
    return escaped ? escaped.get() : "";
  }

 private:
  void AddHeader(const std::string& header) {
    curl_slist* const longer = curl_slist_append(headers_.get(), header.c_str());
    if (longer == nullptr) return;
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  void Prepare(const HttpRequest& request, std::string& body, char* reason) {
    CURL* const handle = handle_.get();
    curl_easy_reset(handle);  // connections stay
    curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(absl::ToInt64Milliseconds(options_.connect_timeout)));
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(absl::ToInt64Milliseconds(options_.timeout)));
    if (!request.body.empty()) {
      curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
    }
    if (!options_.user.empty()) {
      curl_easy_setopt(handle, CURLOPT_USERNAME, options_.user.c_str());
      curl_easy_setopt(handle, CURLOPT_PASSWORD, options_.password.c_str());
    }
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, TakeBytes);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, reason);
    if (options_.cancelled != nullptr) {
      curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
      curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, IsCancelled);
      curl_easy_setopt(handle, CURLOPT_XFERINFODATA, options_.cancelled);
    }
  }

  const std::unique_ptr<CURL, FreeHandle> handle_;
  const HttpOptions options_;
  std::unique_ptr<curl_slist, FreeList> headers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> MakeHttpClient(const HttpOptions& options) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<CURL, FreeHandle> handle(curl_easy_init());
  if (started != CURLE_OK || handle == nullptr) {
    return absl::InternalError(absl::StrCat("libcurl: ", curl_easy_strerror(started)));
  }
  return std::make_unique<CurlClient>(std::move(handle), options);
}

}  // namespace hpo
