# Everything the distribution packages bring. LibTorch has its own module, FindLibTorch.cmake.

find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(yaml-cpp CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers alone
find_package(Eigen3 3.4 REQUIRED NO_MODULE)

find_package(PkgConfig REQUIRED)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)

if(HPO_BUILD_TESTS)
  find_package(GTest CONFIG REQUIRED)
endif()

# yaml-cpp's target was renamed between the releases we support.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(HPO_STATIC_DEPENDENCIES)
  include(HpoStaticDependencies)
  hpo_use_static_dependencies()
  add_library(hpo_spdlog ALIAS spdlog::spdlog_header_only)
else()
  add_library(hpo_spdlog ALIAS spdlog::spdlog)
endif()

if(HPO_BUILD_TRAINER)
  find_package(LibTorch REQUIRED)
endif()
