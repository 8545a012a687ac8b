# LibTorch as imported targets, without find_package(Torch): no nvcc, no CUDA toolkit, no Python at
# build time when HPO_TORCH_ROOT names the place.
#
# Looks, in this order, for a directory that holds include/ and lib/ of a torch installation:
#   1. HPO_TORCH_ROOT (cache or environment)
#   2. the package `torch` of the active python3, where it is 2.11 and built with CUDA
#   3. ~/.cache/hpo/torch-*/torch, where scripts/bootstrap puts the wheel
# scripts/bootstrap decides by the same rules.
#
# Defines
#   LibTorch::headers     include directories (torch's, and CUDA's), language settings
#   LibTorch::torch_cpu   tensors and autograd on the CPU; the only one hpo-trainer links
#   LibTorch::c10
#   LibTorch::torch_cuda  LibTorch::c10_cuda   for the module hpo_cuda (docs/adr/001)
#   LibTorch_VERSION, LibTorch_ROOT, LibTorch_LIBRARY_DIR

set(HPO_TORCH_ROOT "$ENV{HPO_TORCH_ROOT}" CACHE PATH
    "Directory with include/ and lib/ of a torch installation")

function(_hpo_find_torch_root result)
  set(candidates "${HPO_TORCH_ROOT}")
  if(NOT HPO_TORCH_ROOT)
    find_program(HPO_PYTHON3 python3)
    if(HPO_PYTHON3)
      # find_spec does not import torch: a second instead of ten.
      execute_process(
        COMMAND ${HPO_PYTHON3} -c
          "import importlib.util as u; s=u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
        OUTPUT_VARIABLE from_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      if(EXISTS "${from_python}/lib/libtorch_cuda.so")
        file(STRINGS "${from_python}/include/torch/headeronly/version.h" minor
             REGEX "#define TORCH_VERSION_MINOR 11$")
        if(minor)
          list(APPEND candidates "${from_python}")
        endif()
      endif()
    endif()
    file(GLOB from_cache "$ENV{HOME}/.cache/hpo/torch-*/torch")
    list(SORT from_cache COMPARE NATURAL ORDER DESCENDING)
    list(APPEND candidates ${from_cache})
  endif()
  foreach(candidate IN LISTS candidates)
    if(candidate AND EXISTS "${candidate}/include/torch/headeronly/version.h"
       AND EXISTS "${candidate}/lib/libtorch_cpu.so")
      get_filename_component(candidate "${candidate}" REALPATH)
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# cuda_runtime_api.h: from the wheels beside torch (nvidia/cu13), else where scripts/bootstrap put
# them for a torch that is not ours, else from an installed toolkit.
function(_hpo_find_cuda_headers torch_root result)
  get_filename_component(site_packages "${torch_root}" DIRECTORY)
  file(GLOB beside "${site_packages}/nvidia/cu[0-9]*/include")
  list(SORT beside COMPARE NATURAL ORDER DESCENDING)
  foreach(candidate IN LISTS beside ITEMS
          "$ENV{HOME}/.cache/hpo/cuda-headers-13.0/nvidia/cu13/include"
          "$ENV{CUDA_HOME}/include" /usr/local/cuda/include)
    if(EXISTS "${candidate}/cuda_runtime_api.h" AND EXISTS "${candidate}/crt/host_defines.h")
      set(${result} "${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

_hpo_find_torch_root(LibTorch_ROOT)
if(NOT LibTorch_ROOT)
  if(HPO_TORCH_ROOT)
    message(FATAL_ERROR "HPO_TORCH_ROOT: expected include/torch/headeronly/version.h and "
      "lib/libtorch_cpu.so under '${HPO_TORCH_ROOT}'; found neither or only one. "
      "Run scripts/bootstrap, or configure with -DHPO_BUILD_TRAINER=OFF.")
  endif()
  message(FATAL_ERROR "LibTorch not found (HPO_TORCH_ROOT, python3's torch, ~/.cache/hpo). "
    "Run scripts/bootstrap, or configure with -DHPO_BUILD_TRAINER=OFF.")
endif()
set(LibTorch_LIBRARY_DIR "${LibTorch_ROOT}/lib")

file(STRINGS "${LibTorch_ROOT}/include/torch/headeronly/version.h" _hpo_version_lines
     REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*PATCH ([0-9]+).*" "\\1.\\2.\\3"
       LibTorch_VERSION "${_hpo_version_lines}")
if(LibTorch_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "LibTorch: expected version 2.11 or later, found ${LibTorch_VERSION} in "
    "${LibTorch_ROOT}. Run scripts/bootstrap.")
endif()

_hpo_find_cuda_headers("${LibTorch_ROOT}" LibTorch_CUDA_INCLUDE_DIR)
if(NOT LibTorch_CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "LibTorch: no CUDA headers (cuda_runtime_api.h, crt/host_defines.h) beside "
    "${LibTorch_ROOT} nor in CUDA_HOME. Run scripts/bootstrap.")
endif()

foreach(_hpo_library IN ITEMS c10 torch_cpu c10_cuda torch_cuda)
  set(_hpo_location "${LibTorch_LIBRARY_DIR}/lib${_hpo_library}.so")
  if(NOT EXISTS "${_hpo_location}")
    message(FATAL_ERROR "LibTorch: ${_hpo_location} is missing; expected a CUDA build of torch. "
      "Run scripts/bootstrap.")
  endif()
  add_library(LibTorch::${_hpo_library} SHARED IMPORTED)
  set_target_properties(LibTorch::${_hpo_library} PROPERTIES IMPORTED_LOCATION "${_hpo_location}")
endforeach()

add_library(LibTorch::headers INTERFACE IMPORTED)
target_include_directories(LibTorch::headers SYSTEM INTERFACE
  "${LibTorch_ROOT}/include"
  "${LibTorch_ROOT}/include/torch/csrc/api/include"
  "${LibTorch_CUDA_INCLUDE_DIR}")
# The wheel's libraries find each other (and CUDA's) by their own RPATH at run time; the linker need
# not see the 2 GB of CUDA libraries behind them.
target_link_options(LibTorch::headers INTERFACE
  -Wl,--allow-shlib-undefined "-Wl,-rpath-link,${LibTorch_LIBRARY_DIR}")
foreach(_hpo_library IN ITEMS c10 torch_cpu c10_cuda torch_cuda)
  target_link_libraries(LibTorch::${_hpo_library} INTERFACE LibTorch::headers)
endforeach()
target_link_libraries(LibTorch::torch_cpu INTERFACE LibTorch::c10)
target_link_libraries(LibTorch::torch_cuda INTERFACE LibTorch::c10_cuda LibTorch::torch_cpu)

message(STATUS "LibTorch ${LibTorch_VERSION}: ${LibTorch_ROOT} (CUDA headers: "
  "${LibTorch_CUDA_INCLUDE_DIR})")
set(LibTorch_FOUND TRUE)
