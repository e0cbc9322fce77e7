# Warnings, hardening and sanitizers for every target, as one interface
# target, and the helpers that declare this project's libraries and tests.
include(CheckCCompilerFlag)

set(GPULAUNCH_SANITIZE "" CACHE STRING
    "Sanitizers: empty, 'address,undefined', 'thread'")
option(GPULAUNCH_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(GPULAUNCH_WERROR "Treat warnings as errors" OFF)

add_library(gpul_options INTERFACE)
target_compile_definitions(gpul_options INTERFACE _GNU_SOURCE
    GPULAUNCH_VERSION="${PROJECT_VERSION}")
target_include_directories(gpul_options INTERFACE ${PROJECT_SOURCE_DIR})

foreach(flag -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow
        -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
        -Wcast-qual -Wwrite-strings -Wformat=2 -Wundef -Wvla
        -fstack-protector-strong -fno-common)
    string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
    check_c_compiler_flag(${flag} ${have})
    if(${have})
        target_compile_options(gpul_options INTERFACE ${flag})
    endif()
endforeach()
if(GPULAUNCH_WERROR)
    target_compile_options(gpul_options INTERFACE -Werror)
endif()
target_link_options(gpul_options INTERFACE -Wl,-z,relro -Wl,-z,now
    -Wl,--as-needed)

# Assertions guard our own invariants; they stay in release builds.
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_RELWITHDEBINFO
    "${CMAKE_C_FLAGS_RELWITHDEBINFO}")

if(GPULAUNCH_SANITIZE)
    target_compile_options(gpul_options INTERFACE
        -fsanitize=${GPULAUNCH_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    target_link_options(gpul_options INTERFACE
        -fsanitize=${GPULAUNCH_SANITIZE})
    # See common/startup.h: the search for leaks could not run.
    target_compile_definitions(gpul_options INTERFACE GPUL_STAYS_DUMPABLE)
endif()
if(GPULAUNCH_FUZZ)
    target_compile_options(gpul_options INTERFACE
        -fsanitize=fuzzer-no-link,address,undefined
        -fno-sanitize-recover=all)
    target_link_options(gpul_options INTERFACE -fsanitize=address,undefined)
endif()

# gpul_library(NAME source...): a static library of ours.
function(gpul_library name)
    add_library(${name} STATIC ${ARGN})
    target_link_libraries(${name} PUBLIC gpul_options)
endfunction()

# gpul_pure_library(NAME source...): the same, listed for check-layers.
function(gpul_pure_library name)
    gpul_library(${name} ${ARGN})
    set_property(GLOBAL APPEND PROPERTY GPUL_PURE ${name})
endfunction()

function(gpul_write_pure_targets)
    get_property(pure GLOBAL PROPERTY GPUL_PURE)
    list(JOIN pure "\n" lines)
    file(WRITE ${PROJECT_BINARY_DIR}/pure-targets.txt "${lines}\n")
endfunction()
